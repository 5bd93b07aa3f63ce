#include "base/text.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>

namespace sublet {

class TextTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(TextTest);
  CPPUNIT_TEST(encodings_come_back);
  CPPUNIT_TEST(bad_encodings_are_refused);
  CPPUNIT_TEST(words_of_a_shell);
  CPPUNIT_TEST(durations);
  CPPUNIT_TEST(duration_comes_back_nearly);
  CPPUNIT_TEST(sizes);
  CPPUNIT_TEST(instants);
  CPPUNIT_TEST(nearest_words);
  CPPUNIT_TEST(utf8_is_told_from_bytes);
  CPPUNIT_TEST(hostile_bytes_are_escaped);
  CPPUNIT_TEST(escaped_text_is_one_safe_line);
  CPPUNIT_TEST(text_fits_its_column);
  CPPUNIT_TEST(tables);
  CPPUNIT_TEST_SUITE_END();

 public:
  void encodings_come_back() {
    CPPUNIT_ASSERT(rc::check("encodings", [](const std::string& bytes) {
      RC_ASSERT(hex_decode(hex_encode(bytes)) == bytes);
      const std::string encoded = percent_encode(bytes);
      RC_ASSERT(percent_decode(encoded) == bytes);
      RC_ASSERT(encoded.find('/') == std::string::npos);
      RC_ASSERT(encoded.find('\0') == std::string::npos);
    }));
    CPPUNIT_ASSERT_EQUAL(std::string("a%2Fb%20c%FF"), percent_encode("a/b c\xff"));
  }

  void bad_encodings_are_refused() {
    CPPUNIT_ASSERT(!hex_decode("abc"));
    CPPUNIT_ASSERT(!hex_decode("zz"));
    CPPUNIT_ASSERT(!percent_decode("%"));
    CPPUNIT_ASSERT(!percent_decode("a%2"));
    CPPUNIT_ASSERT(!percent_decode("%g0"));
  }

  void words_of_a_shell() {
    CPPUNIT_ASSERT_EQUAL(std::string("results/a-1.txt"), quote_for_shell("results/a-1.txt"));
    CPPUNIT_ASSERT_EQUAL(std::string("''"), quote_for_shell(""));
    CPPUNIT_ASSERT_EQUAL(std::string("'my folder'"), quote_for_shell("my folder"));
    CPPUNIT_ASSERT_EQUAL(std::string("'it'\\''s;$x'"), quote_for_shell("it's;$x"));
  }

