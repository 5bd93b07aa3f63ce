// Critical sections, and points of several threads. Each program runs in a child process, so
// that its signals are its own.
#include <cppunit/extensions/HelperMacros.h>

#include <thread>

#include "checkpoint-api/pool_testing.h"
#include "checkpoint-api/sublet_checkpoint.hpp"

namespace {
using namespace sublet::testing;

constexpr unsigned kThreads = 4;

// What the threads change: consistent only where left and right are equal, which between the
// points they are not. Not atomic: that would hide a save while a thread works.
struct Pair {
  std::uint64_t left = 0, right = 0;
};
auto checkpoint_fields(Pair& pair) { return std::tie(pair.left, pair.right); }

using Pairs = std::array<Pair, kThreads>;

void count(sublet::Checkpoint& checkpoint, Pair& pair) {
  do {
    ++pair.left;
    std::this_thread::yield();
    ++pair.right;
  } while (checkpoint.thread_point());
}

unsigned arrived(sublet_checkpoint* c) {
  pthread_mutex_lock(&c->lock);
  const unsigned now = c->arrived;
  pthread_mutex_unlock(&c->lock);
  return now;
}

// 0 if the pool's checkpoint has pairs that are consistent and not all new.
int look_at_pairs() {
  Pairs pairs;
  sublet::Checkpoint checkpoint("pairs", 1);
  checkpoint.variable("pairs", pairs);
  if (!checkpoint.start()) return 1;
  for (const Pair& pair : pairs) {
    if (pair.left == 0 || pair.left != pair.right) return 2;
  }
  return 0;
}

class ThreadsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ThreadsTest);
  CPPUNIT_TEST(no_point_in_a_critical_section);
  CPPUNIT_TEST(all_threads_stop_for_a_save);
  CPPUNIT_TEST(threads_leave_with_the_process);
  CPPUNIT_TEST(a_thread_that_is_done_is_not_waited_for);
  CPPUNIT_TEST(wrong_numbers_of_threads);
  CPPUNIT_TEST_SUITE_END();

 public:
  void no_point_in_a_critical_section() {
    Pool pool;
    const int end = end_of(start_child([&] {
      sublet::Checkpoint checkpoint("critical", 1);
      checkpoint.start();
      {
        const sublet::Checkpoint::Critical outer(checkpoint);
        raise(SIGUSR1);
        raise(SIGTERM);
        {
          const sublet::Checkpoint::Critical inner(checkpoint);
          if (!checkpoint.point()) return 1;
        }
        if (!checkpoint.point() || !checkpoint.wanted()) return 2;
        try {
          checkpoint.save();
          return 3;
        } catch (const std::system_error& error) {
          if (error.code().value() != EBUSY) return 4;
        }
        if (pool.generation() != 0) return 5;
      }
      checkpoint.point();
      return 6;
    }));
    CPPUNIT_ASSERT(exited_with(end, SUBLET_EXIT_LEFT));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{1}, pool.generation());
  }

  void all_threads_stop_for_a_save() {
    Pool pool;
    const int end = end_of(start_child([&] {
      Pairs pairs;
      sublet::Checkpoint checkpoint("pairs", 1);
      checkpoint.variable("pairs", pairs);
      checkpoint.start({nullptr, SUBLET_CHECKPOINT_NEVER, 1});
      checkpoint.threads(kThreads);
      std::vector<std::thread> threads;
      for (Pair& pair : pairs) threads.emplace_back([&] { count(checkpoint, pair); });
      int failed = 0;
      for (std::uint64_t i = 1; i <= 5 && failed == 0; ++i) {
        kill(getpid(), SIGUSR1);
        if (!wait_for([&] { return pool.generation() == i; })) failed = 3;
      }
      kill(getpid(), SIGTERM);
      for (std::thread& thread : threads) thread.join();
      if (pool.generation() != 6 || pool.page().left != 1) failed = 4;
      return failed == 0 ? SUBLET_EXIT_LEFT : failed;
    }));
    CPPUNIT_ASSERT(exited_with(end, SUBLET_EXIT_LEFT));
    CPPUNIT_ASSERT_EQUAL(0, end_of(start_child(look_at_pairs)));
  }

  void threads_leave_with_the_process() {
    Pool pool;
    const pid_t pid = start_child([] {
      Pairs pairs;
      sublet::Checkpoint checkpoint("pairs", 1);
      checkpoint.variable("pairs", pairs);
      checkpoint.threads(kThreads);
      checkpoint.start();
      std::vector<std::thread> threads;
      for (Pair& pair : pairs) threads.emplace_back([&] { count(checkpoint, pair); });
      for (std::thread& thread : threads) thread.join();
      return 1;
    });
    CPPUNIT_ASSERT(wait_for([&] { return pool.aware(); }));
    kill(pid, SIGTERM);
    CPPUNIT_ASSERT(exited_with(end_of(pid), SUBLET_EXIT_LEFT));
    CPPUNIT_ASSERT_EQUAL(0, end_of(start_child(look_at_pairs)));
  }

  void a_thread_that_is_done_is_not_waited_for() {
    Pool pool;
    const int end = end_of(start_child([] {
      const Handle handle;
      sublet_checkpoint_threads(handle.c, 3);
      sublet_checkpoint_thread_done(handle.c);
      raise(SIGUSR1);
      std::thread waits([&] { sublet_checkpoint_thread_point(handle.c); });
      const bool came = wait_for([&] { return arrived(handle.c) == 1; });
      sublet_checkpoint_thread_done(handle.c);  // the last for which it waits
      waits.join();
      return came && sublet_checkpoint_generation(handle.c) == 1 ? 0 : 1;
    }));
    CPPUNIT_ASSERT_EQUAL(0, end);
  }

  void wrong_numbers_of_threads() {
    sublet_checkpoint* c = sublet_checkpoint_open("threads", 1);
    CPPUNIT_ASSERT_EQUAL(EINVAL, sublet_checkpoint_threads(c, 0));
    CPPUNIT_ASSERT_EQUAL(0, sublet_checkpoint_threads(c, 1));
    CPPUNIT_ASSERT_EQUAL(EBUSY, sublet_checkpoint_threads(c, 1));
    sublet_checkpoint_thread_done(c);
    CPPUNIT_ASSERT_EQUAL(0, sublet_checkpoint_threads(c, 2));
    sublet_checkpoint_close(c);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(ThreadsTest);

}  // namespace
