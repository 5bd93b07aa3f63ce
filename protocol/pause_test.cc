#include "protocol/pause.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

namespace sublet::protocol {
namespace {

constexpr int64_t kMinute = 60'000;

class PauseTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PauseTest);
  CPPUNIT_TEST(within_a_boot_the_wall_clock_does_not_matter);
  CPPUNIT_TEST(over_a_boot);
  CPPUNIT_TEST(until_it_is_ended);
  CPPUNIT_TEST(it_never_becomes_longer);
  CPPUNIT_TEST(the_stored_form);
  CPPUNIT_TEST_SUITE_END();

  static Pause ten_minutes() {
    return {{"boot-a", 5'000'000'000, 1'700'000'000'000'000}, 10 * kMinute, 1000};
  }
  // This many minutes later, with the wall clock set by `set`.
  static Moment later(int64_t minutes, int64_t set, const std::string& boot = "boot-a") {
    Moment now = ten_minutes().begun;
    now.boot_ns += minutes * kMinute * 1'000'000;
    now.utc_us += (minutes + set) * kMinute * 1'000;
    if (boot != now.boot) now.boot_ns = 1;
    now.boot = boot;
    return now;
  }

 public:
  void within_a_boot_the_wall_clock_does_not_matter() {
    for (const int64_t set : {-100000, -1, 0, 1, 100000}) {
      CPPUNIT_ASSERT_EQUAL(10 * kMinute, ten_minutes().left_ms(later(0, set)));
      CPPUNIT_ASSERT_EQUAL(3 * kMinute, ten_minutes().left_ms(later(7, set)));
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, ten_minutes().left_ms(later(10, set)));
    }
  }
  void over_a_boot() {
    CPPUNIT_ASSERT_EQUAL(3 * kMinute, ten_minutes().left_ms(later(7, 0, "boot-b")));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, ten_minutes().left_ms(later(11, 0, "boot-b")));
    CPPUNIT_ASSERT_EQUAL(10 * kMinute, ten_minutes().left_ms(later(7, -100000, "boot-b")));
  }
  void until_it_is_ended() {
    Pause pause = ten_minutes();
    pause.length_ms = 0;
    CPPUNIT_ASSERT_EQUAL(Pause::kEndless, pause.left_ms(later(1'000'000, 0)));
    CPPUNIT_ASSERT_EQUAL(Pause::kEndless, pause.left_ms(later(1'000'000, 0, "boot-b")));
  }
  void it_never_becomes_longer() {
    rc::check([] {
      const auto boot = *rc::gen::elementOf(std::string("ab"));
      const Moment now{std::string("boot-") + boot, *rc::gen::inRange<int64_t>(0, INT64_C(1) << 60),
                       *rc::gen::inRange<int64_t>(0, INT64_C(1) << 60)};
      const int64_t left = ten_minutes().left_ms(now);
      RC_ASSERT(left >= 0 && left <= 10 * kMinute);
    });
  }
  void the_stored_form() {
    const Pause pause = ten_minutes();
    const std::string line = encode(pause);
    const auto read = decode_pause(line);
    CPPUNIT_ASSERT(read && encode(*read) == line && read->by == 1000);
    for (size_t n = 0; n < line.size(); ++n) CPPUNIT_ASSERT(!decode_pause(line.substr(0, n)));
    for (const char* wrong :
         {"", "pause-2 b 1 1 1 1\n", "pause-1 b -1 1 1 1\n", "pause-1 b 1 1 -1 1\n",
          "pause-1 b 1 1 99999999999999 1\n", "pause-1 b 1 1 1 1 1\n", "pause-1 b x 1 1 1\n"})
      CPPUNIT_ASSERT(!decode_pause(wrong));
    rc::check([](const std::string& bytes) { decode_pause(bytes); });
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(PauseTest);

}  // namespace
}  // namespace sublet::protocol
