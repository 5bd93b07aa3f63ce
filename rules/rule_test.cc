#include "rules/rule.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <array>
#include <limits>

namespace sublet::rules {
namespace {

using Strings = std::vector<std::string>;

const Vocabulary& vocabulary() {
  static const Vocabulary words({{"cpu", Type::kNumber, ""},
                                 {"input_idle", Type::kNumber, ""},
                                 {"on_battery", Type::kBoolean, ""},
                                 {"os", Type::kText, ""},
                                 {"programs", Type::kTexts, ""},
                                 {"x", Type::kBoolean, ""},
                                 {"y", Type::kBoolean, ""}});
  return words;
}

constexpr size_t kX = 5, kY = 6;
constexpr std::array<std::string_view, 2> kPrograms = {"blender", "make"};

std::array<Value, 7> values() {
  return {Value::of(0.5),
          Value::of(int64_t{90}),
          Value::of(true),
          Value::of(std::string_view("linux")),
          Value::of(std::span<const std::string_view>(kPrograms)),
          Value(),
          Value()};
}

Rule rule(const std::string& text) { return Rule::parse(text, vocabulary()); }

std::string refusal(const std::string& text) {
  try {
    rule(text);
  } catch (const RuleError& error) {
    return error.what();
  }
  return "accepted";
}

// "1", "0" or "?"
std::string result(const std::string& text) {
  const Truth truth = rule(text).evaluate(values());
  return truth == Truth::kUnknown ? "?" : truth == Truth::kTrue ? "1" : "0";
}

class RuleTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(RuleTest);
  CPPUNIT_TEST(it_is_evaluated);
  CPPUNIT_TEST(what_is_unknown_decides_nothing);
  CPPUNIT_TEST(operators_bind_as_the_standard_says);
  CPPUNIT_TEST(numbers_are_exact);
  CPPUNIT_TEST(nothing_is_calculated_that_cannot_be);
  CPPUNIT_TEST(each_refusal_has_its_place_and_its_advice);
  CPPUNIT_TEST(hostile_texts_are_refused);
  CPPUNIT_TEST(it_is_as_deep_as_it_may_be);
  CPPUNIT_TEST(it_says_which_names_it_uses);
  CPPUNIT_TEST(it_says_when_it_is_always_the_same);
  CPPUNIT_TEST(it_says_why);
  CPPUNIT_TEST(a_formula_is_a_number);
  CPPUNIT_TEST(values_of_the_wrong_type_are_unknown);
  CPPUNIT_TEST(any_bytes_are_parsed_or_refused);
  CPPUNIT_TEST(a_printed_tree_means_the_same);
  CPPUNIT_TEST_SUITE_END();

  static void check(const std::string& expected, const std::string& text) {
    CPPUNIT_ASSERT_EQUAL_MESSAGE(text, expected, result(text));
  }

  void it_is_evaluated() {
    for (const char* text : {"cpu > 0.25",
                             "cpu >= .5",
                             "cpu <= 5e-1",
                             "cpu != 1",
                             "input_idle == 90",
                             "os == 'linux'",
                             "'inu' ~ os",
                             "os < 'm'",
                             "'blender' in programs",
                             "on_battery",
                             "not (cpu > 1)",
                             "exist cpu",
                             "not exist x",
                             "TRUE",
                             "true != FALSE",
                             "-cpu < 0",
                             "cpu + 1 == 1.5",
                             "cpu * 2 - 1 == 0",
                             "1 / 2 == 0.5",
                             "input_idle\n>\t60",
                             "'it\\'s \\\\' == 'it\\'s \\\\'",
                             "'' ~ os",
                             "on_battery == not false"})
      check("1", text);
    for (const char* text : {"cpu > 0.5", "'y' ~ os", "'emacs' in programs", "exist x", "FALSE",
                             "os == 'Linux'", "os == ''"})
      check("0", text);
  }

