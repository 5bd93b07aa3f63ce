// Every cell of the job and attempt tables of idl/types.idl, including the refused
// ones, and that events of old attempts have no effect.
#include <cppunit/extensions/HelperMacros.h>

#include <stdexcept>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;
using Answer = OrderAnswered::Answer;

// One job on one machine whose owner comes and goes.
struct OneJob {
  TestPool t;
  MachineId machine = 0;
  JobId job = 0;

  explicit OneJob(uint32_t retries = 0) {
    machine = t.join("curly");
    t.report(machine, false);
    job = t.submit("ann", 1, {{}, 0, retries});
  }
  void bring_to(JobState state) {
    if (state == JobState::kHeld) t.apply(JobsHeld{{job}});
    if (state == JobState::kRemoved) t.apply(JobsRemoved{{job}});
    if (state == JobState::kWaiting || state == JobState::kHeld || state == JobState::kRemoved) {
      return;
    }
    t.report(machine, true);
    t.report(machine, false);  // so that no other job is placed
    if (state != JobState::kPlaced) t.start(job);
    if (state == JobState::kSuspended) t.renew(job, AttemptState::kSuspended);
    if (state == JobState::kDelivering) t.renew(job, AttemptState::kDelivering);
    if (state == JobState::kDone) t.end(job, EndReason::kDone);
    if (state == JobState::kFailed) t.end(job, EndReason::kExit);
  }
  void bring_to(AttemptState state) {
    bring_to(JobState::kPlaced);
    if (state == AttemptState::kOrdered) return;
    t.apply(OrderAnswered{{job, 1}, Answer::kAccepted, ""});
    if (state == AttemptState::kStaging) return;
    t.apply(AttemptStarted{{job, 1}, machine});
    if (state == AttemptState::kRunning) return;
    if (state == AttemptState::kDelivering || state == AttemptState::kSuspended) {
      t.renew(job, state);
      return;
    }
    t.renew(job, AttemptState::kLeaving);
    if (state == AttemptState::kEnded) t.end(job, EndReason::kOwner);
  }
};

class PoolStatesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PoolStatesTest);
  CPPUNIT_TEST(job_table);
  CPPUNIT_TEST(retries_are_for_failures_only);
  CPPUNIT_TEST(attempt_table);
  CPPUNIT_TEST(a_start_may_be_told_later);
  CPPUNIT_TEST(a_suspended_job_goes_on);
  CPPUNIT_TEST(an_end_overtakes_its_start);
  CPPUNIT_TEST(ended_attempts_are_refused);
  CPPUNIT_TEST(other_machines_are_refused);
  CPPUNIT_TEST(checkpoints_only_rise);
  CPPUNIT_TEST(damaged_checkpoint_falls_back);
  CPPUNIT_TEST(held_job_waits_for_its_old_attempt);
  CPPUNIT_TEST(a_held_job_may_be_done);
  CPPUNIT_TEST(a_priority_changes_until_the_end);
  CPPUNIT_TEST(a_machine_has_one_name);
  CPPUNIT_TEST(removed_job_keeps_the_slot);
  CPPUNIT_TEST(lost_order_to_leave_is_repeated);
  CPPUNIT_TEST(unknown_things_change_nothing);
  CPPUNIT_TEST(unknown_policies_are_named);
  CPPUNIT_TEST_SUITE_END();

 public:
  void job_table() {
    using J = JobState;
    enum Do { kPlace, kAccept, kDone, kFail, kEvict, kHold, kRelease, kRemove };
    static constexpr J kSame{};  // refused or impossible: nothing changes
    const std::map<J, std::vector<J>> table = {
        {J::kWaiting, {J::kPlaced, kSame, kSame, kSame, kSame, J::kHeld, kSame, J::kRemoved}},
        {J::kPlaced,
         {kSame, J::kRunning, J::kDone, J::kFailed, J::kWaiting, J::kHeld, kSame, J::kRemoved}},
        {J::kRunning,
         {kSame, kSame, J::kDone, J::kFailed, J::kWaiting, J::kHeld, kSame, J::kRemoved}},
        {J::kSuspended,
         {kSame, J::kRunning, J::kDone, J::kFailed, J::kWaiting, J::kHeld, kSame, J::kRemoved}},
        {J::kDelivering,
         {kSame, kSame, J::kDone, J::kFailed, J::kWaiting, J::kHeld, kSame, J::kRemoved}},
        {J::kHeld, {kSame, kSame, kSame, kSame, kSame, kSame, J::kWaiting, J::kRemoved}},
        {J::kDone, {kSame, kSame, kSame, kSame, kSame, kSame, kSame, kSame}},
        {J::kFailed, {kSame, kSame, kSame, kSame, kSame, kSame, kSame, kSame}},
        {J::kRemoved, {kSame, kSame, kSame, kSame, kSame, kSame, kSame, kSame}}};
    for (const auto& [before, row] : table) {
      for (int event = kPlace; event <= kRemove; ++event) {
        OneJob one;
        TestPool& t = one.t;
        one.bring_to(before);
        const AttemptKey key{one.job, 1};
        const auto ended = [&](EndReason r) { t.apply(AttemptEnded{key, one.machine, r, "x"}); };
        if (event == kPlace) t.report(one.machine, true);
        if (event == kAccept) t.apply(AttemptStarted{key, one.machine});
        if (event == kDone) ended(EndReason::kDone);
        if (event == kFail) ended(EndReason::kExit);
        if (event == kEvict) ended(EndReason::kOwner);
        if (event == kHold) t.apply(JobsHeld{{one.job}});
        if (event == kRelease) t.apply(JobsReleased{{one.job}});
        if (event == kRemove) t.apply(JobsRemoved{{one.job}});
        const J expected = row[static_cast<size_t>(event)];
        const std::string cell =
            std::to_string(static_cast<int>(before)) + " x " + std::to_string(event);
        CPPUNIT_ASSERT_MESSAGE(cell, t.state(one.job) == (expected == kSame ? before : expected));
        CPPUNIT_ASSERT_MESSAGE(cell, !t.pool.job(one.job) == is_final(t.state(one.job)));
        if (event >= kHold) {
          CPPUNIT_ASSERT_EQUAL_MESSAGE(cell, uint64_t{expected != kSame}, t.last.answer.changed);
          CPPUNIT_ASSERT_EQUAL_MESSAGE(cell, uint64_t{expected == kSame}, t.last.answer.unchanged);
        }
        if (is_at_work(before) && (event == kHold || event == kRemove)) {
          const auto& leave = std::get<TellToLeave>(t.last.decisions.at(0));
          CPPUNIT_ASSERT(leave.key == key);
          CPPUNIT_ASSERT(leave.reason ==
                         (event == kHold ? LeaveReason::kHeld : LeaveReason::kRemoved));
        }
      }
    }
  }

  void a_machine_has_one_name() {
    TestPool t;
    const MachineId machine = t.join("curly");
    t.join({machine, "larry", "linux", "x86_64", 1, 1, 1ull << 30, 1ull << 30});
    CPPUNIT_ASSERT(t.pool.machine_named("larry") == machine);
    CPPUNIT_ASSERT(!t.pool.machine_named("curly"));
  }

  // By the machine's word, as often as its owner comes and goes; its start stays what it was.
  void a_suspended_job_goes_on() {
    OneJob one;
    TestPool& t = one.t;
    one.bring_to(JobState::kRunning);
    const Micros started = t.books.attempts[t.key(one.job)].started;
    for (int i = 0; i < 2; ++i) {
      t.pass(kSecond);
      t.renew(one.job, AttemptState::kSuspended);
      CPPUNIT_ASSERT(t.state(one.job) == JobState::kSuspended);
      t.pass(kSecond);
      t.renew(one.job, AttemptState::kRunning);
      CPPUNIT_ASSERT(t.state(one.job) == JobState::kRunning);
    }
    CPPUNIT_ASSERT_EQUAL(started, t.books.attempts[t.key(one.job)].started);
    t.renew(one.job, AttemptState::kSuspended);
    t.renew(one.job, AttemptState::kLeaving);
    CPPUNIT_ASSERT(t.state(one.job) == JobState::kRunning);
    t.renew(one.job, AttemptState::kSuspended);  // said before it left
    CPPUNIT_ASSERT(t.books.attempts[t.key(one.job)].state == AttemptState::kLeaving);
  }

  void an_end_overtakes_its_start() {
    const auto started = [](Micros wall, bool has_started) {
      OneJob one;
      TestPool& t = one.t;
      one.bring_to(JobState::kPlaced);
      const AttemptKey key = t.key(one.job);
      t.pass(3 * kSecond);
      t.apply(AttemptEnded{key, one.machine, EndReason::kDone, "", 0, -1, wall, "", has_started});
      CPPUNIT_ASSERT_EQUAL(t.books.attempts[key].started, t.books.uses[key].started);
      const Micros at = t.books.attempts[key].started;
      return at == 0 ? std::optional<Micros>() : t.now - at;
    };
    CPPUNIT_ASSERT(Micros{kSecond} == started(kSecond, true));
    CPPUNIT_ASSERT(Micros{0} == started(-kSecond, true));
    CPPUNIT_ASSERT(Micros{3 * kSecond} == started(60 * kSecond, true));  // not before it was placed
    CPPUNIT_ASSERT(std::nullopt == started(kSecond, false));
  }

  // Its program ended before it was told to leave.
  void a_held_job_may_be_done() {
    for (const bool released : {false, true}) {
      OneJob one;
      TestPool& t = one.t;
      one.bring_to(JobState::kRunning);
      t.apply(JobsHeld{{one.job}});
      if (released) t.apply(JobsReleased{{one.job}});
      t.apply(AttemptEnded{{one.job, 1}, one.machine, EndReason::kDone, ""});
      CPPUNIT_ASSERT(t.state(one.job) == JobState::kDone);
      CPPUNIT_ASSERT(!t.pool.job(one.job));
      t.report(one.machine, true);
      CPPUNIT_ASSERT(t.last.decisions.empty());
    }
  }

  void retries_are_for_failures_only() {
    OneJob one(1);
    one.bring_to(JobState::kRunning);
    one.t.end(one.job, EndReason::kOwner);
    CPPUNIT_ASSERT_EQUAL(1u, one.t.record(one.job).retries_left);
    one.t.report(one.machine, true);
    one.t.start(one.job);
    one.t.end(one.job, EndReason::kSignal);  // and placed again at once
    CPPUNIT_ASSERT_EQUAL(0u, one.t.record(one.job).retries_left);
    CPPUNIT_ASSERT(one.t.state(one.job) == JobState::kPlaced);
    CPPUNIT_ASSERT_EQUAL(3u, one.t.key(one.job).attempt);
    one.t.end(one.job, EndReason::kStart);
    CPPUNIT_ASSERT(one.t.state(one.job) == JobState::kFailed);
  }

  void attempt_table() {
    using A = AttemptState;
    enum Do {
      kAccepted,
      kRefused,
      kStarted,
      kSuspended,
      kLeaving,
      kDelivering,
      kEnds,
      kLeaseExpired,
      kSuperseded
    };
    const std::map<A, std::vector<A>> table = {
        {A::kOrdered,
         {A::kStaging, A::kEnded, A::kRunning, A::kSuspended, A::kLeaving, A::kDelivering,
          A::kEnded, A::kEnded, A::kEnded}},
        {A::kStaging,
         {A::kStaging, A::kEnded, A::kRunning, A::kSuspended, A::kLeaving, A::kDelivering,
          A::kEnded, A::kEnded, A::kEnded}},
        {A::kRunning,
         {A::kRunning, A::kRunning, A::kRunning, A::kSuspended, A::kLeaving, A::kDelivering,
          A::kEnded, A::kEnded, A::kEnded}},
        {A::kSuspended,
         {A::kSuspended, A::kSuspended, A::kRunning, A::kSuspended, A::kLeaving, A::kDelivering,
          A::kEnded, A::kEnded, A::kEnded}},
        {A::kLeaving,
         {A::kLeaving, A::kLeaving, A::kLeaving, A::kLeaving, A::kLeaving, A::kDelivering,
          A::kEnded, A::kEnded, A::kEnded}},
        {A::kDelivering,
         {A::kDelivering, A::kDelivering, A::kDelivering, A::kDelivering, A::kDelivering,
          A::kDelivering, A::kEnded, A::kEnded, A::kEnded}},
        {A::kEnded,
         {A::kEnded, A::kEnded, A::kEnded, A::kEnded, A::kEnded, A::kEnded, A::kEnded, A::kEnded,
          A::kEnded}}};
    for (const auto& [before, row] : table) {
      for (int event = kAccepted; event <= kSuperseded; ++event) {
        OneJob one;
        TestPool& t = one.t;
        one.bring_to(before);
        const AttemptKey key{one.job, 1};
        if (event == kAccepted) t.apply(OrderAnswered{key, Answer::kAccepted, ""});
        if (event == kRefused) t.apply(OrderAnswered{key, Answer::kRefused, ""});
        if (event == kStarted) t.apply(AttemptStarted{key, one.machine});
        if (event == kSuspended)
          t.apply(Renewed{one.machine, false, {{key, AttemptState::kSuspended}}});
        if (event == kLeaving) {
          t.apply(Renewed{one.machine, false, {{key, AttemptState::kLeaving}}});
        }
        if (event == kDelivering) {
          t.apply(Renewed{one.machine, false, {{key, AttemptState::kDelivering}}});
        }
        if (event == kEnds) t.apply(AttemptEnded{key, one.machine, EndReason::kOwner, ""});
        if (event == kSuperseded) {
          t.apply(AttemptEnded{key, one.machine, EndReason::kSuperseded, ""});
        }
        if (event == kLeaseExpired) {
          t.pass(33 * kSecond);
          t.apply(TimePassed());
        }
        const std::string cell =
            std::to_string(static_cast<int>(before)) + " x " + std::to_string(event);
        CPPUNIT_ASSERT_MESSAGE(cell,
                               t.books.attempts.at(key).state == row[static_cast<size_t>(event)]);
      }
    }
  }

  void a_start_may_be_told_later() {
    constexpr Micros kMs = 1'000;
    for (const Micros ran : {0 * kMs, 150 * kMs, 1'000'000 * kMs, -kMs}) {
      OneJob one;
      TestPool& t = one.t;
      one.bring_to(AttemptState::kStaging);
      const Micros decided = t.pool.attempt(one.job)->decided;
      t.pass(200 * kMs);
      t.apply(AttemptStarted{{one.job, 1}, one.machine, ran});
      const AttemptRecord& record = *t.pool.attempt(one.job);
      const Micros started = ran <= 0           ? t.now
                             : ran == 150 * kMs ? t.now - ran
                                                : decided;  // it cannot have been before
      CPPUNIT_ASSERT_EQUAL(started, record.started);
      CPPUNIT_ASSERT_EQUAL(started, record.charged_until);
      CPPUNIT_ASSERT(t.state(one.job) == JobState::kRunning);
    }
  }

  void ended_attempts_are_refused() {
    OneJob one;
    TestPool& t = one.t;
    one.bring_to(AttemptState::kEnded);
    const AttemptKey key{one.job, 1};
    const auto verdict = [&] { return t.last.answer.verdicts.at(0).second; };
    t.apply(AttemptEnded{key, one.machine, EndReason::kOwner, ""});
    CPPUNIT_ASSERT(verdict() == Verdict::kKnown && t.last.records.empty());
    t.apply(AttemptEnded{key, one.machine, EndReason::kDone, ""});
    CPPUNIT_ASSERT(verdict() == Verdict::kSuperseded && t.last.records.empty());
    t.apply(AttemptStarted{key, one.machine});
    CPPUNIT_ASSERT(verdict() == Verdict::kSuperseded && !t.last.answer.accepted);
    t.apply(CheckpointStored{key, one.machine, 9, 9});
    CPPUNIT_ASSERT(!t.last.answer.accepted && t.last.records.empty());
    t.apply(Renewed{one.machine, false, {{key, AttemptState::kRunning}}});
    CPPUNIT_ASSERT(verdict() == Verdict::kKnown && t.last.records.empty());
    // A new attempt: the old one is superseded whatever it reports.
    t.report(one.machine, true);
    CPPUNIT_ASSERT_EQUAL(2u, t.key(one.job).attempt);
    t.apply(AttemptEnded{key, one.machine, EndReason::kOwner, ""});
    CPPUNIT_ASSERT(verdict() == Verdict::kSuperseded && t.last.records.empty());
    t.apply(Renewed{one.machine, false, {{key, AttemptState::kRunning}}});
    CPPUNIT_ASSERT(verdict() == Verdict::kSuperseded && t.last.records.empty());
  }

  void other_machines_are_refused() {
    OneJob one;
    TestPool& t = one.t;
    one.bring_to(JobState::kRunning);
    const MachineId other = t.join("larry", 1, false);
    const AttemptKey key = t.key(one.job);
    t.apply(AttemptEnded{key, other, EndReason::kDone, ""});
    CPPUNIT_ASSERT(t.last.answer.verdicts.at(0).second == Verdict::kSuperseded);
    CPPUNIT_ASSERT(t.last.records.empty());
    t.apply(CheckpointStored{key, other, 1, 1});
    CPPUNIT_ASSERT(!t.last.answer.accepted && t.last.records.empty());
    t.apply(Renewed{other, true, {{key, AttemptState::kRunning}}});
    CPPUNIT_ASSERT(t.last.answer.verdicts.at(0).second == Verdict::kSuperseded);
    CPPUNIT_ASSERT(t.state(one.job) == JobState::kRunning);
  }

  void checkpoints_only_rise() {
    OneJob one;
    TestPool& t = one.t;
    one.bring_to(JobState::kRunning);
    const AttemptKey key = t.key(one.job);
    t.apply(CheckpointStored{key, one.machine, 2, 200});
    t.apply(CheckpointStored{key, one.machine, 1, 100});
    CPPUNIT_ASSERT(t.last.answer.accepted && t.last.records.empty());
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, t.record(one.job).generation);
    CPPUNIT_ASSERT_EQUAL(uint64_t{200}, t.record(one.job).checkpoint_bytes);
    t.end(one.job, EndReason::kOwner);
    t.report(one.machine, true);
    const auto order = std::get<StartAttempt>(t.last.decisions.at(0));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, order.generation);
    CPPUNIT_ASSERT_EQUAL(uint64_t{200}, order.checkpoint_bytes);
    CPPUNIT_ASSERT_EQUAL(t.record(one.job).user, order.user);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, t.pool.attempt(one.job)->resumed_generation);
  }

  void damaged_checkpoint_falls_back() {
    OneJob one;
    TestPool& t = one.t;
    one.bring_to(JobState::kRunning);
    t.apply(CheckpointStored{t.key(one.job), one.machine, 1, 100});
    t.apply(CheckpointStored{t.key(one.job), one.machine, 2, 200});
    t.end(one.job, EndReason::kOwner, 5 * kSecond, 4 * kSecond);
    t.report(one.machine, true);
    const AttemptKey key = t.key(one.job);
    t.apply(CheckpointDamaged{key, one.machine, 1, 0, 0});  // not the newest one
    CPPUNIT_ASSERT(!t.last.answer.accepted && t.last.records.empty());
    t.apply(CheckpointDamaged{key, one.machine, 2, 2, 200});  // names no older one
    CPPUNIT_ASSERT(!t.last.answer.accepted && t.last.records.empty());
    t.apply(CheckpointDamaged{key, one.machine, 2, 1, 100});
    CPPUNIT_ASSERT(t.last.answer.accepted);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.record(one.job).generation);
    CPPUNIT_ASSERT_EQUAL(uint64_t{100}, t.record(one.job).checkpoint_bytes);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.pool.attempt(one.job)->resumed_generation);
    CPPUNIT_ASSERT_EQUAL(std::string("checkpoint generation 2 was damaged in the spool: resuming "
                                     "from generation 1"),
                         t.record(one.job).reason);
    t.apply(CheckpointDamaged{key, one.machine, 1, 0, 0});
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, t.record(one.job).generation);
    CPPUNIT_ASSERT_EQUAL(Micros{0}, t.record(one.job).cpu_kept);
    CPPUNIT_ASSERT_EQUAL(5 * kSecond, t.record(one.job).cpu_lost);
    t.apply(CheckpointStored{key, one.machine, 1, 70});
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.record(one.job).generation);
  }

  void held_job_waits_for_its_old_attempt() {
    OneJob one;
    TestPool& t = one.t;
    one.bring_to(JobState::kRunning);
    const MachineId other = t.join("larry");
    t.apply(JobsHeld{{one.job}});
    t.apply(CheckpointStored{{one.job, 1}, one.machine, 1, 10});
    CPPUNIT_ASSERT(t.last.answer.accepted);
    t.apply(JobsReleased{{one.job}});
    CPPUNIT_ASSERT(t.state(one.job) == JobState::kWaiting);
    CPPUNIT_ASSERT(t.last.decisions.empty());  // larry is idle, but one attempt counts
    CPPUNIT_ASSERT_EQUAL(std::string("its attempt 1 on curly has not ended yet"),
                         t.pool.why(one.job, t.now));
    t.end(one.job, EndReason::kHeld, 5 * kSecond, 5 * kSecond);
    CPPUNIT_ASSERT_EQUAL(other, t.machine_of(one.job));
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.pool.attempt(one.job)->resumed_generation);
  }

  // Of jobs 1 to 4, of which 1 runs: 3 comes first, and 1 behind all when it returns.
  void a_priority_changes_until_the_end() {
    TestPool t;
    const MachineId machine = t.join("curly");
    t.submit("ann", 4);
    t.start(1);
    t.apply(PrioritySet{{3}, 5});
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.last.answer.changed);
    CPPUNIT_ASSERT(t.last.decisions.empty());
    t.apply(PrioritySet{{{1, 3}}, -2, {JobState::kRunning}});
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.last.answer.changed);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, t.last.answer.unchanged);
    t.apply(PrioritySet{{3}, 5});
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, t.last.answer.changed);
    CPPUNIT_ASSERT(t.last.records.empty());
    CPPUNIT_ASSERT(t.state(1) == JobState::kRunning);
    t.end(1, EndReason::kOwner, 5 * kSecond, 5 * kSecond);
    t.report(machine, true);
    for (const JobId next : {3, 2, 4, 1}) {
      CPPUNIT_ASSERT_EQUAL(machine, t.machine_of(next));
      t.end(next, EndReason::kDone);
    }
    t.apply(PrioritySet{{1}, 7});
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.last.answer.unchanged);
    CPPUNIT_ASSERT_EQUAL(-2, t.record(1).priority);
  }

  void removed_job_keeps_the_slot() {
    OneJob one;
    TestPool& t = one.t;
    one.bring_to(JobState::kRunning);
    const AttemptKey key = t.key(one.job);
    const JobId next = t.submit("bob");
    t.apply(JobsRemoved{{one.job, one.job}});
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.last.answer.changed);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.last.answer.unchanged);
    CPPUNIT_ASSERT(!t.pool.job(one.job).has_value());
    t.report(one.machine, true);
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(next));
    t.apply(CheckpointStored{key, one.machine, 1, 10});
    CPPUNIT_ASSERT(!t.last.answer.accepted);
    t.apply(AttemptEnded{key, one.machine, EndReason::kRemoved, "", 7 * kSecond});
    CPPUNIT_ASSERT(t.last.answer.verdicts.at(0).second == Verdict::kCounts);
    CPPUNIT_ASSERT_EQUAL(7.0, t.books.users["ann"].charges);  // removed by the user: charged
    CPPUNIT_ASSERT_EQUAL(one.machine, t.machine_of(next));
  }

  void lost_order_to_leave_is_repeated() {
    OneJob one;
    TestPool& t = one.t;
    one.bring_to(JobState::kRunning);
    t.apply(JobsHeld{{one.job}});
    t.pass(kSecond);
    t.renew(one.job);
    CPPUNIT_ASSERT(std::get<TellToLeave>(t.last.decisions.at(0)).reason == LeaveReason::kHeld);
    CPPUNIT_ASSERT(t.last.answer.verdicts.at(0).second == Verdict::kCounts);
    t.renew(one.job, AttemptState::kLeaving);
    CPPUNIT_ASSERT(t.last.decisions.empty());
  }

  void unknown_things_change_nothing() {
    TestPool t;
    t.apply(MachineJoined{7, "curly", "linux", "x86_64"});
    CPPUNIT_ASSERT(!t.last.answer.accepted && t.last.records.empty());
    const std::vector<Event> events = {MachineReported{7, true, 1, 1},
                                       MachineWithdrew{7},
                                       Renewed{7, true, {{{1, 1}, AttemptState::kRunning}}},
                                       OrderAnswered{{1, 1}, Answer::kRefused, ""},
                                       AttemptStarted{{1, 1}, 7},
                                       CheckpointStored{{1, 1}, 7, 1, 1},
                                       CheckpointDamaged{{1, 1}, 7, 1, 0, 0},
                                       AttemptEnded{{1, 1}, 7, EndReason::kDone, ""},
                                       JobsRemoved{{1}},
                                       JobsHeld{{1}},
                                       JobsReleased{{1}},
                                       PrioritySet{{1}, 5},
                                       SharesSet{"ann", 0},
                                       SharesSet{"ann", 0, SharesSet::By::kAdministrator},
                                       MachineDrained{7},
                                       MachineEvicted{7},
                                       TimePassed(),
                                       ServerStarted()};
    for (const Event& event : events) {
      const Outcome& outcome = t.apply(event);
      CPPUNIT_ASSERT(outcome.records.empty() && outcome.decisions.empty());
    }
  }

  void unknown_policies_are_named() {
    Parameters p;
    p.job_policy = "lottery";
    CPPUNIT_ASSERT_THROW(Pool{p}, std::invalid_argument);
    p = Parameters();
    p.machine_policy = "nearest";
    CPPUNIT_ASSERT_THROW(Pool{p}, std::invalid_argument);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(PoolStatesTest);
}  // namespace
}  // namespace sublet::scheduling
