// SharedString and Sentence.
#include <cppunit/extensions/HelperMacros.h>

#include "scheduling/sentence.h"
#include "scheduling/shared_string.h"

namespace sublet::scheduling {
namespace {
class TextKindsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(TextKindsTest);
  CPPUNIT_TEST(copies_share_their_text);
  CPPUNIT_TEST(texts_compare_by_what_they_say);
  CPPUNIT_TEST(words_are_made_when_somebody_reads_them);
  CPPUNIT_TEST(sentences_compare_by_what_they_say);
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
  }

  void texts_compare_by_what_they_say() {
    const SharedString a = "a", same = "a", b = "b", none;
    CPPUNIT_ASSERT(a == same && a != b && a < b && none < a);
    CPPUNIT_ASSERT(a == "a" && a == std::string("a") && a != "b");
    CPPUNIT_ASSERT(none.empty() && none == "" && none == SharedString(std::string()));
    CPPUNIT_ASSERT_EQUAL(std::string("a and b"), "" + a + " and " + b);
  }

  void words_are_made_when_somebody_reads_them() {
    int made = 0;
    const auto words = [&made, n = 3] {
      ++made;
      return std::to_string(n) + " jobs";
    };
    const Sentence sentence = words, copy = sentence;
    CPPUNIT_ASSERT(!sentence.empty() && copy == sentence);
    CPPUNIT_ASSERT_EQUAL(0, made);
    CPPUNIT_ASSERT_EQUAL(std::string("3 jobs"), copy.text());
    CPPUNIT_ASSERT_EQUAL(1, made);
  }

  void sentences_compare_by_what_they_say() {
    const Sentence three = [n = 3] { return std::to_string(n) + " jobs"; };
    CPPUNIT_ASSERT(three == Sentence("3 jobs") && three != Sentence("2 jobs"));
    CPPUNIT_ASSERT(Sentence().empty() && Sentence("").empty() && Sentence() == Sentence(""));
    CPPUNIT_ASSERT_EQUAL(std::string(), Sentence().text());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(TextKindsTest);
}  // namespace
}  // namespace sublet::scheduling
