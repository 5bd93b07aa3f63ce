#include "client/machine/memory_watch.h"

#include <cppunit/extensions/HelperMacros.h>

#include <limits>

namespace sublet::client {
namespace {

constexpr uint64_t kLeast = 1000;
constexpr int64_t kMs = 1'000'000;

TenantMemory tenant(uint64_t job, uint64_t used, bool may_go = true) {
  return {{job, 1}, used, may_go};
}

class MemoryWatchTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(MemoryWatchTest);
  CPPUNIT_TEST(nobody_leaves_while_there_is_enough);
  CPPUNIT_TEST(the_largest_leaves_once_it_was_asked);
  CPPUNIT_TEST(one_at_a_time);
  CPPUNIT_TEST(who_does_not_go_is_killed);
  CPPUNIT_TEST(who_is_on_its_way_is_not_named);
  CPPUNIT_TEST(no_job_comes_until_there_is_enough_again);
  CPPUNIT_TEST(it_looks_more_often_when_memory_shrinks);
  CPPUNIT_TEST(nothing_to_watch);
  CPPUNIT_TEST_SUITE_END();

  MemoryWatch watch_{{kLeast, 10'000}};
  int64_t now_ = 1'000 * kMs;

  // The job that must leave, 0: none.
  uint64_t look(uint64_t available, const std::vector<TenantMemory>& all) {
    now_ += 100 * kMs;
    const auto named = watch_.look(now_, available, all);
    return named ? named->name.job : 0;
  }

  void nobody_leaves_while_there_is_enough() {
    for (const uint64_t available : {1u << 30, 2000u, 1999u, 1500u, 1000u})
      CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(available, {tenant(1, 500), tenant(2, 800)}));
  }

  // It may have grown since it was last asked.
  void the_largest_leaves_once_it_was_asked() {
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(900, {tenant(1, 500), tenant(2, 100)}));
    CPPUNIT_ASSERT(watch_.is_tight() && watch_.is_low());
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, look(900, {tenant(1, 500), tenant(2, 800)}));
  }

  void one_at_a_time() {
    look(900, {tenant(1, 500), tenant(2, 800)});
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, look(900, {tenant(1, 500), tenant(2, 800)}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(900, {tenant(1, 500), tenant(2, 800, false)}));
    // It has gone, and that was not enough.
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, look(900, {tenant(1, 500)}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(900, {}));
  }

  void who_does_not_go_is_killed() {
    const std::vector<TenantMemory> both = {tenant(1, 500), tenant(2, 800, false)};
    look(900, {tenant(1, 500), tenant(2, 800)});
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, look(900, {tenant(1, 500), tenant(2, 800)}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(250, both));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, look(249, both));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(100, both));
    now_ += 10'000 * kMs;  // its time has passed
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, look(900, both));
  }

  void who_is_on_its_way_is_not_named() {
    const std::vector<TenantMemory> all = {tenant(1, 900, false), tenant(2, 10)};
    look(900, all);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, look(900, all));
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
  }

  void it_looks_more_often_when_memory_shrinks() {
    const auto pause_ms = [&](uint64_t available, bool anyone = true) {
      look(available, anyone ? std::vector{tenant(1, 1)} : std::vector<TenantMemory>());
      return (watch_.next_due() - now_) / kMs;
    };
    CPPUNIT_ASSERT_EQUAL(int64_t{1000}, pause_ms(100'000));
    CPPUNIT_ASSERT_EQUAL(int64_t{1000}, pause_ms(100'000));
    CPPUNIT_ASSERT_EQUAL(int64_t{1000}, pause_ms(99'000));  // 1000 in 100 ms, 97,000 are left
    CPPUNIT_ASSERT_EQUAL(int64_t{192}, pause_ms(79'000));   // 20,000 in 100 ms, 77,000 are left
    CPPUNIT_ASSERT_EQUAL(int64_t{100}, pause_ms(9'000));
    CPPUNIT_ASSERT_EQUAL(int64_t{100}, pause_ms(1'999));
    CPPUNIT_ASSERT_EQUAL(int64_t{1000}, pause_ms(1'999, false));
    CPPUNIT_ASSERT_EQUAL(int64_t{1000}, pause_ms(50'000));
  }

  void nothing_to_watch() {
    MemoryWatch off({0, 10'000});
    CPPUNIT_ASSERT(!off.look(now_, 0, {tenant(1, 500)}));
    CPPUNIT_ASSERT(!off.is_low());
    CPPUNIT_ASSERT_EQUAL(std::numeric_limits<int64_t>::max(), off.next_due());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(MemoryWatchTest);

}  // namespace
}  // namespace sublet::client
