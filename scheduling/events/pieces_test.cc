// A batch that is entered in pieces: its jobs are those that it would have had at once, whatever
// happens between two pieces, also a restart.
#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <memory>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::Books;
using testing::TestPool;

Submitted::Job job_of(uint64_t count, int32_t priority, uint32_t retries) {
  Submitted::Job job;
  job.count = count;
  job.priority = priority;
  job.retries = retries;
  return job;
}

// A brain that can be restarted between two events.
class Restartable {
 public:
  Restartable() { restart(); }
  const Outcome& apply(const Event& event) {
    last_ = pool_->apply(event, now_ += testing::kSecond);
    books.write(last_);
    return last_;
  }
  void restart() {
    pool_ = std::make_unique<Pool>(Parameters());
    CPPUNIT_ASSERT(pool_->restore(books.snapshot()).empty());
    apply(ServerStarted());
  }
  const Pool& pool() const { return *pool_; }

  Books books;

 private:
  std::unique_ptr<Pool> pool_;
  Micros now_ = testing::kStart;
  Outcome last_;
};

// What of a job does not depend on when it was entered, nor on what was entered with it.
std::string told_of(JobRecord job, JobId first) {
  job.id -= first;
  job.share_priority = job.share_priority_step = 0;
  job.share_priority_at = job.submitted = job.changed = 0;
  return testing::text_of(Record(job));
}

class PiecesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PiecesTest);
  CPPUNIT_TEST(pieces_are_as_the_whole);
  CPPUNIT_TEST(ids_are_consecutive);
  CPPUNIT_TEST(what_comes_after_the_stop_is_removed);
  CPPUNIT_TEST(a_limit_holds_for_all_pieces);
  CPPUNIT_TEST(a_batch_without_live_jobs_goes_on);
  CPPUNIT_TEST(what_does_not_fit_changes_nothing);
  CPPUNIT_TEST_SUITE_END();

  static Submitted piece(BatchId batch, std::vector<Submitted::Job> jobs, Submitted::Piece where) {
    Submitted event{batch, "ann", "desk", std::move(jobs)};
    event.piece = where;
    return event;
  }

 public:
  void pieces_are_as_the_whole() {
    CPPUNIT_ASSERT(rc::check([](const std::vector<uint8_t>& kinds) {
      std::vector<Submitted::Job> jobs = {job_of(1, 0, 0)};
      for (const uint8_t kind : kinds) jobs.push_back(job_of(1 + kind % 3, kind % 5, kind % 2));
      uint64_t count = 0;
      for (const Submitted::Job& job : jobs) count += job.count;
      const uint64_t at_most = count > 1 ? *rc::gen::inRange<uint64_t>(0, 2) : 0;

      Restartable whole;
      const BatchId one = whole.apply(BatchOpened{"ann"}).answer.batch;
      Submitted event{one, "ann", "desk", jobs, {count, 0, ""}};
      event.at_most = at_most;
      const JobId first_of_whole = whole.apply(event).answer.first_job;

      Restartable pieces;
      const BatchId other = pieces.apply(BatchOpened{"ann"}).answer.batch;
      const JobId first =
          pieces.apply(BatchReserved{other, count, {count, 0, ""}, at_most}).answer.first_job;
      const BatchId bobs = pieces.apply(BatchOpened{"bob"}).answer.batch;
      uint64_t entered = 0;
      for (size_t from = 0; from < jobs.size();) {
        if (*rc::gen::arbitrary<bool>()) pieces.restart();
        if (*rc::gen::arbitrary<bool>())
          pieces.apply(Submitted{bobs, "bob", "pc", {job_of(2, 0, 0)}});
        const size_t size = *rc::gen::inRange<size_t>(1, jobs.size() - from + 1);
        const auto begin = jobs.begin() + static_cast<ptrdiff_t>(from);
        const auto end = begin + static_cast<ptrdiff_t>(size);
        const uint64_t before = entered;
        for (auto job = begin; job != end; ++job) entered += job->count;
        pieces.apply(piece(other, {begin, end},
                           {first + before, static_cast<uint32_t>(before), count - entered}));
        from += size;
      }
      pieces.restart();
      for (uint64_t i = 0; i < count; ++i) {
        const std::string expected =
            told_of(whole.books.jobs.at(first_of_whole + i), first_of_whole);
        RC_ASSERT(told_of(pieces.books.jobs.at(first + i), first) == expected);
        RC_ASSERT(pieces.pool().job(first + i).has_value());
      }
      RC_ASSERT(pieces.books.batches.at(other) == whole.books.batches.at(one));
    }));
  }

  void ids_are_consecutive() {
    TestPool t;
    const BatchId batch = t.apply(BatchOpened()).answer.batch;
    const JobId first = t.apply(BatchReserved{batch, 5}).answer.first_job;
    const JobId others = t.submit("bob");
    CPPUNIT_ASSERT_EQUAL(first + 5, others);
    CPPUNIT_ASSERT_EQUAL(first,
                         t.apply(piece(batch, {job_of(2, 0, 0)}, {first, 0, 3})).answer.first_job);
    t.apply(piece(batch, {job_of(1, 1, 0), job_of(2, 2, 0)}, {first + 2, 2, 0}));
    for (uint32_t i = 0; i < 5; ++i) CPPUNIT_ASSERT_EQUAL(i, t.record(first + i).index);
    CPPUNIT_ASSERT_EQUAL(others + 1, t.submit("bob"));
  }

  void what_comes_after_the_stop_is_removed() {
    for (const bool restarts : {false, true}) {
      TestPool t;
      t.join("larry");
      const BatchId batch = t.apply(BatchOpened()).answer.batch;
      const JobId first = t.apply(BatchReserved{batch, 4, {1, 0, ""}}).answer.first_job;
      t.apply(piece(batch, {job_of(2, 0, 0)}, {first, 0, 2}));
      t.start(first);
      t.end(first, EndReason::kDone);
      CPPUNIT_ASSERT(t.state(first + 1) == JobState::kRemoved);
      Pool restored{Parameters()};
      CPPUNIT_ASSERT(restored.restore(t.books.snapshot()).empty());
      const Event last = piece(batch, {job_of(2, 0, 0)}, {first + 2, 2, 0});
      if (restarts)
        t.books.write(restored.apply(last, t.now));
      else
        t.apply(last);
      for (const JobId job : {first + 2, first + 3}) {
        CPPUNIT_ASSERT(t.state(job) == JobState::kRemoved);
        CPPUNIT_ASSERT_EQUAL("the batch had stopped, because of job " + std::to_string(first) +
                                 ", before it could run",
                             t.record(job).reason);
      }
      CPPUNIT_ASSERT_EQUAL(uint64_t{0}, t.books.batches.at(batch).to_come);
    }
  }

  void a_limit_holds_for_all_pieces() {
    TestPool t;
    t.join("larry", 4);
    const BatchId batch = t.apply(BatchOpened()).answer.batch;
    const JobId first = t.apply(BatchReserved{batch, 3, {}, 1}).answer.first_job;
    t.apply(piece(batch, {job_of(1, 0, 0)}, {first, 0, 2}));
    t.apply(piece(batch, {job_of(2, 0, 0)}, {first + 1, 1, 0}));
    CPPUNIT_ASSERT(t.state(first) == JobState::kPlaced);
    CPPUNIT_ASSERT(t.state(first + 1) == JobState::kWaiting);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.pool.limited_batches("ann"));
  }

  // Those that there were have ended before the others come.
  void a_batch_without_live_jobs_goes_on() {
    TestPool t;
    t.join("larry");
    const BatchId batch = t.apply(BatchOpened()).answer.batch;
    const JobId first = t.apply(BatchReserved{batch, 3, {2, 0, ""}}).answer.first_job;
    t.apply(piece(batch, {job_of(1, 0, 0)}, {first, 0, 2}));
    t.start(first);
    t.end(first, EndReason::kDone);
    t.apply(piece(batch, {job_of(2, 0, 0)}, {first + 1, 1, 0}));
    t.start(first + 1);
    t.end(first + 1, EndReason::kDone);
    CPPUNIT_ASSERT(t.state(first + 2) == JobState::kRemoved);
  }

  void what_does_not_fit_changes_nothing() {
    TestPool t;
    const BatchId batch = t.apply(BatchOpened()).answer.batch;
    const JobId first = t.apply(BatchReserved{batch, 2}).answer.first_job;
    const Event event = piece(batch, {job_of(2, 0, 0)}, {first, 0, 0});
    t.apply(event);
    CPPUNIT_ASSERT(t.apply(event).records.empty());
    CPPUNIT_ASSERT(t.apply(piece(batch, {job_of(1, 0, 0)}, {first + 2, 2, 0})).records.empty());
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(PiecesTest);

}  // namespace
}  // namespace sublet::scheduling
