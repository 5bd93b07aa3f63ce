// The part of idl_translation.h that translates answers.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <sstream>

#include "base/text.h"
#include "cli/pool/idl_translation.h"
#include "job/idl/eviction.h"

namespace sublet::cli {
namespace {

// A sequence's elements, each translated by `f`.
template <typename Out, typename Sequence, typename F>
std::vector<Out> each(const Sequence& sequence, F f) {
  std::vector<Out> out;
  out.reserve(sequence.length());
  for (CORBA::ULong i = 0; i < sequence.length(); ++i) out.push_back(f(sequence[i]));
  return out;
}

std::string text(const char* s) { return s == nullptr ? "" : s; }

// The value with this name among name-value pairs, or "".
std::string word_in(const v1::Details& details, const char* name) {
  for (CORBA::ULong i = 0; i < details.length(); ++i)
    if (text(details[i].name) == name) return text(details[i].value);
  return "";
}
std::vector<std::string> words_in(const v1::Details& details, const char* name) {
  std::istringstream words(word_in(details, name));
  return {std::istream_iterator<std::string>(words), {}};
}
int64_t number_in(const v1::Details& details, const char* name, int64_t otherwise) {
  const std::string word = word_in(details, name);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() ? value : otherwise;
}

double real_in(const v1::Details& details, const char* name) {
  const std::string word = word_in(details, name);
  double value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

// Those that this program knows.
std::vector<StepSpread> steps_in(const v1::Details& details) {
  std::vector<StepSpread> steps;
  for (const protocol::EvictionStep& step : protocol::kEvictionSteps) {
    const std::string name = "step." + std::to_string(step.number);
    std::istringstream numbers(word_in(details, name.c_str()));
    StepSpread spread;
    spread.step = step.name;
    numbers >> spread.count >> spread.p50_us >> spread.p95_us >> spread.p99_us >> spread.most_us;
    if (numbers) steps.push_back(spread);
  }
  return steps;
}

// The number of jobs that this entry of a list represents.
uint64_t count_in(const v1::Details& details) {
  return static_cast<uint64_t>(std::max<int64_t>(number_in(details, "count", 1), 1));
}

AttemptInfo from_attempt(const v1::AttemptInfo& a) {
  AttemptInfo out;
  out.number = a.number;
  out.machine = a.machine;
  out.machine_name = text(a.machine_name);
  out.state = a.state;
  out.ended = a.ended;
  out.reason = text(a.reason);
  out.decided_us = a.decided;
  out.started_us = a.started;
  out.finished_us = a.finished;
  out.exit_status = a.exit_status;
  out.signal = a.signal;
  out.cpu_ms = a.cpu;
  out.cpu_lost_ms = a.cpu_lost;
  out.memory_peak = a.memory_peak;
  out.processes_peak = static_cast<uint64_t>(number_in(a.more, "processes_peak", 0));
  out.disk_peak = static_cast<uint64_t>(number_in(a.more, "disk_peak", 0));
  out.network_bytes = number_in(a.more, "network_bytes", -1);
  out.preempted_for = static_cast<uint64_t>(number_in(a.more, "preempted_for", 0));
  out.generation = a.generation;
  out.checkpoint_bytes = a.checkpoint_bytes;
  out.resumed_ppm = a.resumed_ppm;
  out.progress_ppm = a.progress_ppm;
  out.steps = from_idl(a.steps);
  if (out.steps.gone < 0) out.steps.gone = a.quiesce_us;  // an earlier server sends no steps
  return out;
}

OutputInfo from_output(const v1::OutputInfo& o) {
  OutputInfo out;
  out.name = from_octets(o.name);
  out.size = o.size;
  for (CORBA::ULong i = 0; i < o.content_digest.length() && i < out.digest.size(); ++i)
    out.digest[i] = o.content_digest[i];
  out.cut = o.cut;
  return out;
}

MachineInfo from_machine(const v1::MachineInfo& m) {
  MachineInfo out;
  out.number = m.number;
  out.name = text(m.description.name);
  out.os = text(m.description.os);
  out.architecture = text(m.description.architecture);
  out.version = text(m.description.version);
  out.cores = m.description.cores;
  out.slots = m.description.slots;
  out.memory = m.description.memory;
  out.disk = m.description.disk;
  out.speed = std::max(0.0, real_in(m.description.more, "speed"));
  out.away = m.report.away;
  out.paused = m.report.reason == v1::PRESENCE_PAUSED;
  out.draining = m.draining;
  out.failures = static_cast<uint64_t>(number_in(m.more, "failures", 0));
  out.failure = word_in(m.more, "failure");
  out.rests_until_us = number_in(m.more, "rests_until", 0);
  out.owner_cpu = m.report.owner_cpu;
  out.input_idle_ms = m.report.input_idle;
  out.slots_free = m.report.slots_free;
  out.memory_free = m.report.memory_free;
  out.disk_free = m.report.disk_free;
  out.resources = from_idl(m.description.resources);
  out.resources_free = from_idl(m.report.free);
  out.state = m.state;
  out.requesting = m.requesting;
  out.state_since_us = m.state_since;
  out.heard_us = m.heard;
  out.running = each<std::pair<uint64_t, uint32_t>>(m.running, [](const v1::AttemptKey& k) {
    return std::pair<uint64_t, uint32_t>(k.job, k.attempt);
  });
  return out;
}

}  // namespace

JobSummary from_summary(const v1::JobSummary& job) {
  JobSummary out;
  out.id = job.id;
  out.count = count_in(job.more);
  out.batch = job.batch;
  out.index = job.index;
  out.name = text(job.name);
  out.user = text(job.user);
  out.state = job.state;
  out.attempts = job.attempts;
  out.machine = text(job.machine);
  out.reason = text(job.reason);
  out.submitted_us = job.submitted;
  out.changed_us = job.changed;
  out.progress_ppm = job.progress_ppm;
  out.cpu_kept_ms = job.cpu_kept;
  out.cpu_lost_ms = job.cpu_lost;
  out.evictions = job.evictions;
  out.priority = static_cast<int32_t>(number_in(job.more, "priority", 0));
  return out;
}

JobPage from_page(const v1::JobPage& page) {
  return {each<JobSummary>(page.jobs, from_summary), from_octets(page.next)};
}

JobDetail from_detail(const v1::JobDetail& job) {
  return {from_summary(job.summary),
          from_idl(job.description),
          each<AttemptInfo>(job.attempts, from_attempt),
          each<OutputInfo>(job.outputs, from_output),
          word_in(job.more, "forecast"),
          number_in(job.more, "starts_at", 0),
          word_in(job.more, "promised"),
          number_in(job.more, "outputs_removed_at", 0),
          word_in(job.more, "message"),
          number_in(job.more, "at_risk_ms", -1)};
}

AttemptPage from_attempts(const v1::AttemptPage& page) {
  return {each<AttemptInfo>(page.attempts, from_attempt), from_octets(page.next)};
}

OutputPage from_outputs(const v1::OutputPage& page) {
  return {each<OutputInfo>(page.outputs, from_output), from_octets(page.next)};
}

JobCounts from_counts(const v1::JobCounts& counts) {
  JobCounts out;
  const std::map<uint64_t, uint64_t*> places = {
      {kWaiting, &out.waiting},    {kPlaced, &out.placed},
      {kRunning, &out.running},    {kHeld, &out.held},
      {kDone, &out.done},          {kFailed, &out.failed},
      {kRemoved, &out.removed},    {kDelivering, &out.delivering},
      {kSuspended, &out.suspended}};
  for (CORBA::ULong i = 0; i < counts.length(); ++i) {
    const auto place = places.find(counts[i].value);
    (place == places.end() ? out.other : *place->second) += counts[i].number;
  }
  return out;
}

PoolInfo from_info(const v1::PoolInfo& info) {
  PoolInfo out;
  out.name = text(info.name);
  out.version = text(info.version);
  out.id = hex_encode(from_octets(v1::Bytes(info.id.length(), info.id.length(),
                                            const_cast<CORBA::Octet*>(info.id.get_buffer()))));
  out.term = info.term;
  out.uptime_ms = info.uptime;
  out.capabilities =
      each<std::string>(info.capabilities, [](const char* name) { return text(name); });
  out.more = from_idl(info.more);
  return out;
}

LogPart from_log(const v1::LogPart& part) {
  LogPart out;
  out.attempt = part.attempt;
  out.offset = part.offset;
  out.text = from_octets(part.text);
  out.ended = part.ended;
  for (const auto& [name, value] : from_idl(part.more)) {
    if (name == "machine") out.machine = value;
    if (name == "cut") out.cut = true;
    if (name == "busy") out.busy = true;
  }
  return out;
}

ChangePage from_changes(const v1::ChangePage& page) {
  ChangePage out;
  out.items = each<Change>(page.items, [](const v1::Change& c) {
    return Change{c.number, c.at, c.job, c.batch, c.state, c.attempt, c.ended, count_in(c.more)};
  });
  out.last = page.last;
  out.gap = page.gap;
  return out;
}

MachinePage from_machines(const v1::MachinePage& page) {
  return {each<MachineInfo>(page.machines, from_machine), from_octets(page.next)};
}

MemberPage from_members(const v1::MemberPage& page) {
  MemberPage out;
  for (CORBA::ULong i = 0; i < page.members.length(); ++i) {
    const v1::MemberInfo& m = page.members[i];
    out.members.push_back({m.name.in(), static_cast<uint32_t>(m.role), m.joined, m.expires,
                           m.revoked, m.invited_by.in()});
  }
  out.next = from_octets(page.next);
  return out;
}

UsagePage from_usage(const v1::UsagePage& page) {
  return {each<UsageLine>(page.lines,
                          [](const v1::UsageLine& l) {
                            return UsageLine{from_idl(l.group),
                                             l.jobs_done,
                                             l.attempts,
                                             l.evictions,
                                             l.cpu_us,
                                             l.kept_us,
                                             l.lost_us,
                                             l.wall_us,
                                             l.charged_us,
                                             number_in(l.more, "waited_us", 0),
                                             number_in(l.more, "local_us", -1),
                                             steps_in(l.more)};
                          }),
          from_octets(page.next)};
}

Policies from_policies(const v1::Policies& policies) {
  return {from_idl(policies.parameters), policies.since, text(policies.by)};
}

SharesPage from_shares(const v1::SharesPage& page) {
  return {each<UserShares>(page.shares,
                           [](const v1::UserShares& s) {
                             return UserShares{text(s.user), s.shares, s.by_administrator != 0};
                           }),
          from_octets(page.next)};
}

QuotaPage from_quotas(const v1::QuotaPage& page) {
  return {each<Quota>(page.quotas,
                      [](const v1::Quota& q) {
                        return Quota{text(q.user), q.bytes, q.used,
                                     static_cast<uint64_t>(number_in(q.more, "checkpoints", 0)),
                                     q.by_administrator != 0};
                      }),
          from_octets(page.next)};
}

namespace {

Standing from_standing(const v1::Standing& s) {
  return Standing{text(s.user),
                  s.usage,
                  s.charges,
                  s.shares,
                  s.active,
                  s.best_priority,
                  text(s.reason),
                  static_cast<uint64_t>(number_in(s.more, "waiting", 0)),
                  static_cast<uint64_t>(number_in(s.more, "place", 0)),
                  number_in(s.more, "cpu_day_us", -1),
                  words_in(s.more, "users")};
}

}  // namespace

StandingPage from_standings(const v1::StandingPage& page) {
  return {each<Standing>(page.users, from_standing), from_octets(page.next)};
}

}  // namespace sublet::cli
