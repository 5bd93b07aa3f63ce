// What the policy "fair-share" promises, in virtual time: pools whose jobs take some time, whose
// machines renew, and whose server ticks.
#include <cppunit/extensions/HelperMacros.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

constexpr Micros kMinute = 60 * kSecond, kHour = 60 * kMinute;

// Machines with one slot each, on which every job takes `length`.
class Office {
 public:
  Office(int machines, Micros length, const Parameters& parameters = {})
      : t(parameters), length_(length) {
    for (int i = 0; i < machines; ++i) t.join("m" + std::to_string(i));
    next_tick_ = t.now + parameters.tick;
    tick_ = parameters.tick;
  }

  void submit(const std::string& user, size_t count, Submitted::Job job = {}) {
    job.count = count;
    waiting_[user] += count;
    see(t.apply(Submitted{1, user, "desk-" + user, {job}}));
  }

  // The user always has jobs that wait.
  void keep_busy(const std::string& user) {
    busy_.insert(user);
    submit(user, kAtOnce);
  }

  // Jobs end and ticks come until `span` is over.
  void run(Micros span) {
    const Micros until = t.now + span;
    for (;;) {
      const Micros end = ends_.empty() ? until : ends_.begin()->first;
      const Micros next = std::min({end, next_tick_, until});
      for (const auto& [user, cores] : held_) had[user] += cores * (next - t.now);
      t.now = next;
      if (next == until) return;
      if (next == next_tick_) {
        next_tick_ += tick_;
        renew();
        see(t.apply(Ticked()));
      } else {
        const JobId id = ends_.begin()->second;
        ends_.erase(ends_.begin());
        --held_[t.record(id).user];
        const bool computes = !idlers.contains(t.record(id).user);
        AttemptEnded ended{t.key(id), t.machine_of(id), EndReason::kDone, "",
                           computes ? length_ : 0};
        ended.wall = length_;
        see(t.apply(ended));
        refill(t.record(id).user);
      }
    }
  }

  // Of the time of all machines since `had` was emptied.
  double part(const std::string& user) {
    double all = 0;
    for (const auto& [name, time] : had) all += static_cast<double>(time);
    return static_cast<double>(had[user]) / all;
  }
  Micros begun(JobId id) const { return begun_.contains(id) ? begun_.at(id) : 0; }

  TestPool t;
  std::map<std::string, Micros> had;
  std::set<std::string> idlers;  // whose jobs hold their cores without using them

 private:
  static constexpr size_t kAtOnce =
      40;  // small, because the test's books visit every job of an array

  void refill(const std::string& user) {
    if (busy_.contains(user) && waiting_[user] < kAtOnce / 2) submit(user, kAtOnce);
  }

  void see(const Outcome& outcome) {
    std::vector<AttemptKey> begun;
    for (const Decision& decision : outcome.decisions)
      begun.push_back(std::get<StartAttempt>(decision).key);
    for (const AttemptKey& key : begun) {
      begun_[key.job] = t.now;
      ++held_[t.record(key.job).user];
      --waiting_[t.record(key.job).user];
      ends_.emplace(t.now + length_, key.job);
      t.start(key.job);
    }
  }
  // So that no lease runs out.
  void renew() {
    std::map<MachineId, Renewed> renewals;
    for (const auto& [at, id] : ends_) {
      const MachineId machine = t.machine_of(id);
      renewals.try_emplace(machine, Renewed{machine, false, {}})
          .first->second.attempts.push_back({t.key(id), AttemptState::kRunning, 0});
    }
    for (const auto& [machine, renewal] : renewals) t.apply(renewal);
  }

  const Micros length_;
  Micros tick_, next_tick_;
  std::multimap<Micros, JobId> ends_;
  std::map<std::string, Micros> held_;
  std::map<std::string, size_t> waiting_;
  std::set<std::string> busy_;
  std::map<JobId, Micros> begun_;
};

class FairShareTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(FairShareTest);
  CPPUNIT_TEST(shares_of_one_to_three);
  CPPUNIT_TEST(a_newcomer_has_his_share_at_once);
  CPPUNIT_TEST(who_was_alone_keeps_a_quarter_of_his_due);
  CPPUNIT_TEST(an_array_does_not_keep_a_single_job_waiting);
  CPPUNIT_TEST(cores_held_in_vain_are_charged);
  CPPUNIT_TEST(a_running_attempt_is_charged_at_each_renewal);
  CPPUNIT_TEST(what_does_not_run_is_not_charged);
  CPPUNIT_TEST(a_stopped_server_charges_two_ticks);
  CPPUNIT_TEST(an_evicted_attempt_is_given_back);
  CPPUNIT_TEST(what_is_given_back_has_decayed_over_missed_ticks);
  CPPUNIT_TEST(a_long_attempt_gives_back_what_is_left);
  CPPUNIT_TEST(a_lost_attempt_costs_what_it_held_if_all_is_charged);
  CPPUNIT_TEST(without_core_time_nothing_is_charged_before_the_end);
  CPPUNIT_TEST(restored_as_it_was);
  CPPUNIT_TEST(damaged_charges_are_named);
  CPPUNIT_TEST(who_was_nearly_alone_keeps_a_quarter_of_his_due);
  CPPUNIT_TEST_SUITE_END();

  // On two cores a core more or less is half of the pool.
  void shares_of_one_to_three() {
    for (const int cores : {8, 2}) {
      Office office(cores, 10 * kMinute);
      office.t.apply(SharesSet{"bob", 3});
      office.keep_busy("ann");
      office.keep_busy("bob");
      office.run(6 * kHour);
      office.had.clear();
      office.run(48 * kHour);
      CPPUNIT_ASSERT_DOUBLES_EQUAL(0.75, office.part("bob"), 0.75 * 0.05);
      CPPUNIT_ASSERT_DOUBLES_EQUAL(0.25, office.part("ann"), 0.25 * 0.05);
    }
  }

  void a_newcomer_has_his_share_at_once() {
    Office office(8, 30 * kMinute);
    office.keep_busy("old");
    office.run(48 * kHour + 7 * kMinute);
    office.submit("new", 100);
    office.run(30 * kMinute + kSecond);
    office.had.clear();
    office.run(kMinute);
    CPPUNIT_ASSERT(office.part("new") >= 0.5);
  }

  // In each of the next 48 hours; without the floor he gets nothing for hours.
  void who_was_alone_keeps_a_quarter_of_his_due() {
    Parameters none;
    none.floor = 0;
    Office without(8, 10 * kMinute, none);
    alone_for_two_days(without);
    without.run(kHour);
    without.had.clear();
    without.run(3 * kHour);
    CPPUNIT_ASSERT_EQUAL(0.0, without.part("old"));
    Office office(8, 10 * kMinute);
    alone_for_two_days(office);
    for (int hour = 0; hour < 48; ++hour) {
      office.had.clear();
      office.run(kHour);
      CPPUNIT_ASSERT_MESSAGE(std::to_string(hour) + " " + std::to_string(office.part("old")),
                             office.part("old") >= 0.5 / 4 * 0.8);
    }
  }

  // Another has a job that fits no machine; and a third one that always runs.
  void who_was_nearly_alone_keeps_a_quarter_of_his_due() {
    Office office(8, 10 * kMinute);
    Submitted::Job impossible;
    impossible.needs.memory = uint64_t{1} << 60;
    office.submit("bob", 1, impossible);
    office.keep_busy("carl");
    office.run(kHour);
    alone_for_two_days(office);
    office.run(2 * kHour);
    for (int hour = 0; hour < 24; ++hour) {
      office.had.clear();
      office.run(kHour);
      // Of four users with jobs, each is due a quarter.
      CPPUNIT_ASSERT_MESSAGE(std::to_string(hour) + " " + std::to_string(office.part("old")),
                             office.part("old") >= 0.25 / 4 * 0.8);
    }
  }

  static void alone_for_two_days(Office& office) {
    office.keep_busy("old");
    office.run(48 * kHour);
    office.keep_busy("new");
  }

  // bob has used 7 cores for 20 minutes: less than the pool has in one job's length.
  void an_array_does_not_keep_a_single_job_waiting() {
    Office office(8, 20 * kMinute);
    office.submit("bob", 7);
    office.run(25 * kMinute);
    office.keep_busy("ann");
    office.run(kMinute);
    const JobId job = office.t.pool.counters().next_job;
    office.submit("bob", 1);
    const Micros since = office.t.now;
    office.run(kHour);
    CPPUNIT_ASSERT(office.begun(job) != 0);
    CPPUNIT_ASSERT(office.begun(job) - since <= 20 * kMinute);
  }

  // bob's jobs use no CPU time; both get the same time of cores.
  void cores_held_in_vain_are_charged() {
    Office office(4, 10 * kMinute);
    office.idlers = {"bob"};
    office.keep_busy("ann");
    office.keep_busy("bob");
    office.run(24 * kHour);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.5, office.part("bob"), 0.03);
    Parameters cpu;
    cpu.cost_cpu = true;
    Office other(4, 10 * kMinute, cpu);
    other.idlers = {"bob"};
    other.keep_busy("ann");
    other.keep_busy("bob");
    other.run(24 * kHour);
    CPPUNIT_ASSERT(other.part("bob") > 0.6);
  }

  // A job of ann's.
  static JobId run_for_three_ticks(TestPool& t) {
    t.join("curly");
    const JobId job = t.submit("ann");
    t.start(job);
    for (int i = 0; i < 3; ++i) {
      t.pass(kMinute);
      t.renew(job);
      t.apply(Ticked());
    }
    return job;
  }

  // At each renewal, and for the rest at its end.
  void a_running_attempt_is_charged_at_each_renewal() {
    TestPool t;
    t.join({0, "curly", "linux", "x86_64", 4, 1, 8ull << 30, 100ull << 30});
    Submitted::Job wide;
    wide.needs.cores = 4;
    const JobId job = t.submit("ann", 1, wide);
    t.pass(5 * kSecond);
    t.start(job);
    const UserRecord& ann = t.books.users["ann"];
    for (int i = 1; i <= 5; ++i) {
      t.pass(10 * kSecond);
      t.renew(job);
      CPPUNIT_ASSERT_EQUAL(i * 40.0, ann.charges);
      // Only once for the same time.
      t.renew(job);
      CPPUNIT_ASSERT_EQUAL(i * 40.0, ann.charges);
      CPPUNIT_ASSERT_EQUAL(i * 40 * kSecond, t.pool.attempt(job)->charged);
    }
    t.pass(3 * kSecond);
    AttemptEnded end{t.key(job), t.machine_of(job), EndReason::kDone, "", kSecond};
    end.wall = 53 * kSecond;
    t.apply(end);
    CPPUNIT_ASSERT_EQUAL(212.0, ann.charges);
  }

  void what_does_not_run_is_not_charged() {
    TestPool t;
    t.join("curly");
    const JobId job = t.submit("ann");
    t.pass(10 * kSecond);
    t.renew(job, AttemptState::kStaging);
    t.start(job);
    t.pass(10 * kSecond);
    // It was suspended a moment ago.
    t.renew(job, AttemptState::kSuspended);
    for (int i = 0; i < 3; ++i) {
      t.pass(10 * kSecond);
      t.renew(job, AttemptState::kSuspended);
    }
    t.renew(job);
    t.pass(7 * kSecond);
    t.renew(job);
    CPPUNIT_ASSERT_EQUAL(17.0, t.books.users["ann"].charges);
  }

  // Of a day without a server two ticks are charged, once there is one; the rest at the end.
  void a_stopped_server_charges_two_ticks() {
    TestPool t;
    t.join("curly");
    const JobId job = t.submit("ann");
    t.start(job);
    t.pass(24 * kHour);
    t.apply(ServerStarted{});
    t.pass(kSecond);
    t.renew(job);
    const UserRecord& ann = t.books.users["ann"];
    CPPUNIT_ASSERT_EQUAL(120.0, ann.charges);
    AttemptEnded end{t.key(job), t.machine_of(job), EndReason::kDone, "", kSecond};
    end.wall = 24 * kHour;
    t.apply(end);
    CPPUNIT_ASSERT_EQUAL(24 * 3600.0, ann.charges);
  }

  // It was charged while it ran; nothing of its work was kept.
  void an_evicted_attempt_is_given_back() {
    TestPool t;
    const JobId job = run_for_three_ticks(t);
    t.pass(kMinute / 2);
    t.renew(job);
    CPPUNIT_ASSERT_EQUAL(30.0, t.books.users["ann"].charges);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(180, t.books.users["ann"].usage, 0.2);
    t.end(job, EndReason::kOwner, 210 * kSecond);
    const UserRecord& ann = t.books.users["ann"];
    // To the last digit: what is given back has decayed as the usage has.
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0, ann.usage, 1e-9);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0, ann.charges, 1e-9);
  }

  // Over ticks that were missed as well.
  void what_is_given_back_has_decayed_over_missed_ticks() {
    Parameters p;
    p.half_life = kHour;
    TestPool t(p);
    const JobId job = run_for_three_ticks(t);
    t.pass(kMinute / 2);
    t.renew(job);
    t.pass(10 * kHour);
    t.apply(ServerStarted{});
    t.apply(Ticked());
    t.end(job, EndReason::kOwner, 210 * kSecond);
    const UserRecord& ann = t.books.users["ann"];
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0, ann.usage, 1e-9);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0, ann.charges, 1e-9);
  }

  // Beside a job of hers that was done, over ten half-lives: what is given back has decayed, too.
  void a_long_attempt_gives_back_what_is_left() {
    Parameters p;
    p.half_life = kHour;
    TestPool t(p);
    t.join("curly", 2);
    const JobId lost = t.submit("ann"), done = t.submit("ann");
    t.start(lost);
    t.start(done);
    for (int i = 0; i < 600; ++i) {
      t.pass(kMinute);
      t.renew(lost);
      t.renew(done);
      t.apply(Ticked());
    }
    AttemptEnded end{t.key(done), t.machine_of(done), EndReason::kDone, "", 10 * kHour};
    end.wall = 10 * kHour;
    t.apply(end);
    const double before = t.books.users["ann"].usage + t.books.users["ann"].charges;
    t.end(lost, EndReason::kOwner, 10 * kHour);
    const double after = t.books.users["ann"].usage + t.books.users["ann"].charges;
    // Each had the same part of it, but for the last minute of the one that is done.
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.5, after / before, 0.02);
  }

  void a_lost_attempt_costs_what_it_held_if_all_is_charged() {
    for (const bool all : {true, false}) {
      Parameters p;
      p.charge_all = all;
      TestPool t(p);
      const JobId job = run_for_three_ticks(t);
      while (t.state(job) == JobState::kRunning) t.to_next_deadline();
      const UserRecord& ann = t.books.users["ann"];
      CPPUNIT_ASSERT_DOUBLES_EQUAL(all ? 180 : 0, ann.usage + ann.charges, 0.2);
    }
  }

  // Also if it has started when it was to leave already, so that it is not charged.
  void restored_as_it_was() {
    TestPool t;
    t.join("curly");
    const JobId job = t.submit("ann");
    t.apply(JobsHeld{{job}});
    t.pass(kSecond);
    t.apply(AttemptStarted{t.key(job), t.machine_of(job)});
    Pool restored{Parameters()};
    CPPUNIT_ASSERT(restored.restore(t.books.snapshot()).empty());
    CPPUNIT_ASSERT(*restored.attempt(job) == *t.pool.attempt(job));
    CPPUNIT_ASSERT(t.pool.attempt(job)->started != 0);
  }

  void damaged_charges_are_named() {
    TestPool t;
    const JobId job = run_for_three_ticks(t);
    for (const auto& [charged, left] : {std::pair<Micros, double>{-5, 0},
                                        {5, -1},
                                        {5, 1e308 * 10},
                                        {5, 1e308 * 10 - 1e308 * 10}}) {
      Snapshot snapshot = t.books.snapshot();
      for (AttemptRecord& attempt : snapshot.attempts) {
        attempt.charged = charged;
        attempt.charged_left = left;
      }
      Pool restored{Parameters()};
      const auto complaints = restored.restore(snapshot);
      CPPUNIT_ASSERT_EQUAL(size_t{1}, complaints.size());
      CPPUNIT_ASSERT_EQUAL("attempt " + std::to_string(job) + ".1 had no valid charges: 0 used",
                           complaints[0]);
      CPPUNIT_ASSERT_EQUAL(Micros{0}, restored.attempt(job)->charged);
    }
  }

  void without_core_time_nothing_is_charged_before_the_end() {
    Parameters p;
    p.cost_cpu = true;
    TestPool t(p);
    run_for_three_ticks(t);
    CPPUNIT_ASSERT_EQUAL(0.0, t.books.users["ann"].usage + t.books.users["ann"].charges);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(FairShareTest);

}  // namespace
}  // namespace sublet::scheduling
