// The search for the point at which runs part, and what is said of it.
#include "cli/rehearse/parting.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet::cli {
namespace {

class PartingTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PartingTest);
  CPPUNIT_TEST(finds_every_place);
  CPPUNIT_TEST(stops_when_it_is_enough);
  CPPUNIT_TEST(says_what_is_known);
  CPPUNIT_TEST_SUITE_END();

 public:
  void finds_every_place() {
    for (uint64_t last = 1; last < 100; ++last) {
      uint64_t next = 0;
      const uint64_t found = last_same(
          1, 100, [&](uint64_t n) { return n <= last; }, [] { return false; }, &next);
      CPPUNIT_ASSERT_EQUAL(last, found);
      CPPUNIT_ASSERT_EQUAL(last + 1, next);
    }
  }

  void stops_when_it_is_enough() {
    int asked = 0;
    uint64_t next = 0;
    const uint64_t found = last_same(
        1, 100, [](uint64_t n) { return n <= 30; }, [&] { return ++asked > 1; }, &next);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, found);
    CPPUNIT_ASSERT_EQUAL(uint64_t{50}, next);
  }

  void says_what_is_known() {
    CPPUNIT_ASSERT_EQUAL(
        std::string("interrupted at point 3 of 9, the runs part between the points 5 and 6:\n~ x"),
        parting_text({3, 5, 6, "~ x\n"}, 9));
    CPPUNIT_ASSERT_EQUAL(
        std::string("interrupted at point 3 of 9, it differs at point 4, its first:\n~ x"),
        parting_text({3, 0, 4, "~ x\n"}, 9));
    CPPUNIT_ASSERT_EQUAL(std::string("interrupted at point 3 of 9, what it saves is the same up to "
                                     "point 9: what differs is not among the saved variables"),
                         parting_text({3, 9, 0, ""}, 9));
    CPPUNIT_ASSERT_EQUAL(std::string("interrupted at point 3 of 9, it cannot be compared at its "
                                     "later points"),
                         parting_text({3, 0, 0, ""}, 9));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(PartingTest);

}  // namespace
}  // namespace sublet::cli
