#include "client/machine/memory_watch.h"

#include <cppunit/extensions/HelperMacros.h>

#include <limits>

namespace sublet::client {
namespace {

constexpr uint64_t kReserve = 4000;
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
  CPPUNIT_TEST(others_wait_although_there_seems_to_be_enough);
  CPPUNIT_TEST(who_has_little_does_not_help_who_waits);
  CPPUNIT_TEST(short_waits_are_borne);
  CPPUNIT_TEST(what_may_be_jobs_that_wait_counts_in_the_owners_reserve);
  CPPUNIT_TEST(no_job_comes_for_a_minute_after_waits);
  CPPUNIT_TEST(nothing_to_watch);
  CPPUNIT_TEST_SUITE_END();

  MemoryWatch watch_{{kReserve, 10'000}};
  int64_t now_ = 1'000 * kMs;

  // The job that must leave, 0: none.
  uint64_t look(uint64_t available, const std::vector<TenantMemory>& all,
                const Pressure& pressure = {}) {
    now_ += 100 * kMs;
    const auto named = watch_.look(now_, available, pressure, all);
    if (named) CPPUNIT_ASSERT_EQUAL(available >= kReserve / 4, named->waited);
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

  // 40 ms of each 100 ms too much.
  void others_wait_although_there_seems_to_be_enough() {
    const std::vector<TenantMemory> both = {tenant(1, 500), tenant(2, 800)};
    look(1 << 30, both);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(1 << 30, both, {500'000}));
    CPPUNIT_ASSERT(watch_.is_tight() && !watch_.is_low());
    CPPUNIT_ASSERT_EQUAL(int64_t{100}, (watch_.next_due() - now_) / kMs);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(1 << 30, both, {500'000}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, look(1 << 30, both, {500'000}));
    CPPUNIT_ASSERT(watch_.is_low());
    // One at a time, and it is not killed, whatever they wait.
    const std::vector<TenantMemory> leaving = {tenant(1, 500), tenant(2, 800, false)};
    for (int i = 0; i < 9; ++i)
      CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(1 << 30, leaving, {1'000'000}));
    // It has gone. What they waited until then says nothing of the other.
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(1 << 30, {tenant(1, 500)}, {500'000}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(1 << 30, {tenant(1, 500)}, {500'000}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, look(1 << 30, {tenant(1, 500)}, {500'000}));
  }

  void who_has_little_does_not_help_who_waits() {
    const std::vector<TenantMemory> little = {tenant(1, kReserve / 16 - 1)};
    for (int i = 0; i < 20; ++i)
      CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(1 << 30, little, {1'000'000}));
    CPPUNIT_ASSERT(watch_.is_low());
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, look(1 << 30, {tenant(1, kReserve / 16)}, {1'000'000}));
  }

  // A tenth of the time for ever, and more for a moment.
  void short_waits_are_borne() {
    const std::vector<TenantMemory> one = {tenant(1, 500)};
    for (int i = 0; i < 100; ++i) CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(1 << 30, one, {100'000}));
    for (int i = 0; i < 100; ++i)
      CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(1 << 30, one, {i % 5 == 0 ? 500'000u : 0u}));
    CPPUNIT_ASSERT(!watch_.is_low());
    // What was long ago, and while nothing was watched.
    look(1 << 30, one, {900'000});
    now_ += 3'600'000 * kMs;
    look(1 << 30, one, {900'000});
    CPPUNIT_ASSERT(!watch_.is_tight());
  }

  void what_may_be_jobs_that_wait_counts_in_the_owners_reserve() {
    const std::vector<TenantMemory> one = {tenant(1, 500)};
    for (int i = 0; i < 20; ++i)
      CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(kReserve, one, {1'000'000, true}));
    CPPUNIT_ASSERT(!watch_.is_tight());
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, look(kReserve - 1, one, {1'000'000, true}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, look(kReserve - 1, one, {1'000'000, true}));
  }

  void no_job_comes_for_a_minute_after_waits() {
    look(1 << 30, {});
    look(1 << 30, {}, {1'000'000});
    look(1 << 30, {}, {1'000'000});
    CPPUNIT_ASSERT(watch_.is_low());
    now_ += 59'000 * kMs;
    look(1 << 30, {});
    CPPUNIT_ASSERT(watch_.is_low());
    CPPUNIT_ASSERT(watch_.next_due() < std::numeric_limits<int64_t>::max());
    now_ += 1'000 * kMs;
    look(1 << 30, {});
    CPPUNIT_ASSERT(!watch_.is_low());
  }

  void nothing_to_watch() {
    MemoryWatch off({0, 10'000});
    CPPUNIT_ASSERT(!off.look(now_, 0, {1'000'000}, {tenant(1, 500)}));
    CPPUNIT_ASSERT(!off.is_low());
    CPPUNIT_ASSERT_EQUAL(std::numeric_limits<int64_t>::max(), off.next_due());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(MemoryWatchTest);

}  // namespace
}  // namespace sublet::client
