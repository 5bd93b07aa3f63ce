#include "client/workers.h"

#include <cppunit/extensions/HelperMacros.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>

#include "base/clock.h"

namespace sublet::client {
namespace {

constexpr int64_t kNever = 3'600'000;  // ms; longer than any test

class WorkersTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(WorkersTest);
  CPPUNIT_TEST(everything_posted_runs_once);
  CPPUNIT_TEST(as_many_run_at_once_as_there_are_threads);
  CPPUNIT_TEST(stop_while_threads_are_made);
  CPPUNIT_TEST(a_delayed_task_waits_for_its_time);
  CPPUNIT_TEST(one_that_is_due_earlier_does_not_wait);
  CPPUNIT_TEST(hurry_runs_what_waits);
  CPPUNIT_TEST(stop_finishes_what_runs_and_drops_the_rest);
  CPPUNIT_TEST(a_task_that_throws_ends_no_thread);
  CPPUNIT_TEST_SUITE_END();

  // Whether the future becomes ready within a minute.
  static bool comes(std::future<void> what) {
    return what.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  }

  void everything_posted_runs_once() {
    constexpr int kPosters = 4, kEach = 500;
    std::atomic<int> ran{0};
    std::promise<void> all;
    Workers workers(3);
    std::vector<std::thread> posters;
    for (int i = 0; i < kPosters; ++i)
      posters.emplace_back([&] {
        for (int j = 0; j < kEach; ++j)
          workers.post([&] {
            if (++ran == kPosters * kEach) all.set_value();
          });
      });
    for (auto& poster : posters) poster.join();
    CPPUNIT_ASSERT(comes(all.get_future()));
    workers.stop();
    CPPUNIT_ASSERT_EQUAL(kPosters * kEach, ran.load());
  }

  // Each waits until all have begun.
  void as_many_run_at_once_as_there_are_threads() {
    constexpr int kThreads = 5;
    std::atomic<int> begun{0}, ran{0};
    std::promise<void> all, done;
    const std::shared_future<void> go(all.get_future());
    Workers workers(kThreads);
    for (int i = 0; i < kThreads; ++i)
      workers.post([&] {
        if (++begun == kThreads) all.set_value();
        CPPUNIT_ASSERT(go.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
        if (++ran == kThreads) done.set_value();
      });
    CPPUNIT_ASSERT(comes(done.get_future()));
  }

  void stop_while_threads_are_made() {
    for (int i = 0; i < 200; ++i) {
      Workers workers(8);
      std::atomic<int> ran{0};
      for (int j = 0; j < 20; ++j) workers.post([&] { ++ran; });
      workers.stop();
      CPPUNIT_ASSERT(ran <= 20);
      workers.post([&] { ran = 1000; });  // dropped
    }
  }

  void a_delayed_task_waits_for_its_time() {
    Workers workers(2);
    const int64_t due = system_clock().boot_ns() + 50'000'000;
    int64_t at = 0;
    std::promise<void> done;
    workers.post(
        [&] {
          at = system_clock().boot_ns();
          done.set_value();
        },
        50);
    CPPUNIT_ASSERT(comes(done.get_future()));
    CPPUNIT_ASSERT(at >= due);
  }

  void one_that_is_due_earlier_does_not_wait() {
    Workers workers(2);
    std::promise<void> later, sooner, now;
    workers.post([] {}, kNever);
    workers.post([&] { later.set_value(); }, 40);
    workers.post([&] { sooner.set_value(); }, 20);
    workers.post([&] { now.set_value(); });
    CPPUNIT_ASSERT(comes(now.get_future()));
    CPPUNIT_ASSERT(comes(sooner.get_future()));
    CPPUNIT_ASSERT(comes(later.get_future()));
  }

  void hurry_runs_what_waits() {
    Workers workers(2);
    std::promise<void> first, second;
    workers.post([&] { first.set_value(); }, kNever);
    workers.post([&] { second.set_value(); }, kNever);
    workers.hurry();
    CPPUNIT_ASSERT(comes(first.get_future()));
    CPPUNIT_ASSERT(comes(second.get_future()));
  }

  void stop_finishes_what_runs_and_drops_the_rest() {
    Workers workers(1);
    std::promise<void> running, go_on;
    bool finished = false, dropped = true;
    workers.post([&] {
      running.set_value();
      go_on.get_future().wait();
      finished = true;
    });
    workers.post([&] { dropped = false; }, kNever);
    CPPUNIT_ASSERT(comes(running.get_future()));
    std::thread stopping([&] { workers.stop(); });
    go_on.set_value();
    stopping.join();
    workers.post([&] { dropped = false; });
    workers.stop();
    CPPUNIT_ASSERT(finished && dropped);
  }

  void a_task_that_throws_ends_no_thread() {
    Workers workers(1);
    std::promise<void> next;
    workers.post([] { throw std::runtime_error("thrown by a test"); });
    workers.post([&] { next.set_value(); });
    CPPUNIT_ASSERT(comes(next.get_future()));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(WorkersTest);

}  // namespace
}  // namespace sublet::client
