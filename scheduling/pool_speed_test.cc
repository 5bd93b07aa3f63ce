// How fast the brain is, and what a queued job weighs. The figures are printed;
// only what does not depend on the machine's mood is checked.
#include <cppunit/extensions/HelperMacros.h>
#include <malloc.h>

#include <chrono>
#include <cstdio>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;

class PoolSpeedTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PoolSpeedTest);
  CPPUNIT_TEST(events_a_second);
  CPPUNIT_TEST(bytes_of_a_queued_job);
  CPPUNIT_TEST_SUITE_END();

  static void submit(Pool& pool, Micros now, uint64_t jobs) {
    for (uint64_t user = 0; user < 10; ++user) {
      Submitted s{1, "user" + std::to_string(user), "desk" + std::to_string(user), {}};
      s.jobs.resize(jobs / 10);
      for (size_t i = 0; i < s.jobs.size(); ++i) s.jobs[i].needs.memory = (1 + i % 4) << 20;
      pool.apply(s, now);
    }
  }

  // Jobs go through 100 machines while `queued` wait: accepted, started, ended
  // (and the next one placed); one is submitted for each that ends.
  static double rate(uint64_t queued, uint64_t jobs) {
    Pool pool{Parameters()};
    Micros now = testing::kStart;
    submit(pool, now, queued);
    std::vector<StartAttempt> orders;
    const auto take = [&orders](const Outcome& outcome) {
      for (const Decision& d : outcome.decisions) orders.push_back(std::get<StartAttempt>(d));
    };
    for (int i = 0; i < 100; ++i) {
      const MachineId m = pool.apply(MachineJoined{0, "m" + std::to_string(i), "linux", "x86_64", 1,
                                                   1, 1u << 30, 0},
                                     now)
                              .answer.machine;
      take(pool.apply(MachineReported{m, true, 0, 0}, now));
    }
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t done = 0; done < jobs; ++done) {
      const StartAttempt order = orders[done];
      now += 1000;
      pool.apply(OrderAnswered{order.key, OrderAnswered::Answer::kAccepted, ""}, now);
      pool.apply(AttemptStarted{order.key, order.machine}, now);
      pool.apply(Submitted{1, "user" + std::to_string(done % 10), "desk", {Submitted::Job()}}, now);
      take(pool.apply(AttemptEnded{order.key, order.machine, EndReason::kDone, "", 1000}, now));
      if (done % 1000 == 0) pool.apply(Ticked(), now);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    CPPUNIT_ASSERT_EQUAL(queued - 100, pool.waiting());
    return static_cast<double>(4 * jobs) / took.count();
  }

 public:
  void events_a_second() {
    const double few = rate(1'000, 20'000);
    const double many = rate(100'000, 20'000);
    std::printf(" %.0f events/s with 1 k queued, %.0f with 100 k (ratio %.2f) ", few, many,
                many / few);
  }

  void bytes_of_a_queued_job() {
    constexpr uint64_t kJobs = 100'000;
    Pool pool{Parameters()};
    const size_t before = mallinfo2().uordblks;
    submit(pool, testing::kStart, kJobs);
    const size_t each = (mallinfo2().uordblks - before) / kJobs;
    std::printf(" %zu bytes a queued job ", each);
    CPPUNIT_ASSERT(each <= 2000);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(PoolSpeedTest);
}  // namespace
}  // namespace sublet::scheduling
