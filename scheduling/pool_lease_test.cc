// Leases, silence and restarts, to the microsecond.
#include <cppunit/extensions/HelperMacros.h>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

// 1.01 * 30 s + 2 s
constexpr Micros kReassignDelay = 32'300'000;

class PoolLeaseTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PoolLeaseTest);
  CPPUNIT_TEST(lease_counts_from_the_decision);
  CPPUNIT_TEST(lease_counts_from_the_last_renewal);
  CPPUNIT_TEST(lease_counts_from_a_restart);
  CPPUNIT_TEST(unknown_answer_leaves_it_to_the_lease);
  CPPUNIT_TEST(announced_checkpoint_is_waited_for);
  CPPUNIT_TEST(a_delivery_is_waited_for_while_it_progresses);
  CPPUNIT_TEST(nobody_waits_for_a_removed_job);
  CPPUNIT_TEST(a_restart_forgets_earlier_registrations);
  CPPUNIT_TEST(silent_machines_get_nothing);
  CPPUNIT_TEST(first_renewal_loses_what_it_does_not_name);
  CPPUNIT_TEST(later_renewals_lose_nothing);
  CPPUNIT_TEST(an_attempt_that_the_books_lost_is_waited_for);
  CPPUNIT_TEST(withdrawn_machine_keeps_its_leases);
  CPPUNIT_TEST(gone_machine_has_no_deadline);
  CPPUNIT_TEST_SUITE_END();

  // Lost at `end`, not a microsecond before.
  static void expect_lost_at(TestPool& t, JobId job, Micros end) {
    const AttemptKey key = t.key(job);
    t.now = end - 1;
    t.apply(TimePassed());
    CPPUNIT_ASSERT(t.key(job) == key);
    CPPUNIT_ASSERT_EQUAL(end, *t.pool.next_deadline());
    CPPUNIT_ASSERT(t.to_next_deadline());
    CPPUNIT_ASSERT(t.books.attempts[key].ended == EndReason::kLost);
    CPPUNIT_ASSERT(t.state(job) == JobState::kWaiting);
    CPPUNIT_ASSERT_EQUAL(0u, t.record(job).evictions);
  }

 public:
  void lease_counts_from_the_decision() {
    TestPool t;
    t.join("m");
    const JobId job = t.submit("ann");
    expect_lost_at(t, job, t.now + kReassignDelay);
  }

  void lease_counts_from_the_last_renewal() {
    TestPool t;
    t.join("m");
    const JobId job = t.submit("ann");
    t.start(job);
    for (int i = 0; i < 10; ++i) {
      t.pass(29 * kSecond);
      CPPUNIT_ASSERT(t.renew(job).answer.verdicts.at(0).second == Verdict::kCounts);
    }
    t.pass(kReassignDelay - 1);
    t.apply(TimePassed());
    t.renew(job);  // at the last moment
    expect_lost_at(t, job, t.now + kReassignDelay);
    t.apply(Renewed{1, false, {{{job, 1}, AttemptState::kRunning}}});
    CPPUNIT_ASSERT(t.last.answer.verdicts.at(0).second == Verdict::kSuperseded);
  }

  void lease_counts_from_a_restart() {
    TestPool t;
    const MachineId m = t.join("m");
    const JobId job = t.submit("ann");
    t.pass(32 * kSecond);
    t.apply(ServerStarted());
    CPPUNIT_ASSERT(t.pool.machine(m)->record.state == MachineState::kBusy);
    expect_lost_at(t, job, t.now + kReassignDelay);
  }

  void unknown_answer_leaves_it_to_the_lease() {
    TestPool t;
    t.join("m");
    const JobId job = t.submit("ann");
    const Micros decided = t.now;
    t.pass(kSecond);
    t.apply(OrderAnswered{t.key(job), OrderAnswered::Answer::kUnknown, "timed out"});
    CPPUNIT_ASSERT(t.last.records.empty());
    expect_lost_at(t, job, decided + kReassignDelay);
  }

  // Found by the property test: a machine that has withdrawn must not be paused.
  void gone_machine_has_no_deadline() {
    TestPool t;
    const MachineId m = t.join("m");
    const JobId job = t.submit("ann");
    t.apply(MachineWithdrew{m});
    t.apply(OrderAnswered{t.key(job), OrderAnswered::Answer::kNotDelivered, ""});
    CPPUNIT_ASSERT(t.state(job) == JobState::kWaiting);
    CPPUNIT_ASSERT(!t.pool.next_deadline());
  }

  // Announced at 0, renewed every 10 s: no renewal counts from 60 s on, so the last
  // lease is that of the renewal at 50 s.
  void announced_checkpoint_is_waited_for() {
    TestPool t;
    const MachineId m = t.join("m");
    t.join("other", 1, false);
    const JobId job = t.submit("ann");
    t.start(job);
    t.report(m, false);
    const Micros announced = t.now;
    for (int s = 0; s <= 80; s += 10) {
      t.now = announced + s * kSecond;
      t.apply(TimePassed());
      t.apply(Renewed{m, false, {{{job, 1}, AttemptState::kLeaving}}});
      const Verdict expected = s < 60 ? Verdict::kCounts : Verdict::kSuperseded;
      CPPUNIT_ASSERT(t.last.answer.verdicts.at(0).second == expected);
    }
    t.now = announced + 50 * kSecond + kReassignDelay - 1;
    t.apply(TimePassed());
    CPPUNIT_ASSERT(t.state(job) == JobState::kRunning);
    t.pass(1);
    t.apply(TimePassed());
    CPPUNIT_ASSERT(t.state(job) == JobState::kWaiting);
    const AttemptRecord& attempt = t.books.attempts[{job, 1}];
    CPPUNIT_ASSERT(attempt.ended == EndReason::kSuperseded);
    CPPUNIT_ASSERT_EQUAL(
        std::string("given up (checkpoint did not arrive: resuming from generation 0)"),
        attempt.reason.text());
  }

  void a_delivery_is_waited_for_while_it_progresses() {
    TestPool t;
    const MachineId m = t.join("m");
    const JobId job = t.submit("ann");
    t.start(job);
    t.report(m, false);
    const auto verdict = [&](uint64_t delivered) {
      t.pass(10 * kSecond);
      t.apply(TimePassed());
      t.apply(Renewed{m, false, {{{job, 1}, AttemptState::kDelivering, delivered}}});
      return t.last.answer.verdicts.at(0).second;
    };
    CPPUNIT_ASSERT(verdict(0) == Verdict::kCounts);
    CPPUNIT_ASSERT(t.state(job) == JobState::kDelivering);
    // Once a minute is enough, for as long as it takes.
    for (uint64_t renewal = 1; renewal < 1'000; ++renewal)
      CPPUNIT_ASSERT(verdict((renewal + 1) / 6) == Verdict::kCounts);
    // A restarted client counts from 0 again.
    for (uint64_t bytes : {0u, 1u}) CPPUNIT_ASSERT(verdict(bytes) == Verdict::kCounts);
    // A restart of the server takes nothing away.
    t.apply(ServerStarted());
    for (int i = 0; i < 6; ++i) CPPUNIT_ASSERT(verdict(1) == Verdict::kCounts);
    CPPUNIT_ASSERT(verdict(1) == Verdict::kSuperseded);
    t.pass(kReassignDelay - 10 * kSecond);
    t.apply(TimePassed());
    CPPUNIT_ASSERT(t.state(job) == JobState::kWaiting);
    const AttemptRecord& attempt = t.books.attempts[{job, 1}];
    CPPUNIT_ASSERT_EQUAL(
        std::string("given up (its outputs did not arrive: resuming from generation 0)"),
        attempt.reason.text());
  }

  void nobody_waits_for_a_removed_job() {
    TestPool t;
    const MachineId m = t.join("m");
    const JobId job = t.submit("ann");
    t.start(job);
    Verdict verdict = Verdict::kCounts;
    uint64_t delivered = 0;
    const auto renew = [&] {
      t.pass(10 * kSecond);
      t.apply(TimePassed());
      t.apply(Renewed{m, false, {{{job, 1}, AttemptState::kDelivering, ++delivered}}});
      verdict = t.last.answer.verdicts.at(0).second;
    };
    renew();
    t.apply(JobsRemoved{{job}});
    for (int i = 0; i < 5; ++i) {
      renew();
      CPPUNIT_ASSERT(verdict == Verdict::kCounts);
    }
    renew();
    CPPUNIT_ASSERT(verdict == Verdict::kSuperseded);
  }

  // As in a brain that was restored, which does not know them.
  void a_restart_forgets_earlier_registrations() {
    TestPool t;
    const MachineId m = t.join("m");
    const JobId job = t.submit("ann");
    t.start(job);
    t.apply(MachineJoined{m, "m", "linux", "x86_64", 1, 1, 8ull << 30, 100ull << 30});
    Pool restored{Parameters()};
    CPPUNIT_ASSERT(restored.restore(t.books.snapshot()).empty());
    for (const Event& event : {Event(ServerStarted()), Event(Renewed{m, true, {}})}) {
      t.apply(event);
      restored.apply(event, t.now);
    }
    CPPUNIT_ASSERT(restored.attempt(job) != nullptr);
    CPPUNIT_ASSERT(t.pool.attempt(job) != nullptr);
  }

  void silent_machines_get_nothing() {
    TestPool t;
    const MachineId m = t.join("m");
    CPPUNIT_ASSERT_EQUAL(t.now + 30 * kSecond, *t.pool.next_deadline());
    t.to_next_deadline();
    CPPUNIT_ASSERT(t.books.machines[m].state == MachineState::kSilent);
    CPPUNIT_ASSERT(t.pool.idle().empty());
    CPPUNIT_ASSERT(!t.pool.next_deadline());
    const JobId job = t.submit("ann");
    CPPUNIT_ASSERT_EQUAL(std::string("1 machine fits, silent"), t.pool.why(job, t.now));
    t.apply(Renewed{m, false, {}});  // no longer silent: idle, as last reported
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(job));
  }

  void first_renewal_loses_what_it_does_not_name() {
    TestPool t;
    const MachineId m = t.join("m", 3);
    const JobId job = t.submit("ann", 2);
    t.apply(MachineJoined{m, "m", "linux", "x86_64", 3, 3, 8ull << 30, 1ull << 40});
    CPPUNIT_ASSERT(t.pool.idle().empty());
    CPPUNIT_ASSERT_EQUAL(size_t{2}, t.pool.machine(m)->running.size());
    t.report(m, true);
    const JobId after = t.submit("ann");  // ordered in this registration
    t.report(m, false);
    t.apply(Renewed{m, true, {{{job, 1}, AttemptState::kRunning}}});
    CPPUNIT_ASSERT(t.state(job) == JobState::kRunning);  // adopted
    CPPUNIT_ASSERT(t.state(job + 1) == JobState::kWaiting);
    CPPUNIT_ASSERT(t.books.attempts[(AttemptKey{job + 1, 1})].ended == EndReason::kLost);
    CPPUNIT_ASSERT(t.state(after) == JobState::kPlaced);
  }

  void later_renewals_lose_nothing() {
    TestPool t;
    const MachineId m = t.join("m");
    const JobId job = t.submit("ann");
    const Micros decided = t.now;
    t.apply(MachineJoined{m, "m", "linux", "x86_64"});
    t.pass(kSecond);
    t.apply(Renewed{m, false, {}});
    expect_lost_at(t, job, decided + kReassignDelay);
  }

  // Its row was damaged, so it is not known whether and where it is running.
  void an_attempt_that_the_books_lost_is_waited_for() {
    TestPool t;
    t.join("m", 3);
    const JobId running = t.submit("ann"), held = t.submit("ann"), ended = t.submit("ann");
    t.start(running);
    t.apply(JobsHeld{{held}});
    t.end(ended, EndReason::kOwner);  // and placed again, and lost again
    Snapshot rows = t.books.snapshot();
    std::erase_if(rows.attempts,
                  [&](const AttemptRecord& row) { return row.state != AttemptState::kEnded; });
    Pool pool(Parameters{});
    CPPUNIT_ASSERT_EQUAL(size_t{2}, pool.restore(rows).size());
    t.pass(kSecond);
    const Micros restart = t.now, due = restart + kReassignDelay;
    pool.apply(ServerStarted(), restart);
    pool.apply(JobsReleased{{held}}, restart);
    pool.apply(MachineReported{1, true, 8ull << 30, 100ull << 30}, restart);
    CPPUNIT_ASSERT_EQUAL(
        std::string("attempt 1 is missing from the store and may still be running; "
                    "tried again in 33 s"),
        pool.why(running, restart));
    pool.apply(Renewed{1, false, {}}, due - 1);
    for (const JobId job : {running, held, ended}) CPPUNIT_ASSERT(!pool.attempt(job));
    CPPUNIT_ASSERT_EQUAL(due, *pool.next_deadline());
    pool.apply(TimePassed(), due);
    CPPUNIT_ASSERT_EQUAL(2u, pool.attempt(running)->key.attempt);
    CPPUNIT_ASSERT_EQUAL(2u, pool.attempt(held)->key.attempt);
    CPPUNIT_ASSERT_EQUAL(3u, pool.attempt(ended)->key.attempt);
  }

  void withdrawn_machine_keeps_its_leases() {
    TestPool t;
    const MachineId m = t.join("m");
    const JobId job = t.submit("ann");
    t.apply(MachineWithdrew{m});
    CPPUNIT_ASSERT(t.books.machines[m].state == MachineState::kGone);
    expect_lost_at(t, job, t.now + kReassignDelay);
    CPPUNIT_ASSERT_EQUAL(
        std::string("no machine is in the pool: start sublet-client on a workstation"),
        t.pool.why(job, t.now));
    CPPUNIT_ASSERT_EQUAL(m, t.apply(MachineJoined{m, "m", "linux", "x86_64"}).answer.machine);
    CPPUNIT_ASSERT(t.books.machines[m].state == MachineState::kBusy);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(PoolLeaseTest);
}  // namespace
}  // namespace sublet::scheduling
