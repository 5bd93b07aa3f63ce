#include "client/staging/pace.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <future>

#include "client/workers.h"

namespace sublet::client {
namespace {

constexpr int64_t kMs = 1'000'000;

class PaceTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PaceTest);
  CPPUNIT_TEST(a_burst_then_a_share_of_a_core);
  CPPUNIT_TEST(nobody_is_held_back_without_an_owner);
  CPPUNIT_TEST(work_is_measured);
  CPPUNIT_TEST(workers_can_be_light);
  CPPUNIT_TEST_SUITE_END();

  std::atomic<bool> away_{false};
  std::atomic<bool> stop_{false};

  void a_burst_then_a_share_of_a_core() {
    Pace pace(0.1, away_);
    const int64_t now = 1'000'000 * kMs;
    pace.used(50 * kMs, now);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, pace.pause_ns(now));
    pace.used(3 * kMs, now);
    CPPUNIT_ASSERT_EQUAL(30 * kMs, pace.pause_ns(now));
    CPPUNIT_ASSERT_EQUAL(10 * kMs, pace.pause_ns(now + 20 * kMs));
    // Over a long time the share is kept.
    int64_t at = now, cpu = 0;
    for (int i = 0; i < 1000; ++i) {
      at += pace.pause_ns(at);
      pace.used(2 * kMs, at);
      cpu += 2 * kMs;
    }
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.1, static_cast<double>(cpu) / static_cast<double>(at - now),
                                 0.01);
    // A long rest allows no more than one burst.
    at += 3'600'000 * kMs;
    pace.used(51 * kMs, at);
    CPPUNIT_ASSERT_EQUAL(10 * kMs, pace.pause_ns(at));
  }

  void nobody_is_held_back_without_an_owner() {
    Pace pace(0.1, away_);
    away_ = true;
    pace.used(1'000'000 * kMs, 7);
    away_ = false;
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, pace.pause_ns(7));
    pace.used(1'000'000 * kMs, 7);
    away_ = true;
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, pace.pause_ns(7));
    pace.wait(stop_);  // returns
    away_ = false;
    stop_ = true;
    pace.wait(stop_);  // returns
  }

  void work_is_measured() {
    Pace pace(0.001, away_);
    auto read = [](clockid_t clock) {
      timespec time = {};
      clock_gettime(clock, &time);
      return time.tv_sec * 1000 * kMs + time.tv_nsec;
    };
    {
      PacedWork work(pace, stop_);
      int64_t begun = read(CLOCK_THREAD_CPUTIME_ID);
      while (read(CLOCK_THREAD_CPUTIME_ID) < begun + 60 * kMs) {
      }
    }
    // 10 ms beyond the burst are paid off in 10 s.
    int64_t pause = pace.pause_ns(read(CLOCK_BOOTTIME));
    CPPUNIT_ASSERT(pause > 5'000 * kMs && pause < 600'000 * kMs);
  }

  // Only the threads of that pool get the nice value.
  void workers_can_be_light() {
    auto nice_of = [](Workers& workers) {
      std::promise<int> nice;
      workers.post([&] { nice.set_value(getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()))); });
      return nice.get_future().get();
    };
    int own = getpriority(PRIO_PROCESS, 0);
    Workers light(1, 19), normal(1);
    CPPUNIT_ASSERT_EQUAL(19, nice_of(light));
    CPPUNIT_ASSERT_EQUAL(own, nice_of(normal));
    CPPUNIT_ASSERT_EQUAL(own, getpriority(PRIO_PROCESS, 0));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(PaceTest);

}  // namespace
}  // namespace sublet::client
