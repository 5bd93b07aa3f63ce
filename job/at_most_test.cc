#include "job/at_most.h"

#include <cppunit/extensions/HelperMacros.h>

#include "job/check.h"

namespace sublet {
namespace {

class AtMostTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AtMostTest);
  CPPUNIT_TEST(is_read);
  CPPUNIT_TEST_SUITE_END();

 public:
  void is_read() {
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, read_at_most({{"stop_when.done", "3"}}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{12}, read_at_most({{"at_most", "12"}}));
    for (const char* word : {"0", "", "-1", "1000001", "2 ", "two", "18446744073709551617"})
      CPPUNIT_ASSERT_THROW_MESSAGE(word, read_at_most({{"at_most", word}}), JobError);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(AtMostTest);

}  // namespace
}  // namespace sublet