  void what_is_unknown_decides_nothing() {
    const std::array<std::pair<Truth, std::string>, 3> all = {
        {{Truth::kFalse, "0"}, {Truth::kTrue, "1"}, {Truth::kUnknown, "?"}}};
    const std::string both =
                          "000"
                          "01?"
                          "0??",
                      either =
                          "01?"
                          "111"
                          "?1?";
    const std::string opposite = "10?";
    std::string found_and, found_or, found_not;
    const auto shown = [&](Truth truth) { return all.at(static_cast<size_t>(truth)).second; };
    for (const auto& [x, name] : all) {
      std::array<Value, 7> now = values();
      now[kX] = Value::of(x);
      found_not += shown(rule("not x").evaluate(now));
      for (const auto& [y, other] : all) {
        now[kY] = Value::of(y);
        found_and += shown(rule("x and y").evaluate(now));
        found_or += shown(rule("x or y").evaluate(now));
      }
    }
    CPPUNIT_ASSERT_EQUAL(both, found_and);
    CPPUNIT_ASSERT_EQUAL(either, found_or);
    CPPUNIT_ASSERT_EQUAL(opposite, found_not);
    check("?", "x == y");
    check("?", "x == true");
  }

  void operators_bind_as_the_standard_says() {
    check("1", "true or true and false");
    check("1", "false == false or false");
    check("1", "1 + 2 * 3 == 7");
    check("1", "10 - 2 - 3 == 5");
    check("1", "16 / 4 / 2 == 2");
    check("1", "-2 * -3 == 6");
    check("1", "not false and true");
    check("1", "not on_battery == false");
    check("0", "'a' ~ 'abc' == false");
    check("1", "'make' in programs and 'inux' ~ os");
    check("1", "not not on_battery");
  }

  void numbers_are_exact() {
    check("1", "9223372036854775807 > 9223372036854775806");
    check("1", "9007199254740993 > 9007199254740992.0");
    check("0", "9007199254740993 == 9007199254740992.0");
    check("1", "9223372036854775807 < 9223372036854775808.0");
    check("1", "-9223372036854775807 - 1 == -9223372036854775808.0");
    check("1", "-9223372036854775807 > -1e300");
    check("1", "3 < 3.5");
    check("1", "-3.5 < -3");
    check("1", "0.0 == -0.0");
  }

  void nothing_is_calculated_that_cannot_be() {
    for (const char* text :
         {"1 / 0 > 1", "9223372036854775807 + 1 > 0", "-9223372036854775807 - 2 < 0",
          "9223372036854775807 * 2 > 0", "-(-9223372036854775807 - 1) > 0", "1e308 * 10 > 1"})
      check("?", text);
  }

  void each_refusal_has_its_place_and_its_advice() {
    const auto expect = [](const std::string& message, const std::string& text) {
      CPPUNIT_ASSERT_EQUAL_MESSAGE(text, message, refusal(text));
    };
    expect("column 12: unknown name 'on_batery'; did you mean 'on_battery'?",
           "cpu > 1 or on_batery");
    expect("column 1: unknown name 'z'", "z");
    expect("column 10: '@' cannot stand outside of a text", "cpu < 1  @");
    expect("column 7: this text has no closing quote", "os == 'linux");
    expect("column 9: 'cpu' cannot stand here: an operator such as 'and' is missing here",
           "cpu < 1 cpu");
    expect("column 8: the rule ends too early: a name, a number, a text or '(' is missing here",
           "cpu and");
    expect("column 1: the rule ends too early: a name, a number, a text or '(' is missing here",
           "");
    expect("column 8: the rule ends too early: ')' or an operator such as 'and' is missing here",
           "(cpu<1 ");
    expect("column 8: ')' cannot stand here: an operator such as 'and' is missing here",
           "cpu < 1)");
    expect("column 9: '<' cannot stand here: comparisons cannot be chained; write a < b and b < c",
           "0 < cpu < 1");
    expect("column 1: cannot compare a text with a number", "os < 5");
    expect("column 5: arithmetic needs a number, and 'a' is a text", "1 + 'a' < 2");
    expect("column 1: 'and' needs a truth, and 'cpu' is a number", "cpu and on_battery");
    expect(
        "column 5: 'not' needs a truth, and 'cpu' is a number; to negate a comparison, write not "
        "(a < b)",
        "not cpu < 1");
    expect("column 1: a rule must be a truth, and this is a number; compare it with something",
           "cpu + 1");
    expect("column 1: 'in' needs a list, and 'os' is a text; write 'part' ~ text", "'x' in os");
    expect("column 6: 'x' cannot stand here: a name is missing here", "exist'x'");
    expect("column 5: '=' is no operator; write == to compare", "cpu = 1");
    expect("column 3: '&&' is no operator; write and", "x && y");
    expect("column 1: '!' is no operator; write not", "!x");
    expect("column 7: texts stand in single quotes: 'linux'", "os == \"linux\"");
    expect("column 7: '15min' is no number; numbers have no unit", "cpu > 15min");
    expect("column 7: this number is above 9223372036854775807", "cpu > 9223372036854775808");
    expect("column 7: this number is too large or too small", "cpu > 1e999");
    expect("column 9: '\\b' cannot stand in a text; write \\\\ for a backslash, or \\' for a quote",
           "os == 'a\\b'");
    expect("column 1: lists cannot be compared; write 'name' in list", "programs == programs");
    expect("column 1: truths have no order; compare them with == or !=", "x < y");
    expect("line 2, column 4: unknown name 'cpuu'; did you mean 'cpu'?", "x\nor cpuu < 1");
    expect("column 1: 'ü' cannot stand outside of a text", "ü");
    expect("column 14: unknown name 'z'", "os == 'ü' or z");
  }

