// Who gives way, by each policy: the attempt saves and leaves, and its place is promised.
#include <cppunit/extensions/HelperMacros.h>

#include "scheduling/policies/victim_policies.h"
#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

Parameters with(const std::string& victims, const std::string& jobs = "fifo") {
  Parameters p;
  p.victim_policy = victims;
  p.job_policy = jobs;
  p.lease = 3600 * kSecond;
  return p;
}

Submitted::Job with_priority(int32_t priority) {
  Submitted::Job job;
  job.priority = priority;
  return job;
}

class PreemptionTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PreemptionTest);
  CPPUNIT_TEST(nobody_gives_way_by_default);
  CPPUNIT_TEST(the_place_is_for_whom_it_was_taken);
  CPPUNIT_TEST(charged_as_an_eviction);
  CPPUNIT_TEST(told_again_why);
  CPPUNIT_TEST(the_newest_gives_way);
  CPPUNIT_TEST(by_index_only_who_has_none);
  CPPUNIT_TEST(by_index_of_the_largest);
  CPPUNIT_TEST(by_share_until_all_have_theirs);
  CPPUNIT_TEST(by_share_as_shares_say);
  CPPUNIT_TEST(by_share_nobody_falls_below_his);
  CPPUNIT_TEST(by_priority_of_ones_own);
  CPPUNIT_TEST(only_where_the_job_fits);
  CPPUNIT_TEST(not_from_who_is_leaving_or_delivering);
  CPPUNIT_TEST(not_while_a_machine_is_idle);
  CPPUNIT_TEST(none_ping_pongs);
  CPPUNIT_TEST(not_at_once);
  CPPUNIT_TEST(jobs_that_save_nothing_end);
  CPPUNIT_TEST(not_the_same_one_always);
  CPPUNIT_TEST(who_fits_nowhere_hinders_nobody);
  CPPUNIT_TEST(not_where_room_is_made_anyway);
  CPPUNIT_TEST(the_smallest_that_is_large_enough);
  CPPUNIT_TEST(who_forgoes_a_place_must_wait_for_one);
  CPPUNIT_TEST(an_unknown_one_is_refused);
  CPPUNIT_TEST_SUITE_END();

  // Machines of one slot, all of which run bob's jobs.
  struct Taken {
    explicit Taken(const Parameters& p, size_t machines = 4) : t(p) {
      for (size_t i = 0; i < machines; ++i) t.join("m" + std::to_string(i));
      bobs = t.submit("bob", machines);
      for (JobId job = bobs; job < bobs + machines; ++job) t.start(job), t.pass(kSecond);
      t.pass(p.tick * 5);
    }
    size_t tick() {
      t.pass(60 * kSecond);
      t.apply(Ticked());
      return told();
    }
    // How many were told to leave by the last event.
    size_t told() const {
      size_t count = 0;
      for (const Decision& decision : t.last.decisions) {
        const auto* told = std::get_if<TellToLeave>(&decision);
        if (told == nullptr) continue;
        CPPUNIT_ASSERT(told->reason == LeaveReason::kPreempt);
        ++count;
      }
      return count;
    }
    std::vector<JobId> leaving() const {
      std::vector<JobId> jobs;
      for (const auto& [key, a] : t.books.attempts)
        if (a.state == AttemptState::kLeaving) jobs.push_back(key.job);
      return jobs;
    }
    // All who were told to leave have left, having saved or not; who got a place has started.
    void leave(bool saved = true) {
      for (const JobId job : leaving()) {
        const uint64_t next = t.record(job).generation + 1;
        if (saved) t.apply(CheckpointStored{t.key(job), t.machine_of(job), next, 1});
        t.end(job, EndReason::kPreempted, 5 * kSecond, 5 * kSecond);
      }
      for (const auto& [id, job] : std::map(t.books.jobs))
        if (job.state == JobState::kPlaced) t.start(id);
    }
    uint64_t held(const std::string& user) const {
      uint64_t count = 0;
      for (const auto& [id, job] : t.books.jobs)
        if (job.user == user && t.machine_of(id) != 0) ++count;
      return count;
    }
    TestPool t;
    JobId bobs = 0;
  };

  // Otherwise a user who holds and releases his job, or removes and submits it anew, could have
  // others evicted again and again.
  void who_forgoes_a_place_must_wait_for_one() {
    for (const bool holds : {true, false}) {
      Taken pool(with("up-down", "up-down"));
      TestPool& t = pool.t;
      JobId job = t.submit("ann");
      CPPUNIT_ASSERT_EQUAL(size_t{1}, pool.tick());
      t.apply(holds ? Event(JobsHeld{{job}, {}, "ann"}) : Event(JobsRemoved{{job}, {}, "ann"}));
      pool.leave();
      if (holds) {
        t.apply(JobsReleased{{job}});
      } else {
        job = t.submit("ann");
      }
      CPPUNIT_ASSERT(t.books.users.at("ann").has_forgone);
      for (int i = 0; i < 20; ++i) CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.tick());
      // She gets a place when one is free, and then others may give way to her again.
      t.end(pool.bobs, EndReason::kDone);
      CPPUNIT_ASSERT(t.state(job) == JobState::kPlaced);
      CPPUNIT_ASSERT(!t.books.users.at("ann").has_forgone);
      t.submit("bob");
      t.start(job);
      t.end(job, EndReason::kDone);
      t.submit("ann");
      size_t told = 0;
      for (int i = 0; i < 10 && told == 0; ++i) told = pool.tick();
      CPPUNIT_ASSERT_EQUAL(size_t{1}, told);
    }
  }

  void nobody_gives_way_by_default() {
    CPPUNIT_ASSERT_EQUAL(std::string("none"), Parameters().victim_policy);
    Taken pool(with("none"));
    pool.t.submit("ann", 4);
    for (int i = 0; i < 100; ++i) CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.tick());
  }

  void the_place_is_for_whom_it_was_taken() {
    for (const std::string& policy : known_victim_policies()) {
      if (policy == "none") continue;
      Taken pool(with(policy));
      TestPool& t = pool.t;
      const bool own = policy == "priority";
      const JobId first = t.submit("ida");  // is the first of the queue
      const JobId job = t.submit(own ? "bob" : "ann", 1, with_priority(own ? 1 : 0));
      if (!own) t.apply(JobsRemoved{{first}});
      pool.tick();
      CPPUNIT_ASSERT_EQUAL_MESSAGE(policy, size_t{1}, pool.leaving().size());
      const JobId victim = pool.leaving().front();
      const MachineId place = t.machine_of(victim);
      CPPUNIT_ASSERT_EQUAL(job, t.pool.machine(place)->promised);
      CPPUNIT_ASSERT_EQUAL(job, t.pool.attempt(victim)->preempted_for);
      CPPUNIT_ASSERT_EQUAL(std::string("a place on " + t.books.machines.at(place).name +
                                       " is promised to it: it starts when others have made room "
                                       "there"),
                           t.pool.why(job, t.now));
      pool.leave();
      CPPUNIT_ASSERT_EQUAL(place, t.machine_of(job));
      CPPUNIT_ASSERT(t.state(victim) == JobState::kWaiting);
      if (own) CPPUNIT_ASSERT(t.state(first) == JobState::kWaiting);
    }
  }

  void charged_as_an_eviction() {
    Taken pool(with("up-down"), 1);
    TestPool& t = pool.t;
    const JobId job = t.submit("ann");
    pool.tick();
    const AttemptKey victim = t.key(pool.bobs);
    pool.leave();
    const JobRecord& left = t.record(pool.bobs);
    CPPUNIT_ASSERT_EQUAL(1u, left.evictions);
    CPPUNIT_ASSERT_EQUAL(5 * kSecond, left.cpu_kept);
    CPPUNIT_ASSERT_EQUAL(
        std::string("attempt 1 pre-empted: gave way (for job " + std::to_string(job) +
                    " of ann: ann holds no place, up-down index -1 against 1)"),
        left.reason);
    const UseRecord& use = t.books.uses.at(victim);
    CPPUNIT_ASSERT(use.ended == EndReason::kPreempted);
    CPPUNIT_ASSERT_EQUAL(5 * kSecond, use.charged);
  }

  // The machine has not received the order: its renewal says so.
  void told_again_why() {
    Taken pool(with("fair-share"), 1);
    pool.t.submit("ann");
    // One core is in use, half of which is due to each: nobody gives way.
    CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.tick());
    Taken two(with("fair-share"), 2);
    two.t.submit("ann");
    CPPUNIT_ASSERT_EQUAL(size_t{1}, two.tick());
    const JobId victim = two.leaving().front();
    two.t.renew(victim);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, two.told());
    Pool restored(with("fair-share"));
    CPPUNIT_ASSERT(restored.restore(two.t.books.snapshot()).empty());
    restored.apply(ServerStarted{}, two.t.now);
    const Outcome outcome = restored.apply(
        Renewed{two.t.machine_of(victim), false, {{two.t.key(victim), AttemptState::kRunning}}},
        two.t.now);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, outcome.decisions.size());
    CPPUNIT_ASSERT(std::get<TellToLeave>(outcome.decisions[0]).reason == LeaveReason::kPreempt);
  }

  void the_newest_gives_way() {
    Taken pool(with("up-down"), 3);
    TestPool& t = pool.t;
    t.end(pool.bobs + 1, EndReason::kDone);
    const JobId newest = t.submit("bob");
    t.start(newest);
    t.pass(5 * Parameters().tick);
    t.submit("ann");
    pool.tick();
    CPPUNIT_ASSERT_EQUAL(newest, pool.leaving().front());
  }

  void by_index_only_who_has_none() {
    Taken pool(with("up-down"));
    pool.t.submit("ann", 3);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, pool.tick());
    // It has not left yet, and then she has a place.
    CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.tick());
    pool.leave();
    for (int i = 0; i < 20; ++i) CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.tick());
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, pool.held("ann"));
  }

  // Table 4.2: the smallest index of those who wait, against the largest of those who hold.
  void by_index_of_the_largest() {
    TestPool t(with("up-down", "up-down"));
    for (const char* name : {"a", "b", "c"}) t.join(name);
    const JobId light = t.submit("light");
    const JobId heavy = t.submit("heavy", 2);
    for (const JobId job : {light, heavy, heavy + 1}) t.start(job);
    for (int i = 0; i < 5; ++i) t.pass(60 * kSecond), t.apply(Ticked());
    CPPUNIT_ASSERT(t.books.users.at("heavy").index > t.books.users.at("light").index);
    t.submit("ann");
    t.apply(Ticked());
    CPPUNIT_ASSERT(t.pool.attempt(light)->preempted_for == 0);
    CPPUNIT_ASSERT(t.pool.attempt(heavy)->preempted_for != 0 ||
                   t.pool.attempt(heavy + 1)->preempted_for != 0);
  }

  void by_share_until_all_have_theirs() {
    Taken pool(with("fair-share"), 9);
    pool.t.submit("ann", 100);
    pool.t.submit("cat", 100);
    // One each at a tick, until each holds three.
    for (int i = 0; i < 3; ++i)
      CPPUNIT_ASSERT_EQUAL_MESSAGE(std::to_string(i), size_t{2}, pool.tick());
    CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.tick());
    pool.leave();
    CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.tick());
    for (const char* name : {"ann", "bob", "cat"})
      CPPUNIT_ASSERT_EQUAL_MESSAGE(name, uint64_t{3}, pool.held(name));
  }

  void by_share_as_shares_say() {
    Taken pool(with("fair-share"), 8);
    pool.t.apply(SharesSet{"bob", 3});
    pool.t.submit("ann", 100);
    for (int i = 0; i < 10; ++i) pool.tick(), pool.leave();
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, pool.held("ann"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{6}, pool.held("bob"));
  }

  void by_share_nobody_falls_below_his() {
    Taken pool(with("fair-share"), 3);
    pool.t.submit("ann", 3);
    for (int i = 0; i < 10; ++i) pool.tick(), pool.leave();
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, pool.held("ann"));  // of one and a half
  }

  void by_priority_of_ones_own() {
    Taken pool(with("priority"), 2);
    TestPool& t = pool.t;
    t.submit("ann", 1, with_priority(100));
    CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.tick());
    t.submit("bob", 1, with_priority(0));
    CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.tick());
    const JobId job = t.submit("bob", 1, with_priority(7));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, pool.tick());
    pool.leave();
    CPPUNIT_ASSERT(t.machine_of(job) != 0);
    t.pass(5 * Parameters().tick);
    t.apply(PrioritySet{{JobRange(pool.bobs, 4)}, 8});
    CPPUNIT_ASSERT_EQUAL(size_t{1}, pool.tick());
    CPPUNIT_ASSERT_EQUAL(job, pool.leaving().front());
  }

  void only_where_the_job_fits() {
    Taken pool(with("up-down"), 2);
    Submitted::Job other;
    other.needs.os = "plan9";
    pool.t.submit("ann", 1, other);
    CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.tick());
    Submitted::Job wide;
    wide.needs.cores = 1000;
    pool.t.submit("cat", 1, wide);
    CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.tick());
  }

  void not_from_who_is_leaving_or_delivering() {
    Taken pool(with("up-down"), 2);
    TestPool& t = pool.t;
    t.renew(pool.bobs, AttemptState::kDelivering);
    t.apply(JobsHeld{{pool.bobs + 1}});
    t.submit("ann");
    CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.tick());
  }

  void not_while_a_machine_is_idle() {
    Taken pool(with("up-down"), 2);
    TestPool& t = pool.t;
    const JobId job = t.submit("ann");
    t.join("new");
    CPPUNIT_ASSERT(t.machine_of(job) != 0);
    CPPUNIT_ASSERT_EQUAL(size_t{0}, pool.tick());
  }

  // Two users with endless jobs: whoever gave way does not take it back.
  void none_ping_pongs() {
    Taken pool(with("fair-share", "fair-share"), 5);
    pool.t.submit("bob", 100);
    pool.t.submit("ann", 100);
    size_t told = 0;
    for (int i = 0; i < 100; ++i) told += pool.tick(), pool.leave();
    CPPUNIT_ASSERT_EQUAL(size_t{2}, told);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, pool.held("ann"));
  }

  void not_at_once() {
    TestPool t(with("up-down"));
    t.join("m");
    const JobId job = t.submit("bob");
    t.submit("ann");
    const auto tick = [&] {
      t.pass(60 * kSecond);
      t.apply(Ticked());
      return t.pool.attempt(job)->preempted_for != 0;
    };
    for (int i = 0; i < 10; ++i) CPPUNIT_ASSERT(!tick());  // it has not started
    t.start(job);
    for (int i = 0; i < 4; ++i) CPPUNIT_ASSERT(!tick());
    CPPUNIT_ASSERT(tick());
  }

  // Eight users take turns on four machines; a job takes ten minutes and saves nothing.
  void jobs_that_save_nothing_end() {
    for (const std::string& policy : known_victim_policies()) {
      TestPool t(with(policy, "up-down"));
      for (int i = 0; i < 4; ++i) t.join("m" + std::to_string(i));
      uint64_t done = 0, evicted = 0;
      const std::vector<std::string> users = {"a", "b", "c", "d", "e", "f", "g", "h"};
      for (const std::string& user : users) t.submit(user);
      for (int minute = 0; minute < 1000; ++minute) {
        t.pass(60 * kSecond);
        t.apply(Ticked());
        for (const auto& [key, a] : std::map(t.books.attempts)) {
          if (a.state == AttemptState::kEnded) continue;
          const std::string user = t.record(key.job).user;
          if (a.preempted_for != 0) {
            t.end(key.job, EndReason::kPreempted, 60 * kSecond, 0);
            ++evicted;
          } else if (a.started == 0) {
            t.start(key.job);
          } else if (t.now - a.started >= 600 * kSecond) {
            t.end(key.job, EndReason::kDone, 600 * kSecond);
            t.submit(user);
            ++done;
          }
        }
      }
      const std::string what = policy + ": " + std::to_string(done) + " done, " +
                               std::to_string(evicted) + " pre-empted";
      CPPUNIT_ASSERT_MESSAGE(what, done > 200);  // without pre-emption 400, less a minute for each
      CPPUNIT_ASSERT_MESSAGE(what, evicted <= done + users.size());
    }
  }

  // Whose job is evicted returns to the head of the queue, as with fifo.
  void not_the_same_one_always() {
    Taken pool(with("fair-share"));
    TestPool& t = pool.t;
    for (int i = 0; i < 12; ++i) {
      const JobId short_one = t.submit("ann");
      for (int j = 0; j < 6; ++j) pool.tick(), pool.leave();
      CPPUNIT_ASSERT(t.machine_of(short_one) != 0);
      t.end(short_one, EndReason::kDone);
      pool.leave();
    }
    for (JobId job = pool.bobs; job < pool.bobs + 4; ++job)
      CPPUNIT_ASSERT_EQUAL_MESSAGE(std::to_string(job), 3u, t.record(job).evictions);
  }

  void who_fits_nowhere_hinders_nobody() {
    for (const char* policy : {"up-down", "fair-share"}) {
      Taken pool(with(policy), 300);
      Submitted::Job other;
      other.needs.os = "plan9";
      for (int i = 0; i < 6; ++i) pool.t.submit("ann" + std::to_string(i), 1, other);
      const JobId job = pool.t.submit("cat");
      pool.tick();
      pool.leave();
      CPPUNIT_ASSERT_MESSAGE(policy, pool.t.machine_of(job) != 0);
    }
  }

  void not_where_room_is_made_anyway() {
    TestPool t(with("up-down"));
    const MachineId m = t.join("m", 2);
    const JobId bobs = t.submit("bob", 2);
    t.start(bobs);
    t.start(bobs + 1);
    t.pass(5 * Parameters().tick);
    t.submit("ann");
    t.apply(JobsHeld{{bobs}});
    t.apply(Ticked());
    CPPUNIT_ASSERT_EQUAL(JobId{0}, t.pool.attempt(bobs + 1)->preempted_for);
    CPPUNIT_ASSERT_EQUAL(JobId{0}, t.pool.machine(m)->promised);
    // Nor while the machine pauses after a refusal.
    t.end(bobs, EndReason::kHeld);
    const JobId anns = bobs + 2;
    t.apply(OrderAnswered{t.key(anns), OrderAnswered::Answer::kRefused, "not now"});
    t.apply(Ticked());
    CPPUNIT_ASSERT_EQUAL(JobId{0}, t.pool.attempt(bobs + 1)->preempted_for);
  }

  void the_smallest_that_is_large_enough() {
    TestPool t(with("up-down"));
    t.join("small");
    const JobId one = t.submit("bob");
    t.join({0, "large", "linux", "x86_64", 64, 64, 1ull << 40, 1ull << 40});
    Submitted::Job wide;
    wide.needs.cores = 64;
    t.pass(kSecond);
    const JobId all = t.submit("bob", 1, wide);
    t.start(one);
    t.start(all);
    t.pass(5 * Parameters().tick);
    t.submit("ann");
    t.apply(Ticked());
    CPPUNIT_ASSERT(t.pool.attempt(one)->preempted_for != 0);
    CPPUNIT_ASSERT_EQUAL(JobId{0}, t.pool.attempt(all)->preempted_for);
  }

  void an_unknown_one_is_refused() {
    CPPUNIT_ASSERT_EQUAL(std::string("victim_policy 'nobody' is not known; known: none, up-down, "
                                     "fair-share, priority"),
                         problem_with(with("nobody")));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(PreemptionTest);

}  // namespace
}  // namespace sublet::scheduling
