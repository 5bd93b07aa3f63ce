#include "base/clock.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet {

class ClockTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ClockTest);
  CPPUNIT_TEST(system_clock_moves_forward);
  CPPUNIT_TEST(manual_clock_obeys);
  CPPUNIT_TEST_SUITE_END();

 public:
  void system_clock_moves_forward() {
    const int64_t before = system_clock().boot_ns();
    CPPUNIT_ASSERT(before > 0);
    CPPUNIT_ASSERT(system_clock().boot_ns() >= before);
    CPPUNIT_ASSERT(system_clock().utc_us() > int64_t{1'600'000'000} * 1'000'000);
  }

  void manual_clock_obeys() {
    ManualClock clock(1'000'000, 5);
    clock.advance_ms(2);
    CPPUNIT_ASSERT_EQUAL(int64_t{1'002'000}, clock.utc_us());
    CPPUNIT_ASSERT_EQUAL(int64_t{2'000'005}, clock.boot_ns());
    clock.set_utc_us(7);
    CPPUNIT_ASSERT_EQUAL(int64_t{7}, clock.utc_us());
    CPPUNIT_ASSERT_EQUAL(int64_t{2'000'005}, clock.boot_ns());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ClockTest);

}  // namespace sublet
