// What one thread makes and another uses; also under the thread sanitizer.
#include "cli/ahead.h"

#include <cppunit/extensions/HelperMacros.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

namespace sublet::cli {
namespace {

class AheadTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AheadTest);
  CPPUNIT_TEST(in_order_to_the_end);
  CPPUNIT_TEST(a_failure_comes_behind_what_was_made);
  CPPUNIT_TEST(little_is_made_ahead);
  CPPUNIT_TEST(may_be_left_at_any_time);
  CPPUNIT_TEST_SUITE_END();

 public:
  void in_order_to_the_end() {
    int made = 0;
    Ahead numbers([&] { return made < 1000 ? std::to_string(made++) : ""; });
    for (int i = 0; i < 1000; ++i) CPPUNIT_ASSERT_EQUAL(std::to_string(i), numbers.next());
    CPPUNIT_ASSERT_EQUAL(std::string(), numbers.next());
  }

  void a_failure_comes_behind_what_was_made() {
    int made = 0;
    Ahead numbers([&] {
      if (made == 3) throw std::runtime_error("no more");
      return std::to_string(made++);
    });
    for (const char* expected : {"0", "1", "2"})
      CPPUNIT_ASSERT_EQUAL(std::string(expected), numbers.next());
    CPPUNIT_ASSERT_THROW(numbers.next(), std::runtime_error);
  }

  // However long nobody takes any: two wait, and one more is under way when a
  // piece is taken.
  void little_is_made_ahead() {
    std::atomic<int> made{0};
    Ahead numbers([&] { return std::to_string(made++); });
    for (int used = 1; used <= 100; ++used) {
      numbers.next();
      CPPUNIT_ASSERT(made <= used + 3);
    }
  }

  void may_be_left_at_any_time() {
    for (int used = 0; used < 5; ++used) {
      int made = 0;
      Ahead numbers([&] { return made < 3 ? std::to_string(made++) : ""; });
      for (int i = 0; i < std::min(used, 3); ++i) numbers.next();
    }
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(AheadTest);

}  // namespace
}  // namespace sublet::cli