  void hostile_texts_are_refused() {
    CPPUNIT_ASSERT_EQUAL(std::string("column 2: the byte 0x00 cannot stand in a rule"),
                         refusal(std::string("x\0y", 3)));
    CPPUNIT_ASSERT_EQUAL(std::string("column 2: the byte 0x1b cannot stand in a rule"),
                         refusal("'\x1b'"));
    for (const char* bytes :
         {"'\xff'", "'\xc0\x80'", "'\xed\xa0\x80'", "'\xf4\x90\x80\x80'", "'\xe2\x82"})
      CPPUNIT_ASSERT_EQUAL(std::string(" is not UTF-8"),
                           refusal(bytes).substr(std::string("column 2: the byte 0xff").size()));
    CPPUNIT_ASSERT(refusal(std::string(5000, ' ')).find("at most 4096 bytes") != std::string::npos);
    CPPUNIT_ASSERT_EQUAL(std::string("column 1: unknown name '") + std::string(60, 'a') + "...'",
                         refusal(std::string(4000, 'a')));
  }

  void it_is_as_deep_as_it_may_be() {
    const auto right = [](size_t n) {
      std::string text;
      for (size_t i = 1; i < n; ++i) text += "x or (";
      return text + "x" + std::string(n - 1, ')');
    };
    CPPUNIT_ASSERT_EQUAL(std::string("?"), result(right(kDeepestRule)));
    CPPUNIT_ASSERT(refusal(right(kDeepestRule + 1)).find("nested more than 64 deep") !=
                   std::string::npos);
    // Neither a long chain nor many parentheses need room.
    std::string chain = "x";
    while (chain.size() < kLongestRule - 5) chain += " or x";
    CPPUNIT_ASSERT_EQUAL(std::string("?"), result(chain));
    CPPUNIT_ASSERT_EQUAL(std::string("1"),
                         result(std::string(2000, '(') + "true" + std::string(2000, ')')));
    std::string nots = "x";
    while (nots.size() < kLongestRule - 4) nots = "not " + nots;
    CPPUNIT_ASSERT_EQUAL(std::string("?"), result(nots));
  }

  void it_says_which_names_it_uses() {
    CPPUNIT_ASSERT(
        (rule("y or cpu > 1 or exist cpu or x").names() == std::vector<size_t>{0, 5, 6}));
    CPPUNIT_ASSERT(rule("1 < 2").names().empty());
  }

  void it_says_when_it_is_always_the_same() {
    CPPUNIT_ASSERT(rule("1 > 2 and cpu > 1").always() == Truth::kFalse);
    CPPUNIT_ASSERT(rule("x or true").always() == Truth::kTrue);
    CPPUNIT_ASSERT(rule("cpu > 1").always() == Truth::kUnknown);
  }

  static void expect_why(const Strings& expected, const std::string& text) {
    CPPUNIT_ASSERT_MESSAGE(text, expected == rule(text).why(values()));
  }

  void it_says_why() {
    expect_why({"cpu > 0.25 (cpu is 0.5)"}, "x or cpu > 0.25 or os == 'bsd'");
    expect_why({"cpu > 1 (cpu is 0.5)", "os == 'bsd' (os is 'linux')"}, "cpu > 1 or os == 'bsd'");
    expect_why({"cpu > 1 (cpu is 0.5)"}, "cpu > 1 and x");
    expect_why({"'make' in programs (programs is [blender, make])"}, "not ('make' in programs)");
    expect_why({"x (x is not known)"}, "x and on_battery");
    expect_why({"cpu + input_idle > cpu (cpu is 0.5, input_idle is 90)"}, "cpu + input_idle > cpu");
    expect_why({"false"}, "false");
  }

