// Many different requirements: few groups, no starvation, nothing quadratic; and that
// unused hosts and users are forgotten.
#include <cppunit/extensions/HelperMacros.h>
#include <malloc.h>
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>

#include "scheduling/books/job_book.h"
#include "scheduling/hashed.h"
#include "scheduling/matching/job_queue.h"
#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

class GroupsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(GroupsTest);
  CPPUNIT_TEST(hundred_thousand_distinct_needs);
  CPPUNIT_TEST(distinct_systems_are_forgotten_too);
  CPPUNIT_TEST(exact_needs_decide);
  CPPUNIT_TEST(a_smaller_job_of_the_group_is_seen);
  CPPUNIT_TEST(line_finds_what_a_search_finds);
  CPPUNIT_TEST(nobody_foresees_the_shape_of_a_tree);
  CPPUNIT_TEST(sizes_tell_jobs_apart);
  CPPUNIT_TEST(why_does_not_walk_the_queue);
  CPPUNIT_TEST(why_looks_at_who_is_first);
  CPPUNIT_TEST(counters_stay_above_all_rows);
  CPPUNIT_TEST(hosts_and_users_are_forgotten);
  CPPUNIT_TEST_SUITE_END();

  class Clock {
   public:
    double seconds() const {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    }

   private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };

  static Submitted many(uint64_t jobs, uint64_t smallest, uint64_t step) {
    Submitted s{1, "ann", "desk", {}};
    s.jobs.resize(jobs);
    for (uint64_t i = 0; i < jobs; ++i) s.jobs[i].needs.memory = smallest + i * step;
    return s;
  }
  static void remove(Pool& pool, JobId first, uint64_t jobs) {
    for (uint64_t done = 0; done < jobs; done += 1000) {
      JobsRemoved removed;
      for (uint64_t i = 0; i < 1000; ++i) removed.jobs.push_back(first + done + i);
      CPPUNIT_ASSERT_EQUAL(uint64_t{1000}, pool.apply(removed, testing::kStart).answer.changed);
    }
  }
  static Submitted::Job needing(uint64_t memory, uint64_t disk = 0) {
    return {{"", "", 0, memory, disk}, 0, 0};
  }
  static constexpr uint64_t kMiB = 1 << 20;

 public:
  // First spread up to four times the machine's size, then all close to that size.
  void hundred_thousand_distinct_needs() {
    constexpr uint64_t kJobs = 100'000;
    for (const bool close : {false, true}) {
      Pool pool{Parameters()};
      const Clock clock;
      const MachineId m =
          pool.apply(MachineJoined{0, "m", "linux", "x86_64", 1, 1, 8ull << 30, 0}, testing::kStart)
              .answer.machine;
      const uint64_t middle = 6ull << 30;
      const Event event = close ? many(kJobs, middle - kJobs / 2, 1) : many(kJobs, 1, 327'680);
      const JobId first = pool.apply(event, testing::kStart).answer.first_job;
      const size_t groups = pool.groups();
      for (int i = 0; i < 1000; ++i) {
        const Outcome placed = pool.apply(MachineReported{m, true, middle, 0}, testing::kStart);
        const auto& order = std::get<StartAttempt>(placed.decisions.at(0));
        pool.apply(MachineReported{m, false, middle, 0}, testing::kStart);
        pool.apply(AttemptEnded{order.key, m, EndReason::kDrained, ""}, testing::kStart);
      }
      const double placed = clock.seconds();
      remove(pool, first, kJobs);
      std::printf(" %zu groups, submitted and 1000 placed in %.3f s, removed in %.3f s ", groups,
                  placed, clock.seconds() - placed);
      CPPUNIT_ASSERT(groups <= 20);
      CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.groups());
    }
  }

  // As many demands as jobs, but no machine suits any of them: one group.
  void distinct_systems_are_forgotten_too() {
    constexpr uint64_t kJobs = 50'000;
    Pool pool{Parameters()};
    for (uint32_t cores = 1; cores <= 8; ++cores) {
      pool.apply(MachineJoined{0, "m", "linux", "x86_64", cores, 1, 8ull << 30, 0},
                 testing::kStart);
    }
    const Clock clock;
    Submitted s{1, "ann", "desk", {}};
    s.jobs.resize(kJobs);
    for (uint64_t i = 0; i < kJobs; ++i) s.jobs[i].needs.os = "os" + std::to_string(i);
    const JobId first = pool.apply(s, testing::kStart).answer.first_job;
    CPPUNIT_ASSERT_EQUAL(size_t{1}, pool.groups());
    remove(pool, first, kJobs);
    std::printf(" %.3f s ", clock.seconds());
    CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.groups());
  }

  // The machine has 7,700 MiB.
  void exact_needs_decide() {
    TestPool t;
    const MachineId m = t.join("m", 1, false);
    const JobId large = t.submit("ann", 100, needing(7800 * kMiB));
    const JobId full = t.submit("ann", 1, needing(7000 * kMiB, (100ull << 30) + 1));
    const JobId exact = t.submit("ann", 1, needing(7700 * kMiB, 100ull << 30));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, t.pool.groups());  // of disk, some need none
    t.report(m, true, 7700 * kMiB);
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(exact));
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(full));
    t.end(exact, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(large));
    t.report(m, true, 7800 * kMiB);
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(large));
  }

  // Waiting jobs of the group do not fit an idle machine; a new one that does is placed
  // at once.
  void a_smaller_job_of_the_group_is_seen() {
    TestPool t;
    const MachineId m = t.join("m", 2, false);
    t.report(m, true, 7700 * kMiB);
    t.submit("ann", 1, needing(7800 * kMiB));
    t.submit("ann", 1, needing(7000 * kMiB, 101ull << 30));
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(t.submit("ann", 1, needing(3650 * kMiB))));
    t.submit("ann", 1, needing(4060 * kMiB));
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(t.submit("bob", 1, needing(4050 * kMiB))));
  }

  void line_finds_what_a_search_finds() {
    CPPUNIT_ASSERT(rc::check("a line finds what a search finds", [] {
      std::deque<Job> jobs;
      std::vector<Job*> inside;
      JobLine line;
      for (const uint32_t bits : *rc::gen::arbitrary<std::vector<uint32_t>>()) {
        if (bits % 3 == 0 && !inside.empty()) {
          const size_t i = bits / 3 % inside.size();
          line.take(*inside[i]);
          inside.erase(inside.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
          Job& job = jobs.emplace_back();
          job.record.id = jobs.size();
          job.record.priority = static_cast<int32_t>(bits >> 2 & 1);
          job.place.order = bits >> 3 & 7;
          job.record.needs.memory = bits >> 6 & 7;
          job.record.needs.disk = bits >> 9 & 7;
          job.record.needs.cores = bits >> 18 & 3;
          job.record.changed = bits >> 22 & 7;
          line.add(job);
          inside.push_back(&job);
        }
        std::sort(inside.begin(), inside.end(),
                  [](const Job* a, const Job* b) { return comes_before(*a, *b); });
        std::vector<const Job*> walked;
        line.walk([&](const Job& job) {
          walked.push_back(&job);
          return true;
        });
        RC_ASSERT(std::equal(walked.begin(), walked.end(), inside.begin(), inside.end()));
        RC_ASSERT(line.first() == (inside.empty() ? nullptr : inside.front()));
        const Amounts room = {bits >> 20 & 3, bits >> 12 & 7, bits >> 15 & 7};
        const Amounts most = {bits >> 16 & 3, bits >> 10 & 7, bits >> 13 & 7};
        const Micros since = bits >> 25 & 7;
        const auto fits = [](const Requirements& needs, const Amounts& in) {
          return std::max(needs.cores, 1u) <= in.cores && needs.memory <= in.memory &&
                 needs.disk <= in.disk;
        };
        const auto found = std::find_if(inside.begin(), inside.end(), [&](const Job* job) {
          const JobRecord& record = job->record;
          return fits(record.needs, room) || (record.changed <= since && fits(record.needs, most));
        });
        RC_ASSERT(line.first_of({room, Among::kAll, most, since}) ==
                  (found == inside.end() ? nullptr : *found));
      }
    }));
  }

  // Else who chooses the priorities of his jobs, whose ids he knows, could make a chain of them.
  void nobody_foresees_the_shape_of_a_tree() {
    CPPUNIT_ASSERT(tree_rank(1) != hashed(1) && tree_rank(2) != hashed(2));
    CPPUNIT_ASSERT_EQUAL(tree_rank(1), tree_rank(1));
  }

  // Jobs that lack different things are in groups of their own, so that none is looked at in vain.
  void sizes_tell_jobs_apart() {
    const uint64_t gib = 1ull << 30;
    CPPUNIT_ASSERT_EQUAL(size_of({1, 5 * gib, 0}), size_of({1, 7 * gib, 0}));
    for (const Amounts& other : {Amounts{2, 5 * gib, 0}, Amounts{1, 8 * gib, 0},
                                 Amounts{1, 5 * gib, gib}, Amounts{1, 0, 5 * gib}})
      CPPUNIT_ASSERT(size_of({1, 5 * gib, 0}) != size_of(other));
  }

  void why_does_not_walk_the_queue() {
    TestPool t;
    t.join("a", 1, false);
    const JobId first = t.submit("ann", 100'000);
    // The user's own line is examined only up to the job.
    CPPUNIT_ASSERT_EQUAL(std::string("1 machine fits, used by its owner; 999 jobs that come "
                                     "first wait for the same machines"),
                         t.pool.why(first + 999, t.now));
    const Clock clock;
    CPPUNIT_ASSERT_EQUAL(std::string("1 machine fits, used by its owner; at least 1000 jobs that "
                                     "come first wait for the same machines"),
                         t.pool.why(first + 99'999, t.now));
    std::printf(" %.0f us with 100 k queued ", clock.seconds() * 1e6);
  }

  // Users are examined in the order in which they are served, not in that in which they came.
  void why_looks_at_who_is_first() {
    TestPool t;
    const MachineId m = t.join("m");
    t.end(t.submit("ann"), EndReason::kDone, 100 * kSecond);
    t.end(t.submit("cid"), EndReason::kDone, 50 * kSecond);
    t.report(m, false);
    for (int i = 0; i < 1100; ++i) t.submit("ann");
    const JobId of_cid = t.submit("cid");
    t.submit("bob", 3);
    CPPUNIT_ASSERT_EQUAL(std::string("1 machine fits, used by its owner; at least 1 job that comes "
                                     "first waits for the same machines"),
                         t.pool.why(of_cid, t.now));
  }

  // Rows that are not in a snapshot have ids too.
  void counters_stay_above_all_rows() {
    TestPool t;
    t.submit("ann");
    Snapshot s = t.books.snapshot();
    s.last_job = 70;
    s.last_batch = 71;
    s.last_machine = 72;
    s.last_change = 73;
    Pool restored{Parameters()};
    CPPUNIT_ASSERT_EQUAL(size_t{4}, restored.restore(s).size());
    CPPUNIT_ASSERT_EQUAL(JobId{71}, restored.counters().next_job);
    CPPUNIT_ASSERT_EQUAL(BatchId{72}, restored.counters().next_batch);
    CPPUNIT_ASSERT_EQUAL(MachineId{73}, restored.counters().next_machine);
    CPPUNIT_ASSERT_EQUAL(uint64_t{74}, restored.counters().next_change);
    // Raised counters are stored with the next event of any kind.
    const Outcome outcome = restored.apply(ServerStarted(), t.now);
    CPPUNIT_ASSERT_EQUAL(uint64_t{74}, std::get<PoolRecord>(outcome.records.back()).next_change);
  }

  void hosts_and_users_are_forgotten() {
    TestPool t;
    t.join("m");
    t.apply(SharesSet{"cid", 2});
    const JobId job = t.submit("ann", 1, {}, "desk-a");
    t.end(job, EndReason::kDone, 5 * kSecond);
    const auto users = [&t] { return t.pool.standings(t.now).size(); };
    CPPUNIT_ASSERT_EQUAL(size_t{2}, users());  // ann has charges, cid non-default shares
    const JobId held = t.submit("bob");
    t.apply(JobsHeld{{held}});
    CPPUNIT_ASSERT_EQUAL(size_t{3}, users());
    t.apply(JobsRemoved{{held}});
    CPPUNIT_ASSERT_EQUAL(size_t{3}, users());  // its attempt has not ended
    t.end(held, EndReason::kRemoved);
    CPPUNIT_ASSERT_EQUAL(size_t{3}, users());  // bob was served last
    Pool restored{Parameters()};
    restored.restore(t.books.snapshot());
    CPPUNIT_ASSERT_EQUAL(size_t{3}, restored.standings(t.now).size());
    t.apply(SharesSet{"cid", 1});
    CPPUNIT_ASSERT_EQUAL(size_t{2}, users());
    const size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 10'000; ++i) {
      const std::string name = "a long enough name " + std::to_string(i);
      const JobId passing = t.pool.apply(Submitted{1, name, name, {{}}}, t.now).answer.first_job;
      t.pool.apply(JobsRemoved{{passing}}, t.now);
      const AttemptKey key{passing, 1};
      t.pool.apply(AttemptEnded{key, 1, EndReason::kRemoved, ""}, t.now);
    }
    std::printf(" %.1f bytes kept for each of 10 k hosts and users ",
                (static_cast<double>(mallinfo2().uordblks) - static_cast<double>(before)) / 1e4);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, users());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(GroupsTest);
}  // namespace
}  // namespace sublet::scheduling
