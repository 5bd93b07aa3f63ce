// The interval between periodic saves: known values, and its bounds for all costs.
#include "checkpoint-api/interval.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <cmath>

namespace {

constexpr std::uint64_t kHour = 3600;

std::uint64_t next_ms(std::uint64_t one_us, std::uint64_t mean_idle_s) {
  // So late in a run that its part of it is no bound.
  const sublet_save_costs costs{one_us, 0};
  return sublet_next_save_ms(&costs, UINT64_MAX / 2, mean_idle_s);
}

class IntervalTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(IntervalTest);
  CPPUNIT_TEST(young);
  CPPUNIT_TEST(within_bounds);
  CPPUNIT_TEST(costs_are_smoothed);
  CPPUNIT_TEST(the_first_one_is_put_off);
  CPPUNIT_TEST(never_more_than_its_part_of_a_run);
  CPPUNIT_TEST_SUITE_END();

 public:
  void young() {
    // The square root of 2 * 1 s * 7200 s.
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{120'000}, next_ms(1'000'000, 2 * kHour));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{60'000}, next_ms(250'000, 2 * kHour));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{84'852}, next_ms(1'000'000, kHour));
    CPPUNIT_ASSERT(rc::check([] {
      const auto one_us = *rc::gen::inRange<std::uint64_t>(1, 86'400'000'000);
      const auto mean_s = *rc::gen::inRange<std::uint64_t>(1, 10'000'000);
      const double best =
          std::sqrt(2.0 * static_cast<double>(one_us) * static_cast<double>(mean_s));
      const double bounded = std::min(std::max(best, 30'000.0), 600'000.0);
      RC_ASSERT(std::abs(static_cast<double>(next_ms(one_us, mean_s)) - bounded) <= 1);
    }));
  }

  void within_bounds() {
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{30'000}, next_ms(0, 2 * kHour));  // no save yet
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{30'000}, next_ms(600, 2 * kHour));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{30'000}, next_ms(1'000'000, 0));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{600'000}, next_ms(60'000'000, 24 * kHour));
    CPPUNIT_ASSERT_EQUAL(next_ms(1000, 10'000'000), next_ms(1000, UINT64_MAX));
  }

  void costs_are_smoothed() {
    sublet_save_costs costs{};
    sublet_add_save(&costs, 1000, 1);
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{1000}, costs.one_us);
    sublet_add_save(&costs, 5000, 0);  // asked for: the program is not to blame
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{2000}, costs.one_us);
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{1000}, costs.spent_us);
    for (int i = 0; i < 100; ++i) sublet_add_save(&costs, 0, 0);
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{1}, costs.one_us);
  }

  void the_first_one_is_put_off() {
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{0}, sublet_put_off_first_ms(20'000, 20));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{0}, sublet_put_off_first_ms(30'000'000, 30'000));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{970'000}, sublet_put_off_first_ms(1'000'000'000, 30'000));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{0}, sublet_put_off_first_ms(1'000'000'000, 1'000'000));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{8'640'000'000}, sublet_put_off_first_ms(UINT64_MAX, 0));
  }

  // A run whose saves take what they take, each up to a minute, for any mean idle time: the part is
  // kept whenever a save costs no more than the average before it, and the first no more than its
  // bytes say.
  void never_more_than_its_part_of_a_run() {
    CPPUNIT_ASSERT(rc::check([] {
      const auto took_us = *rc::gen::inRange<std::uint64_t>(1, 60'000'000);
      const auto mean_s = *rc::gen::inRange<std::uint64_t>(1, 1'000'000);
      sublet_save_costs costs{};
      std::uint64_t now_us = 0;
      for (int saves = 0; saves < 50; ++saves) {
        now_us += 1000 * sublet_next_save_ms(&costs, now_us / 1000, mean_s);
        if (saves == 0) now_us += 1000 * sublet_put_off_first_ms(100 * took_us, now_us / 1000);
        now_us += took_us;
        sublet_add_save(&costs, took_us, 1);
        RC_ASSERT(100 * costs.spent_us <= now_us + 2000);  // to the millisecond
      }
    }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(IntervalTest);

}  // namespace
