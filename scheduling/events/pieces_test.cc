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
  CPPUNIT_TEST(gated_pieces_are_as_the_whole);
  CPPUNIT_TEST(who_was_removed_meanwhile_is_not_waited_for);
  CPPUNIT_TEST(nothing_of_a_gated_batch_starts_before);
  CPPUNIT_TEST(jobs_that_run_while_the_gate_opens);
  CPPUNIT_TEST(jobs_of_another_batch_that_end_meanwhile);
  CPPUNIT_TEST(looking_at_many_jobs_ends_the_event);
  CPPUNIT_TEST(who_waits_for_the_removed_runs_only_behind_the_gate);
  CPPUNIT_TEST_SUITE_END();

  static Submitted piece(BatchId batch, std::vector<Submitted::Job> jobs, Submitted::Piece where) {
    Submitted event{batch, "ann", "desk", std::move(jobs)};
    event.piece = where;
    return event;
  }

  static std::string relations_of(const Books& books) {
    std::string text;
    for (const auto& [first, relation] : books.relations)
      text += testing::text_of(Record(relation)) + "\n";
    return text;
  }

  // Jobs that wait for others of the batch, whose first job is `first`: for earlier ones, or for
  // later.
  static std::vector<Submitted::Job> random_graph(uint64_t& count, JobId first = 1) {
    const auto size = *rc::gen::inRange<size_t>(1, 9);
    std::vector<Submitted::Job> jobs;
    std::vector<JobId> firsts;
    count = 0;
    for (size_t i = 0; i < size; ++i) {
      firsts.push_back(first + count);
      jobs.push_back(job_of(*rc::gen::inRange<uint64_t>(1, 4), 0, 0));
      count += jobs.back().count;
    }
    const bool backward = *rc::gen::arbitrary<bool>();
    for (size_t i = 0; i < size; ++i)
      for (size_t j = backward ? 0 : i + 1; j < (backward ? i : size); ++j) {
        if (!*rc::gen::arbitrary<bool>()) continue;
        const auto of = *rc::gen::inRange<uint64_t>(1, jobs[j].count + 1);
        jobs[i].after.push_back({{firsts[j], of}, After(*rc::gen::inRange(1, 4))});
      }
    return jobs;
  }

  // The batch with a piece for each entry.
  static std::vector<Submitted> gated_pieces(BatchId batch, const std::vector<Submitted::Job>& jobs,
                                             uint64_t count, OnNever on_never, JobId first = 1) {
    std::vector<Submitted> pieces;
    uint64_t entered = 0;
    for (const Submitted::Job& job : jobs) {
      pieces.push_back(piece(
          batch, {job},
          {first + entered, static_cast<uint32_t>(entered), count - entered - job.count, true}));
      pieces.back().on_never = on_never;
      entered += job.count;
    }
    return pieces;
  }

  // The batch in pieces, with restarts; `removed`, unless it is 0, at some time.
  static void enter_gated(Restartable& pool, const std::vector<Submitted::Job>& jobs,
                          uint64_t count, OnNever on_never, JobId removed) {
    const BatchId batch = pool.apply(BatchOpened{"ann"}).answer.batch;
    CPPUNIT_ASSERT_EQUAL(JobId{1}, pool.apply(BatchReserved{batch, count}).answer.first_job);
    const auto meanwhile = [&](bool now) {
      if (*rc::gen::arbitrary<bool>()) pool.restart();
      if (removed == 0 || !pool.pool().job(removed) || !(now || *rc::gen::arbitrary<bool>()))
        return;
      pool.apply(JobsRemoved{{removed}});
      removed = 0;
    };
    for (const Submitted& event : gated_pieces(batch, jobs, count, on_never)) {
      pool.apply(event);
      meanwhile(false);
    }
    for (const bool opens : {false, true}) {
      for (JobId next = 1; next != 0;) {
        const RelationsBegun event{
            {next, 1 + count - next}, opens, *rc::gen::inRange<uint64_t>(1, 9)};
        next = pool.apply(event).answer.first_job;
        meanwhile(false);
        if (*rc::gen::arbitrary<bool>()) pool.apply(event);
      }
    }
    meanwhile(true);
  }

 public:
  void gated_pieces_are_as_the_whole() {
    CPPUNIT_ASSERT(rc::check([] {
      uint64_t count = 0;
      const std::vector<Submitted::Job> jobs = random_graph(count);
      Restartable whole, gated;
      const BatchId batch = whole.apply(BatchOpened{"ann"}).answer.batch;
      whole.apply(Submitted{batch, "ann", "desk", jobs});
      enter_gated(gated, jobs, count, OnNever::kHold, 0);
      RC_ASSERT(relations_of(gated.books) == relations_of(whole.books));
      for (JobId id = 1; id <= count; ++id) {
        RC_ASSERT(told_of(gated.books.jobs.at(id), 1) == told_of(whole.books.jobs.at(id), 1));
        RC_ASSERT(gated.pool().why(id, 0) == whole.pool().why(id, 0));
      }
    }));
  }

  void who_was_removed_meanwhile_is_not_waited_for() {
    CPPUNIT_ASSERT(rc::check([] {
      uint64_t count = 0;
      const std::vector<Submitted::Job> jobs = random_graph(count);
      const auto on_never = *rc::gen::element(OnNever::kHold, OnNever::kRemove);
      const auto removed = *rc::gen::inRange<JobId>(1, count + 1);
      Restartable whole, gated;
      const BatchId batch = whole.apply(BatchOpened{"ann"}).answer.batch;
      Submitted event{batch, "ann", "desk", jobs};
      event.on_never = on_never;
      whole.apply(event);
      whole.apply(JobsRemoved{{removed}});
      enter_gated(gated, jobs, count, on_never, removed);
      for (JobId id = 1; id <= count; ++id) {
        const auto expected = whole.pool().job(id), job = gated.pool().job(id);
        RC_ASSERT(job.has_value() == expected.has_value());
        RC_ASSERT(!job || job->state == expected->state);
      }
      // The rest runs as it would have.
      RC_ASSERT(gated.books.relations.size() == whole.books.relations.size());
    }));
  }

  void nothing_of_a_gated_batch_starts_before() {
    TestPool t;
    t.join("larry", 4);
    const BatchId batch = t.apply(BatchOpened()).answer.batch;
    const JobId first = t.apply(BatchReserved{batch, 2}).answer.first_job;
    t.apply(piece(batch, {job_of(1, 0, 0)}, {first, 0, 1, true}));
    Submitted::Job second = job_of(1, 0, 0);
    second.after = {{{first, 1}, After::kDone}};
    t.apply(piece(batch, {second}, {first + 1, 1, 0, true}));
    CPPUNIT_ASSERT(t.state(first) == JobState::kWaiting);
    CPPUNIT_ASSERT_EQUAL(std::string("waits until all jobs of its batch have been entered"),
                         t.pool.why(first, t.now));
    t.apply(RelationsBegun{{first, 2}, false, 5});
    CPPUNIT_ASSERT(t.state(first) == JobState::kWaiting);
    t.apply(JobsHeld{{first}});
    t.apply(JobsReleased{{first}});
    CPPUNIT_ASSERT(t.state(first) == JobState::kWaiting);
    t.apply(RelationsBegun{{first, 2}, true, 5});
    t.start(first);
    CPPUNIT_ASSERT(t.state(first + 1) == JobState::kWaiting);
    t.end(first, EndReason::kDone);
    t.start(first + 1);
    t.end(first + 1, EndReason::kDone);
    CPPUNIT_ASSERT(t.books.relations.empty());
  }

  // Runs each job as soon as it is placed; those of odd ids fail.
  static void run_placed(TestPool& t, uint64_t count) {
    for (bool any = true; any;) {
      any = false;
      for (JobId id = 1; id <= count; ++id) {
        if (!t.books.jobs.contains(id) || t.state(id) != JobState::kPlaced) continue;
        t.start(id);
        t.end(id, id % 2 == 1 ? EndReason::kExit : EndReason::kDone);
        any = true;
      }
    }
  }

  // Whatever was removed before, and whatever runs between two slices: in the end each job is as
  // it would be.
  void jobs_that_run_while_the_gate_opens() {
    CPPUNIT_ASSERT(rc::check([] {
      uint64_t count = 0;
      const std::vector<Submitted::Job> jobs = random_graph(count);
      const auto on_never = *rc::gen::element(OnNever::kHold, OnNever::kRemove);
      const auto removed = *rc::gen::container<std::vector<JobId>>(
          *rc::gen::inRange(0, 4), rc::gen::inRange<JobId>(1, count + 1));
      TestPool whole, gated;
      Submitted event{whole.apply(BatchOpened()).answer.batch, "ann", "desk", jobs};
      event.on_never = on_never;
      whole.apply(event);
      for (const JobId id : removed) whole.apply(JobsRemoved{{id}});
      whole.join("larry", 2);
      run_placed(whole, count);

      gated.join("larry", 2);
      const BatchId batch = gated.apply(BatchOpened()).answer.batch;
      gated.apply(BatchReserved{batch, count});
      for (const Submitted& one : gated_pieces(batch, jobs, count, on_never)) gated.apply(one);
      auto left = removed;
      for (const bool opens : {false, true})
        for (JobId next = 1; next != 0;) {
          while (!left.empty() && (opens || *rc::gen::arbitrary<bool>())) {
            gated.apply(JobsRemoved{{left.back()}});
            left.pop_back();
          }
          next = gated
                     .apply(RelationsBegun{
                         {next, 1 + count - next}, opens, *rc::gen::inRange<uint64_t>(1, 9)})
                     .answer.first_job;
          for (JobId id = 1; id <= count && !opens; ++id)
            RC_ASSERT(gated.state(id) != JobState::kPlaced);
          if (*rc::gen::arbitrary<bool>()) run_placed(gated, count);
        }
      run_placed(gated, count);
      for (JobId id = 1; id <= count; ++id) RC_ASSERT(gated.state(id) == whole.state(id));
      RC_ASSERT(gated.books.relations.size() == whole.books.relations.size());
    }));
  }

  enum class Fate { kDone, kFails, kRemoved, kRemovedAfterStart };
  static void end_by(Fate fate, TestPool& t, JobId job) {
    if (fate != Fate::kRemoved) t.start(job);
    if (fate == Fate::kDone) t.end(job, EndReason::kDone);
    if (fate == Fate::kFails) t.end(job, EndReason::kExit);
    if (!is_final(t.state(job))) t.apply(JobsRemoved{{job}});
  }
  // As the server tells which dependences on jobs before `first` are lost.
  static RelationsBegun begun(const TestPool& t, JobId first, const JobRange& left, bool opens) {
    RelationsBegun event{left, opens, *rc::gen::inRange<uint64_t>(1, 9), first};
    for (const UnclearDependence& one : t.pool.unclear(first, left, event.most))
      for (const JobRange& range : one.gone)
        for (JobId id = range.first; id < range.first + range.count; ++id) {
          RC_ASSERT(is_final(t.state(id)));
          const bool is_met =
              t.state(id) == JobState::kDone ||
              (one.dependence.condition == After::kStarted && t.books.jobs.at(id).has_started);
          if (!is_met && (event.lost.empty() || event.lost.back().dependence != one.dependence))
            event.lost.push_back({one.dependence, id, t.state(id)});
        }
    return event;
  }

  // Some wait for these: in the end each job is as if they had ended after all had come.
  void jobs_of_another_batch_that_end_meanwhile() {
    CPPUNIT_ASSERT(rc::check([] {
      const auto fates = *rc::gen::container<std::vector<Fate>>(
          *rc::gen::inRange(1, 6),
          rc::gen::element(Fate::kDone, Fate::kFails, Fate::kRemoved, Fate::kRemovedAfterStart));
      const uint64_t others = fates.size();
      const JobId first = others + 1;
      uint64_t count = 0;
      std::vector<Submitted::Job> jobs = random_graph(count, first);
      for (Submitted::Job& job : jobs) {
        if (!*rc::gen::arbitrary<bool>()) continue;
        const auto from = *rc::gen::inRange<JobId>(1, first);
        job.after.push_back({{from, *rc::gen::inRange<uint64_t>(1, first - from + 1)},
                             After(*rc::gen::inRange(1, 4))});
      }
      const auto on_never = *rc::gen::element(OnNever::kHold, OnNever::kRemove);
      TestPool whole, gated;
      for (TestPool* t : {&whole, &gated}) {
        t->join("larry", 8);
        t->apply(Submitted{t->apply(BatchOpened()).answer.batch, "ann", "desk",
                           std::vector<Submitted::Job>(others, job_of(1, 0, 0))});
      }
      Submitted event{whole.apply(BatchOpened()).answer.batch, "ann", "desk", jobs};
      event.on_never = on_never;
      whole.apply(event);
      for (JobId id = 1; id <= others; ++id) end_by(fates[id - 1], whole, id);
      run_placed(whole, others + count);

      const BatchId batch = gated.apply(BatchOpened()).answer.batch;
      CPPUNIT_ASSERT_EQUAL(first, gated.apply(BatchReserved{batch, count}).answer.first_job);
      JobId next_other = 1;
      const auto meanwhile = [&](bool all) {
        for (; next_other <= others && (all || *rc::gen::arbitrary<bool>()); ++next_other)
          end_by(fates[next_other - 1], gated, next_other);
      };
      for (const Submitted& one : gated_pieces(batch, jobs, count, on_never, first)) {
        gated.apply(one);
        meanwhile(false);
      }
      for (const bool opens : {false, true})
        for (JobId next = first; next != 0;) {
          const JobRange left{next, first + count - next};
          next = gated.apply(begun(gated, first, left, opens)).answer.first_job;
          meanwhile(false);
        }
      meanwhile(true);
      run_placed(gated, others + count);
      for (JobId id = 1; id < first + count; ++id) RC_ASSERT(gated.state(id) == whole.state(id));
      RC_ASSERT(gated.books.relations.size() == whole.books.relations.size());
    }));
  }

  // Two that wait for a few hundred jobs each would be one event by their number.
  void looking_at_many_jobs_ends_the_event() {
    constexpr uint64_t kMany = 400;
    TestPool t;
    const BatchId batch = t.apply(BatchOpened()).answer.batch;
    const JobId first = t.apply(BatchReserved{batch, kMany + 2}).answer.first_job;
    std::vector<Submitted::Job> jobs(kMany + 2, job_of(1, 0, 0));
    jobs[kMany].after = {{{first, kMany}, After::kDone}};
    jobs[kMany + 1].after = {{{first, kMany - 1}, After::kDone}};
    t.apply(piece(batch, jobs, {first, 0, 0, true}));
    const JobRange both{first + kMany, 2};
    CPPUNIT_ASSERT_EQUAL(both.first + 1, t.apply(RelationsBegun{both, false, 4}).answer.first_job);
    CPPUNIT_ASSERT_EQUAL(JobId{0},
                         t.apply(RelationsBegun{both, false, 4 * kMany}).answer.first_job);
  }

  // b waits for the end of a, which is removed; c waits until b is done, and comes much later.
  void who_waits_for_the_removed_runs_only_behind_the_gate() {
    TestPool t;
    t.join("larry", 4);
    const BatchId batch = t.apply(BatchOpened()).answer.batch;
    const JobId a = t.apply(BatchReserved{batch, 3}).answer.first_job, b = a + 1, c = a + 2;
    Submitted::Job second = job_of(1, 0, 0), third = job_of(1, 0, 0);
    second.after = {{{a, 1}, After::kEnded}};
    third.after = {{{b, 1}, After::kDone}};
    t.apply(piece(batch, {job_of(1, 0, 0), second, third}, {a, 0, 0, true}));
    t.apply(JobsRemoved{{a}});
    t.apply(RelationsBegun{{a, 2}, false, 9});
    CPPUNIT_ASSERT(t.state(b) == JobState::kWaiting);
    t.apply(RelationsBegun{{c, 1}, false, 9});
    t.apply(RelationsBegun{{a, 3}, true, 9});
    t.start(b);
    t.end(b, EndReason::kDone);
    CPPUNIT_ASSERT(t.state(c) == JobState::kPlaced);
  }

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
