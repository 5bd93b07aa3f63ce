// Formulas 3.1 to 3.4 with numbers worked out by hand, alone and in the pool.
#include <cppunit/extensions/HelperMacros.h>

#include <cmath>
#include <limits>

#include "scheduling/fair_share.h"
#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

class FairShare1998Test : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(FairShare1998Test);
  CPPUNIT_TEST(decays_by_half_in_a_half_life);
  CPPUNIT_TEST(tick_adds_charges_to_decayed_usage);
  CPPUNIT_TEST(step_is_usage_times_active_by_shares_squared);
  CPPUNIT_TEST(costs_by_way_of_ending);
  CPPUNIT_TEST(no_attempt_costs_more_than_there_was);
  CPPUNIT_TEST(drift_keeps_the_order);
  CPPUNIT_TEST(usage_decays_while_the_server_is_down);
  CPPUNIT_TEST(pool_follows_the_formulas);
  CPPUNIT_TEST(first_priority_may_be_zero);
  CPPUNIT_TEST(refusal_leaves_the_priority);
  CPPUNIT_TEST(one_to_three_shares_converge);
  CPPUNIT_TEST_SUITE_END();

 public:
  void decays_by_half_in_a_half_life() {
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.5, decay_per_tick(60, 60), 0);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.25, decay_per_tick(120, 60), 0);
    const double k1 = decay_per_tick(60 * kSecond, 24 * 3600 * kSecond);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.5, std::pow(k1, 1440), 1e-12);
  }

  void tick_adds_charges_to_decayed_usage() {
    CPPUNIT_ASSERT_EQUAL(57.0, usage_after_tick(100, 7, 0.5));
    CPPUNIT_ASSERT_EQUAL(7.0, usage_after_tick(0, 7, 0.5));
    CPPUNIT_ASSERT_EQUAL(0.0, usage_after_tick(1.9e-9, 0, 0.5));
    CPPUNIT_ASSERT_EQUAL(57.0, usage_after_ticks(100, 7, 0.5, 1));
    CPPUNIT_ASSERT_EQUAL(57.0 / 8, usage_after_ticks(100, 7, 0.5, 4));
  }

  void step_is_usage_times_active_by_shares_squared() {
    CPPUNIT_ASSERT_EQUAL(100.0 * 4 / 4, priority_step(100, 4, 2));
    CPPUNIT_ASSERT_EQUAL(1600.0, priority_step(100, 4, 0.5));
    CPPUNIT_ASSERT_EQUAL(0.0, priority_step(0, 1000, 1));
  }

  static void expect(EndReason ended, bool all, Micros saved, Micros kept, Micros charged) {
    const Cost cost = cost_of(ended, 100, saved, all);
    CPPUNIT_ASSERT_EQUAL(Micros{100}, cost.used);
    CPPUNIT_ASSERT_EQUAL(kept, cost.kept);
    CPPUNIT_ASSERT_EQUAL(100 - kept, cost.lost);
    CPPUNIT_ASSERT_EQUAL(charged, cost.charged);
  }

  void costs_by_way_of_ending() {
    expect(EndReason::kDone, false, -1, 100, 100);
    for (uint32_t r = 2; r <= 7; ++r) expect(static_cast<EndReason>(r), false, 60, 60, 100);
    for (uint32_t r = 16; r <= 20; ++r) {
      expect(static_cast<EndReason>(r), false, 60, 60, 60);
      expect(static_cast<EndReason>(r), false, -1, 0, 0);
      expect(static_cast<EndReason>(r), true, 60, 60, 100);
    }
    expect(EndReason::kRemoved, false, 60, 60, 100);
    expect(EndReason::kHeld, false, -1, 0, 100);
    expect(EndReason::kSaved, false, 60, 60, 100);
    expect(EndReason::kSuperseded, false, 60, 60, 60);
    expect(EndReason::kLost, false, 200, 100, 100);  // never more saved than used
    CPPUNIT_ASSERT_EQUAL(Micros{0}, cost_of(EndReason::kLost, -5, -1, false).used);
  }

  void no_attempt_costs_more_than_there_was() {
    AttemptEnded end;
    end.cpu = end.cpu_saved = end.wall = std::numeric_limits<Micros>::max();
    limit_cost(end, 10 * kSecond, 4, 15 * kSecond);
    CPPUNIT_ASSERT_EQUAL(20 * kSecond, end.cpu);
    CPPUNIT_ASSERT_EQUAL(20 * kSecond, end.cpu_saved);
    CPPUNIT_ASSERT_EQUAL(5 * kSecond, end.wall);
    end.cpu = 7;
    end.cpu_saved = -1;
    end.wall = -5;
    limit_cost(end, 10 * kSecond, 4, 15 * kSecond);
    CPPUNIT_ASSERT_EQUAL(Micros{7}, end.cpu);
    CPPUNIT_ASSERT_EQUAL(Micros{-1}, end.cpu_saved);
    CPPUNIT_ASSERT_EQUAL(Micros{0}, end.wall);
    limit_cost(end, 15 * kSecond, 4, 10 * kSecond);
    CPPUNIT_ASSERT_EQUAL(Micros{0}, end.cpu);
  }

  void drift_keeps_the_order() {
    const Drift drift(true, 10 * kSecond);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(2.0, drift.value_at(8, 0, 20 * kSecond), 1e-12);
    // 8 at 0 is 4 at 10 s: before a 5 set then, after a 3.
    CPPUNIT_ASSERT(drift.order(8, 0) < drift.order(5, 10 * kSecond));
    CPPUNIT_ASSERT(drift.order(8, 0) > drift.order(3, 10 * kSecond));
    CPPUNIT_ASSERT(drift.order(0, 0) < drift.order(1e-300, 0));
    const Drift off(false, 10 * kSecond);
    CPPUNIT_ASSERT_EQUAL(8.0, off.value_at(8, 0, 20 * kSecond));
    CPPUNIT_ASSERT(off.order(8, 0) > off.order(5, 10 * kSecond));
  }

  // K1 = 1/2, shares 2. ann keeps 100 CPU s: charges 100, usage 100 after a
  // tick, 50 after the next.
  static std::unique_ptr<TestPool> with_usage(Parameters p) {
    p.job_policy = "fair-share-1998";
    p.tick = p.half_life = 60 * kSecond;
    auto made = std::make_unique<TestPool>(p);
    TestPool& t = *made;
    t.apply(SharesSet{"ann", 2});
    t.join("curly");
    const JobId job = t.submit("ann");
    t.start(job);
    t.end(job, EndReason::kDone, 100 * kSecond);
    CPPUNIT_ASSERT_EQUAL(100.0, t.books.users["ann"].charges);
    CPPUNIT_ASSERT_EQUAL(0.0, t.books.users["ann"].usage);
    t.apply(Ticked());
    CPPUNIT_ASSERT_EQUAL(0.0, t.books.users["ann"].charges);
    CPPUNIT_ASSERT_EQUAL(100.0, t.books.users["ann"].usage);
    return made;
  }

  // Down for ten half-lives, and one tick afterwards.
  void usage_decays_while_the_server_is_down() {
    const auto made = with_usage({});
    TestPool& t = *made;
    t.pass(600 * kSecond);
    t.apply(Ticked());
    CPPUNIT_ASSERT_DOUBLES_EQUAL(100.0 / 1024, t.books.users["ann"].usage, 1e-9);
  }

  void pool_follows_the_formulas() {
    const auto made = with_usage({});
    TestPool& t = *made;
    // Three jobs: active is 1, 2, 3; the first is placed at once after the batch.
    const JobId first = t.submit("ann", 3);
    CPPUNIT_ASSERT_EQUAL(100.0 * 1 / 4, t.record(first).share_priority);
    CPPUNIT_ASSERT_EQUAL(100.0 * 2 / 4, t.record(first + 1).share_priority);
    CPPUNIT_ASSERT_EQUAL(100.0 * 3 / 4, t.record(first + 2).share_priority);
    t.start(first);
    t.pass(60 * kSecond);  // one half-life: 25 has drifted to 12.5
    t.apply(Ticked());     // usage 50
    t.report(t.machine_of(first), false);
    t.end(first, EndReason::kOwner, 40 * kSecond, 30 * kSecond);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(12.5 + 50.0 * 3 / 4, t.record(first).share_priority, 1e-9);
    CPPUNIT_ASSERT_EQUAL(30.0, t.books.users["ann"].charges);  // kept work only
    CPPUNIT_ASSERT_EQUAL(10 * kSecond, t.record(first).cpu_lost);
    CPPUNIT_ASSERT_EQUAL(1u, t.record(first).evictions);
    t.apply(Ticked());
    CPPUNIT_ASSERT_EQUAL(50.0 / 2 + 30, t.books.users["ann"].usage);
    const auto standing = t.pool.standings(t.now).front();
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, standing.queued);
    // first in line: 50 halved by drift is 25, before 37.5 and 12.5 + 37.5
    CPPUNIT_ASSERT_DOUBLES_EQUAL(25, standing.best_priority, 1e-9);
  }

  void first_priority_may_be_zero() {
    Parameters p;
    p.initial_priority_zero = true;
    const auto made = with_usage(p);
    TestPool& t = *made;
    const JobId job = t.submit("ann", 2);
    CPPUNIT_ASSERT_EQUAL(0.0, t.record(job + 1).share_priority);
  }

  void refusal_leaves_the_priority() {
    const auto made = with_usage({});
    TestPool& t = *made;
    const JobId job = t.submit("ann", 1, {{}, 0, 3});
    const double before = t.record(job).share_priority;
    t.pass(kSecond);
    t.apply(OrderAnswered{t.key(job), OrderAnswered::Answer::kRefused, "owner is back"});
    CPPUNIT_ASSERT(t.state(job) == JobState::kWaiting);
    CPPUNIT_ASSERT_EQUAL(before, t.record(job).share_priority);
    CPPUNIT_ASSERT_EQUAL(testing::kStart, t.record(job).share_priority_at);
    CPPUNIT_ASSERT_EQUAL(3u, t.record(job).retries_left);
    CPPUNIT_ASSERT_EQUAL(0u, t.record(job).evictions);
  }

  void one_to_three_shares_converge();
};

