// SharedString.
#include <cppunit/extensions/HelperMacros.h>

#include "scheduling/shared_string.h"

namespace sublet::scheduling {
namespace {
class TextKindsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(TextKindsTest);
  CPPUNIT_TEST(copies_share_their_text);
  CPPUNIT_TEST(texts_compare_by_what_they_say);
  CPPUNIT_TEST_SUITE_END();

 public:
  void copies_share_their_text() {
    const SharedString one = "linux";
    SharedString other = std::string("linux");
    CPPUNIT_ASSERT(one.str().data() != other.str().data());
    other.share(one);
    CPPUNIT_ASSERT(one.str().data() == other.str().data());
    other = "darwin";
    CPPUNIT_ASSERT_EQUAL(std::string("linux"), one.str());
    CPPUNIT_ASSERT_EQUAL(sizeof(void*), sizeof one);
  }

  void texts_compare_by_what_they_say() {
    const SharedString a = "a", same = "a", b = "b", none;
    CPPUNIT_ASSERT(a == same && a != b && a < b && none < a);
    CPPUNIT_ASSERT(a == "a" && a == std::string("a") && a != "b");
    CPPUNIT_ASSERT(none.empty() && none == "" && none == SharedString(std::string()));
    CPPUNIT_ASSERT_EQUAL(std::string("a and b"), "" + a + " and " + b);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(TextKindsTest);
}  // namespace
}  // namespace sublet::scheduling
