#include "cli/views/job_text.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include "base/text.h"

namespace sublet::cli {
namespace {

std::string shown(const std::vector<std::string>& pieces) {
  JobText text(true);
  std::string out;
  for (const std::string& piece : pieces) out += text.feed(piece);
  return out + text.finish();
}

class JobTextTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(JobTextTest);
  CPPUNIT_TEST(a_file_gets_the_same_bytes);
  CPPUNIT_TEST(a_terminal_gets_no_control_characters);
  CPPUNIT_TEST(characters_are_not_split);
  CPPUNIT_TEST(any_bytes_in_any_pieces);
  CPPUNIT_TEST(last_lines);
  CPPUNIT_TEST_SUITE_END();

  void a_file_gets_the_same_bytes() {
    JobText text(false);
    const std::string bytes("\x1b[2J\0\xff\xe2\x82", 8);
    CPPUNIT_ASSERT_EQUAL(bytes, text.feed(bytes));
    CPPUNIT_ASSERT_EQUAL(std::string(), text.finish());
  }

  void a_terminal_gets_no_control_characters() {
    CPPUNIT_ASSERT_EQUAL(std::string("\\x1b]0;title\\x07 a\\b\tc\r\n"),
                         shown({"\x1b]0;title\x07 a\\b\tc\r\n"}));
    CPPUNIT_ASSERT_EQUAL(std::string("\\x9b \\u009b \\u202e \\xff"),
                         shown({"\x9b \xc2\x9b \xe2\x80\xae \xff"}));
    CPPUNIT_ASSERT_EQUAL(std::string("für 漢字 😀"), shown({"für 漢字 😀"}));
  }

  void characters_are_not_split() {
    CPPUNIT_ASSERT_EQUAL(std::string("€"), shown({"\xe2", "\x82", "\xac"}));
    CPPUNIT_ASSERT_EQUAL(std::string("😀!"), shown({"\xf0\x9f\x98", "\x80!"}));
    CPPUNIT_ASSERT_EQUAL(std::string("\\xe2\\x82"), shown({"\xe2\x82"}));
    CPPUNIT_ASSERT_EQUAL(std::string("\\xe2a"), shown({"\xe2", "a"}));
  }

  void any_bytes_in_any_pieces() {
    rc::check(
        "pieces make no difference, nothing dangerous is left",
        [](const std::vector<std::string>& pieces) {
          std::string whole;
          for (const std::string& piece : pieces) whole += piece;
          const std::string out = shown(pieces);
          RC_ASSERT(out == shown({whole}));
          RC_ASSERT(is_utf8(out));
          for (char c : out)
            RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t' || c == '\r');
        });
  }

  void last_lines() {
    const auto last = [](std::string text, uint64_t count) {
      keep_last_lines(text, count);
      return text;
    };
    CPPUNIT_ASSERT_EQUAL(std::string("b\nc\n"), last("a\nb\nc\n", 2));
    CPPUNIT_ASSERT_EQUAL(std::string("b\nc"), last("a\nb\nc", 2));
    CPPUNIT_ASSERT_EQUAL(std::string("a\n"), last("a\n", 2));
    CPPUNIT_ASSERT_EQUAL(std::string("\n\n"), last("a\n\n\n", 2));
    CPPUNIT_ASSERT_EQUAL(std::string(""), last("a\nb", 0));
    CPPUNIT_ASSERT_EQUAL(std::string(""), last("", 3));
    CPPUNIT_ASSERT_EQUAL(std::string("\n"), last("\n", 1));
    CPPUNIT_ASSERT_EQUAL(std::string("a"), last("a", 1));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(JobTextTest);

}  // namespace
}  // namespace sublet::cli
