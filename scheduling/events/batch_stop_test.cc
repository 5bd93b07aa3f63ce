// Batches with a stop condition: the first condition that holds counts, the rest is
// removed with its reason in the same event, and later ends change nothing.
#include <cppunit/extensions/HelperMacros.h>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::TestPool;

constexpr uint64_t kJobs = 1000;

// An array with a condition in its own batch; two of its jobs are running.
struct Search {
  TestPool t;
  BatchId batch = 0;
  JobId first = 0;

  explicit Search(const StopWhen& when) {
    t.join("larry");
    t.join("curly");
    batch = t.apply(BatchOpened()).answer.batch;
    Submitted::Job array;
    array.count = kJobs;
    first = t.apply(Submitted{batch, "ann", "desk", {array}, when}).answer.first_job;
    t.start(first);
    t.start(first + 1);
  }
  // The job's attempt ends; `left` is the awaited output it produced.
  const Outcome& end(JobId job, EndReason ended, const std::string& left = "") {
    return t.apply(AttemptEnded{t.key(job), t.machine_of(job), ended, "", 0, -1, 0, left});
  }
  const BatchRecord& record() const { return t.books.batches.at(batch); }
};

class BatchStopTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(BatchStopTest);
  CPPUNIT_TEST(an_output_stops_the_rest);
  CPPUNIT_TEST(other_ends_do_not);
  CPPUNIT_TEST(counts_stop_the_rest);
  CPPUNIT_TEST(retries_are_no_failures_yet);
  CPPUNIT_TEST(the_condition_survives_a_restart);
  CPPUNIT_TEST(contradicting_rows_are_set_aside);
  CPPUNIT_TEST(other_batches_go_on);
  CPPUNIT_TEST_SUITE_END();

 public:
  void an_output_stops_the_rest() {
    Search s({0, 0, "key.txt"});
    s.t.apply(JobsHeld{{{s.first + 500, 10}}});
    s.end(s.first, EndReason::kDone);  // and the third is placed
    const Outcome outcome = s.end(s.first + 1, EndReason::kDone, "key.txt");
    CPPUNIT_ASSERT(s.t.state(s.first) == JobState::kDone);
    CPPUNIT_ASSERT(s.t.state(s.first + 1) == JobState::kDone);
    const std::string why =
        "the batch has stopped: job " + std::to_string(s.first + 1) + " left key.txt";
    for (JobId job = s.first + 2; job < s.first + kJobs; ++job) {
      CPPUNIT_ASSERT(s.t.state(job) == JobState::kRemoved);
      CPPUNIT_ASSERT_EQUAL(why, s.t.record(job).reason);
    }
    CPPUNIT_ASSERT_EQUAL(s.first + 1, s.record().stopped_by);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, s.record().done);
    // The running one is ordered to leave; the rest of the array needs no more rows
    // than before.
    CPPUNIT_ASSERT_EQUAL(size_t{1}, outcome.decisions.size());
    const auto& leave = std::get<TellToLeave>(outcome.decisions[0]);
    CPPUNIT_ASSERT_EQUAL(s.first + 2, leave.key.job);
    CPPUNIT_ASSERT(leave.reason == LeaveReason::kRemoved);
    CPPUNIT_ASSERT(outcome.records.size() < 20);
    // The running attempt ends, and changes nothing.
    s.end(s.first + 2, EndReason::kDone, "key.txt");
    CPPUNIT_ASSERT(s.t.state(s.first + 2) == JobState::kRemoved);
    CPPUNIT_ASSERT_EQUAL(s.first + 1, s.record().stopped_by);
    CPPUNIT_ASSERT(s.t.last.decisions.empty());
  }

  void other_ends_do_not() {
    Search s({0, 0, "key.txt"});
    s.end(s.first, EndReason::kExit);
    s.end(s.first + 1, EndReason::kOwner);
    s.t.apply(JobsRemoved{{s.first + 5}});
    CPPUNIT_ASSERT_EQUAL(JobId{0}, s.record().stopped_by);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, s.record().failed);
    CPPUNIT_ASSERT(s.t.state(s.first + 1) != JobState::kRemoved);
  }

  void counts_stop_the_rest() {
    Search done({1, 0, ""});
    done.end(done.first, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL("the batch has stopped: job " + std::to_string(done.first) + " is done",
                         done.t.record(done.first + 7).reason);
    Search failed({0, 2, ""});
    failed.end(failed.first + 1, EndReason::kSignal);
    CPPUNIT_ASSERT_EQUAL(JobId{0}, failed.record().stopped_by);
    failed.end(failed.first, EndReason::kExit);
    CPPUNIT_ASSERT_EQUAL(
        "the batch has stopped: 2 jobs failed, the last is job " + std::to_string(failed.first),
        failed.t.record(failed.first + 7).reason);
  }

  void retries_are_no_failures_yet() {
    TestPool t;
    t.join("larry");
    const BatchId batch = t.apply(BatchOpened()).answer.batch;
    Submitted::Job job;
    job.retries = 1;
    const JobId first =
        t.apply(Submitted{batch, "ann", "desk", {job, job}, {0, 1, ""}}).answer.first_job;
    t.start(first);
    t.end(first, EndReason::kExit);
    CPPUNIT_ASSERT(!is_final(t.state(first)) && !is_final(t.state(first + 1)));
  }

  void the_condition_survives_a_restart() {
    Search s({2, 0, "key.txt"});
    s.end(s.first, EndReason::kDone);
    Pool restored{Parameters()};
    CPPUNIT_ASSERT(restored.restore(s.t.books.snapshot()).empty());
    restored.apply(ServerStarted(), s.t.now);
    restored.apply(AttemptEnded{s.t.key(s.first + 1), s.t.machine_of(s.first + 1), EndReason::kDone,
                                "", 0, -1, 0, ""},
                   s.t.now);
    CPPUNIT_ASSERT(!restored.job(s.first + 7));  // the second that is done
  }

  void contradicting_rows_are_set_aside() {
    Search s({2, 0, ""});
    Snapshot snapshot = s.t.books.snapshot();
    snapshot.batches[0].stopped_by = s.first;
    snapshot.batches.push_back({99, {}, 0, 0, 0});
    Pool restored{Parameters()};
    CPPUNIT_ASSERT_EQUAL(size_t{2}, restored.restore(snapshot).size());
    CPPUNIT_ASSERT(restored.job(s.first + 7)->state == JobState::kWaiting);
  }

  void other_batches_go_on() {
    Search s({1, 0, ""});
    const JobId other = s.t.submit("ann", 3);
    s.end(s.first, EndReason::kDone);
    CPPUNIT_ASSERT(s.t.state(other) == JobState::kPlaced);  // on the machine that is free now
    CPPUNIT_ASSERT(s.t.state(other + 2) == JobState::kWaiting);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(BatchStopTest);
}  // namespace
}  // namespace sublet::scheduling
