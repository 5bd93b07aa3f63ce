#include "base/options/toml_problem.h"

#include <cppunit/extensions/HelperMacros.h>

#include "base/options/toml_document.h"

namespace sublet {

class TomlProblemTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(TomlProblemTest);
  CPPUNIT_TEST(says_what_is_wrong);
  CPPUNIT_TEST(never_speaks_as_the_library);
  CPPUNIT_TEST(shows_the_text_safely);
  CPPUNIT_TEST_SUITE_END();

  // What is said of the text, with its place.
  static std::string said(const std::string& text) {
    try {
      parse_toml(text, "f");
    } catch (const DocumentError& e) {
      return e.what();
    }
    return "nothing";
  }

 public:
  void says_what_is_wrong() {
    const struct {
      const char* text;
      const char* sentence;
    } kCases[] = {
        {"\nname = letters", "f:2:8: 'letters' is not a value; a string needs quotes"},
        {"a = 5min", "f:1:6: '5min' is not a number; a string needs quotes"},
        {"a = 5 min", "f:1:7: 'min' follows a value; begin a new line, or put a string in quotes"},
        {"a = ./prog # x", "f:1:5: './prog' is not a number; a string needs quotes"},
        {"a = True",
         "f:1:5: 'True' is not a value; write true or false, or put a string in quotes"},
        {"a = 01", "f:1:7: '01': a number may not begin with 0"},
        {"a = 99999999999999999999",
         "f:1:25: the number '99999999999999999999' is too large or too small"},
        {"a = 2026-13-01", "f:1:12: '2026-13-01' is not a date; a string needs quotes"},
        {"a = 25:00:00", "f:1:7: '25:00:00' is not a time; a string needs quotes"},
        {"a = “x”", "f:1:5: '“x”' is not a value; a string needs quotes"},
        {"a = \"x\nb = 1", "f:1:7: the closing quote of a string is missing"},
        {"a = 'x\r\nb = 1", "f:1:7: the closing quote of a string is missing"},
        {"a = \"\"\"x\nb = 1", "f:2:6: the closing quote of a string is missing"},
        {"a = \"C:\\dir\"",
         "f:1:9: a backslash in \"...\" begins an escape; double it, or write the string in "
         "'...'"},
        {"a", "f:1:2: the value of a key is missing; write KEY = VALUE"},
        {"a: 1", "f:1:2: '=' is missing after a key; write KEY = VALUE"},
        {"a =\nb = 1", "f:1:4: the value of a key is missing; write KEY = VALUE"},
        {"ä = 1", "f:1:1: 'ä' cannot begin a line; write KEY = VALUE, [NAME] or [[NAME]]"},
        {"[a\nb = 1", "f:1:3: the header of a table is not closed; write [NAME] or [[NAME]]"},
        {"[]", "f:1:2: the header has no name; write [NAME] or [[NAME]]"},
        {"[[a]]]", "f:1:6: ']' follows the header of a table; begin a new line"},
        {"a = [1, 2", "f:1:10: the ']' of a list is missing"},
        {"a = [1, 2\nb = 3", "f:2:1: ',' or ']' is missing before 'b' in a list"},
        {"a = {x = 1", "f:1:11: the '}' of a table is missing"},
        {"a = {x = 1,}", "f:1:12: a ',' stands before the '}' of a table"},
        {"a = {x = 1,\n", "f:1:12: a table in { } must end on the line that it begins on"},
        {"a = 1\na = 2", "f:2:5: 'a' is defined twice"},
        {"\"a b\" = 1\n\"a b\" = 2", "f:2:9: this name is defined twice"},
        {"[[a]]\n[a]", "f:2:1: 'a' is defined already, as a list"},
        {"[a]\n[[a]]", "f:2:1: 'a' is defined already, and not with [[NAME]]"},
        {"a = 1\na.b = 2", "f:2:1: 'a.b' adds to a key that has a value already"},
        {"a = {}\n[a.b]", "f:2:6: 'a.b' cannot be added to a table that was written in { }"},
        {"a = \"\xff\"", "f:1:5: the text is not UTF-8"},
        {"[<", "f:1:1: this is not valid TOML"},
        {"\xef\xbb\xbfmemory = 2GiB", "f:1:11: '2GiB' is not a number; a string needs quotes"},
    };
    for (const auto& each : kCases)
      CPPUNIT_ASSERT_EQUAL(std::string(each.sentence), said(each.text));
  }

  // A text cut anywhere, and one with any character changed, is explained in our words.
  void never_speaks_as_the_library() {
    const std::string text =
        "# jobs\n[batch]\nname = \"a\\u00e4\"\nstop_when = { done = 1, output = 'x' }\n"
        "[[job]]\nnumbers = [1, 2.5, 0x1f, true, 2026-01-02T03:04:05+01:00]\na.b = '''x'''\n";
    for (size_t i = 0; i < text.size(); ++i) {
      check(text.substr(0, i));
      for (const char c : std::string("x1'\"[]{}=,.#\\\n\r\x01\xff", 18)) {
        std::string changed = text;
        changed[i] = c;
        check(changed);
      }
    }
  }

  void shows_the_text_safely() {
    CPPUNIT_ASSERT_EQUAL(std::string("f:1:5: 'x\\x1bx' is not a value; a string needs quotes"),
                         said("a = x\x1bx"));
    CPPUNIT_ASSERT_EQUAL(
        "f:1:5: '" + std::string(60, 'x') + "...' is not a value; a string needs quotes",
        said("a = " + std::string(100'000, 'x')));
    // Cut between characters.
    std::string word;
    for (int i = 0; i < 50; ++i) word += "ä";
    CPPUNIT_ASSERT_EQUAL(
        "f:1:5: '" + word.substr(0, 60) + "...' is not a value; a string needs quotes",
        said("a = " + word));
    CPPUNIT_ASSERT_EQUAL(std::string("this is not valid TOML"),
                         toml_problem("a", 7, 9, "Error while parsing soup: it is cold"));
  }

 private:
  static void check(const std::string& text) {
    const std::string sentence = said(text);
    for (const char* foreign :
         {"Error", "expected", "saw ", "prohibited", "encountered", "%", "\n"})
      CPPUNIT_ASSERT_MESSAGE(sentence, sentence.find(foreign) == sentence.npos);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(TomlProblemTest);

}  // namespace sublet
