#include "scheduling/events/event_codec.h"

#include <algorithm>
#include <type_traits>

#include "protocol/codec.h"

namespace sublet::scheduling {
namespace {

// One description of each event's fields serves both directions: `Out` writes the
// event, `In` reads it. Fields added since an event's first version form its tail,
// after the others; it is written only when needed and missing in older rows.
class Out {
 public:
  void field(const uint64_t& v) { out.number(v); }
  void field(const uint32_t& v) { out.number(v); }
  void field(const int64_t& v) { out.number(v); }
  void field(const int32_t& v) { out.number(v); }
  void field(const bool& v) { out.flag(v); }
  void field(const double& v) { out.real(v); }
  void field(const std::string& v) { out.text(v); }
  void field(const SharedString& v) { out.text(v.str()); }
  template <typename E>
  requires std::is_enum_v<E>
  void field(const E& v) { out.number(static_cast<uint32_t>(v)); }
  template <typename T>
  size_t size(std::vector<T>& v) {
    out.number(uint64_t{v.size()});
    return v.size();
  }
  template <typename F>
  void tail(bool has_one, F fields_of_tail) {
    if (has_one) fields_of_tail();
  }
  protocol::Encoder out;
};

class In {
 public:
  explicit In(std::string_view bytes) : in(bytes) {}
  void field(uint64_t& v) { v = in.number(); }
  void field(uint32_t& v) { v = in.number32(); }
  void field(int64_t& v) { v = in.signed_number(); }
  void field(int32_t& v) { v = in.signed_number32(); }
  void field(bool& v) { v = in.flag(); }
  void field(double& v) { v = in.real(); }
  void field(std::string& v) { v = in.text(); }
  void field(SharedString& v) { v = in.text(); }
  template <typename E>
  requires std::is_enum_v<E>
  void field(E& v) { v = static_cast<E>(in.number32()); }
  template <typename T>
  size_t size(std::vector<T>& v) {
    v.resize(in.count(8));
    return v.size();
  }
  template <typename F>
  void tail(bool, F fields_of_tail) {
    if (!in.at_end()) fields_of_tail();
  }
  protocol::Decoder in;
};

template <typename A>
void fields(A& a, AttemptKey& k) {
  a.field(k.job);
  a.field(k.attempt);
}
template <typename A>
void fields(A& a, Requirements& r) {
  a.field(r.os);
  a.field(r.architecture);
  a.field(r.cores);
  a.field(r.memory);
  a.field(r.disk);
}
template <typename A>
void fields(A& a, Dependence& d) {
  a.field(d.jobs.first);
  a.field(d.jobs.count);
  a.field(d.condition);
}
template <typename A>
void dependences(A& a, std::vector<Dependence>& v) {
  a.size(v);
  for (auto& dependence : v) fields(a, dependence);
}
template <typename A>
void fields(A& a, Submitted& e) {
  a.field(e.batch);
  a.field(e.user);
  a.field(e.submit_host);
  a.size(e.jobs);
  for (auto& job : e.jobs) {
    fields(a, job.needs);
    a.field(job.priority);
    a.field(job.retries);
    a.field(job.count);
  }
  const bool has_platforms = std::any_of(e.jobs.begin(), e.jobs.end(),
                                         [](auto& job) { return !job.needs.platforms.empty(); });
  const bool has_require = std::any_of(e.jobs.begin(), e.jobs.end(),
                                       [](auto& job) { return !job.needs.require.empty(); });
  const bool has_relations =
      std::any_of(e.jobs.begin(), e.jobs.end(), [](auto& job) { return !job.after.empty(); });
  const bool has_prefer = std::any_of(e.jobs.begin(), e.jobs.end(),
                                      [](auto& job) { return !job.needs.prefer.empty(); });
  const bool has_resources = std::any_of(e.jobs.begin(), e.jobs.end(),
                                         [](auto& job) { return !job.needs.resources.empty(); });
  const bool has_program =
      std::any_of(e.jobs.begin(), e.jobs.end(), [](auto& job) { return job.program != 0; });
  const bool has_times = std::any_of(e.jobs.begin(), e.jobs.end(), [](auto& job) {
    return !job.needs.hours.empty() || job.earliest != 0;
  });
  const bool is_piece = e.piece.first != 0;
  const bool has_programs = has_program || is_piece;
  const bool has_times_or_program = has_times || has_programs;
  const bool has_at_most = e.at_most > 0 || has_times_or_program;
  const bool has_last = has_relations || has_prefer || has_resources || has_at_most;
  const bool has_later = has_require || has_last;
  a.tail(e.stop_when.is_set() || has_platforms || has_later, [&] {
    a.field(e.stop_when.done);
    a.field(e.stop_when.failed);
    a.field(e.stop_when.output);
    for (auto& job : e.jobs) a.field(job.needs.platforms);
  });
  a.tail(has_later, [&] {
    for (auto& job : e.jobs) a.field(job.needs.require);
  });
  a.tail(has_last, [&] {
    a.field(e.on_never);
    for (auto& job : e.jobs) dependences(a, job.after);
  });
  a.tail(has_prefer || has_resources || has_at_most, [&] {
    for (auto& job : e.jobs) a.field(job.needs.prefer);
  });
  a.tail(has_resources || has_at_most, [&] {
    for (auto& job : e.jobs) a.field(job.needs.resources);
  });
  a.tail(has_at_most, [&] { a.field(e.at_most); });
  a.tail(has_times_or_program, [&] {
    for (auto& job : e.jobs) {
      a.field(job.needs.hours);
      a.field(job.earliest);
    }
  });
  a.tail(has_programs, [&] {
    for (auto& job : e.jobs) a.field(job.program);
  });
  a.tail(is_piece, [&] {
    a.field(e.piece.first);
    a.field(e.piece.index);
    a.field(e.piece.to_come);
  });
  a.tail(e.piece.gated, [&] { a.field(e.piece.gated); });
}
template <typename A>
void fields(A& a, BatchOpened& e) {
  a.field(e.user);
}
template <typename A>
void fields(A& a, MachineJoined& e) {
  a.field(e.machine);
  a.field(e.name);
  a.field(e.os);
  a.field(e.architecture);
  a.field(e.cores);
  a.field(e.slots);
  a.field(e.memory);
  a.field(e.disk);
  a.tail(!e.resources.empty(), [&] { a.field(e.resources); });
}
template <typename A>
void first_fields(A& a, MachineReported& e) {
  a.field(e.machine);
  a.field(e.away);
  a.field(e.memory_free);
  a.field(e.disk_free);
}
bool has_last(const MachineReported& e) { return e.owner_away || e.ahead > 0; }
bool has_later(const MachineReported& e) { return e.speed != 0 || e.load != 0 || has_last(e); }
// `more`: something follows.
template <typename A>
void later_fields(A& a, MachineReported& e, bool more = false) {
  a.tail(has_later(e) || more, [&] {
    a.field(e.speed);
    a.field(e.load);
  });
  a.tail(has_last(e) || more, [&] { a.field(e.owner_away); });
  a.tail(e.ahead > 0 || more, [&] { a.field(e.ahead); });
}
template <typename A>
void fields(A& a, MachineReported& e) {
  first_fields(a, e);
  later_fields(a, e);
}
template <typename A>
void fields(A& a, MachineWithdrew& e) {
  a.field(e.machine);
}
template <typename A>
void fields(A& a, Renewed& e) {
  a.field(e.machine);
  a.field(e.first);
  a.size(e.attempts);
  for (auto& status : e.attempts) {
    fields(a, status.key);
    a.field(status.state);
    a.field(status.delivered);
  }
  const bool has_memory = std::any_of(e.attempts.begin(), e.attempts.end(),
                                      [](auto& status) { return status.memory > 0; });
  a.tail(has_memory || e.report, [&] {
    for (auto& status : e.attempts) a.field(status.memory);
  });
  a.tail(e.report.has_value(), [&] {
    if (!e.report) e.report.emplace();
    first_fields(a, *e.report);
  });
  const bool has_disk = std::any_of(e.attempts.begin(), e.attempts.end(),
                                    [](auto& status) { return status.disk > 0; });
  // Of no use without attempts.
  const bool has_waits = e.report && e.says_waits && !e.attempts.empty();
  a.tail(e.report && (has_disk || has_later(*e.report) || has_waits), [&] {
    for (auto& status : e.attempts) a.field(status.disk);
  });
  if (!e.report) return;
  later_fields(a, *e.report, has_waits);
  a.tail(has_waits, [&] {
    a.field(e.says_waits);
    for (auto& status : e.attempts) a.field(status.waits);
  });
}
template <typename A>
void fields(A& a, OrderAnswered& e) {
  fields(a, e.key);
  a.field(e.answer);
  a.field(e.reason);
  a.tail(e.machine_failed, [&] { a.field(e.machine_failed); });
}
template <typename A>
void fields(A& a, AttemptStarted& e) {
  fields(a, e.key);
  a.field(e.machine);
  a.tail(e.ran != 0, [&] { a.field(e.ran); });
}
template <typename A>
void fields(A& a, CheckpointStored& e) {
  fields(a, e.key);
  a.field(e.machine);
  a.field(e.generation);
  a.field(e.bytes);
}
template <typename A>
void fields(A& a, AttemptEnded& e) {
  fields(a, e.key);
  a.field(e.machine);
  a.field(e.ended);
  a.field(e.reason);
  a.field(e.cpu);
  a.field(e.cpu_saved);
  a.field(e.wall);
  a.field(e.started);
  const bool has_growth = e.memory_peak > 0 || e.alike.count > 0 || e.staging > 0;
  a.tail(has_growth || !e.left.empty(), [&] { a.field(e.left); });
  a.tail(has_growth, [&] {
    a.field(e.memory_peak);
    a.field(e.alike.first);
    a.field(e.alike.count);
  });
  a.tail(e.staging > 0, [&] { a.field(e.staging); });
}
template <typename A>
void ids(A& a, std::vector<JobRange>& v) {
  a.size(v);
  for (auto& range : v) {
    a.field(range.first);
    a.field(range.count);
  }
}
template <typename A>
void states(A& a, std::vector<JobState>& v) {
  a.size(v);
  for (auto& state : v) a.field(state);
}
template <typename A>
void fields(A& a, JobsRemoved& e) {
  ids(a, e.jobs);
  a.tail(!e.only_in.empty() || !e.by.empty(), [&] {
    states(a, e.only_in);
    a.field(e.by);
  });
}
template <typename A>
void fields(A& a, JobsHeld& e) {
  ids(a, e.jobs);
  a.tail(!e.only_in.empty() || !e.by.empty() || !e.reason.empty(), [&] {
    states(a, e.only_in);
    a.field(e.by);
    a.field(e.reason);
  });
}
template <typename A>
void fields(A& a, JobsReleased& e) {
  ids(a, e.jobs);
  a.tail(!e.only_in.empty(), [&] { states(a, e.only_in); });
}
template <typename A>
void fields(A& a, SharesSet& e) {
  a.field(e.user);
  a.field(e.shares);
  a.tail(e.by != SharesSet::By::kSettings, [&] { a.field(e.by); });
}
template <typename A>
void fields(A& a, Ticked& e) {
  a.tail(e.utc_offset != 0, [&] { a.field(e.utc_offset); });
}
template <typename A>
void fields(A&, TimePassed&) {}
template <typename A>
void fields(A& a, Parameters& p) {
  a.field(p.job_policy);
  a.field(p.machine_policy);
  a.field(p.tick);
  a.field(p.half_life);
  a.field(p.initial_priority_zero);
  a.field(p.turns_by_machine);
  a.field(p.charge_all);
  a.field(p.drift);
  a.field(p.default_shares);
  a.field(p.lease);
  a.field(p.leaving_wait);
  a.field(p.refusal_pause);
}
// Parameters added since the first version: the event's tail, in two steps.
template <typename A>
void later_fields(A& a, Parameters& p) {
  bool known = false;
  a.tail(true, [&] {
    known = true;
    a.field(p.floor);
    a.field(p.cost_cpu);
  });
  a.tail(true, [&] {
    a.field(p.throttle);
    a.field(p.throttle_span);
  });
  // In an event without the first of these, "fair-share" means what is now called fair-share-1998.
  if (!known && p.job_policy == "fair-share") p.job_policy = "fair-share-1998";
}
// The last part of the tail.
template <typename A>
void latest_fields(A& a, Parameters& p) {
  a.tail(true, [&] {
    a.field(p.rest_least);
    a.field(p.rest_most);
    a.field(p.most_per_user);
    a.field(p.most_per_machine);
  });
}
bool has_ahead_return(const Parameters& p) { return p.ahead_return != Parameters().ahead_return; }
bool has_fields_for_ahead(const Parameters& p) {
  const Parameters usual;
  return p.short_run != usual.short_run || p.ahead_wait != usual.ahead_wait || has_ahead_return(p);
}
template <typename A>
void account_fields(A& a, Parameters& p, bool more = false) {
  const bool has_ahead = has_fields_for_ahead(p) || more;
  a.tail(!p.accounts.empty() || has_ahead, [&] { a.field(p.accounts); });
  a.tail(has_ahead, [&] {
    a.field(p.short_run);
    a.field(p.ahead_wait);
  });
}
template <typename A>
void promise_fields(A& a, PolicyChoice& c) {
  a.tail(true, [&] {
    a.field(c.wide_wait);
    a.field(c.victim_policy);
  });
}
template <typename A>
void fields(A& a, ServerStarted& e) {
  a.tail(e.parameters.has_value(), [&] {
    if (!e.parameters) e.parameters.emplace();
    fields(a, *e.parameters);
    later_fields(a, *e.parameters);
    a.tail(true, [&] { a.field(e.parameters->candidates); });
    promise_fields(a, *e.parameters);
    a.tail(true, [&] { a.field(e.parameters->licences); });
    latest_fields(a, *e.parameters);
    a.tail(true, [&] { a.field(e.utc_offset); });
    account_fields(a, *e.parameters);
    a.tail(has_ahead_return(*e.parameters), [&] { a.field(e.parameters->ahead_return); });
  });
}
template <typename A>
void fields(A& a, Anchored& e) {
  fields(a, e.parameters);
  a.size(e.machines);
  for (auto& m : e.machines) {
    a.field(m.machine);
    a.field(m.away);
    a.field(m.silent);
    a.field(m.memory_free);
    a.field(m.disk_free);
    a.field(m.last_contact);
    a.field(m.paused_until);
    a.field(m.registration);
  }
  a.size(e.idle);
  for (auto& m : e.idle) {
    a.field(m.machine);
    a.field(m.since);
  }
  a.size(e.attempts);
  for (auto& attempt : e.attempts) {
    a.field(attempt.job);
    a.field(attempt.receipt);
    a.field(attempt.registration);
    a.field(attempt.delivered);
  }
  a.size(e.requesting);
  for (auto& host : e.requesting) a.field(host);
  // Written whenever anything follows.
  a.tail(true, [&] {
    for (auto& attempt : e.attempts) a.field(attempt.memory_offered);
  });
  later_fields(a, e.parameters);
  a.tail(true, [&] {
    for (auto& attempt : e.attempts) a.field(attempt.memory_used);
  });
  a.tail(true, [&] {
    a.field(e.parameters.candidates);
    for (auto& m : e.machines) a.field(m.away_since);
  });
  promise_fields(a, e.parameters);
  a.tail(true, [&] {
    for (auto& m : e.machines) a.field(m.promised);
  });
  a.tail(true, [&] { a.field(e.parameters.licences); });
  latest_fields(a, e.parameters);
  a.tail(true, [&] {
    for (auto& attempt : e.attempts) a.field(attempt.disk_used);
  });
  a.tail(true, [&] {
    for (auto& m : e.machines) a.field(m.owner_seen);
  });
  a.tail(true, [&] {
    for (auto& m : e.machines) {
      a.field(m.load);
      a.field(m.granted);
    }
  });
  const Parameters& p = e.parameters;
  const bool has_called =
      has_ahead_return(p) || !e.owed.empty() ||
      std::any_of(e.attempts.begin(), e.attempts.end(), [](auto& a) { return a.called_back > 0; });
  const bool has_ahead =
      has_called ||
      std::any_of(e.machines.begin(), e.machines.end(),
                  [](auto& m) { return m.ahead_most > 0 || m.last_end > 0 || m.turns > 0; }) ||
      std::any_of(e.attempts.begin(), e.attempts.end(),
                  [](auto& a) { return a.placed_ahead || a.ahead_until > 0 || a.turn > 0; });
  const bool has_more = has_ahead || has_fields_for_ahead(p) || !p.accounts.empty();
  a.tail(!e.licensed.empty() || has_more, [&] {
    a.size(e.licensed);
    for (auto& kept : e.licensed) {
      a.field(kept.job);
      a.field(kept.machine);
    }
  });
  account_fields(a, e.parameters, has_ahead);
  a.tail(has_ahead, [&] {
    for (auto& m : e.machines) {
      a.field(m.ahead_most);
      a.field(m.short_runs);
      a.field(m.last_end);
      a.field(m.turns);
    }
    for (auto& attempt : e.attempts) {
      a.field(attempt.ahead);
      a.field(attempt.ahead_until);
      a.field(attempt.placed_ahead);
      a.field(attempt.turn);
    }
  });
  a.tail(has_called, [&] {
    a.field(e.parameters.ahead_return);
    for (auto& attempt : e.attempts) a.field(attempt.called_back);
    a.size(e.owed);
    for (auto& user : e.owed) a.field(user);
  });
}

template <typename A>
void fields(A& a, CheckpointDamaged& e) {
  fields(a, e.key);
  a.field(e.machine);
  a.field(e.generation);
  a.field(e.usable);
  a.field(e.bytes);
}

template <typename A>
void fields(A& a, MachineDrained& e) {
  a.field(e.machine);
  a.field(e.drained);
}
template <typename A>
void fields(A& a, MachineEvicted& e) {
  a.field(e.machine);
}
template <typename A>
void fields(A& a, PrioritySet& e) {
  ids(a, e.jobs);
  a.field(e.priority);
  a.tail(!e.only_in.empty(), [&] { states(a, e.only_in); });
}

template <typename A>
void fields(A& a, PolicyChoice& c) {
  a.field(c.job_policy);
  a.field(c.machine_policy);
  a.field(c.half_life);
  a.field(c.floor);
  a.field(c.cost_cpu);
  a.field(c.initial_priority_zero);
  a.field(c.turns_by_machine);
  a.field(c.charge_all);
  a.field(c.drift);
  a.field(c.throttle);
  a.field(c.throttle_span);
}
template <typename A>
void fields(A& a, PolicySet& e) {
  a.field(e.by);
  fields(a, e.choice);
  a.tail(true, [&] { a.field(e.choice.candidates); });
  promise_fields(a, e.choice);
  a.tail(true, [&] { a.field(e.choice.licences); });
  a.tail(true, [&] {
    a.field(e.choice.most_per_user);
    a.field(e.choice.most_per_machine);
  });
}

template <typename A>
void fields(A& a, BatchReserved& e) {
  a.field(e.batch);
  a.field(e.count);
  a.field(e.stop_when.done);
  a.field(e.stop_when.failed);
  a.field(e.stop_when.output);
  a.field(e.at_most);
}
template <typename A>
void fields(A& a, RelationsBegun& e) {
  a.field(e.jobs.first);
  a.field(e.jobs.count);
  a.field(e.opens);
  a.field(e.most);
  a.tail(e.first != 0, [&] {
    a.field(e.first);
    a.size(e.lost);
    for (auto& lost : e.lost) {
      fields(a, lost.dependence);
      a.field(lost.by);
      a.field(lost.as);
    }
  });
}

template <size_t I = 0>
Event decode_as(uint32_t kind, In& in) {
  if constexpr (I == std::variant_size_v<Event>) {
    throw protocol::Damaged("an event of an unknown kind");
  } else {
    if (kind != I) return decode_as<I + 1>(kind, in);
    std::variant_alternative_t<I, Event> event;
    fields(in, event);
    return event;
  }
}

}  // namespace

std::string encode_event(const Event& event) {
  Out out;
  // fields() takes a mutable reference for In; Out only reads.
  std::visit([&out](const auto& e) { fields(out, const_cast<std::decay_t<decltype(e)>&>(e)); },
             event);
  return out.out.take();
}

Event decode_event(uint32_t kind, std::string_view bytes) {
  In in(bytes);
  return decode_as(kind, in);
}

}  // namespace sublet::scheduling
