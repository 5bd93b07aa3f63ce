#include "base/clock.h"

#include <cppunit/extensions/HelperMacros.h>

#include <cstdlib>
#include <string>

namespace sublet {

class ClockTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ClockTest);
  CPPUNIT_TEST(system_clock_moves_forward);
  CPPUNIT_TEST(local_time_follows_the_zone);
  CPPUNIT_TEST(manual_clock_obeys);
  CPPUNIT_TEST_SUITE_END();

 public:
  void system_clock_moves_forward() {
    const int64_t before = system_clock().boot_ns();
    CPPUNIT_ASSERT(before > 0);
    CPPUNIT_ASSERT(system_clock().boot_ns() >= before);
    CPPUNIT_ASSERT(system_clock().utc_us() > int64_t{1'600'000'000} * 1'000'000);
  }

  void local_time_follows_the_zone() {
    const char* set = getenv("TZ");
    const std::string before = set == nullptr ? "" : set;
    const auto offset = [](const char* zone, int64_t seconds) {
      setenv("TZ", zone, 1);
      return system_clock().utc_offset_s(seconds * 1'000'000);
    };
    constexpr int64_t kWinter = 1'800'000'000, kSummer = 1'783'000'000;  // 2027-01-15, 2026-07-02
    const char* kCentralEurope = "CET-1CEST,M3.5.0,M10.5.0/3";
    CPPUNIT_ASSERT_EQUAL(3600, offset(kCentralEurope, kWinter));
    CPPUNIT_ASSERT_EQUAL(7200, offset(kCentralEurope, kSummer));
    CPPUNIT_ASSERT_EQUAL(-12600, offset("XXX3:30", kSummer));
    CPPUNIT_ASSERT_EQUAL(0, offset("UTC", kSummer));
    if (set == nullptr)
      unsetenv("TZ");
    else
      setenv("TZ", before.c_str(), 1);
  }

  void manual_clock_obeys() {
    ManualClock clock(1'000'000, 5);
    clock.advance_ms(2);
    CPPUNIT_ASSERT_EQUAL(int64_t{1'002'000}, clock.utc_us());
    CPPUNIT_ASSERT_EQUAL(int64_t{2'000'005}, clock.boot_ns());
    clock.set_utc_us(7);
    CPPUNIT_ASSERT_EQUAL(int64_t{7}, clock.utc_us());
    CPPUNIT_ASSERT_EQUAL(0, clock.utc_offset_s(7));
    clock.set_utc_offset_s(3600);
    CPPUNIT_ASSERT_EQUAL(3600, clock.utc_offset_s(7));
    CPPUNIT_ASSERT_EQUAL(int64_t{2'000'005}, clock.boot_ns());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ClockTest);

}  // namespace sublet