// Eight machines, two users who always have 40 jobs waiting, each job in pieces
// of 10 CPU s between evictions. Virtual time.
void FairShare1998Test::one_to_three_shares_converge() {
  Parameters p;
  p.job_policy = "fair-share-1998";
  p.tick = 10 * kSecond;
  p.half_life = 600 * kSecond;
  TestPool t(p);
  t.apply(SharesSet{"ann", 1});
  t.apply(SharesSet{"bob", 3});
  std::vector<MachineId> machines;
  for (int i = 0; i < 8; ++i) machines.push_back(t.join("m" + std::to_string(i)));
  t.submit("ann", 48, {}, "a");
  t.submit("bob", 48, {}, "b");
  std::map<std::string, double> cpu;
  for (int round = 0; round < 4000; ++round) {
    t.pass(10 * kSecond / 8);
    const MachineId machine = machines[static_cast<size_t>(round) % 8];
    const auto view = t.pool.machine(machine);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, view->running.size());
    const JobId job = view->running.front().job;
    if (round > 2000) cpu[t.pool.job(job)->user] += 10;
    t.report(machine, true);
    t.end(job, EndReason::kOwner, 10 * kSecond, 10 * kSecond);
    if (round % 8 == 7) t.apply(Ticked());
  }
  const double ratio = cpu["bob"] / cpu["ann"];
  std::printf("fair share 1:3 gave 1:%.2f ", ratio);
  CPPUNIT_ASSERT(ratio > 2.5 && ratio < 3.5);
}

CPPUNIT_TEST_SUITE_REGISTRATION(FairShare1998Test);
}  // namespace
}  // namespace sublet::scheduling
