// A machine that fails again and again rests, for longer each time; one success ends that, and what
// is the job's own affair does not count. A restored brain keeps it.
#include <cppunit/extensions/HelperMacros.h>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;
using testing::text_of;
using Answer = OrderAnswered::Answer;
constexpr Micros kMinute = 60 * kSecond;

// One machine, and more jobs than it is given.
struct Failing {
  TestPool t;
  MachineId machine = 0;
  JobId first = 0;

  explicit Failing(uint32_t slots = 1) {
    machine = t.join("curly", slots);
    first = t.submit("ann", 40);
  }
  const MachineFailures& failures() const { return t.books.machines.at(machine).failures; }
  std::vector<AttemptKey> running() const { return t.pool.machine(machine)->running; }
  bool rests() const { return failures().rests_until > t.now; }
  // Its one attempt cannot be started there.
  void fail() {
    const AttemptKey key = running().at(0);
    t.apply(AttemptEnded{key, machine, EndReason::kLost, "its disk is broken"});
    t.pass(kSecond);
  }
  // What happens at the next deadlines; the machine stays in contact.
  void until_it_wakes() {
    while (failures().rests_until != 0) {
      t.now = std::max(t.now, *t.pool.next_deadline());
      t.report(machine, true);
      t.apply(TimePassed());
    }
  }
  // Fails until it rests, as often as that takes.
  void fail_until_it_rests() {
    while (!rests()) fail();
  }
};

class RestsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(RestsTest);
  CPPUNIT_TEST(rests_double_up_to_an_hour);
  CPPUNIT_TEST(others_get_the_jobs);
  CPPUNIT_TEST(a_success_ends_it);
  CPPUNIT_TEST(a_minute_is_a_success);
  CPPUNIT_TEST(what_counts);
  CPPUNIT_TEST(jobs_of_several_users_that_cannot_be_started);
  CPPUNIT_TEST(one_user_puts_no_machine_to_rest);
  CPPUNIT_TEST(attempts_that_fail_together_count_once);
  CPPUNIT_TEST(a_job_that_is_refused_everywhere_is_at_fault);
  CPPUNIT_TEST(nothing_shortens_it_but_an_administrator);
  CPPUNIT_TEST(sentences_tell_it);
  CPPUNIT_TEST(restored_while_it_rests);
  CPPUNIT_TEST(can_be_turned_off);
  CPPUNIT_TEST_SUITE_END();

 public:
  void rests_double_up_to_an_hour() {
    Failing f;
    f.fail();
    f.fail();
    CPPUNIT_ASSERT_EQUAL(size_t{1}, f.running().size());
    CPPUNIT_ASSERT_EQUAL(Micros{0}, f.failures().rests_until);
    for (const Micros minutes : {5, 10, 20, 40, 60, 60, 60}) {
      f.fail();
      CPPUNIT_ASSERT_EQUAL(minutes * kMinute, f.failures().rests_until - f.failures().last);
      CPPUNIT_ASSERT(f.running().empty() && f.t.pool.idle().empty());
      const Micros until = f.failures().rests_until;
      f.until_it_wakes();
      CPPUNIT_ASSERT_EQUAL(until, f.t.now);
      CPPUNIT_ASSERT_EQUAL(size_t{1}, f.running().size());
    }
  }

  void others_get_the_jobs() {
    Failing f;
    f.fail_until_it_rests();
    const MachineId moe = f.t.join("moe", 2);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, f.t.pool.machine(moe)->running.size());
    CPPUNIT_ASSERT(f.running().empty());
  }

  void a_success_ends_it() {
    for (const EndReason ended : {EndReason::kDone, EndReason::kExit, EndReason::kSignal,
                                  EndReason::kOutput, EndReason::kLimit}) {
      Failing f;
      f.fail_until_it_rests();
      f.until_it_wakes();
      CPPUNIT_ASSERT_EQUAL(3u, f.failures().count);
      const JobId job = f.running().at(0).job;
      f.t.start(job);
      f.t.end(job, ended);
      CPPUNIT_ASSERT(f.failures() == MachineFailures());
      f.fail();
      f.fail();
      CPPUNIT_ASSERT(!f.rests());
    }
  }

  void a_minute_is_a_success() {
    Failing f;
    f.fail_until_it_rests();
    f.until_it_wakes();
    const JobId job = f.running().at(0).job;
    f.t.start(job);
    f.t.pass(30 * kSecond);
    f.t.renew(job);
    CPPUNIT_ASSERT_EQUAL(3u, f.failures().count);
    f.t.pass(30 * kSecond);
    f.t.renew(job);
    CPPUNIT_ASSERT_EQUAL(0u, f.failures().count);
  }

  // The end of an attempt that was started (or was not), and whether the machine has failed.
  void what_counts() {
    const struct {
      EndReason ended;
      bool started;
      bool counts;
    } cases[] = {{EndReason::kLost, false, true},       {EndReason::kLost, true, false},
                 {EndReason::kExit, true, false},       {EndReason::kStart, false, false},
                 {EndReason::kStaging, false, false},   {EndReason::kOwner, true, false},
                 {EndReason::kDrained, false, false},   {EndReason::kLease, true, false},
                 {EndReason::kSuperseded, true, false}, {EndReason::kRemoved, true, false}};
    for (const auto& [ended, started, counts] : cases) {
      Failing f;
      const AttemptKey key = f.running().at(0);
      f.t.apply(AttemptEnded{key, f.machine, ended, "why", 0, -1, 0, "", started});
      CPPUNIT_ASSERT_EQUAL(counts ? 1u : 0u, f.failures().count);
    }
    for (const bool fault : {false, true})
      for (const Answer answer : {Answer::kRefused, Answer::kNotDelivered}) {
        Failing f;
        f.t.apply(OrderAnswered{f.running().at(0), answer, "why", fault});
        CPPUNIT_ASSERT_EQUAL(fault ? 1u : 0u, f.failures().count);
      }
    Failing lost;  // with its lease
    lost.t.start(lost.first);
    while (lost.t.machine_of(lost.first) != 0) CPPUNIT_ASSERT(lost.t.to_next_deadline());
    CPPUNIT_ASSERT_EQUAL(1u, lost.failures().count);
    CPPUNIT_ASSERT_EQUAL(std::string("lost (machine curly did not renew its lease)"),
                         lost.failures().reason);
  }

  // A machine on which no job can be started, whoever's it is.
  struct Unstartable {
    TestPool t;
    MachineId machine = t.join("curly");
    const MachineFailures& failures() const { return t.books.machines.at(machine).failures; }
    // A job of the user is placed and ends so.
    void run(const std::string& user, EndReason ended) {
      const JobId job = t.submit(user);
      CPPUNIT_ASSERT_EQUAL(machine, t.machine_of(job));
      t.end(job, ended);
      t.pass(kSecond);
    }
  };

  // From the third user on each is a failure of the machine, whoever's it is.
  void jobs_of_several_users_that_cannot_be_started() {
    for (const EndReason ended : {EndReason::kStart, EndReason::kStaging}) {
      Unstartable u;
      u.run("ann", ended);
      u.run("bob", ended);
      u.run("ann", ended);
      CPPUNIT_ASSERT_EQUAL(0u, u.failures().count);
      u.run("cid", ended);
      CPPUNIT_ASSERT_EQUAL(1u, u.failures().count);
      Pool restored{Parameters()};
      CPPUNIT_ASSERT(restored.restore(u.t.books.snapshot()).empty());
      CPPUNIT_ASSERT(restored.machine(u.machine)->record.failures == u.failures());
      u.run("ann", ended);
      u.run("cid", ended);
      CPPUNIT_ASSERT(u.failures().rests_until > u.t.now);
    }
  }

  // Nor is the machine if a job runs between.
  void one_user_puts_no_machine_to_rest() {
    Unstartable u;
    for (int i = 0; i < 10; ++i) u.run(i % 2 == 0 ? "ann" : "bob", EndReason::kStart);
    CPPUNIT_ASSERT_EQUAL(0u, u.failures().count);
    u.run("cid", EndReason::kExit);
    CPPUNIT_ASSERT(u.failures() == MachineFailures());
    u.run("cid", EndReason::kStart);
    u.run("ann", EndReason::kStart);
    CPPUNIT_ASSERT_EQUAL(0u, u.failures().count);
  }

  // Nor does one that was there already when another one failed show that it works.
  void attempts_that_fail_together_count_once() {
    Failing f(4);
    const std::vector<AttemptKey> all = f.running();
    CPPUNIT_ASSERT_EQUAL(size_t{4}, all.size());
    f.t.start(all[3].job);
    f.t.pass(kSecond);
    for (int i = 0; i < 3; ++i) {
      f.t.apply(AttemptEnded{all[static_cast<size_t>(i)], f.machine, EndReason::kLost, "full"});
      CPPUNIT_ASSERT_EQUAL(1u, f.failures().count);
    }
    f.t.pass(kSecond);
    f.t.end(all[3].job, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(1u, f.failures().count);
  }

  // Of a machine's first two refusals of a job, nobody knows whose fault they are.
  void a_job_that_is_refused_everywhere_is_at_fault() {
    TestPool t;
    const MachineId m = t.join("curly");
    const JobId job = t.submit("ann");
    for (int i = 0; i < 8; ++i) {
      while (t.machine_of(job) == 0) {
        t.now = std::max(t.now, *t.pool.next_deadline());
        t.apply(Renewed{m, false, {}});
        t.apply(TimePassed());
      }
      t.apply(OrderAnswered{t.key(job), Answer::kRefused, "why", true});
    }
    CPPUNIT_ASSERT_EQUAL(2u, t.books.machines.at(m).failures.count);
  }

  void nothing_shortens_it_but_an_administrator() {
    Failing f;
    f.fail_until_it_rests();
    f.t.report(f.machine, false);
    f.t.report(f.machine, true);
    CPPUNIT_ASSERT(f.running().empty());
    f.t.apply(MachineJoined{f.machine, "curly", "linux", "x86_64", 1, 1, 8ull << 30, 100ull << 30});
    f.t.report(f.machine, true);
    f.t.apply(ServerStarted());
    f.t.report(f.machine, true);
    CPPUNIT_ASSERT(f.rests() && f.running().empty());
    f.t.apply(MachineWithdrew{f.machine});
    f.t.apply(MachineJoined{f.machine, "curly", "linux", "x86_64", 1, 1, 8ull << 30, 100ull << 30});
    f.t.report(f.machine, true);
    CPPUNIT_ASSERT(f.rests() && f.running().empty());
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, f.t.apply(MachineDrained{f.machine, false}).answer.changed);
    CPPUNIT_ASSERT(f.failures() == MachineFailures());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, f.running().size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, f.t.apply(MachineDrained{f.machine, false}).answer.changed);
    // Once drained, it was perhaps repaired, though it did not rest yet.
    f.fail();
    CPPUNIT_ASSERT_EQUAL(1u, f.failures().count);
    f.t.apply(MachineDrained{f.machine, true});
    CPPUNIT_ASSERT_EQUAL(1u, f.failures().count);
    f.t.apply(MachineDrained{f.machine, false});
    CPPUNIT_ASSERT(f.failures() == MachineFailures());
  }

  void sentences_tell_it() {
    Failing f;
    f.fail_until_it_rests();
    const std::string rests =
        "; machine curly rests for 5 min more: it failed 3 times in a row, "
        "last: lost (its disk is broken)";
    const auto why = [&] { return f.t.pool.why(f.first, f.t.now); };
    CPPUNIT_ASSERT_EQUAL("1 machine fits, resting after failures" + rests, why());
    const MachineId moe = f.t.join("moe");
    const JobId last = f.first + 39;
    CPPUNIT_ASSERT(f.t.pool.why(last, f.t.now)
                       .starts_with("2 machines fit: 1 full, 1 resting after failures" + rests));
    f.t.apply(MachineDrained{f.machine});
    f.t.apply(MachineDrained{moe});
    CPPUNIT_ASSERT(f.t.pool.why(last, f.t.now)
                       .starts_with("2 machines fit, all drained by an administrator; "));
  }

  void restored_while_it_rests() {
    for (const Micros later : {Micros{0}, 3 * kMinute, 5 * kMinute, 9 * kMinute}) {
      Failing f;
      f.fail_until_it_rests();
      Pool restored{Parameters()};
      CPPUNIT_ASSERT(restored.restore(f.t.books.snapshot()).empty());
      f.t.pass(later);
      const auto both = [&](const Event& event) {
        const std::string live = text_of(f.t.apply(event));
        CPPUNIT_ASSERT_EQUAL(live, text_of(restored.apply(event, f.t.now)));
        CPPUNIT_ASSERT(restored.next_deadline() == f.t.pool.next_deadline());
        CPPUNIT_ASSERT(restored.idle() == f.t.pool.idle());
      };
      both(ServerStarted());
      both(MachineReported{f.machine, true, 0, 100ull << 30});
      both(TimePassed());
      CPPUNIT_ASSERT_EQUAL(later >= 5 * kMinute, !f.running().empty());
      while (f.running().empty()) {
        f.t.now = std::max(f.t.now, *f.t.pool.next_deadline());
        both(Renewed{f.machine, false, {}});
        both(TimePassed());
      }
      both(AttemptEnded{f.running().at(0), f.machine, EndReason::kLost, "again"});
      CPPUNIT_ASSERT_EQUAL(10 * kMinute, f.failures().rests_until - f.t.now);
    }
  }

  void can_be_turned_off() {
    Parameters p;
    p.rest_least = 0;
    TestPool t(p);
    const MachineId m = t.join("curly");
    const JobId job = t.submit("ann");
    for (int i = 0; i < 10; ++i) t.apply(AttemptEnded{t.key(job), m, EndReason::kLost, "broken"});
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(job));
    p.rest_most = -1;
    CPPUNIT_ASSERT_EQUAL(
        std::string("rest_least must be 0 to rest_most, which must be a day at most"),
        problem_with(p));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(RestsTest);
}  // namespace
}  // namespace sublet::scheduling
