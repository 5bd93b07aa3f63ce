// Jobs that wait for others: when they are queued, what becomes of those that can never run, and
// that a large graph costs little.
#include <cppunit/extensions/HelperMacros.h>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;
using testing::text_of;

Submitted::Job job_after(std::vector<Dependence> after, uint64_t count = 1) {
  Submitted::Job job;
  job.after = std::move(after);
  job.count = count;
  return job;
}

class RelationsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(RelationsTest);
  CPPUNIT_TEST(runs_when_the_other_is_done);
  CPPUNIT_TEST(waits_for_the_end_however);
  CPPUNIT_TEST(waits_for_the_start);
  CPPUNIT_TEST(waits_for_every_one);
  CPPUNIT_TEST(of_a_batch_in_any_order);
  CPPUNIT_TEST(what_can_never_run_is_held);
  CPPUNIT_TEST(what_can_never_run_is_removed);
  CPPUNIT_TEST(who_was_removed_before_it_started);
  CPPUNIT_TEST(a_release_cannot_help);
  CPPUNIT_TEST(held_by_its_user_meanwhile);
  CPPUNIT_TEST(a_late_dependent_of_one_that_is_stuck);
  CPPUNIT_TEST(who_ended_before_the_others_were_stuck);
  CPPUNIT_TEST(does_not_count_as_queued);
  CPPUNIT_TEST(restored);
  CPPUNIT_TEST(a_long_chain);
  CPPUNIT_TEST(many_for_one);
  CPPUNIT_TEST_SUITE_END();

  TestPool t;

  JobId submit(std::vector<Submitted::Job> jobs, OnNever on_never = OnNever::kHold) {
    return t.apply(Submitted{1, "ann", "desk", std::move(jobs), {}, on_never}).answer.first_job;
  }
  std::string why(JobId job) const { return t.pool.why(job, t.now); }
  bool is_placed(JobId job) const { return t.state(job) == JobState::kPlaced; }

 public:
  void runs_when_the_other_is_done() {
    t.join("moe", 2);
    const JobId first = submit({job_after({}), job_after({{{1}, After::kDone}})});
    CPPUNIT_ASSERT(is_placed(first) && t.state(first + 1) == JobState::kWaiting);
    CPPUNIT_ASSERT_EQUAL(std::string("waits until job 1 is done"), why(first + 1));
    t.start(first);
    CPPUNIT_ASSERT(t.state(first + 1) == JobState::kWaiting);
    t.end(first, EndReason::kDone);
    CPPUNIT_ASSERT(is_placed(first + 1));  // in the same apply
    CPPUNIT_ASSERT(t.books.relations.empty());
  }

  void waits_for_the_end_however() {
    t.join("moe", 2);
    submit({job_after({}), job_after({{{1}, After::kEnded}})});
    CPPUNIT_ASSERT_EQUAL(std::string("waits until job 1 has ended"), why(2));
    t.end(1, EndReason::kOwner);
    CPPUNIT_ASSERT(!is_placed(2));
    t.end(1, EndReason::kExit);
    CPPUNIT_ASSERT(t.state(1) == JobState::kFailed && is_placed(2));
  }

  void waits_for_the_start() {
    t.join("moe", 2);
    submit({job_after({}), job_after({{{1}, After::kStarted}})});
    CPPUNIT_ASSERT_EQUAL(std::string("waits until job 1 has started"), why(2));
    t.start(1);
    CPPUNIT_ASSERT(is_placed(2));
  }

  void waits_for_every_one() {
    t.join("moe", 4);
    submit({job_after({}, 3), job_after({}),
            job_after({{{1, 3}, After::kDone}, {{4}, After::kEnded}}, 2)});
    CPPUNIT_ASSERT_EQUAL(std::string("waits until jobs 1 to 3 are done (3 to go); 1 more"), why(6));
    t.end(2, EndReason::kDone);
    t.end(1, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(std::string("waits until jobs 1 to 3 are done (1 to go); 1 more"), why(6));
    t.end(3, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(std::string("waits until job 4 has ended"), why(5));
    t.end(4, EndReason::kExit);
    CPPUNIT_ASSERT(is_placed(5) && is_placed(6));
  }

  void of_a_batch_in_any_order() {
    t.join("moe", 2);
    submit({job_after({{{2}, After::kDone}}), job_after({})});
    CPPUNIT_ASSERT(!is_placed(1) && is_placed(2));
    t.end(2, EndReason::kDone);
    CPPUNIT_ASSERT(is_placed(1));
  }

  // And so on, along a chain, except where the end is enough.
  void what_can_never_run_is_held() {
    t.join("moe", 1);
    submit({job_after({}), job_after({{{1}, After::kDone}}), job_after({{{2}, After::kStarted}}, 2),
            job_after({{{2}, After::kEnded}})});
    t.end(1, EndReason::kExit);
    CPPUNIT_ASSERT(t.state(2) == JobState::kHeld);
    CPPUNIT_ASSERT_EQUAL(
        std::string("held: it can never run: job 1, which it waits for, has failed"), why(2));
    CPPUNIT_ASSERT(t.state(3) == JobState::kHeld && t.state(4) == JobState::kHeld);
    CPPUNIT_ASSERT_EQUAL(
        std::string("held: it can never run: job 2, which it waits for, can never run either"),
        why(4));
    CPPUNIT_ASSERT(t.state(5) == JobState::kWaiting);
    t.apply(JobsRemoved{{{2}}});
    CPPUNIT_ASSERT(is_placed(5));
  }

  void what_can_never_run_is_removed() {
    t.join("moe", 1);
    submit({job_after({}), job_after({{{1}, After::kDone}}), job_after({{{2}, After::kDone}}, 2),
            job_after({{{3, 2}, After::kEnded}})},
           OnNever::kRemove);
    t.end(1, EndReason::kExit);
    CPPUNIT_ASSERT(t.state(2) == JobState::kRemoved && t.state(4) == JobState::kRemoved);
    CPPUNIT_ASSERT_EQUAL(std::string("it could never run: job 2, which it waits for, was removed"),
                         t.record(4).reason);
    CPPUNIT_ASSERT(is_placed(5));
    CPPUNIT_ASSERT(t.books.relations.empty());
  }

  void who_was_removed_before_it_started() {
    submit({job_after({}, 2), job_after({{{1, 2}, After::kStarted}})});
    t.apply(JobsRemoved{{{1, 2}}});
    CPPUNIT_ASSERT(t.state(3) == JobState::kHeld);
    CPPUNIT_ASSERT_EQUAL(
        std::string("held: it can never run: job 1, which it waits for, was removed"), why(3));
  }

  void a_release_cannot_help() {
    submit({job_after({}), job_after({{{1}, After::kDone}})});
    t.apply(JobsRemoved{{{1}}});
    const Outcome outcome = t.apply(JobsReleased{{{2}}});
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, outcome.answer.unchanged);
    CPPUNIT_ASSERT(t.state(2) == JobState::kHeld);
    CPPUNIT_ASSERT(t.record(2).reason.starts_with("held: it can never run: job 1,"));
  }

  void held_by_its_user_meanwhile() {
    t.join("moe", 4);
    submit({job_after({}), job_after({{{1}, After::kDone}}, 3)});
    t.apply(JobsHeld{{{3}}});
    t.end(1, EndReason::kDone);
    CPPUNIT_ASSERT(is_placed(2) && t.state(3) == JobState::kHeld && is_placed(4));
    t.apply(JobsReleased{{{3}}});
    CPPUNIT_ASSERT(is_placed(3));
  }

  void a_late_dependent_of_one_that_is_stuck() {
    submit({job_after({}), job_after({{{1}, After::kDone}})});
    t.apply(JobsRemoved{{{1}}});
    submit({job_after({{{2}, After::kDone}})});
    CPPUNIT_ASSERT(t.state(3) == JobState::kHeld);
  }

  // Neither in the queue of its user nor in that of its host.
  // Of an array that can never run, the job that was removed before is nobody's loss now.
  void who_ended_before_the_others_were_stuck() {
    t.join("moe", 1);
    submit({job_after({}), job_after({{{1}, After::kDone}}, 3)});
    t.apply(JobsRemoved{{4}});
    submit({job_after({}), job_after({{{4, 2}, After::kStarted}})});
    t.start(1);
    t.end(1, EndReason::kExit);
    CPPUNIT_ASSERT(t.state(2) == JobState::kHeld && t.state(3) == JobState::kHeld);
    CPPUNIT_ASSERT_EQUAL(std::string("waits until jobs 4 to 5 have started (1 to go)"), why(6));
    t.start(5);
    t.end(5, EndReason::kDone);
    CPPUNIT_ASSERT(is_placed(6));
  }

  void does_not_count_as_queued() {
    submit({job_after({})});
    t.join("moe", 1);
    submit({job_after({{{1}, After::kDone}}, 5)});
    CPPUNIT_ASSERT_EQUAL(uint64_t{5}, t.pool.waiting());
    CPPUNIT_ASSERT(t.pool.requesting().empty());
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, t.pool.standings(t.now).at(0).queued);
    t.end(1, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(uint64_t{4}, t.pool.standings(t.now).at(0).queued);
  }

  void restored() {
    t.join("moe", 1);
    submit({job_after({}, 2), job_after({{{1, 2}, After::kDone}}, 2),
            job_after({{{1, 2}, After::kStarted}}), job_after({{{3}, After::kDone}})});
    t.start(1);
    t.end(1, EndReason::kDone);
    Pool restored{Parameters()};
    CPPUNIT_ASSERT(restored.restore(t.books.snapshot()).empty());
    CPPUNIT_ASSERT_EQUAL(std::string("waits until jobs 1 to 2 are done (1 to go)"),
                         restored.why(4, t.now));
    CPPUNIT_ASSERT_EQUAL(text_of(t.apply(ServerStarted())),
                         text_of(restored.apply(ServerStarted(), t.now)));
    const Event event = AttemptEnded{t.key(2), t.machine_of(2), EndReason::kExit, ""};
    CPPUNIT_ASSERT_EQUAL(text_of(t.apply(event)), text_of(restored.apply(event, t.now)));
    CPPUNIT_ASSERT(t.state(3) == JobState::kHeld && t.state(6) == JobState::kHeld);
  }

  // A chain of 10^5 jobs is given up in one apply, without recursion.
  void a_long_chain() {
    constexpr JobId kJobs = 100'000;
    std::vector<Submitted::Job> jobs;
    for (JobId id = 1; id <= kJobs; ++id)
      jobs.push_back(id == 1 ? job_after({}) : job_after({{{id - 1}, After::kDone}}));
    submit(std::move(jobs));
    CPPUNIT_ASSERT_EQUAL(size_t{kJobs - 1}, t.books.relations.size());
    t.apply(JobsRemoved{{{1}}});
    CPPUNIT_ASSERT(t.state(kJobs) == JobState::kHeld);
  }

  // They share one count, whose end looks at each of them once.
  void many_for_one() {
    constexpr JobId kJobs = 50'000;
    t.join("moe", 1);
    std::vector<Submitted::Job> jobs = {job_after({})};
    for (JobId id = 2; id <= kJobs; ++id) {
      jobs.push_back(job_after({{{1}, After::kDone}}));
      jobs.back().priority = static_cast<int32_t>(id % 2);
    }
    jobs.push_back(job_after({{{1, kJobs}, After::kDone}}));
    submit(std::move(jobs));
    // Those removed one by one leave the count alone.
    for (JobId id = 2; id < 1000; ++id) t.apply(JobsRemoved{{{id}}});
    t.end(1, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(uint64_t{kJobs - 1000}, t.pool.standings(t.now).at(0).queued);
    CPPUNIT_ASSERT(t.state(kJobs + 1) == JobState::kHeld);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(RelationsTest);
}  // namespace
}  // namespace sublet::scheduling
