#include "job/output_name.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fnmatch.h>
#include <rapidcheck.h>

#include <stdexcept>

namespace sublet {
namespace {

class OutputNameTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OutputNameTest);
  CPPUNIT_TEST(files_folders_and_patterns);
  CPPUNIT_TEST(what_patterns_match);
  CPPUNIT_TEST(bytes_that_are_no_text);
  CPPUNIT_TEST(streams_are_no_outputs);
  CPPUNIT_TEST(names_that_are_none);
  CPPUNIT_TEST(quoted_text_stands_for_itself);
  CPPUNIT_TEST(patterns_match_as_the_shell_s);
  CPPUNIT_TEST(nothing_outside_is_covered);
  CPPUNIT_TEST(a_hostile_pattern_takes_no_time);
  CPPUNIT_TEST_SUITE_END();

  static std::string wrong(const std::string& name) {
    try {
      OutputName output(name);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  }

  void files_folders_and_patterns() {
    CPPUNIT_ASSERT(OutputName("a/b.txt").is_file());
    CPPUNIT_ASSERT_EQUAL(std::string("a/b*"), OutputName("a/b\\*").file());
    CPPUNIT_ASSERT(!OutputName("results/").is_file() && OutputName("results/").is_folder());
    CPPUNIT_ASSERT(!OutputName("*.png").is_file() && !OutputName("*.png").is_folder());
    CPPUNIT_ASSERT(OutputName("run-*/").is_folder());
    CPPUNIT_ASSERT_EQUAL(size_t{2}, OutputName("results/x/").depth());
    CPPUNIT_ASSERT_EQUAL(std::string("results"), OutputName("results/*").literal(0));
    CPPUNIT_ASSERT(!OutputName("results/*").is_literal(1));
  }

  void what_patterns_match() {
    const struct {
      const char* output;
      const char* file;
      bool covered;
    } cases[] = {
        {"a", "a", true},
        {"a", "a/b", false},
        {"a", "b", false},
        {"r/", "r/a", true},
        {"r/", "r/.hidden/x", true},
        {"r/", "r", false},
        {"r/", "x/r/a", false},
        {"*.png", "x.png", true},
        {"*.png", ".png", false},
        {"*.png", "d/x.png", false},
        {"d/*", "d/x", true},
        {"d/*", "d/.x", false},
        {"d/.*", "d/.x", true},
        {"?", "ab", false},
        {"?", "\xc3\xa4", true},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[^a-c]x", "bx", false},
        {"[]x]", "]", true},
        {"[a-]", "-", true},
        {"[\\]a]", "]", true},
        {"[\xc3\xa4-\xc3\xbc]", "\xc3\xb6", true},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"a\\[1]", "a[1]", true},
        {"r-*/o?", "r-1/o2", true},
        {"r-*/", "r-1/deep/x", true},
        {"*/", "x", false},
        {"**a", "bba", true},
        {"*a*b*", "xaxbx", true},
        {"*a*b", "xaxbx", false},
        {"*", "new\nline", true},
    };
    for (const auto& c : cases)
      CPPUNIT_ASSERT_EQUAL_MESSAGE(std::string(c.output) + " and " + c.file, c.covered,
                                   covers(c.output, c.file));
  }

  void bytes_that_are_no_text() {
    CPPUNIT_ASSERT(covers("?\xff?", "\xfe\xff\x80"));
    CPPUNIT_ASSERT(covers("*\xff", "a\xff"));
    CPPUNIT_ASSERT(covers("?", "\xc3"));
    CPPUNIT_ASSERT(!covers("?", "\xc3\x41"));
  }

  void streams_are_no_outputs() {
    CPPUNIT_ASSERT(!covers("*", "stdout") && !covers("std???", "stderr"));
    CPPUNIT_ASSERT(covers("d/*", "d/stdout"));
    CPPUNIT_ASSERT(wrong("stdout") != "" && wrong("stderr") != "");
  }

  void names_that_are_none() {
    for (const char* name : {"", "/", "/a", "..", "../a", "a/..", "a/../b", ".", "a/./b", "a//b",
                             "a//", "[a", "a[", "[a/b]", "a\\", "a\\b", "[b-a]", "[!]"})
      CPPUNIT_ASSERT_MESSAGE(name, wrong(name) != "");
    CPPUNIT_ASSERT(wrong(std::string("a\0b", 3)) != "");
    CPPUNIT_ASSERT(wrong(std::string(4097, 'a')) != "");
    std::string deep = "a";
    for (int i = 1; i < 64; ++i) deep += "/a";
    CPPUNIT_ASSERT_EQUAL(std::string(), wrong(deep));
    CPPUNIT_ASSERT(wrong(deep + "/a") != "");
  }

  void quoted_text_stands_for_itself() {
    CPPUNIT_ASSERT(rc::check("quoted text stands for itself", [] {
      const auto text = *rc::gen::nonEmpty(rc::gen::container<std::string>(
          rc::gen::element('a', '*', '?', '[', ']', '\\', '-', '!', '\n', '\xff')));
      RC_ASSERT(OutputName(quote_output(text)).is_file());
      RC_ASSERT(OutputName(quote_output(text)).file() == text);
    }));
  }

  // Must agree with fnmatch on common patterns; fnmatch also supports collating symbols.
  void patterns_match_as_the_shell_s() {
    const auto characters = [](auto... c) {
      return rc::gen::container<std::string>(rc::gen::element(c...));
    };
    CPPUNIT_ASSERT(rc::check("as the shell's patterns", [&] {
      const auto pattern =
          *characters('a', 'b', 'a', '*', '*', '?', '[', ']', '!', '-', '\\', '.', '/');
      const auto file = *characters('a', 'b', 'a', 'b', '.', '/', '-', ']');
      const bool collates = pattern.find("[.") != std::string::npos;
      const bool is_name = wrong(quote_output(file)).empty() && !file.ends_with('/');
      if (collates || !is_name || !wrong(pattern).empty() || pattern.ends_with('/')) return;
      const bool shell = fnmatch(pattern.c_str(), file.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
      RC_ASSERT(covers(pattern, file) == shell);
    }));
  }

  void nothing_outside_is_covered() {
    CPPUNIT_ASSERT(rc::check("nothing outside is covered", [] {
      const auto output = *rc::gen::container<std::string>(
          rc::gen::element('a', '.', '.', '/', '*', '?', '[', ']', '\\'));
      const auto parts = *rc::gen::container<std::vector<std::string>>(
          rc::gen::element<std::string>("a", ".", "..", ""));
      std::string file;
      bool leaves = parts.empty();
      for (const auto& part : parts) {
        file += (&part == &parts[0] ? "" : "/") + part;
        leaves |= part != "a";
      }
      RC_ASSERT(!(leaves && covers(output, file)));
    }));
  }

  // With exponential backtracking this would never finish.
  void a_hostile_pattern_takes_no_time() {
    std::string pattern;
    for (int i = 0; i < 1000; ++i) pattern += "*a";
    CPPUNIT_ASSERT(!covers(pattern + "b", std::string(4000, 'a')));
    CPPUNIT_ASSERT(covers(pattern, std::string(4000, 'a')));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(OutputNameTest);

}  // namespace
}  // namespace sublet
