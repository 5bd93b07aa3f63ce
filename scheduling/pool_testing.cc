#include "scheduling/pool_testing.h"

#include <sstream>
#include <stdexcept>
#include <tuple>

namespace sublet::scheduling::testing {
namespace {

template <typename T>
auto plain(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<uint32_t>(value);
  } else {
    return value;
  }
}
std::string plain(const AttemptKey& key) {
  return std::to_string(key.job) + "." + std::to_string(key.attempt);
}
std::string plain(const SharedString& text) { return text.str(); }
std::string plain(const Sentence& sentence) { return sentence.text(); }
std::string plain(const Requirements& n) {
  std::ostringstream out;
  out << n.os.str() << '/' << n.architecture.str() << '/' << n.cores << '/' << n.memory << '/'
      << n.disk;
  for (const SharedString& text : {n.platforms, n.require, n.prefer, n.resources, n.hours})
    out << '/' << text.str();
  return out.str();
}

template <typename... Fields>
std::string line(const char* name, const Fields&... fields) {
  std::ostringstream out;
  out.precision(17);
  out << name;
  ((out << ' ' << plain(fields)), ...);
  return out.str();
}

struct ToText {
  std::string operator()(const JobRecord& r) const {
    return line("job", r.id, r.count, r.batch, r.index, r.user, r.submit_host, r.state, r.attempts,
                r.needs, r.priority, r.retries_left, r.evictions, r.share_priority,
                r.share_priority_at, r.share_priority_step, r.generation, r.checkpoint_bytes,
                r.submitted, r.changed, r.cpu_kept, r.cpu_lost, r.reason, r.refusals, r.not_before,
                r.vain, r.has_started, r.earliest, r.program);
  }
  std::string operator()(const AttemptRecord& r) const {
    return line("attempt", r.key, r.machine, r.state, r.ended, r.reason, r.decided, r.started,
                r.finished, r.resumed_generation, r.generation, r.cpu, r.cpu_lost, r.leaving_since,
                r.ready, r.charged, r.charged_left, r.preempted_for, r.charged_new,
                r.charged_until);
  }
  std::string operator()(const MachineRecord& r) const {
    return line("machine", r.id, r.name, r.os, r.architecture, r.cores, r.slots, r.memory, r.disk,
                r.state, r.state_since, r.draining, r.resources, r.failures.count, r.failures.last,
                r.failures.reason, r.failures.rests_until, r.failures.unstarted,
                r.failures.unstarted_first, r.failures.unstarted_second, r.speed);
  }
  std::string operator()(const UserRecord& r) const {
    return line("user", r.name, r.shares, r.usage, r.charges, r.by_administrator, r.number,
                r.last_grant, r.owed, r.guaranteed, r.drawn, r.index, r.placed, r.placed_since,
                r.has_forgone);
  }
  std::string operator()(const UseRecord& r) const {
    return line("use", r.key, r.user, r.machine, r.batch, r.ended, r.finished, r.wall, r.used,
                r.kept, r.lost, r.charged, r.started, r.waited);
  }
  std::string operator()(const ChangeRecord& r) const {
    return line("change", r.number, r.at, r.job, r.count, r.batch, r.user, r.state, r.attempt,
                r.ended);
  }
  std::string operator()(const BatchRecord& r) const {
    return line("batch", r.id, r.stop_when.done, r.stop_when.failed, r.stop_when.output, r.done,
                r.failed, r.stopped_by, r.at_most, r.to_come);
  }
  std::string operator()(const RelationRecord& r) const {
    std::string text = line("relation", r.jobs.first, r.jobs.count, r.on_never, r.lost_by,
                            r.lost_as, r.over, r.gate, "on");
    for (const Dependence& on : r.on) text += line("", on.jobs.first, on.jobs.count, on.condition);
    return text;
  }
  std::string operator()(const AbsenceRecord& r) const {
    return line("absences", r.machine, r.absences);
  }
  std::string operator()(const ProgramRecord& r) const {
    return line("program", r.program, r.architecture, r.speed, r.runs, r.log_cpu, r.last,
                r.forgotten);
  }
  std::string operator()(const PoolRecord& r) const {
    return line("pool", r.next_job, r.next_batch, r.next_machine, r.next_change, r.last_tick, r.now,
                r.utc_offset, r.indices_due);
  }
  std::string operator()(const PolicyRecord& r) const {
    const PolicyChoice& c = r.choice;
    return line("policy", c.job_policy, c.machine_policy, c.candidates, c.half_life, c.floor,
                c.cost_cpu, c.initial_priority_zero, c.turns_by_machine, c.charge_all, c.drift,
                c.throttle, c.throttle_span, c.wide_wait, c.victim_policy, c.licences,
                c.most_per_user, c.most_per_machine, r.since, r.by);
  }
  std::string operator()(const StartAttempt& d) const {
    return line("start", d.key, d.machine, d.generation, d.user, d.checkpoint_bytes);
  }
  std::string operator()(const TellToLeave& d) const {
    return line("leave", d.key, d.machine, d.reason);
  }
};

void demand(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

// Writes one record; `subjects` are the ones seen in this outcome.
struct Writer {
  Books& books;
  std::set<std::string>& subjects;
  bool damaged;
  JobId last_job;  // of the previous outcomes

  void once(const std::string& subject) const {
    demand(subjects.insert(subject).second, "twice in one outcome: " + subject);
  }
  void operator()(const JobRecord& r) const {
    once("job " + std::to_string(r.id));
    demand(r.count > 0, "a record of no job");
    books.rows[r.id] = r;
    for (uint64_t k = 0; k < r.count; ++k) write(one_of(r, k));
  }
  void write(const JobRecord& r) const {
    const auto it = books.jobs.find(r.id);
    if (it != books.jobs.end()) {
      demand(!is_final(it->second.state), "a final job changed");
      demand(r.attempts >= it->second.attempts, "attempts went back");
      demand(damaged || r.generation >= it->second.generation, "generation went back");
    } else {
      // Or it was reserved.
      demand(r.id > last_job || r.id < books.pool.next_job, "job id went back");
    }
    books.jobs[r.id] = r;
  }
  void operator()(const AttemptRecord& r) const {
    once("attempt " + plain(r.key));
    const auto it = books.attempts.find(r.key);
    if (it != books.attempts.end()) {
      demand(it->second.state == r.state || may_follow(r.state, it->second.state),
             "an attempt's state went back");
      demand(it->second.state != AttemptState::kEnded, "an ended attempt changed");
    }
    books.attempts[r.key] = r;
  }
  void operator()(const MachineRecord& r) const {
    once("machine " + std::to_string(r.id));
    books.machines[r.id] = r;
  }
  void operator()(const UserRecord& r) const {
    once("user " + r.name);
    books.users[r.name] = r;
  }
  void operator()(const UseRecord& r) const {
    demand(r.used == r.kept + r.lost && r.kept >= 0 && r.lost >= 0, "used is not kept + lost");
    demand(r.waited >= 0 && r.started <= r.finished, "an attempt waited for less than nothing");
    demand(books.uses.emplace(r.key, r).second, "an attempt's use was recorded twice");
  }
  void operator()(const ChangeRecord& r) const {
    demand(r.number == books.changes.size() + 2, "a gap in the changes");
    books.changes.push_back(r);
  }
  void operator()(const BatchRecord& r) const {
    once("batch " + std::to_string(r.id));
    demand(r.stop_when.is_set() || r.at_most > 0, "a batch without a condition or limit");
    demand(books.batches[r.id].stopped_by == 0 || r.to_come < books.batches[r.id].to_come,
           "a stopped batch changed");
    books.batches[r.id] = r;
  }
  void operator()(const AbsenceRecord& r) const {
    once("absences " + std::to_string(r.machine));
    demand(books.machines.contains(r.machine), "absences from no machine");
    books.absences[r.machine] = r;
  }
  void operator()(const PolicyRecord& r) const {
    once("policy");
    books.policy = r;
  }
  void operator()(const RelationRecord& r) const {
    const JobId first = r.jobs.first;
    once("relation " + std::to_string(first));
    demand(books.jobs.contains(first), "a relation of no job");
    if (r.over)
      demand(books.relations.erase(first) == 1 || first > last_job, "a relation ended twice");
    else
      books.relations[first] = r;
  }
  void operator()(const ProgramRecord& r) const {
    once("program " + std::to_string(r.program) + r.architecture + std::to_string(r.speed));
    const std::tuple key(r.program, r.architecture, r.speed);
    if (r.forgotten)
      demand(books.programs.erase(key) == 1, "an unknown program was forgotten");
    else
      books.programs[key] = r;
  }
  void operator()(const PoolRecord& r) const {
    once("pool");
    books.pool = r;
  }
};

}  // namespace

std::string text_of(const Record& record) { return std::visit(ToText(), record); }

std::string text_of(const Outcome& outcome) {
  std::string text;
  for (const Record& record : outcome.records) text += text_of(record) + "\n";
  for (const Decision& decision : outcome.decisions) text += std::visit(ToText(), decision) + "\n";
  const Answer& a = outcome.answer;
  text += line("answer", a.first_job, a.batch, a.machine, a.changed, a.unchanged, a.accepted);
  for (const auto& [key, verdict] : a.verdicts) text += line(" verdict", key, verdict);
  return text + "\n";
}

void Books::write(const Outcome& outcome, bool damaged) {
  std::set<std::string> subjects;
  const Writer writer{*this, subjects, damaged, jobs.empty() ? 0 : jobs.rbegin()->first};
  for (const Record& record : outcome.records) std::visit(writer, record);
  if (!subjects.contains("pool")) return;
  demand(std::holds_alternative<PoolRecord>(outcome.records.back()), "the pool's is not last");
}

Snapshot Books::snapshot() const {
  Snapshot snapshot;
  snapshot.pool = pool;
  snapshot.policy = policy;
  for (const auto& [name, user] : users) snapshot.users.push_back(user);
  for (const auto& [id, machine] : machines) snapshot.machines.push_back(machine);
  for (const auto& [id, absences_of_one] : absences) snapshot.absences.push_back(absences_of_one);
  std::set<JobId> wanted;
  for (const auto& [id, job] : rows) {
    if (!is_final(job.state)) wanted.insert(id);
  }
  for (const auto& [key, attempt] : attempts) {
    const bool newest = wanted.contains(key.job) && rows.at(key.job).attempts == key.attempt;
    if (attempt.state == AttemptState::kEnded && !newest) continue;
    wanted.insert(key.job);
    snapshot.attempts.push_back(attempt);
  }
  std::set<BatchId> at_work;
  for (const JobId id : wanted) {
    snapshot.jobs.push_back(rows.at(id));
    if (!is_final(rows.at(id).state)) at_work.insert(rows.at(id).batch);
  }
  for (const auto& [first, relation] : relations) snapshot.relations.push_back(relation);
  for (const auto& [key, program] : programs) snapshot.programs.push_back(program);
  for (const auto& [id, batch] : batches)
    if (at_work.contains(id) || batch.to_come > 0) snapshot.batches.push_back(batch);
  return snapshot;
}

const Outcome& TestPool::apply(const Event& event) {
  last = pool.apply(event, now);
  books.write(last, std::holds_alternative<CheckpointDamaged>(event));
  return last;
}

bool TestPool::to_next_deadline() {
  const auto deadline = pool.next_deadline();
  if (!deadline) return false;
  now = std::max(now, *deadline);
  apply(TimePassed());
  return true;
}

MachineId TestPool::join(const std::string& name, uint32_t slots, bool away) {
  return join({0, name, "linux", "x86_64", slots, slots, 8ull << 30, 100ull << 30}, away);
}

MachineId TestPool::join(const MachineJoined& event, bool away) {
  const MachineId id = apply(event).answer.machine;
  if (away) report(id, true);
  return id;
}

void TestPool::report(MachineId machine, bool away, uint64_t memory_free) {
  apply(MachineReported{machine, away, memory_free, 100ull << 30});
}

JobId TestPool::submit(const std::string& user, size_t count, Submitted::Job job,
                       const std::string& host) {
  return apply(Submitted{1, user, host, std::vector<Submitted::Job>(count, job)}).answer.first_job;
}

void TestPool::start(JobId job) {
  const AttemptKey k = key(job);
  const MachineId m = machine_of(job);
  apply(OrderAnswered{k, OrderAnswered::Answer::kAccepted, ""});
  apply(AttemptStarted{k, m});
}

const Outcome& TestPool::end(JobId job, EndReason ended, Micros cpu, Micros saved) {
  return apply(AttemptEnded{key(job), machine_of(job), ended, "", cpu, saved, cpu});
}

const Outcome& TestPool::renew(JobId job, AttemptState state) {
  return apply(Renewed{machine_of(job), false, {{key(job), state}}});
}

AttemptKey TestPool::key(JobId job) const {
  const AttemptRecord* attempt = pool.attempt(job);
  return attempt == nullptr ? AttemptKey{} : attempt->key;
}

MachineId TestPool::machine_of(JobId job) const {
  const AttemptRecord* attempt = pool.attempt(job);
  return attempt == nullptr ? 0 : attempt->machine;
}

}  // namespace sublet::scheduling::testing
