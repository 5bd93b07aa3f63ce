// Random histories: the invariants after every event, that the same history gives the
// same outcomes, and that a restored brain continues like the live one.
#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <limits>
#include <sstream>

#include "scheduling/events/event_codec.h"
#include "scheduling/hashed.h"
#include "scheduling/policies/job_policies.h"
#include "scheduling/policies/machine_policies.h"
#include "scheduling/policies/victim_policies.h"
#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;
using testing::text_of;

// An expression of a job, and what it means.
struct Expression {
  const char* text;
  bool (*holds)(const MachineRecord&);
};
constexpr std::array<Expression, 4> kExpressions = {{
    {"cores >= 3", [](const MachineRecord& m) { return m.cores >= 3; }},
    {"memory_mb > 7000 and os == 'linux'",
     [](const MachineRecord& m) { return m.memory > 7000ull << 20 && m.os == "linux"; }},
    {"memory_mb < 8192 or slots != 1",
     [](const MachineRecord& m) { return m.memory < 8ull << 30 || m.slots != 1; }},
    {"cores > 99", [](const MachineRecord&) { return false; }},
}};

// Hours of a job, and what they mean. Histories begin on a Tuesday at 22:13:20 UTC.
struct Window {
  const char* text;
  bool (*open)(int weekday, int minute);  // from 0, Sunday; of the day
};
constexpr std::array<Window, 5> kWindows = {{
    {"22:14-22:16", [](int, int minute) { return minute / 2 == (22 * 60 + 14) / 2; }},
    {"tue 22:15-00:00, wed",
     [](int day, int minute) { return day == 3 || (day == 2 && minute >= 22 * 60 + 15); }},
    {"fri-tue 23:43-21:45, 22:15-22:17, 22:45-22:47",
     [](int day, int minute) {
       const int of_hour = minute % 60;
       if (minute / 60 == 22 && (of_hour % 30 == 15 || of_hour % 30 == 16)) return true;
       const bool evening = minute >= 23 * 60 + 43 && (day >= 5 || day <= 2);
       return evening || (minute < 21 * 60 + 45 && (day == 6 || day <= 3));
     }},
    {"wed-mon", [](int day, int) { return day != 2; }},
    {"00:00-12:00, 12:00-24:00", [](int, int) { return true; }},
}};

bool is_open(const TestPool& t, const std::string& hours) {
  if (hours.empty()) return true;
  const time_t local = t.now / kSecond + t.pool.counters().utc_offset;
  tm parts = {};
  gmtime_r(&local, &parts);
  const auto same = [&](const Window& w) { return w.text == hours; };
  return std::find_if(kWindows.begin(), kWindows.end(), same)
      ->open(parts.tm_wday, parts.tm_hour * 60 + parts.tm_min);
}
bool may_start(const TestPool& t, const JobRecord& job) {
  return job.earliest <= t.now && is_open(t, job.needs.hours.str());
}

Parameters some_parameters(uint32_t bits) {
  Parameters p;
  const std::vector<std::string> machine_policies = known_machine_policies();
  const uint64_t more_bits = hashed(bits);
  p.machine_policy = machine_policies[more_bits % machine_policies.size()];
  const std::vector<std::string> victim_policies = known_victim_policies();
  p.victim_policy = victim_policies[more_bits / 4194304 % victim_policies.size()];
  p.candidates = 1 + more_bits / 1024 % 4;
  const std::vector<std::string> policies = known_job_policies();
  p.job_policy = policies[bits / 32 % policies.size()];
  p.half_life = (bits & 1024 ? 100 : 300) * kSecond;
  p.turns_by_machine = bits & 1;
  p.charge_all = bits & 2;
  p.drift = !(bits & 4);
  p.initial_priority_zero = bits & 8;
  p.cost_cpu = bits & 256;
  p.floor = bits & 512 ? 0 : 0.25;
  p.throttle = bits / 64 % 3;
  p.throttle_span = (1 + bits / 8 % 20) * kSecond;
  p.wide_wait = static_cast<Micros>(more_bits / 65536 % 4) * 20 * kSecond;
  // A name may be the machines' or the pool's.
  constexpr const char* kLicences[] = {"", "lic=1", "lic=2", "gpu=1 lic=3", "gpu=2 lic=0"};
  p.licences = kLicences[more_bits / 4096 % std::size(kLicences)];
  p.rest_least = static_cast<Micros>(more_bits / 4096 % 4) * 5 * kSecond;
  p.rest_most = p.rest_least + 30 * kSecond;
  if (more_bits & 1 << 16) p.most_per_user = 1 + more_bits / (1 << 17) % 4;
  if (more_bits & 1 << 20) p.most_per_machine = more_bits & 1 << 21 ? "1" : "2 m2=1 m0=3";
  constexpr const char* kAccounts[] = {"", "lab=a c", "ab=a b, other=c d"};
  p.accounts = kAccounts[(more_bits >> 40) % std::size(kAccounts)];
  return p;
}

// The rule of accounts, as some_parameters() may set them: whom a job of the user counts for.
std::string counted_for(const TestPool& t, const std::string& user) {
  const std::string accounts = t.pool.accounts().text();
  if (accounts.starts_with("lab")) return user == "b" ? "b" : "@lab";
  if (accounts.starts_with("ab")) return user == "c" ? "@other" : "@ab";
  return user;
}

constexpr uint32_t kMostAhead = 3;  // MachineReported::ahead

// Turns numbers into events that are valid now, or nearly: a few come from former
// machines and attempts. In some pools most orders are refused, or most jobs end at once.
class Player {
 public:
  explicit Player(uint32_t bits)
      : t(some_parameters(bits)),
        settings_(some_parameters(bits)),
        refusing_(bits & 16),
        short_(hashed(bits) & 1) {}