  void durations() {
    CPPUNIT_ASSERT_EQUAL(std::string("250 ms"), format_duration_ms(250));
    CPPUNIT_ASSERT_EQUAL(std::string("1.5 s"), format_duration_ms(1500));
    CPPUNIT_ASSERT_EQUAL(std::string("59.9 s"), format_duration_ms(59'999));
    CPPUNIT_ASSERT_EQUAL(std::string("2 min 3 s"), format_duration_ms(123'000));
    CPPUNIT_ASSERT_EQUAL(std::string("2 h 3 min"), format_duration_ms(7'380'000));
    CPPUNIT_ASSERT_EQUAL(std::string("4 d"), format_duration_ms(4 * 86'400'000LL));
    CPPUNIT_ASSERT_EQUAL(std::string("-2 s"), format_duration_ms(-2000));
    CPPUNIT_ASSERT_EQUAL(int64_t{30'000}, *parse_duration_ms("30"));
    CPPUNIT_ASSERT_EQUAL(int64_t{30'000}, *parse_duration_ms(" 30 s "));
    CPPUNIT_ASSERT_EQUAL(int64_t{250}, *parse_duration_ms("250ms"));
    CPPUNIT_ASSERT_EQUAL(int64_t{5'400'000}, *parse_duration_ms("1.5 h"));
    CPPUNIT_ASSERT_EQUAL(int64_t{3'723'000}, *parse_duration_ms("1 h 2 min 3 s"));
    for (const char* bad : {"", " ", "s", "-1", "1 x", "1 s 2", "1 2", "1e3", "1..2 s", "inf",
                            "9999999999999999 d", "1\n"}) {
      CPPUNIT_ASSERT_MESSAGE(bad, !parse_duration_ms(bad));
    }
  }

  void duration_comes_back_nearly() {
    CPPUNIT_ASSERT(rc::check("durations", [] {
      const int64_t ms = *rc::gen::inRange<int64_t>(0, 1'000'000'000'000);
      const auto back = parse_duration_ms(format_duration_ms(ms));
      RC_ASSERT(back.has_value());
      RC_ASSERT(*back <= ms);
      RC_ASSERT(ms - *back < std::max<int64_t>(100, ms / 20));
    }));
  }

  void sizes() {
    CPPUNIT_ASSERT_EQUAL(std::string("999 B"), format_bytes(999));
    CPPUNIT_ASSERT_EQUAL(std::string("21.3 KiB"), format_bytes(21'850 - 1));
    CPPUNIT_ASSERT_EQUAL(std::string("1 MiB"), format_bytes((1 << 20) - 1));
    CPPUNIT_ASSERT_EQUAL(std::string("64 MiB"), format_bytes(64 << 20));
    CPPUNIT_ASSERT_EQUAL(std::string("16 EiB"), format_bytes(UINT64_MAX));
    CPPUNIT_ASSERT_EQUAL(uint64_t{64} << 20, *parse_bytes("64 MiB"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{1'500'000}, *parse_bytes("1.5MB"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{4096}, *parse_bytes("4096"));
    CPPUNIT_ASSERT(!parse_bytes("64 miles"));
    CPPUNIT_ASSERT(!parse_bytes("-1"));
  }

  void instants() {
    CPPUNIT_ASSERT_EQUAL(std::string("1970-01-01T00:00:00Z"), format_instant(0));
    CPPUNIT_ASSERT_EQUAL(std::string("2026-02-03T04:05:06.789Z"),
                         format_instant_ms(1'770'091'506'789'999));
    CPPUNIT_ASSERT_EQUAL(std::string("1969-12-31T23:59:59.999Z"), format_instant_ms(-1));
  }

  void nearest_words() {
    const std::vector<std::string> words = {"submit", "show", "wait", "machines"};
    CPPUNIT_ASSERT_EQUAL(std::string("submit"), nearest_word("sumbit", words));
    CPPUNIT_ASSERT_EQUAL(std::string("machines"), nearest_word("mach", words));
    CPPUNIT_ASSERT_EQUAL(std::string("wait"), nearest_word("WAIT", words));
    CPPUNIT_ASSERT_EQUAL(std::string(), nearest_word("frobnicate", words));
    CPPUNIT_ASSERT_EQUAL(std::string(), nearest_word(std::string(100'000, 's'), words));
  }

  void utf8_is_told_from_bytes() {
    for (const char* good : {"", "plain", "æøå", "€", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
      CPPUNIT_ASSERT_MESSAGE(good, is_utf8(good));
      CPPUNIT_ASSERT_EQUAL(std::string(good), to_utf8(good));
    }
    for (const char* bad : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xff",
                            "\xf4\x90\x80\x80", "\xf0\x9f\x98", "\xc3("}) {
      CPPUNIT_ASSERT_MESSAGE(hex_encode(bad), !is_utf8(bad));
      CPPUNIT_ASSERT_MESSAGE(hex_encode(bad), is_utf8(to_utf8(bad)));
    }
  }

  void hostile_bytes_are_escaped() {
    CPPUNIT_ASSERT_EQUAL(std::string("a\\nb\\tc\\\\d"), escape_for_terminal("a\nb\tc\\d"));
    CPPUNIT_ASSERT_EQUAL(std::string("\\x1b[31m\\x07\\x7f\\x00"),
                         escape_for_terminal({"\x1b[31m\x07\x7f\0", 8}));
    CPPUNIT_ASSERT_EQUAL(std::string("\\u009b\\u202e\\u2028"),
                         escape_for_terminal("\xc2\x9b\xe2\x80\xae\xe2\x80\xa8"));
    CPPUNIT_ASSERT_EQUAL(std::string("\\xff\\xc3("), escape_for_terminal("\xff\xc3("));
    CPPUNIT_ASSERT_EQUAL(std::string("Åse €"), escape_for_terminal("Åse €"));
  }

  void escaped_text_is_one_safe_line() {
    CPPUNIT_ASSERT(rc::check("escape", [](const std::string& bytes) {
      const std::string safe = escape_for_terminal(bytes);
      RC_ASSERT(is_utf8(safe));
      RC_ASSERT(std::none_of(safe.begin(), safe.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
      }));
    }));
  }

  void text_fits_its_column() {
    CPPUNIT_ASSERT_EQUAL(std::string("ab   "), fit("ab", 5));
    CPPUNIT_ASSERT_EQUAL(std::string("   ab"), fit("ab", 5, true));
    CPPUNIT_ASSERT_EQUAL(std::string("abcd…"), fit("abcdefgh", 5));
    CPPUNIT_ASSERT_EQUAL(std::string("日… "), fit("日本語", 4));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, display_width("e\xcc\x81"));
    CPPUNIT_ASSERT(rc::check("fit", [](const std::string& bytes, uint8_t width) {
      RC_ASSERT(display_width(fit(escape_for_terminal(bytes), width)) == width);
    }));
  }

  void tables() {
    const std::vector<std::vector<std::string>> rows = {
        {"ID", "NAME", "STATE"}, {"7", "letters", "idle"}, {"1234", "a long name indeed"}};
    CPPUNIT_ASSERT_EQUAL(std::string("  ID  NAME                STATE\n"
                                     "   7  letters             idle\n"
                                     "1234  a long name indeed\n"),
                         format_table(rows, {true}, 0));
    CPPUNIT_ASSERT_EQUAL(std::string("  ID  NAME     STATE\n"
                                     "   7  letters  idle\n"
                                     "1234  a long…\n"),
                         format_table(rows, {true}, 20));
    CPPUNIT_ASSERT_EQUAL(std::string(), format_table({}, {}, 80));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(TextTest);

}  // namespace sublet