  void a_formula_is_a_number() {
    const auto value = [](const char* text) {
      return Formula::parse(text, vocabulary()).evaluate(values());
    };
    CPPUNIT_ASSERT_EQUAL(91.0, value("cpu * 2 + input_idle").value());
    CPPUNIT_ASSERT_EQUAL(-7.0, value("-7").value());
    CPPUNIT_ASSERT(!value("input_idle / (cpu - 0.5)"));
    CPPUNIT_ASSERT(!Formula::parse("cpu", vocabulary()).evaluate({}));
    const auto refusal = [](const char* text) {
      try {
        Formula::parse(text, vocabulary());
      } catch (const RuleError& error) {
        return std::string(error.what());
      }
      return std::string("accepted");
    };
    CPPUNIT_ASSERT_EQUAL(std::string("column 1: this must be a number, and this is a truth"),
                         refusal("cpu > 1"));
    CPPUNIT_ASSERT_EQUAL(std::string("column 1: this must be a number, and this is a text"),
                         refusal("os"));
    CPPUNIT_ASSERT_EQUAL(std::string("column 1: arithmetic needs a number, and 'os' is a text"),
                         refusal("os + 1"));
  }

  void values_of_the_wrong_type_are_unknown() {
    std::array<Value, 7> now = values();
    now[0] = Value::of(true);
    CPPUNIT_ASSERT(rule("cpu > 0.1").evaluate(now) == Truth::kUnknown);
    CPPUNIT_ASSERT(rule("cpu > 0.1").evaluate({}) == Truth::kUnknown);
    now[0] = Value::of(std::numeric_limits<double>::quiet_NaN());
    CPPUNIT_ASSERT(rule("cpu > 0.1 or cpu <= 0.1").evaluate(now) == Truth::kUnknown);
  }

  void any_bytes_are_parsed_or_refused() {
    const bool bytes = rc::check("any bytes", [](const std::string& text) { refusal(text); });
    CPPUNIT_ASSERT(bytes);
    const Strings words = {"or", "and",      "not", "in",  "exist", "true", "cpu", "x",
                           "os", "programs", "1",   "2.5", "'a'",   "==",   "<",   "~",
                           "+",  "-",        "/",   "(",   ")",     "'"};
    const bool sentences = rc::check("any words", [&] {
      std::string text;
      for (const auto& word : *rc::gen::container<Strings>(rc::gen::elementOf(words)))
        text += word + " ";
      if (refusal(text) == "accepted") result(text);
    });
    CPPUNIT_ASSERT(sentences);
  }

  // A random truth, as text and as what it is.
  static std::pair<std::string, Truth> tree(int depth, const std::array<Value, 7>& now) {
    const int kind = *rc::gen::inRange(0, depth > 0 ? 5 : 2);
    if (kind == 0) {
      const size_t name = *rc::gen::element(kX, kY);
      return {vocabulary()[name].name, now[name].truth()};
    }
    if (kind == 1) {
      const auto a = *rc::gen::inRange<int64_t>(-3, 4), b = *rc::gen::inRange<int64_t>(-3, 4);
      return {std::to_string(a) + " < " + std::to_string(b) + ".0",
              a < b ? Truth::kTrue : Truth::kFalse};
    }
    const auto [left, a] = tree(depth - 1, now);
    if (kind == 2) {
      const Truth not_a = a == Truth::kUnknown ? a
                          : a == Truth::kFalse ? Truth::kTrue
                                               : Truth::kFalse;
      return {"not (" + left + ")", not_a};
    }
    const auto [right, b] = tree(depth - 1, now);
    const Truth strong = kind == 3 ? Truth::kFalse : Truth::kTrue;
    const Truth weak = kind == 3 ? Truth::kTrue : Truth::kFalse;
    const Truth both = a == strong || b == strong ? strong
                       : a == weak && b == weak   ? weak
                                                  : Truth::kUnknown;
    return {"(" + left + (kind == 3 ? ") and (" : ") or (") + right + ")", both};
  }

  void a_printed_tree_means_the_same() {
    const bool same = rc::check("trees", [] {
      std::array<Value, 7> now = values();
      for (const size_t name : {kX, kY})
        now[name] = Value::of(*rc::gen::element(Truth::kFalse, Truth::kTrue, Truth::kUnknown));
      const auto [text, expected] = tree(5, now);
      RC_ASSERT((rule(text).evaluate(now) == expected));
    });
    CPPUNIT_ASSERT(same);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(RuleTest);

}  // namespace
}  // namespace sublet::rules
