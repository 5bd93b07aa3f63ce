// Pieces produced by one thread and used by another; also built with the thread sanitizer.
#include "cli/transfer/ahead.h"

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
  CPPUNIT_TEST(one_that_is_stopped_ends);
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

  // While no piece is used, at most two wait.
  void little_is_made_ahead() {
    std::atomic<int> made{0};
    Ahead numbers([&] { return std::to_string(made++); });
    numbers.next();
    CPPUNIT_ASSERT_EQUAL(1, made.load());
    for (int used = 2; used <= 100; ++used) {
      numbers.next();
      while (made < used + 2) std::this_thread::yield();
      for (int i = 0; i < 100; ++i) std::this_thread::yield();
      CPPUNIT_ASSERT_EQUAL(used + 2, made.load());
    }
  }

  void one_that_is_stopped_ends() {
    Ahead numbers([made = 0]() mutable { return std::to_string(made++); });
    numbers.next();
    numbers.next();
    numbers.stop();
    for (int i = 0; i < 3 && !numbers.next().empty(); ++i) CPPUNIT_ASSERT(i < 2);
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
