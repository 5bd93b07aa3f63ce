// A job that is refused repeatedly backs off, so that it does not delay others; one that ends
// its own attempts is held. A restored brain keeps both.
#include <cppunit/extensions/HelperMacros.h>

#include <algorithm>
#include <cstdio>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;
using testing::text_of;
using Answer = OrderAnswered::Answer;

// One machine; ann's job, which it refuses, comes before bob's because bob has usage.
struct Refused {
  TestPool t;
  MachineId machine = 0;
  JobId bad = 0;
  JobId good = 0;

  Refused() {
    machine = t.join("curly");
    t.end(t.submit("bob"), EndReason::kDone, 100 * kSecond);
    t.apply(Ticked());
    t.report(machine, false);
    bad = t.submit("ann", 1, {}, "desk-a");
    good = t.submit("bob", 1, {}, "desk-b");
    t.report(machine, true);
  }
  void refuse() { t.apply(OrderAnswered{t.key(bad), Answer::kRefused, "no such file"}); }
  // Refuses ann's job `times` times in a row, on a machine with no other job.
  void refuse_times(uint32_t times) {
    t.apply(JobsHeld{{good}});
    while (times-- > 0) {
      while (t.machine_of(bad) == 0) next();
      refuse();
    }
  }
  // Advances to the next deadline; the machine stays in contact.
  void next() {
    t.now = std::max(t.now, *t.pool.next_deadline());
    t.apply(Renewed{machine, false, {}});
    t.apply(TimePassed());
  }
  std::string why() const { return t.pool.why(bad, t.now); }
};

class RefusalsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(RefusalsTest);
  CPPUNIT_TEST(others_are_placed_at_once);
  CPPUNIT_TEST(an_hour_beside_a_refused_job);
  CPPUNIT_TEST(waits_double_up_to_a_minute);
  CPPUNIT_TEST(sentences_tell_it);
  CPPUNIT_TEST(an_accepted_order_starts_anew);
  CPPUNIT_TEST(holding_does_not_shorten_it);
  CPPUNIT_TEST(removed_while_backing_off);
  CPPUNIT_TEST(restored_while_backing_off);
  CPPUNIT_TEST(a_job_that_ends_its_attempts_is_held);
  CPPUNIT_TEST(a_job_that_is_run_again_for_nothing_is_held);
  CPPUNIT_TEST(a_start_that_was_not_reported);
  CPPUNIT_TEST(progress_is_not_in_vain);
  CPPUNIT_TEST(what_the_job_did_not_cause_is_not_in_vain);
  CPPUNIT_TEST_SUITE_END();

 public:
  void others_are_placed_at_once() {
    Refused r;
    CPPUNIT_ASSERT_EQUAL(r.machine, r.t.machine_of(r.bad));
    for (int i = 0; i < 2; ++i) {
      r.refuse();  // perhaps the machine's fault: it pauses
      CPPUNIT_ASSERT(r.t.pool.idle().empty());
      r.next();
      CPPUNIT_ASSERT_EQUAL(r.machine, r.t.machine_of(r.bad));
    }
    r.refuse();
    CPPUNIT_ASSERT_EQUAL(r.machine, r.t.machine_of(r.good));
    CPPUNIT_ASSERT_EQUAL(1u, r.t.key(r.good).attempt);
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, r.t.machine_of(r.bad));
  }

  void an_hour_beside_a_refused_job() {
    Refused r;
    const Micros end = r.t.now + 3600 * kSecond;
    uint32_t refused = 0, done = 0;
    while (r.t.now < end) {
      if (r.t.machine_of(r.bad) != 0) {
        r.refuse();
        ++refused;
      }
      if (r.t.machine_of(r.good) != 0) {
        r.t.start(r.good);
        r.t.pass(kSecond);
        r.t.end(r.good, EndReason::kDone, 0);
        r.good = r.t.submit("bob");
        ++done;
      }
      if (r.t.machine_of(r.bad) == 0 && r.t.machine_of(r.good) == 0) r.next();
    }
    std::printf(" %u orders refused, %u jobs of another user done ", refused, done);
    CPPUNIT_ASSERT(refused <= 70);
    CPPUNIT_ASSERT(done >= 3500);
  }

  void waits_double_up_to_a_minute() {
    Refused r;
    r.refuse_times(2);
    CPPUNIT_ASSERT_EQUAL(Micros{0}, r.t.record(r.bad).not_before);
    uint32_t times = 2;
    for (const Micros wait : {1, 2, 4, 8, 16, 32, 60, 60, 60}) {
      r.refuse_times(1);
      CPPUNIT_ASSERT_EQUAL(++times, r.t.record(r.bad).refusals);
      CPPUNIT_ASSERT_EQUAL(r.t.now + wait * kSecond, r.t.record(r.bad).not_before);
      r.t.apply(Renewed{r.machine, false, {}});
      r.t.report(r.machine, true);  // a report ends a machine's pause, not a back-off
      CPPUNIT_ASSERT_EQUAL(MachineId{0}, r.t.machine_of(r.bad));
    }
    CPPUNIT_ASSERT_EQUAL(0.0, r.t.record(r.bad).share_priority);
    CPPUNIT_ASSERT_EQUAL(0u, r.t.record(r.bad).evictions);
  }

  void sentences_tell_it() {
    Refused r;
    r.refuse_times(7);
    CPPUNIT_ASSERT_EQUAL(std::string("refused 7 times in a row, last: no such file; tried again "
                                     "in 16 s"),
                         r.t.record(r.bad).reason);
    CPPUNIT_ASSERT_EQUAL(r.t.record(r.bad).reason, r.why());
    r.t.pass(6 * kSecond + 1);
    CPPUNIT_ASSERT_EQUAL(
        std::string("refused 7 times in a row, last: no such file; tried again in 10 s"), r.why());
    r.t.apply(JobsHeld{{r.bad}});
    CPPUNIT_ASSERT_EQUAL(std::string("held until it is released"), r.why());
    r.t.apply(JobsReleased{{r.bad}});
    CPPUNIT_ASSERT_EQUAL(std::string("refused 7 times in a row; tried again in 10 s"), r.why());
  }

  void an_accepted_order_starts_anew() {
    for (const bool answer_lost : {false, true}) {
      Refused r;
      r.refuse_times(4);
      while (r.t.machine_of(r.bad) == 0) r.next();
      CPPUNIT_ASSERT_EQUAL(4u, r.t.record(r.bad).refusals);
      if (answer_lost) {
        r.t.apply(OrderAnswered{r.t.key(r.bad), Answer::kUnknown, ""});
        r.t.apply(AttemptStarted{r.t.key(r.bad), r.machine});
      } else {
        r.t.apply(OrderAnswered{r.t.key(r.bad), Answer::kAccepted, ""});
      }
      CPPUNIT_ASSERT_EQUAL(0u, r.t.record(r.bad).refusals);
      CPPUNIT_ASSERT_EQUAL(Micros{0}, r.t.record(r.bad).not_before);
    }
  }

  void holding_does_not_shorten_it() {
    Refused r;
    r.refuse_times(5);
    const Micros until = r.t.record(r.bad).not_before;
    r.t.apply(JobsHeld{{r.bad}});
    r.t.apply(JobsReleased{{r.bad}});
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, r.t.machine_of(r.bad));
    r.t.now = until;
    r.t.apply(TimePassed());
    CPPUNIT_ASSERT_EQUAL(r.machine, r.t.machine_of(r.bad));
  }

  void removed_while_backing_off() {
    Refused r;
    r.refuse_times(5);
    CPPUNIT_ASSERT_EQUAL(r.t.record(r.bad).not_before, *r.t.pool.next_deadline());
    const Micros until = r.t.record(r.bad).not_before;
    r.t.apply(JobsRemoved{{r.bad, r.good}});
    CPPUNIT_ASSERT(*r.t.pool.next_deadline() > until);
    r.t.now = until;
    CPPUNIT_ASSERT(r.t.apply(TimePassed()).records.empty());
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, r.t.pool.waiting());
  }

  void restored_while_backing_off() {
    for (const Micros later : {Micros{0}, 15 * kSecond, 16 * kSecond, 40 * kSecond}) {
      Refused r;
      r.refuse_times(7);
      Pool restored{Parameters()};
      CPPUNIT_ASSERT(restored.restore(r.t.books.snapshot()).empty());
      CPPUNIT_ASSERT_EQUAL(7u, restored.job(r.bad)->refusals);
      r.t.pass(later);
      const auto both = [&](const Event& event) {
        const std::string live = text_of(r.t.apply(event));
        CPPUNIT_ASSERT_EQUAL(live, text_of(restored.apply(event, r.t.now)));
        CPPUNIT_ASSERT(restored.next_deadline() == r.t.pool.next_deadline());
        CPPUNIT_ASSERT_EQUAL(r.why(), restored.why(r.bad, r.t.now));
      };
      both(ServerStarted());
      both(MachineReported{r.machine, true, 0, 100ull << 30});
      CPPUNIT_ASSERT_EQUAL(later >= 16 * kSecond, restored.attempt(r.bad) != nullptr);
      while (r.t.machine_of(r.bad) == 0) {
        r.t.now = std::max(r.t.now, *r.t.pool.next_deadline());
        both(TimePassed());
      }
      both(OrderAnswered{r.t.key(r.bad), Answer::kRefused, "again"});
      CPPUNIT_ASSERT_EQUAL(8u, restored.job(r.bad)->refusals);
    }
  }

  // Starts `job` and ends it after it `ran`, as its machine reports it.
  static void run(TestPool& t, JobId job, EndReason ended, Micros ran) {
    t.start(job);
    t.pass(ran);
    t.end(job, ended, ran);
  }

  void a_job_that_ends_its_attempts_is_held() {
    for (const EndReason ended :
         {EndReason::kLost, EndReason::kOwner, EndReason::kBlind, EndReason::kDrained}) {
      TestPool t;
      t.join("curly");
      const JobId job = t.submit("eve");
      for (int i = 0; i < 4; ++i) {
        run(t, job, ended, kSecond);
        CPPUNIT_ASSERT(t.state(job) == JobState::kPlaced);  // at once again
      }
      Pool restored{Parameters()};
      CPPUNIT_ASSERT(restored.restore(t.books.snapshot()).empty());
      CPPUNIT_ASSERT_EQUAL(4u, restored.job(job)->vain);
      run(t, job, ended, kSecond);
      CPPUNIT_ASSERT(t.state(job) == JobState::kHeld);
      const std::string& reason = t.record(job).reason;
      CPPUNIT_ASSERT_MESSAGE(
          reason, reason.starts_with("held: 5 attempts in a row vanished or were evicted within 2 "
                                     "s, and saved nothing; attempt 5 "));
      // A release gives it five more.
      t.apply(JobsReleased{{job}});
      for (int i = 0; i < 4; ++i) run(t, job, ended, kSecond);
      CPPUNIT_ASSERT(t.state(job) == JobState::kPlaced);
    }
  }

  // A program that asks to be run again must save something new in between.
  void a_job_that_is_run_again_for_nothing_is_held() {
    TestPool t;
    const MachineId m = t.join("curly");
    const JobId job = t.submit("eve");
    for (uint64_t i = 1; i <= 8; ++i) {
      t.start(job);
      t.pass(60 * kSecond);
      t.apply(CheckpointStored{t.key(job), m, i, 100});
      t.end(job, EndReason::kSaved, 60 * kSecond);
      CPPUNIT_ASSERT(t.state(job) == JobState::kPlaced);
    }
    CPPUNIT_ASSERT_EQUAL(0u, t.record(job).evictions);
    CPPUNIT_ASSERT_EQUAL(0u, t.record(job).vain);
    for (int i = 0; i < 5; ++i) {
      CPPUNIT_ASSERT(t.state(job) == JobState::kPlaced);
      run(t, job, EndReason::kSaved, 60 * kSecond);
    }
    CPPUNIT_ASSERT(t.state(job) == JobState::kHeld);
    const std::string& reason = t.record(job).reason;
    CPPUNIT_ASSERT_MESSAGE(reason, reason.starts_with("held: 5 attempts in a row ended to be run "
                                                      "again, and saved nothing; attempt 13 "));
  }

  // The start may be known from the report of the end only.
  void a_start_that_was_not_reported() {
    TestPool t;
    const MachineId m = t.join("curly");
    const JobId job = t.submit("eve");
    for (int i = 0; i < 5; ++i) {
      CPPUNIT_ASSERT(t.state(job) == JobState::kPlaced);
      t.apply(AttemptEnded{t.key(job), m, EndReason::kLost, "", 0, -1, 0, "", true});
    }
    CPPUNIT_ASSERT(t.state(job) == JobState::kHeld);
  }

  void progress_is_not_in_vain() {
    TestPool t;
    const MachineId m = t.join("curly");
    const JobId job = t.submit("ann");
    const auto four = [&] {
      for (int i = 0; i < 4; ++i) run(t, job, EndReason::kOwner, kSecond);
      CPPUNIT_ASSERT_EQUAL(4u, t.record(job).vain);
    };
    const auto forgiven = [&] {
      CPPUNIT_ASSERT(t.state(job) == JobState::kPlaced);
      CPPUNIT_ASSERT_EQUAL(0u, t.record(job).vain);
    };
    four();
    run(t, job, EndReason::kOwner, 2 * kSecond);  // a real owner
    forgiven();
    four();
    t.start(job);
    t.apply(CheckpointStored{t.key(job), m, 1, 10});
    t.end(job, EndReason::kLost);
    forgiven();
  }

  void what_the_job_did_not_cause_is_not_in_vain() {
    TestPool t;
    const MachineId m = t.join("curly");
    const JobId job = t.submit("ann");
    for (int i = 0; i < 4; ++i) run(t, job, EndReason::kOwner, kSecond);
    const auto unchanged = [&] { CPPUNIT_ASSERT_EQUAL(4u, t.record(job).vain); };
    run(t, job, EndReason::kPreempted, kSecond);  // the server's doing
    unchanged();
    t.end(job, EndReason::kLost);  // the machine could not start it
    unchanged();
    t.end(job, EndReason::kOwner);  // it had not begun to run
    unchanged();
    t.apply(OrderAnswered{t.key(job), Answer::kRefused, "full"});
    unchanged();
    t.to_next_deadline();
    t.start(job);
    t.apply(MachineJoined{m, "curly", "linux", "x86_64", 1, 1, 8ull << 30, 100ull << 30});
    t.apply(Renewed{m, true, {}});  // the machine has forgotten it
    unchanged();
    CPPUNIT_ASSERT(t.state(job) != JobState::kHeld);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(RefusalsTest);
}  // namespace
}  // namespace sublet::scheduling
