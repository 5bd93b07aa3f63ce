#include "cli/batch/instant.h"

#include <cppunit/extensions/HelperMacros.h>

#include <cstdlib>
#include <string>

namespace sublet::cli {
namespace {

class InstantTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(InstantTest);
  CPPUNIT_TEST(local_and_with_a_zone);
  CPPUNIT_TEST(wrong_ones);
  CPPUNIT_TEST_SUITE_END();

  std::string zone_;
  bool has_zone_ = false;

 public:
  void setUp() override {
    const char* zone = getenv("TZ");
    has_zone_ = zone != nullptr;
    if (has_zone_) zone_ = zone;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
  }
  void tearDown() override {
    if (has_zone_)
      setenv("TZ", zone_.c_str(), 1);
    else
      unsetenv("TZ");
  }

  void local_and_with_a_zone() {
    constexpr int64_t kEvening = 1'796'144'400'000'000;  // 2026-12-01 17:00 UTC
    for (const char* text : {"2026-12-01 18:00", "2026-12-01T18:00:00", "2026-12-01T18:00+01:00",
                             "2026-12-01t17:00:00Z", "2026-12-01 17:00Z", "2026-12-01T11:30-0530"})
      CPPUNIT_ASSERT_EQUAL_MESSAGE(text, kEvening, parse_instant(text).value_or(0));
    CPPUNIT_ASSERT_EQUAL(kEvening + 30'000'000, parse_instant("2026-12-01 18:00:30").value());
    CPPUNIT_ASSERT_EQUAL(kEvening - 18 * int64_t{3'600'000'000},
                         parse_instant("2026-12-01").value());
    // Daylight saving: one hour less.
    CPPUNIT_ASSERT(parse_instant("2026-07-01 18:00") == parse_instant("2026-07-01 16:00Z"));
  }

  void wrong_ones() {
    for (const char* text :
         {"", "18:00", "tomorrow", "2026-12-01 18", "2026-12-01 18:00 ", "2026-12-01 24:00",
          "2026-12-01 18:60", "2026-13-01 18:00", "2026-02-29 18:00", "2026-1-1 18:00",
          "2026-12-01 18:00+1", "2026-12-01 18:00 +01:00", "1969-12-01 18:00",
          "2026-12-01 18:00:", "2026-03-29 02:30"})
      CPPUNIT_ASSERT_MESSAGE(text, !parse_instant(text));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(InstantTest);

}  // namespace
}  // namespace sublet::cli
