#include "client/machine/memory_watch.h"

#include <cppunit/extensions/HelperMacros.h>

#include <limits>

namespace sublet::client {
namespace {

constexpr uint64_t kLeast = 1000;
constexpr int64_t kMs = 1'000'000;

HeldAttempt held(uint64_t job, uint64_t memory, uint32_t state = kAttemptRunning) {
  HeldAttempt one;
  one.name = {job, 1};
  one.state = state;
  one.memory = memory;
  return one;
}

class MemoryWatchTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(MemoryWatchTest);
  CPPUNIT_TEST(nobody_leaves_while_there_is_enough);
  CPPUNIT_TEST(the_largest_leaves_once_it_was_asked);
  CPPUNIT_TEST(one_at_a_time);
  CPPUNIT_TEST(who_does_not_go_is_killed);
  CPPUNIT_TEST(only_those_with_processes_leave);
  CPPUNIT_TEST(no_job_comes_until_there_is_enough_again);
  CPPUNIT_TEST(it_looks_more_often_when_memory_shrinks);
  CPPUNIT_TEST(nothing_to_watch);
  CPPUNIT_TEST_SUITE_END();

  MemoryWatch watch_{{kLeast, 10'000}};
  int64_t now_ = 1'000 * kMs;

  // The job that must leave, 0: none.
  uint64_t look(uint64_t available, const std::vector<HeldAttempt>& all) {
    now_ += 100 * kMs;
    const auto named = watch_.look(now_, available, all);
    return named ? named->name.job : 0;
  }

  void nobody_leaves_while_there_is_enough() {
    for (const uint64_t available : {1u << 30, 2000u, 1999u, 1500u, 1000u})
      CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(available, {held(1, 500), held(2, 800)}));
  }

  // It may have grown since it was last asked.
  void the_largest_leaves_once_it_was_asked() {
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(900, {held(1, 500), held(2, 100)}));
    CPPUNIT_ASSERT(watch_.is_tight() && watch_.is_low());
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, look(900, {held(1, 500), held(2, 800)}));
  }

  void one_at_a_time() {
    look(900, {held(1, 500), held(2, 800)});
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, look(900, {held(1, 500), held(2, 800)}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(900, {held(1, 500), held(2, 800, kAttemptLeaving)}));
    // It delivers: it has no processes any more, and that was not enough.
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, look(900, {held(1, 500), held(2, 800, kAttemptDelivering)}));
    // The first has gone, and there is nobody else.
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(900, {held(2, 800, kAttemptDelivering)}));
  }

  void who_does_not_go_is_killed() {
    const std::vector<HeldAttempt> both = {held(1, 500), held(2, 800, kAttemptLeaving)};
    look(900, {held(1, 500), held(2, 800)});
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, look(900, {held(1, 500), held(2, 800)}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(250, both));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, look(249, both));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(100, both));
    now_ += 10'000 * kMs;  // its time has passed
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, look(900, both));
  }

  void only_those_with_processes_leave() {
    const std::vector<HeldAttempt> all = {held(1, 900, kAttemptStaging),
                                          held(2, 800, kAttemptDelivering),
                                          held(3, 10, kAttemptSuspended)};
    look(900, all);
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, look(900, all));
    watch_.rest();
    look(900, {});
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(900, {}));
  }

  void no_job_comes_until_there_is_enough_again() {
    look(1500, {});
    CPPUNIT_ASSERT(!watch_.is_low());
    look(999, {});
    CPPUNIT_ASSERT(watch_.is_low());
    look(1999, {});
    CPPUNIT_ASSERT(watch_.is_low());
    look(2000, {});
    CPPUNIT_ASSERT(!watch_.is_low());
    look(999, {});
    watch_.rest();
    CPPUNIT_ASSERT(!watch_.is_low());
  }

  void it_looks_more_often_when_memory_shrinks() {
    const auto pause_ms = [&](uint64_t available) {
      look(available, {});
      return (watch_.next_due() - now_) / kMs;
    };
    CPPUNIT_ASSERT_EQUAL(int64_t{1000}, pause_ms(100'000));
    CPPUNIT_ASSERT_EQUAL(int64_t{1000}, pause_ms(100'000));
    CPPUNIT_ASSERT_EQUAL(int64_t{1000}, pause_ms(99'000));  // 1000 in 100 ms, 97,000 are left
    CPPUNIT_ASSERT_EQUAL(int64_t{192}, pause_ms(79'000));   // 20,000 in 100 ms, 77,000 are left
    CPPUNIT_ASSERT_EQUAL(int64_t{100}, pause_ms(9'000));
    CPPUNIT_ASSERT_EQUAL(int64_t{100}, pause_ms(1'999));
    CPPUNIT_ASSERT_EQUAL(int64_t{1000}, pause_ms(50'000));
  }

  void nothing_to_watch() {
    MemoryWatch off({0, 10'000});
    CPPUNIT_ASSERT(!off.look(now_, 0, {held(1, 500)}));
    CPPUNIT_ASSERT(!off.is_low());
    CPPUNIT_ASSERT_EQUAL(std::numeric_limits<int64_t>::max(), off.next_due());
    look(50'000, {});
    watch_.rest();
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, watch_.next_due());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(MemoryWatchTest);

}  // namespace
}  // namespace sublet::client
