// The index of the policy "up-down": its tables by hand, and that it is bounded and returns to 0.
#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <map>
#include <string>
#include <vector>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

Parameters up_down() {
  Parameters p;
  p.job_policy = "up-down";
  return p;
}

class UpDownTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(UpDownTest);
  CPPUNIT_TEST(the_trace_of_figure_4_2);
  CPPUNIT_TEST(credit_grows_with_the_distance);
  CPPUNIT_TEST(who_waits_comes_before_who_holds);
  CPPUNIT_TEST(capacity_that_appears_counts);
  CPPUNIT_TEST(what_appears_between_two_polls_counts_once);
  CPPUNIT_TEST(a_restart_forgets_no_update);
  CPPUNIT_TEST(indices_return_to_zero);
  CPPUNIT_TEST(the_case_of_two_stations);
  CPPUNIT_TEST_SUITE_END();

  static int64_t index(const TestPool& t, const std::string& user) {
    return t.books.users.at(user).index;
  }
  static void tick(TestPool& t, int times = 1) {
    for (int i = 0; i < times; ++i) t.apply(Ticked());
  }
  // The next of the polls, of which there are five in a tick of a minute.
  static void poll(TestPool& t) {
    t.pass(12 * kSecond);
    t.apply(TimePassed());
  }

  // Remote execution time / time in which a user wanted the processor and had none.
  struct Ratios {
    double heavy = 0, light = 0;
  };
  // Mutka, 4.4: two stations, each available half of the time, and one remote processor. The heavy
  // user always wants it, the light one while his own station is not available. `shared`: a place
  // lasts for a tick; otherwise until it is taken.
  static Ratios of_two_stations(const Parameters& p, bool shared) {
    constexpr int kPhase = 16, kPhases = 100;
    TestPool t(p);
    t.join("remote");
    std::map<std::string, int> had, waited;
    std::map<std::string, JobId> job;
    for (int at = 0; at < kPhases * kPhase; ++at) {
      const bool light_wants = at / kPhase % 2 == 1;
      if (!light_wants && job.contains("light")) {
        const JobId light = job.extract("light").mapped();
        t.apply(JobsRemoved{{light}});
        if (t.machine_of(light) != 0) t.end(light, EndReason::kRemoved);
      }
      for (const char* user : {"heavy", "light"})
        if (user == std::string("heavy") || light_wants)
          if (!job.contains(user)) job[user] = t.submit(user);
      for (const auto& [user, one] : job)
        if (t.state(one) == JobState::kPlaced) t.start(one);
      for (const auto& [user, one] : job) ++(t.machine_of(one) != 0 ? had : waited)[user];
      t.pass(60 * kSecond);
      tick(t);
      for (const auto& [user, one] : std::map(job)) {
        if (t.machine_of(one) == 0) continue;
        if (shared) {
          job[user] = t.submit(user);
          t.end(one, EndReason::kDone);
          break;
        }
        if (t.pool.attempt(one)->preempted_for == 0) continue;
        const uint64_t next = t.record(one).generation + 1;
        t.apply(CheckpointStored{t.key(one), t.machine_of(one), next, 1});
        t.end(one, EndReason::kPreempted);
      }
    }
    return {1.0 * had["heavy"] / waited["heavy"], 1.0 * had["light"] / waited["light"]};
  }

  // Processor sharing has no memory: the heavy user's ratio is 3, the light one's 1. Up-Down, for
  // which the source gives no figures here, is to serve the light one better at his expense.
  void the_case_of_two_stations() {
    Parameters p;
    p.job_policy = "round-robin";
    const Ratios sharing = of_two_stations(p, true);
    CPPUNIT_ASSERT_EQUAL(3.0, sharing.heavy);
    CPPUNIT_ASSERT_EQUAL(1.0, sharing.light);
    p.job_policy = p.victim_policy = "up-down";
    const Ratios up_down = of_two_stations(p, false);
    CPPUNIT_ASSERT_MESSAGE(std::to_string(up_down.light), up_down.light > 1);
    CPPUNIT_ASSERT_MESSAGE(std::to_string(up_down.heavy), up_down.heavy < 3);
  }

  // 0 -> waiting falls by g -> one node rises by f -> two by 2f -> none wanted: back to 0 by h.
  void the_trace_of_figure_4_2() {
    TestPool t(up_down());
    const MachineId m = t.join("m", 2, false);
    const JobId first = t.submit("ann");
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, index(t, "ann"));
    tick(t, 4);  // g is 1 while nobody is lower
    CPPUNIT_ASSERT_EQUAL(int64_t{-4}, index(t, "ann"));
    t.report(m, true);  // capacity appears, and she has it: the next poll charges her
    poll(t);
    CPPUNIT_ASSERT_EQUAL(int64_t{-3}, index(t, "ann"));
    tick(t, 5);
    CPPUNIT_ASSERT_EQUAL(int64_t{2}, index(t, "ann"));
    const JobId second = t.submit("ann");
    tick(t, 3);
    CPPUNIT_ASSERT_EQUAL(int64_t{8}, index(t, "ann"));
    t.end(first, EndReason::kDone);  // one is left
    poll(t);
    CPPUNIT_ASSERT_EQUAL(int64_t{9}, index(t, "ann"));
    t.end(second, EndReason::kDone);  // none: falls by h
    poll(t);
    CPPUNIT_ASSERT_EQUAL(int64_t{8}, index(t, "ann"));
    tick(t, 8);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, index(t, "ann"));
    tick(t);
    CPPUNIT_ASSERT(!t.books.users.contains("ann") || index(t, "ann") == 0);
  }

  // Table 4.5: 3 from a distance of 6 on, 2 from 3 on, else 1.
  void credit_grows_with_the_distance() {
    TestPool t(up_down());
    const MachineId m = t.join("m");
    const JobId job = t.submit("ann");
    tick(t, 10);
    CPPUNIT_ASSERT_EQUAL(int64_t{10}, index(t, "ann"));
    t.submit("ann");  // she is to wait with an index of 10
    t.apply(MachineReported{m, false, 0, 0});
    t.end(job, EndReason::kDone);
    poll(t);
    CPPUNIT_ASSERT_EQUAL(int64_t{7}, index(t, "ann"));
    std::vector<int64_t> seen;
    for (int i = 0; i < 5; ++i) {
      tick(t);
      seen.push_back(index(t, "ann"));
    }
    CPPUNIT_ASSERT((seen == std::vector<int64_t>{4, 2, 1, 0, -1}));
  }

  void who_waits_comes_before_who_holds() {
    TestPool t(up_down());
    t.join("m");
    const JobId heavy = t.submit("ann", 20);
    tick(t, 5);
    const JobId light = t.submit("bob");
    tick(t);
    t.end(heavy, EndReason::kDone);
    CPPUNIT_ASSERT(t.machine_of(light) != 0);
    CPPUNIT_ASSERT_EQUAL(std::string("first in the queue: bob, up-down index -1; machine m idle "
                                     "for 0 s"),
                         t.pool.attempt(light)->reason.text());
  }

  void capacity_that_appears_counts() {
    TestPool t(up_down());
    const MachineId m = t.join("m", 1, false);
    Submitted::Job unfit;
    unfit.needs.os = "plan9";
    t.submit("ann", 1, unfit);
    t.report(m, true);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, index(t, "ann"));
    poll(t);
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, index(t, "ann"));
    t.report(m, true);  // it was there before
    poll(t);
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, index(t, "ann"));
  }

  void what_appears_between_two_polls_counts_once() {
    TestPool t(up_down());
    tick(t);
    Submitted::Job unfit;
    unfit.needs.os = "plan9";
    t.submit("ann", 1, unfit);
    t.join("a");
    t.pass(11 * kSecond);
    t.join("b");
    t.apply(TimePassed());
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, index(t, "ann"));
    CPPUNIT_ASSERT_EQUAL(testing::kStart + 12 * kSecond, *t.pool.next_deadline());
    CPPUNIT_ASSERT(t.to_next_deadline());
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, index(t, "ann"));
    t.join("c");
    tick(t);  // counts it
    poll(t);
    CPPUNIT_ASSERT_EQUAL(int64_t{-2}, index(t, "ann"));
  }

  void a_restart_forgets_no_update() {
    TestPool t(up_down());
    tick(t);
    Submitted::Job unfit;
    unfit.needs.os = "plan9";
    t.submit("ann", 1, unfit);
    t.join("m");
    Pool restored(up_down());
    restored.restore(t.books.snapshot());
    restored.apply(ServerStarted(), t.now);
    CPPUNIT_ASSERT_EQUAL(testing::kStart + 12 * kSecond, *restored.next_deadline());
    const Outcome outcome = restored.apply(TimePassed(), *restored.next_deadline());
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, std::get<UserRecord>(outcome.records.at(0)).index);
  }

  // Whatever happened, once nobody has jobs each index is 0 after as many updates as it was
  // away from it; and none was ever further away than updates times slots.
  void indices_return_to_zero() {
    CPPUNIT_ASSERT(rc::check("indices are bounded and return to 0", [](std::vector<uint8_t> steps) {
      TestPool t(up_down());
      t.join("m", 2);
      JobId last = 0;
      int64_t most = 0;
      for (const uint8_t step : steps) {
        const std::string user(1, static_cast<char>('a' + step % 3));
        if (step % 4 == 0) {
          last = t.submit(user, 1 + step % 3);
        } else if (step % 4 == 1 && last != 0 && t.machine_of(last) != 0) {
          t.end(last, EndReason::kDone);
        } else {
          tick(t);
        }
        most += 3;
        for (const auto& [name, record] : t.books.users)
          RC_ASSERT(record.index <= most && record.index >= -most);
      }
      t.apply(JobsRemoved{{JobRange{1, 1000}}, {}, "root"});
      for (JobId id = 1; id < t.pool.counters().next_job; ++id)
        if (t.machine_of(id) != 0) t.end(id, EndReason::kRemoved);
      tick(t, static_cast<int>(most) + 1);
      for (const auto& [name, record] : t.books.users) RC_ASSERT(record.index == 0);
    }));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(UpDownTest);

}  // namespace
}  // namespace sublet::scheduling