  Event next(uint32_t choice) {
    bits_ = choice * 2654435761u;
    t.pass(static_cast<Micros>(pick(short_ ? 2 : 4)) * pick(4) * kSecond + pick(3));
    if (short_ && pick(2) == 0) return short_end();
    switch (pick(20)) {
      case 0:
      case 1:
      case 2:
        return submission();
      case 3:
        return joining();
      case 4:
      case 5:
      case 6:
        return report_of(a_machine());
      case 7:
        return pick(4) == 0 ? Event(MachineWithdrew{a_machine()}) : Event(TimePassed());
      case 8:
      case 9:
        return renewal();
      case 10:
        return OrderAnswered{a_key(), static_cast<OrderAnswered::Answer>(pick(4)), "why",
                             pick(2) == 0};
      case 11:
        return OrderAnswered{
            a_key(), refusing_ ? OrderAnswered::Answer::kRefused : OrderAnswered::Answer::kAccepted,
            "", refusing_ && pick(2) == 0};
      case 12:
      case 13: {
        const AttemptKey key = a_key();
        if (refusing_)
          return OrderAnswered{key, OrderAnswered::Answer::kNotDelivered, "", pick(4) != 0};
        return AttemptStarted{key, machine_for(key), static_cast<Micros>(pick(2) * pick(400'000))};
      }
      case 14: {
        const AttemptKey key = a_key();
        if (pick(4) == 0) return CheckpointDamaged{key, machine_for(key), pick(5), pick(5), 10};
        return CheckpointStored{key, machine_for(key), pick(5), pick(1000)};
      }
      case 15:
      case 16:
      case 17:
        return ending();
      case 18:
        return pick(2) ? Event(JobsHeld{{{a_job(), 1 + pick(3)}}, some_states(), a_user()})
                       : Event(JobsReleased{{{a_job(), 1 + pick(5)}}, some_states()});
      default:
        return rare();
    }
  }

  TestPool t;

 private:
  uint32_t pick(uint32_t n) {
    bits_ = bits_ * 1664525u + 1013904223u;
    return (bits_ >> 8) % n;
  }
  std::string a_user() { return std::string(1, static_cast<char>('a' + pick(3))); }
  MachineId a_machine() { return 1 + pick(6); }
  std::vector<JobState> some_states() {
    if (pick(3) != 0) return {};
    static constexpr JobState kStates[] = {JobState::kWaiting, JobState::kPlaced,
                                           JobState::kRunning, JobState::kHeld,
                                           JobState::kDelivering};
    return {kStates[pick(std::size(kStates))], kStates[pick(std::size(kStates))]};
  }
  JobId a_job() { return t.books.jobs.empty() ? 1 : 1 + pick(t.books.jobs.rbegin()->first); }
  // Mostly of a live attempt.
  AttemptKey a_key() {
    std::vector<AttemptKey> live;
    for (const auto& [key, a] : t.books.attempts) {
      if (a.state != AttemptState::kEnded) live.push_back(key);
    }
    if (live.empty() || pick(6) == 0) return {a_job(), 1 + pick(3)};
    return live[pick(static_cast<uint32_t>(live.size()))];
  }
  MachineId machine_for(const AttemptKey& key) {
    const auto it = t.books.attempts.find(key);
    return it == t.books.attempts.end() || pick(8) == 0 ? a_machine() : it->second.machine;
  }
  static constexpr const char* kAsked[] = {"gpu=1", "gpu=2", "lic=1", "gpu=1 lic=1", "lic=2"};
  static constexpr const char* kOffered[] = {"", "gpu=1", "gpu=2", "gpu=3 lic=1"};

  Event submission() {
    // All jobs of a batch with a condition come from one submission.
    const BatchId newest = t.pool.counters().next_batch - 1;
    const bool stops = newest > 1 && conditional_.insert(newest).second;
    if (!stops && pick(3) == 0) return BatchOpened{a_user()};
    Submitted s{stops ? newest : 1, a_user(), "desk" + std::to_string(pick(3)), {}};
    if (stops && pick(3) != 0) s.stop_when = condition();
    if (stops) s.at_most = pick(3);
    for (uint32_t n = 1 + pick(4); n > 0; --n) {
      Submitted::Job job;
      if (pick(3) == 0) job.needs.memory = uint64_t{1 + pick(12)} << 28;
      if (pick(4) == 0) job.needs.disk = uint64_t{1 + pick(8)} << 28;
      if (pick(6) == 0) job.needs.os = pick(2) ? "linux" : "plan9";
      if (pick(8) == 0)
        job.needs.platforms = pick(2) ? "linux/aarch64 linux/x86_64" : "linux/aarch64";
      if (pick(4) == 0) job.needs.cores = 1 + pick(4);
      if (pick(4) == 0) job.needs.require = kExpressions[pick(kExpressions.size())].text;
      if (pick(4) == 0) job.needs.prefer = pick(2) ? "cores - slots" : "memory_mb / (slots - 1)";
      if (pick(3) == 0) job.needs.resources = kAsked[pick(std::size(kAsked))];
      if (pick(4) == 0) job.needs.hours = kWindows[pick(kWindows.size())].text;
      if (pick(8) == 0) job.earliest = t.now + (static_cast<Micros>(pick(8)) - 1) * 20 * kSecond;
      job.priority = static_cast<int32_t>(pick(3));
      job.program = pick(3);
      job.retries = pick(3);
      if (short_ || pick(4) == 0) job.count = 1 + pick(7);
      if (short_ && pick(4) != 0) job.needs = {};
      job.after = dependences(s);
      s.jobs.push_back(job);
    }
    s.on_never = pick(3) == 0 ? OnNever::kRemove : OnNever::kHold;
    return s;
  }
  // Of jobs before the next one of `so_far`: recent ones, of the same event or not live.
  std::vector<Dependence> dependences(const Submitted& so_far) {
    std::vector<Dependence> after;
    JobId next = t.pool.counters().next_job;
    for (const Submitted::Job& job : so_far.jobs) next += job.count;
    for (uint32_t n = pick(3) == 0 && next > 1 ? 1 + pick(2) : 0; n > 0; --n) {
      const JobId first = next - 1 - pick(static_cast<uint32_t>(std::min<JobId>(next - 1, 12)));
      const uint64_t count = 1 + pick(static_cast<uint32_t>(next - first));
      after.push_back({{first, count}, static_cast<After>(1 + pick(3))});
    }
    return after;
  }
  StopWhen condition() {
    StopWhen when{pick(3), pick(3), pick(3) == 0 ? "key" : ""};
    if (!when.is_set()) when.done = 1 + pick(4);
    return when;
  }
  Event joining() {
    const MachineId known = t.books.machines.size() < 5 ? 0 : a_machine();
    // A machine has the same number of slots each time it joins.
    const uint32_t slots = known != 0 ? 1 + known % 3 : 1 + (t.books.machines.size() + 1) % 3;
    return MachineJoined{known,
                         "m" + std::to_string(known),
                         pick(4) ? "linux" : "plan9",
                         "x86_64",
                         slots + pick(3),
                         slots,
                         (8ull - pick(3)) << 30,
                         100ull << 30,
                         kOffered[pick(std::size(kOffered))]};
  }
  MachineReported report_of(MachineId machine) {
    return {machine,
            pick(4) != 0,
            uint64_t{pick(13)} << 28,
            uint64_t{1 + pick(8)} << 28,
            pick(4) / 2.0,
            pick(4) / 4.0,
            pick(4) == 0,
            pick(kMostAhead + 1)};
  }
  Event renewal() {
    Renewed r{a_machine(), pick(5) == 0, {}};
    for (const auto& [key, a] : t.books.attempts) {
      const bool live = a.state != AttemptState::kEnded;
      if (a.machine != r.machine || pick(live ? 8 : 2) == 0) continue;
      static constexpr AttemptState kReported[] = {
          AttemptState::kOrdered,   AttemptState::kStaging, AttemptState::kRunning,
          AttemptState::kSuspended, AttemptState::kLeaving, AttemptState::kEnded,
          AttemptState::kDelivering};
      r.attempts.push_back({key, kReported[pick(std::size(kReported))], pick(3),
                            pick(2) * uint64_t{pick(9)} << 28, pick(2) * uint64_t{pick(9)} << 28,
                            pick(2) == 0});
    }
    if (pick(2) == 0) r.report = report_of(r.machine);
    r.says_waits = r.report && pick(3) != 0;
    return r;
  }
  Event short_end() {
    const AttemptKey key = a_key();
    return AttemptEnded{key, machine_for(key), EndReason::kDone, "", 0, -1, 0, "", true};
  }
  Event ending() {
    static constexpr EndReason kAll[] = {
        EndReason::kDone,  EndReason::kExit,       EndReason::kSignal,        EndReason::kOwner,
        EndReason::kOwner, EndReason::kDrained,    EndReason::kRefused,       EndReason::kLost,
        EndReason::kHeld,  EndReason::kSuperseded, EndReason::kAdministrator, EndReason::kStart,
        EndReason::kStart, EndReason::kStaging,    EndReason::kSaved};
    const AttemptKey key = a_key();
    const Micros cpu = pick(3) ? pick(100) * kSecond : 0;
    AttemptEnded end{
        key, machine_for(key), kAll[pick(std::size(kAll))], "", cpu, pick(3) ? cpu / 2 : -1, cpu};
    if (end.ended == EndReason::kDone && pick(3) == 0) end.left = "key";
    if (pick(2) == 0) end.memory_peak = uint64_t{pick(40)} << 28;
    if (end.ended == EndReason::kDrained && key.job > 0)
      end.alike = {key.job - pick(std::min<uint32_t>(3, key.job)), 1 + pick(8)};
    return end;
  }
  int32_t local_time() { return static_cast<int32_t>(pick(5)) * 1800 - 3600; }
  Event rare() {
    switch (pick(12)) {
      case 0:
        return SharesSet{pick(3) ? counted_for(t, a_user()) : a_user(), 1.0 + pick(3),
                         SharesSet::By(pick(3))};
      case 1:
        return pick(2) ? ServerStarted() : ServerStarted{settings_, local_time()};
      case 2:
        return JobsRemoved{{a_job(), {a_job(), 1 + pick(4)}}, some_states(), a_user()};
      case 3:
        return BatchOpened{a_user()};
      case 4:
        return MachineDrained{a_machine(), pick(3) == 0};
      case 5:
        return MachineEvicted{a_machine()};
      case 6:
      case 7:
        return PrioritySet{
            {{a_job(), 1 + pick(6)}}, static_cast<int32_t>(pick(5)) - 2, some_states()};
      case 8:
      case 9:
        return PolicySet{some_parameters(pick(2048)), pick(3) ? a_user() : ""};
      default:
        return Ticked{local_time()};
    }
  }

  const Parameters settings_;
  const bool refusing_;
  const bool short_;
  uint32_t bits_ = 0;
  std::set<BatchId> conditional_;  // batches that have been submitted
};

// "gpu=1 lic=2"
std::map<std::string, uint64_t> named(const std::string& text) {
  std::map<std::string, uint64_t> amounts;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    amounts[word.substr(0, word.find('='))] = std::stoull(word.substr(word.find('=') + 1));
  return amounts;
}

// The rule of named amounts: of a name that the pool has licences of, all live attempts together
// hold as many at most; of another one those on a machine as many as that offers.
class NamedRule {
 public:
  explicit NamedRule(const TestPool& t) : licences_(named(t.pool.policy().choice.licences)) {
    for (const auto& [key, a] : t.books.attempts) {
      if (a.state == AttemptState::kEnded) continue;
      for (const auto& [name, amount] : named(t.books.jobs.at(key.job).needs.resources.str())) {
        held_[name] += amount;
        held_on_[a.machine][name] += amount;
      }
    }
    for (const Anchored::Licensed& kept : t.pool.anchor().licensed) {
      licensed_.insert(kept.job);
      const JobRecord& job = t.books.jobs.at(kept.job);
      RC_ASSERT(job.state == JobState::kWaiting);
      for (const auto& [name, amount] : named(job.needs.resources.str())) {
        if (!licences_.contains(name)) continue;
        // For one job at a time.
        RC_ASSERT(kept_.emplace(name, amount).second);
        RC_ASSERT(amount <= of(licences_, name));
      }
    }
  }
  // Whether they still hold so many with `more` of each that the job needs: 0 or 1 times. `kept`:
  // of the machine, for a job that it is promised to.
  bool allows(const MachineView& m, const JobRecord& job, uint64_t more,
              const std::string& kept = "") const {
    const Requirements& needs = job.needs;
    const Counts offers = named(m.record.resources), promised = named(kept);
    for (const auto& [name, amount] : named(needs.resources.str())) {
      const bool is_licence = licences_.contains(name);
      // Of licences others get what is not kept for one.
      const bool leaves = is_licence && more > 0 && !licensed_.contains(job.id);
      const uint64_t held = is_licence ? of(held_, name) + (leaves ? of(kept_, name) : 0)
                                       : of(on(m.record.id), name) + of(promised, name);
      if (held + more * amount > of(is_licence ? licences_ : offers, name)) return false;
    }
    return true;
  }
  // Whether the machine, or the pool, could give as much if nobody had any; of the pool: has it.
  bool may_be_promised(const MachineView& m, const Requirements& needs) const {
    const Counts offers = named(m.record.resources);
    for (const auto& [name, amount] : named(needs.resources.str())) {
      const bool is_licence = licences_.contains(name);
      const uint64_t held = is_licence ? of(held_, name) : 0;
      if (held + amount > of(is_licence ? licences_ : offers, name)) return false;
    }
    return true;
  }
  // The brain's own counts.
  void check(const TestPool& t) const {
    const std::vector<LicenceView> views = t.pool.licences();
    RC_ASSERT(views.size() == licences_.size());
    for (const LicenceView& view : views) {
      RC_ASSERT(view.offered == of(licences_, view.name));
      RC_ASSERT(view.held == of(held_, view.name));
    }
    for (const MachineView& m : t.pool.machines())
      for (const auto& [name, amount] : on(m.record.id))
        RC_ASSERT(m.named_reserved.of(name) == amount);
  }

 private:
  using Counts = std::map<std::string, uint64_t>;
  static uint64_t of(const Counts& counts, const std::string& name) {
    const auto it = counts.find(name);
    return it == counts.end() ? 0 : it->second;
  }
  const Counts& on(MachineId machine) const {
    static const Counts kNone;
    const auto it = held_on_.find(machine);
    return it == held_on_.end() ? kNone : it->second;
  }
  Counts licences_, held_, kept_;
  std::set<JobId> licensed_;
  std::map<MachineId, Counts> held_on_;
};

// What the jobs on a machine have reserved, by their records.
Amounts reserved_on(const MachineView& m, const testing::Books& books) {
  Amounts sum;
  for (const AttemptKey& key : m.running) {
    if (std::count(m.ahead.begin(), m.ahead.end(), key) > 0) continue;
    const Requirements& n = books.jobs.at(key.job).needs;
    sum.cores += std::max(n.cores, 1u);
    sum.memory += n.memory;
    sum.disk += n.disk;
  }
  return sum;
}

// The rule: min(offered, reported free + used by its jobs), of which what they have reserved is
// taken.
bool has_room_for(const MachineView& m, const Amounts& needs) {
  const uint64_t memory = m.memory_free > 0
                              ? std::min(m.record.memory, m.memory_free + m.used.memory)
                              : m.record.memory;
  const uint64_t disk = std::min(m.record.disk, m.disk_free + m.used.disk);
  return needs.cores <= std::max(m.record.cores, m.record.slots) && needs.memory <= memory &&
         needs.disk <= disk;
}

bool meets(const MachineRecord& m, const std::string& require) {
  const auto same = [&](const Expression& e) { return e.text == require; };
  return require.empty() || std::find_if(kExpressions.begin(), kExpressions.end(), same)->holds(m);
}

bool suits(const MachineRecord& m, const Requirements& n) {
  const std::string platform = " " + m.os + "/" + m.architecture + " ";
  return (n.os.empty() || n.os == m.os) &&
         (n.architecture.empty() || n.architecture == m.architecture) &&
         (n.platforms.empty() || (" " + n.platforms + " ").find(platform) != std::string::npos) &&
         n.cores <= m.cores && meets(m, n.require.str());
}

bool fits(const MachineView& m, const Requirements& n, const Amounts& reserved) {
  const Amounts with_it = {reserved.cores + std::max(n.cores, 1u), reserved.memory + n.memory,
                           reserved.disk + n.disk};
  const Amounts asked = {with_it.cores, n.memory > 0 ? with_it.memory : 0,
                         n.disk > 0 ? with_it.disk : 0};
  return suits(m.record, n) && has_room_for(m, asked);
}

const RelationRecord* relation_of(const TestPool& t, JobId job) {
  auto it = t.books.relations.upper_bound(job);
  if (it == t.books.relations.begin()) return nullptr;
  const RelationRecord& relation = (--it)->second;
  return job - relation.jobs.first < relation.jobs.count ? &relation : nullptr;
}

// Whether the dependence is yet to be met by this job.
bool is_unmet(const JobRecord& job, After condition) {
  return !is_final(job.state) && !(condition == After::kStarted && job.has_started);
}

// A stored relation keeps its live jobs from running, and for a reason.
void check_relations(const TestPool& t) {
  for (const auto& [first, relation] : t.books.relations) {
    bool live = false, unmet = relation.lost_by != 0;
    for (JobId id = first; id < first + relation.jobs.count; ++id) {
      const JobRecord& job = t.books.jobs.at(id);
      live |= !is_final(job.state);
      RC_ASSERT(job.attempts == 0);
      if (relation.lost_by != 0)
        RC_ASSERT(job.state == JobState::kHeld || job.state == JobState::kRemoved);
    }
    RC_ASSERT(live);
    for (const Dependence& on : relation.on)
      for (JobId id = on.jobs.first; id < on.jobs.first + on.jobs.count; ++id)
        unmet |= is_unmet(t.books.jobs.at(id), on.condition);
    RC_ASSERT(unmet);
  }
}

// A job that waits for others runs only after what it waited for has happened.
class StartsInOrder {
 public:
  void note(const TestPool& t, const Event& event) {
    const auto* submitted = std::get_if<Submitted>(&event);
    if (submitted == nullptr) return;
    JobId next = t.last.answer.first_job;
    for (const Submitted::Job& job : submitted->jobs)
      for (const JobId end = next + job.count; next < end; ++next)
        for (const Dependence& on : job.after)
          for (JobId other = on.jobs.first; other < on.jobs.first + on.jobs.count; ++other)
            if (!is_final(t.state(other))) after_[next].emplace_back(other, on.condition);
  }
  void check(const TestPool& t) {
    for (const auto& [id, job] : t.books.jobs) {
      if (job.attempts == 0 || !checked_.insert(id).second) continue;
      for (const auto& [other, condition] : after_[id]) {
        RC_ASSERT(!is_unmet(t.books.jobs.at(other), condition));
        RC_ASSERT(condition != After::kDone || t.state(other) == JobState::kDone);
      }
    }
  }

 private:
  std::map<JobId, std::vector<std::pair<JobId, After>>> after_;  // that was not final then
  std::set<JobId> checked_;
};

// The rule of failing machines, restated over the attempts that have ended (and the orders that
// were answered): a machine rests from its third failure in a row on.
class Failures {
 public:
  explicit Failures(const Parameters& p) : least_(p.rest_least), most_(p.rest_most) {}

  // Before the event is applied.
  void expect(const TestPool& t, const Event& event) {
    machine_failed_ = false;
    resumed_ = 0;
    ahead_.clear();
    for (const Anchored::AttemptNow& known : t.pool.anchor().attempts)
      if (known.placed_ahead) ahead_.insert(known.job);
    if (const auto* drained = std::get_if<MachineDrained>(&event); drained && !drained->drained) {
      const auto machine = t.books.machines.find(drained->machine);
      const bool waits = machine != t.books.machines.end() &&
                         (machine->second.draining || machines_[machine->first].rests_until > 0);
      if (waits) resumed_ = drained->machine;
    }
    const auto* answer = std::get_if<OrderAnswered>(&event);
    if (answer == nullptr || !answer->machine_failed) return;
    const auto job = t.books.jobs.find(answer->key.job);
    machine_failed_ =
        job != t.books.jobs.end() && (is_final(job->second.state) || job->second.refusals < 2);
  }
  void check(const TestPool& t, const Event& event) {
    for (const Record& record : t.last.records)
      if (const auto* attempt = std::get_if<AttemptRecord>(&record);
          attempt != nullptr && attempt->state == AttemptState::kEnded)
        note_end(*attempt, t.books.jobs.at(attempt->key.job).user, t.now, event);
    note_running(t, event);
    for (const auto& [id, machine] : t.books.machines) {
      Machine& m = machines_[id];
      if (id == resumed_) m = {};
      if (std::holds_alternative<TimePassed>(event) && machine.state != MachineState::kGone &&
          m.rests_until <= t.now)
        m.rests_until = 0;
      RC_ASSERT(machine.failures.count == m.count);
      RC_ASSERT(machine.failures.last == m.last);
      RC_ASSERT(machine.failures.rests_until == m.rests_until);
      RC_ASSERT(machine.failures.unstarted == std::min<size_t>(m.unstarted.size(), 3));
    }
  }

 private:
  struct Machine {
    uint32_t count = 0;
    Micros last = 0, rests_until = 0;
    std::set<std::string> unstarted;  // the users whose jobs could not be started in a row
  };
  void note_end(const AttemptRecord& attempt, const std::string& user, Micros now,
                const Event& event) {
    Machine& m = machines_[attempt.machine];
    const bool is_unstarted =
        attempt.ended == EndReason::kStart || attempt.ended == EndReason::kStaging;
    if (is_unstarted) m.unstarted.insert(user);
    if (attempt.decided < m.last) return;
    const auto* end = std::get_if<AttemptEnded>(&event);
    const bool ran = attempt.started != 0 && now - attempt.started >= 60 * kSecond;
    switch (attempt.ended) {
      case EndReason::kLost:
        // Its lease, or its machine's registration, was over: that says nothing if it waited there
        // for its turn; or its machine says so.
        if (end == nullptr && attempt.started == 0 && ahead_.contains(attempt.key.job)) return;
        if (end == nullptr || !(end->started || attempt.started != 0)) fail(m, now);
        return;
      case EndReason::kRefused:
        if (machine_failed_) fail(m, now);
        return;
      case EndReason::kStart:
      case EndReason::kStaging:
        if (m.unstarted.size() >= 3) fail(m, now);
        return;
      case EndReason::kSuperseded:
        return;
      default:
        if (ran || attempt.ended <= EndReason::kLimit || attempt.ended == EndReason::kSaved) m = {};
    }
  }
  void fail(Machine& m, Micros now) {
    m.last = now;
    Micros rest = least_;
    for (uint32_t i = 3; i <= m.count; ++i) rest *= 2;
    m.rests_until = ++m.count < 3 || least_ == 0 ? 0 : now + std::min(rest, most_);
  }
  // A renewal says of each attempt whether it runs.
  void note_running(const TestPool& t, const Event& event) {
    const auto* renewed = std::get_if<Renewed>(&event);
    if (renewed == nullptr) return;
    for (size_t i = 0; i < renewed->attempts.size(); ++i) {
      if (t.last.answer.verdicts[i].second != Verdict::kCounts) continue;
      const AttemptRecord& attempt = t.books.attempts.at(renewed->attempts[i].key);
      Machine& m = machines_[attempt.machine];
      const bool works = attempt.state == AttemptState::kRunning &&
                         t.now - attempt.started >= 60 * kSecond && attempt.decided >= m.last;
      if (works) m = {};
    }
  }

  const Micros least_, most_;
  std::map<MachineId, Machine> machines_;
  std::set<JobId> ahead_;  // whose attempts were placed ahead
  bool machine_failed_ = false;
  MachineId resumed_ = 0;  // by an administrator, after a drain or out of its rest; 0: none
};

bool is_throttled(const TestPool& t, const std::string& user) {
  const uint64_t most = t.pool.policy().choice.throttle;
  return most != 0 && t.books.users.at(counted_for(t, user)).placed >= most;
}

// Of all who share the user's account.
uint64_t attempts_of(const TestPool& t, const std::string& user) {
  const std::string whom = counted_for(t, user);
  return static_cast<uint64_t>(
      std::count_if(t.books.attempts.begin(), t.books.attempts.end(), [&](const auto& entry) {
        return entry.second.state != AttemptState::kEnded &&
               counted_for(t, t.books.jobs.at(entry.first.job).user) == whom;
      }));
}

// The rule of most_per_user and most_per_machine, as some_parameters() may set them.
bool is_at_limit(const TestPool& t, const std::string& user) {
  const uint64_t most = t.pool.policy().choice.most_per_user;
  return most != 0 && attempts_of(t, user) >= most;
}
uint64_t attempts_of(const TestPool& t, BatchId batch) {
  return static_cast<uint64_t>(
      std::count_if(t.books.attempts.begin(), t.books.attempts.end(), [&](const auto& entry) {
        return entry.second.state != AttemptState::kEnded &&
               t.books.jobs.at(entry.first.job).batch == batch;
      }));
}
uint64_t most_of(const TestPool& t, BatchId batch) {
  const auto found = t.books.batches.find(batch);
  const uint64_t most = found == t.books.batches.end() ? 0 : found->second.at_most;
  return most == 0 ? std::numeric_limits<uint64_t>::max() : most;
}
uint64_t most_on(const TestPool& t, const MachineRecord& m) {
  const std::string& limits = t.pool.policy().choice.most_per_machine;
  if (limits.empty()) return m.slots;
  const uint64_t limit = limits == "1" || m.name == "m2" ? 1 : m.name == "m0" ? 3 : 2;
  return std::min<uint64_t>(limit, m.slots);
}

bool gave_way_to(const TestPool& t, JobId job) {
  return std::any_of(t.books.attempts.begin(), t.books.attempts.end(),
                     [&](const auto& entry) { return entry.second.preempted_for == job; });
}

bool is_paused(const TestPool& t, MachineId machine) {
  const Anchored known = t.pool.anchor();
  return std::any_of(known.machines.begin(), known.machines.end(),
                     [&](const auto& m) { return m.machine == machine && m.paused_until != 0; });
}

// A place is promised to a job that waits, fits a machine with others on it, or did, and does not
// fit now.
void check_promise(const TestPool& t, const MachineView& m, const Amounts& reserved,
                   const NamedRule& rule) {
  const JobRecord& job = t.books.jobs.at(m.promised);
  RC_ASSERT(job.state == JobState::kWaiting);
  RC_ASSERT(may_start(t, job));
  const PolicyRecord& policy = t.pool.policy();
  const bool under_another = policy.since >= job.changed;
  RC_ASSERT(t.now - job.changed >= policy.choice.wide_wait || under_another ||
            gave_way_to(t, m.promised));
  RC_ASSERT(m.away && !m.record.draining && suits(m.record, job.needs));
  RC_ASSERT(is_paused(t, m.record.id) || m.places_taken() >= most_on(t, m.record) ||
            !fits(m, job.needs, reserved) || !rule.allows(m, job, 1));
  RC_ASSERT(rule.may_be_promised(m, job.needs));
}

// What is counted is counted for accounts, and by users only where they have none; each use is
// recorded for its user.
void check_accounts(const TestPool& t) {
  std::map<std::string, uint64_t> active;
  for (const auto& [id, job] : t.books.jobs) {
    const bool waits = job.state == JobState::kWaiting && relation_of(t, id) == nullptr;
    if (waits || is_at_work(job.state)) ++active[counted_for(t, job.user)];
  }
  for (const Standing& standing : t.pool.standings(t.now))
    RC_ASSERT(standing.active == active[standing.user]);
  for (const auto& [name, user] : t.books.users) {
    if (counted_for(t, name) == name || name.starts_with("@")) continue;
    RC_ASSERT(user.usage == 0 && user.charges == 0 && user.owed == 0 && user.index == 0);
    RC_ASSERT(user.placed == 0 && user.last_grant == 0);
  }
  for (const auto& [key, use] : t.books.uses) RC_ASSERT(use.user == t.books.jobs.at(key.job).user);
}

// The invariants after every event, checked from views and records only.
void check_invariants(const TestPool& t) {
  std::map<JobId, int> live;
  std::map<MachineId, size_t> on_machine;
  for (const auto& [key, a] : t.books.attempts) {
    if (a.state == AttemptState::kEnded) {
      RC_ASSERT(t.books.uses.contains(key));
      continue;
    }
    RC_ASSERT(!t.books.uses.contains(key));
    RC_ASSERT(++live[key.job] == 1);  // one attempt counts
    RC_ASSERT(t.books.jobs.at(key.job).attempts == key.attempt);
    RC_ASSERT(text_of(*t.pool.attempt(key.job)) == text_of(a));
    ++on_machine[a.machine];
  }
  check_relations(t);
  check_accounts(t);
  std::vector<const JobRecord*> placeable;
  uint64_t waiting = 0;
  for (const auto& [id, job] : t.books.jobs) {
    const auto view = t.pool.job(id);
    RC_ASSERT(!view == is_final(job.state));
    if (view) RC_ASSERT(text_of(*view) == text_of(job));
    if (is_at_work(job.state)) RC_ASSERT(live.contains(id));
    waiting += job.state == JobState::kWaiting;
    if (job.state == JobState::kWaiting && !live.contains(id) && job.not_before <= t.now &&
        may_start(t, job) && relation_of(t, id) == nullptr && !is_throttled(t, job.user) &&
        !is_at_limit(t, job.user) && attempts_of(t, job.batch) < most_of(t, job.batch))
      placeable.push_back(&job);
  }
  RC_ASSERT(t.pool.waiting() == waiting);
  const NamedRule rule(t);
  rule.check(t);
  const std::vector<MachineId> idle = t.pool.idle();
  std::set<JobId> promised;
  for (const MachineView& m : t.pool.machines()) {
    RC_ASSERT(m.running.size() == on_machine[m.record.id]);
    RC_ASSERT(m.places_taken() <= m.record.slots);
    RC_ASSERT(m.ahead.size() <= kMostAhead);
    RC_ASSERT(text_of(m.record) == text_of(t.books.machines.at(m.record.id)));
    const Amounts reserved = reserved_on(m, t.books);
    RC_ASSERT(m.reserved == reserved);
    RC_ASSERT(m.used.within(reserved));
    // A machine may report less than it has promised; then nobody gets more of that.
    for (const Decision& decision : t.last.decisions) {
      const auto* start = std::get_if<StartAttempt>(&decision);
      if (start == nullptr || start->machine != m.record.id) continue;
      const Requirements& n = t.books.jobs.at(start->key.job).needs;
      RC_ASSERT(suits(m.record, n));
      RC_ASSERT(rule.allows(m, t.books.jobs.at(start->key.job), 0));
      RC_ASSERT(may_start(t, t.books.jobs.at(start->key.job)));
      RC_ASSERT(m.record.failures.rests_until == 0);
      RC_ASSERT(m.places_taken() <= most_on(t, m.record));
      const uint64_t most = t.pool.policy().choice.most_per_user;
      RC_ASSERT(most == 0 || attempts_of(t, start->user) <= most);
      const BatchId batch = t.books.jobs.at(start->key.job).batch;
      RC_ASSERT(attempts_of(t, batch) <= most_of(t, batch));
      RC_ASSERT(has_room_for(
          m, {reserved.cores, n.memory > 0 ? reserved.memory : 0, n.disk > 0 ? reserved.disk : 0}));
    }
    Amounts kept;
    std::string kept_for;
    if (m.promised != 0) {
      RC_ASSERT(promised.insert(m.promised).second);
      check_promise(t, m, reserved, rule);
      kept = amounts_of(t.books.jobs.at(m.promised).needs);
      kept_for = t.books.jobs.at(m.promised).needs.resources;
    }
    const bool queued = std::count(idle.begin(), idle.end(), m.record.id) == 1;
    if (queued) {
      RC_ASSERT(m.record.state == MachineState::kIdle && m.away && !m.record.draining);
      RC_ASSERT(m.record.failures.rests_until == 0);
      RC_ASSERT(m.places_taken() + (m.promised != 0) < most_on(t, m.record));
      for (const JobRecord* job : placeable)
        RC_ASSERT(!fits(m, job->needs, reserved + kept) || !rule.allows(m, *job, 1, kept_for));
    }
  }
}

// The counts of a batch equal those of its jobs' records; a stopped batch has no live
// jobs, and jobs that had ended before keep their state.
void check_batches(const TestPool& t) {
  for (const auto& [id, batch] : t.books.batches) {
    std::map<JobState, uint64_t> counts;
    uint64_t stopped = 0;
    for (const auto& [job_id, job] : t.books.jobs) {
      if (job.batch != id) continue;
      ++counts[job.state];
      stopped += job.state == JobState::kRemoved && job.reason.starts_with("the batch has stopped");
      RC_ASSERT(batch.stopped_by == 0 || is_final(job.state));
    }
    RC_ASSERT(batch.done == counts[JobState::kDone]);
    RC_ASSERT(batch.failed == counts[JobState::kFailed]);
    if (batch.stopped_by != 0) {
      RC_ASSERT(is_final(t.state(batch.stopped_by)) &&
                t.state(batch.stopped_by) != JobState::kRemoved);
      continue;
    }
    RC_ASSERT(stopped == 0);
    const StopWhen& when = batch.stop_when;
    RC_ASSERT(when.done == 0 || batch.done < when.done);
    RC_ASSERT(when.failed == 0 || batch.failed < when.failed);
  }
}

// The rows contain each job exactly once.
void check_rows(const testing::Books& books) {
  JobId next = 1;
  for (const auto& [id, row] : books.rows) {
    RC_ASSERT(id == next);
    next += row.count;
  }
}

// The same event with each job of an array as a separate entry.
Event split_up(const Event& event) {
  const auto* submitted = std::get_if<Submitted>(&event);
  if (submitted == nullptr) return event;
  Submitted apart = *submitted;
  apart.jobs.clear();
  for (Submitted::Job job : submitted->jobs) {
    const uint64_t count = std::exchange(job.count, 1);
    apart.jobs.insert(apart.jobs.end(), count, job);
  }
  return apart;
}

// An event of an attempt that is not the current one on that machine.
bool is_stale(const TestPool& t, const Event& event) {
  const auto stale = [&](const AttemptKey& key, MachineId machine) {
    const auto it = t.books.attempts.find(key);
    return it == t.books.attempts.end() || it->second.machine != machine ||
           it->second.state == AttemptState::kEnded;
  };
  if (const auto* e = std::get_if<AttemptStarted>(&event)) return stale(e->key, e->machine);
  if (const auto* e = std::get_if<CheckpointStored>(&event)) return stale(e->key, e->machine);
  if (const auto* e = std::get_if<CheckpointDamaged>(&event)) return stale(e->key, e->machine);
  if (const auto* e = std::get_if<AttemptEnded>(&event)) return stale(e->key, e->machine);
  return false;
}

std::vector<uint32_t> some_history() {
  return *rc::gen::scale(6.0, rc::gen::arbitrary<std::vector<uint32_t>>());
}

// Every owner leaves, nobody submits any more, and whatever runs is done 20 s later. Until
// nothing runs.
void let_all_run(TestPool& t) {
  const size_t most = t.books.jobs.size() + 100;
  for (size_t round = 0, quiet = 0; quiet < 5; ++round) {
    RC_ASSERT(round < most);
    t.pass(20 * kSecond);
    t.apply(TimePassed());
    for (const MachineView& m : t.pool.machines()) {
      if (m.record.state == MachineState::kGone) continue;
      t.apply(MachineDrained{m.record.id, false});
      t.apply(MachineReported{m.record.id, true, m.record.memory, m.record.disk});
    }
    std::vector<std::pair<AttemptKey, MachineId>> live;
    for (const auto& [key, a] : t.books.attempts)
      if (a.state != AttemptState::kEnded) live.emplace_back(key, a.machine);
    for (const auto& [key, machine] : live)
      t.apply(AttemptEnded{key, machine, EndReason::kDone, "", kSecond, -1, kSecond});
    quiet = live.empty() ? quiet + 1 : 0;
  }
}

// Users who always have narrow jobs, and a wide one that is removed and submitted anew before it
// has waited for long, on a few machines.
class Streams {
 public:
  static constexpr Micros kLength = 100 * kSecond;

  explicit Streams(uint32_t bits) : t(parameters(bits)), bits_(hashed(bits)) {
    for (uint32_t i = 0; i < 1 + pick(3); ++i) {
      widest_ = 4 + pick(5);
      t.join({0, "m" + std::to_string(i), "linux", "x86_64", widest_, widest_, 8ull << 30,
              100ull << 30});
    }
    for (uint32_t i = 0; i < 2 + pick(3); ++i) users_.push_back({std::string(1, 'a' + i), {}, 0});
  }
  // Ten seconds each.
  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      t.pass(10 * kSecond);
      if (i % 6 == 0) t.apply(Ticked());
      end_the_longest();
      for (Stream& user : users_) feed(user);
    }
  }
  std::vector<JobId> submit_wide() {
    std::vector<JobId> wide;
    for (uint32_t i = 0; i < 4; ++i)
      wide.push_back(
          t.submit(users_[pick(users_.size())].name, 1, of_cores(2 + pick(widest_ - 1))));
    return wide;
  }

  TestPool t;

 private:
  struct Stream {
    std::string name;
    std::vector<JobId> narrow;
    JobId wide = 0;
  };
  static Parameters parameters(uint32_t bits) {
    static constexpr const char* kPolicies[] = {"fair-share", "round-robin", "umol", "up-down"};
    Parameters p;
    p.job_policy = kPolicies[bits % 4];
    p.wide_wait = kLength;
    p.lease = 1'000'000 * kSecond;
    return p;
  }
  static Submitted::Job of_cores(uint32_t cores) {
    Submitted::Job job;
    job.needs.cores = cores;
    return job;
  }
  uint32_t pick(uint64_t n) { return static_cast<uint32_t>((bits_ = hashed(bits_)) % n); }

  void end_the_longest() {
    std::vector<JobId> over;
    for (const MachineView& m : t.pool.machines())
      for (const AttemptKey& key : m.running)
        if (t.now - t.pool.attempt(key.job)->decided >= kLength - pick(3) * 10 * kSecond)
          over.push_back(key.job);
    for (const JobId job : over) {
      if (t.pool.attempt(job)->started == 0) t.start(job);
      AttemptEnded end{t.key(job), t.machine_of(job), EndReason::kDone, "", kLength};
      end.wall = kLength;
      t.apply(end);
    }
  }
  void feed(Stream& user) {
    std::erase_if(user.narrow, [this](JobId job) { return t.state(job) != JobState::kWaiting; });
    while (user.narrow.size() < 5) user.narrow.push_back(t.submit(user.name));
    const bool waits = user.wide != 0 && t.state(user.wide) == JobState::kWaiting;
    if (waits && t.now - t.record(user.wide).changed < kLength - 10 * kSecond) return;
    if (waits) t.apply(JobsRemoved{{user.wide}});
    user.wide = t.submit(user.name, 1, of_cores(widest_));
  }

  uint64_t bits_;
  uint32_t widest_ = 1;
  std::vector<Stream> users_;
};

class PoolPropertyTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PoolPropertyTest);
  CPPUNIT_TEST(invariants_hold);
  CPPUNIT_TEST(nobody_starves);
  CPPUNIT_TEST(wide_jobs_start_beside_streams);
  CPPUNIT_TEST(arrays_run_like_single_jobs);
  CPPUNIT_TEST(same_history_same_outcomes);
  CPPUNIT_TEST(restored_goes_on_like_the_live_one);
  CPPUNIT_TEST(another_policy_takes_over);
  CPPUNIT_TEST(anchored_goes_on_like_the_live_one);
  CPPUNIT_TEST(damaged_rows_are_set_aside);
  CPPUNIT_TEST_SUITE_END();

 public:
  void invariants_hold() {
    CPPUNIT_ASSERT(rc::check("invariants hold after every event", [](uint32_t bits) {
      Player player(bits);
      StartsInOrder starts;
      Failures failures(some_parameters(bits));
      for (const uint32_t choice : some_history()) {
        const Event event = player.next(choice);
        failures.expect(player.t, event);
        const auto deadline = player.t.pool.next_deadline();
        // Any event carries out what is due.
        const bool due = deadline && *deadline <= player.t.now;
        const bool stale = is_stale(player.t, event);
        const Outcome& outcome = player.t.apply(event);
        if (stale && !due) RC_ASSERT(outcome.records.empty() && outcome.decisions.empty());
        check_invariants(player.t);
        check_rows(player.t.books);
        check_batches(player.t);
        starts.note(player.t, event);
        starts.check(player.t);
        failures.check(player.t, event);
      }
    }));
  }

  // Whatever happened before, under whichever policies: every job runs that could, and no place
  // stays promised.
  void nobody_starves() {
    CPPUNIT_ASSERT(rc::check("every job that some machine fits is run", [](uint32_t bits) {
      Player player(bits);
      TestPool& t = player.t;
      for (const uint32_t choice : some_history()) t.apply(player.next(choice));
      let_all_run(t);
      const NamedRule rule(t);
      RC_ASSERT(t.pool.anchor().licensed.empty());
      for (const MachineView& m : t.pool.machines()) {
        RC_ASSERT(m.promised == 0);
        if (m.record.state == MachineState::kGone) continue;
        for (const auto& [id, job] : t.books.jobs)
          if (job.state == JobState::kWaiting && relation_of(t, id) == nullptr && may_start(t, job))
            RC_ASSERT(!fits(m, job.needs, {}) || !rule.allows(m, job, 1));
      }
    }));
  }

  // Of several users who always have narrow ones, and wide ones that never wait for long.
  void wide_jobs_start_beside_streams() {
    CPPUNIT_ASSERT(rc::check("a wide job starts beside any streams", [](uint32_t bits) {
      Streams streams(bits);
      streams.run(30);
      const Micros submitted = streams.t.now;
      const std::vector<JobId> wide = streams.submit_wide();
      const auto waits = [&](JobId job) { return streams.t.state(job) == JobState::kWaiting; };
      while (std::any_of(wide.begin(), wide.end(), waits)) {
        streams.run(1);
        RC_ASSERT(streams.t.now - submitted < 50 * Streams::kLength);
      }
    }));
  }

  void arrays_run_like_single_jobs() {
    CPPUNIT_ASSERT(rc::check("an array runs like as many single jobs", [](uint32_t bits) {
      Player player(bits);
      TestPool single(some_parameters(bits));
      for (const uint32_t choice : some_history()) {
        const Event event = player.next(choice);
        const Outcome& outcome = player.t.apply(event);
        single.now = player.t.now;
        const Outcome& other = single.apply(split_up(event));
        RC_ASSERT(text_of(Outcome{{}, outcome.decisions, outcome.answer}) ==
                  text_of(Outcome{{}, other.decisions, other.answer}));
        RC_ASSERT(single.pool.requesting() == player.t.pool.requesting());
        RC_ASSERT(single.pool.idle() == player.t.pool.idle());
        RC_ASSERT(single.pool.next_deadline() == player.t.pool.next_deadline());
        // One job per step: all of them would take ten times as long as the rest.
        const JobId id = single.books.jobs.empty() ? 1 : 1 + choice % single.books.jobs.size();
        RC_ASSERT(single.pool.why(id, single.now) == player.t.pool.why(id, single.now));
      }
      RC_ASSERT(player.t.books.jobs.size() == single.books.jobs.size());
      for (const auto& [id, job] : single.books.jobs)
        RC_ASSERT(text_of(job) == text_of(player.t.books.jobs.at(id)));
      for (const auto& [name, user] : single.books.users)
        RC_ASSERT(text_of(user) == text_of(player.t.books.users.at(name)));
      for (const auto& [id, batch] : single.books.batches)
        RC_ASSERT(text_of(batch) == text_of(player.t.books.batches.at(id)));
    }));
  }

  void same_history_same_outcomes() {
    CPPUNIT_ASSERT(rc::check("the same history gives the same outcomes", [](uint32_t bits) {
      Player player(bits);
      Pool other(some_parameters(bits));
      other.apply(BatchOpened(), player.t.now);
      for (const uint32_t choice : some_history()) {
        const Event event = player.next(choice);
        const Outcome& outcome = player.t.apply(event);
        RC_ASSERT(text_of(outcome) == text_of(other.apply(event, player.t.now)));
        RC_ASSERT(other.next_deadline() == player.t.pool.next_deadline());
      }
    }));
  }

  // With the settings as they were, or others that may change at a start.
  static Parameters settings_at_start(uint32_t bits) {
    Parameters settings = some_parameters(bits);
    const Parameters others = some_parameters(static_cast<uint32_t>(hashed(bits)));
    if (bits & 1 << 13) static_cast<PolicyChoice&>(settings) = others;
    return settings;
  }

  void restored_goes_on_like_the_live_one() {
    CPPUNIT_ASSERT(rc::check("a restored brain goes on like the live one", [](uint32_t bits) {
      Player player(bits);
      player.t.apply(PolicySet{some_parameters(bits), ""});  // as at a pool's first start
      const std::vector<uint32_t> history = some_history();
      const size_t until = history.empty() ? 0 : bits % history.size();
      for (size_t i = 0; i < until; ++i) player.t.apply(player.next(history[i]));
      Pool restored(settings_at_start(bits));
      const auto complaints = restored.restore(player.t.books.snapshot());
      RC_ASSERT(complaints.empty());
      const ServerStarted started{settings_at_start(bits)};
      RC_ASSERT(text_of(player.t.apply(started)) == text_of(restored.apply(started, player.t.now)));
      RC_ASSERT(restored.policy() == player.t.pool.policy());
      for (size_t i = until; i < history.size(); ++i) {
        const Event event = player.next(history[i]);
        const Outcome& outcome = player.t.apply(event);
        RC_ASSERT(text_of(outcome) == text_of(restored.apply(event, player.t.now)));
        RC_ASSERT(restored.next_deadline() == player.t.pool.next_deadline());
        RC_ASSERT(restored.requesting() == player.t.pool.requesting());
        RC_ASSERT(restored.idle() == player.t.pool.idle());
      }
    }));
  }

  // The books throw if a record contradicts the earlier ones.
  void another_policy_takes_over() {
    CPPUNIT_ASSERT(rc::check("another policy takes over any pool", [](uint32_t bits) {
      Player player(bits);
      const std::vector<uint32_t> history = some_history();
      const size_t until = history.empty() ? 0 : bits % history.size();
      for (size_t i = 0; i < until; ++i) player.t.apply(player.next(history[i]));
      Pool other(some_parameters(bits + 32));
      testing::Books books = player.t.books;
      RC_ASSERT(other.restore(books.snapshot()).empty());
      books.write(other.apply(ServerStarted{some_parameters(bits + 32)}, player.t.now));
      player.t.apply(ServerStarted());
      for (size_t i = until; i < history.size(); ++i) {
        const Event event = player.next(history[i]);
        player.t.apply(event);
        const bool damaged = std::holds_alternative<CheckpointDamaged>(event);
        books.write(other.apply(event, player.t.now), damaged);
      }
    }));
  }

  // The live one is not touched; the restored one is anchored as it was after the records.
  void anchored_goes_on_like_the_live_one() {
    CPPUNIT_ASSERT(rc::check("an anchored brain goes on like the live one", [](uint32_t bits) {
      Player player(bits);
      const std::vector<uint32_t> history = some_history();
      const size_t until = history.empty() ? 0 : bits % history.size();
      for (size_t i = 0; i < until; ++i) player.t.apply(player.next(history[i]));
      Pool restored(some_parameters(bits));
      RC_ASSERT(restored.restore(player.t.books.snapshot()).empty());
      const Anchored anchor = player.t.pool.anchor();
      RC_ASSERT(same_when_fixed(anchor.parameters, some_parameters(bits)));
      RC_ASSERT((player.t.pool.policy().choice == anchor.parameters));
      const Micros now = player.t.now;
      if (bits & 32) RC_ASSERT(text_of(player.t.apply(anchor)) == text_of(Outcome()));
      RC_ASSERT(text_of(restored.apply(anchor, now)) == text_of(Outcome()));
      for (size_t i = until; i < history.size(); ++i) {
        const Event event = player.next(history[i]);
        const Outcome& outcome = player.t.apply(event);
        RC_ASSERT(text_of(outcome) == text_of(restored.apply(event, player.t.now)));
        RC_ASSERT(restored.next_deadline() == player.t.pool.next_deadline());
        RC_ASSERT(restored.requesting() == player.t.pool.requesting());
        RC_ASSERT(restored.idle() == player.t.pool.idle());
      }
      RC_ASSERT(encode_event(restored.anchor()) == encode_event(player.t.pool.anchor()));
    }));
  }

  void damaged_rows_are_set_aside() {
    TestPool t;
    t.join("m", 4);
    const JobId job = t.submit("ann", 3);
    Snapshot s = t.books.snapshot();
    s.pool.next_job = 2;                                     // too low
    s.users[0].usage = -1;                                   // must not be negative
    s.users[0].drawn = 1e300;                                // nothing added to it would count
    s.users[0].index = std::numeric_limits<int64_t>::min();  // has no positive counterpart
    s.machines[0].speed = std::nan("");
    s.programs.push_back({1, "x86_64", 0, 0});  // no runs
    s.users[0].placed = 1;
    s.users[0].placed_since = s.pool.now + 1;  // in the future
    // Of jobs that are yet to be submitted.
    s.relations.emplace_back().jobs = {job, 1000};
    s.jobs[0].share_priority = std::nan("");  // not a number
    s.attempts[0].key.attempt = 7;            // not the newest
    s.attempts[1].machine = 99;               // no such machine
    s.jobs.push_back(s.jobs[2]);              // duplicate
    s.machines.push_back({0, "x", "", "", 1, 1, 0, 0, MachineState::kBusy, 0});
    Pool restored{Parameters()};
    const auto complaints = restored.restore(s);
    CPPUNIT_ASSERT_EQUAL(size_t{15}, complaints.size());
    CPPUNIT_ASSERT(restored.job(job)->state == JobState::kWaiting);
    CPPUNIT_ASSERT(restored.job(job + 1)->state == JobState::kWaiting);
    CPPUNIT_ASSERT(restored.job(job + 2)->state == JobState::kPlaced);
    CPPUNIT_ASSERT_EQUAL(job + 3, restored.counters().next_job);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, restored.waiting());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(PoolPropertyTest);
}  // namespace
}  // namespace sublet::scheduling
