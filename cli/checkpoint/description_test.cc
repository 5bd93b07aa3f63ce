// What `sublet checkpoint show` says of a file.
#include "cli/checkpoint/description.h"

#include <cppunit/extensions/HelperMacros.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "cli/checkpoint/testing.h"
#include "cli/checkpoint/values.h"

namespace sublet::cli {
namespace {

class DescriptionTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(DescriptionTest);
  CPPUNIT_TEST(every_type_is_read);
  CPPUNIT_TEST(numbers_are_exact);
  CPPUNIT_TEST(the_spread_of_many_parts);
  CPPUNIT_TEST(nans_are_counted_and_left_out);
  CPPUNIT_TEST(streams_are_shown_as_text_or_in_hexadecimal);
  CPPUNIT_TEST(names_cannot_control_a_terminal);
  CPPUNIT_TEST(as_data);
  CPPUNIT_TEST_SUITE_END();

  CheckpointFolder folder_;

  std::vector<std::string> values(const MadeSection& section) {
    const CheckpointFile file = folder_.file({.sections = {section}});
    return first_values(file, file.sections()[0], 10);
  }
  static std::vector<std::string> texts(const std::vector<std::string>& all) { return all; }

  void every_type_is_read() {
    CPPUNIT_ASSERT(values(numbers<int8_t>("x", SUBLET_INT8, {-128, 127})) ==
                   texts({"-128", "127"}));
    CPPUNIT_ASSERT(values(numbers<uint8_t>("x", SUBLET_UINT8, {0, 255})) == texts({"0", "255"}));
    CPPUNIT_ASSERT(values(numbers<int16_t>("x", SUBLET_INT16, {-32768})) == texts({"-32768"}));
    CPPUNIT_ASSERT(values(numbers<uint16_t>("x", SUBLET_UINT16, {65535})) == texts({"65535"}));
    CPPUNIT_ASSERT(values(numbers<int32_t>("x", SUBLET_INT32, {INT32_MIN})) ==
                   texts({"-2147483648"}));
    CPPUNIT_ASSERT(values(numbers<uint32_t>("x", SUBLET_UINT32, {UINT32_MAX})) ==
                   texts({"4294967295"}));
    CPPUNIT_ASSERT(values(numbers<int64_t>("x", SUBLET_INT64, {INT64_MIN})) ==
                   texts({"-9223372036854775808"}));
    CPPUNIT_ASSERT(values(numbers<uint64_t>("x", SUBLET_UINT64, {UINT64_MAX})) ==
                   texts({"18446744073709551615"}));
    CPPUNIT_ASSERT(values(numbers<float>("x", SUBLET_FLOAT32, {0.5F, 0.1F})) ==
                   texts({"0.5", "0.10000000149011612"}));
    CPPUNIT_ASSERT(values(stream("x", "a\n")) == texts({"97", "10"}));
  }

  void numbers_are_exact() {
    for (const double value : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 1e22,
                               std::nextafter(1.0, 2.0), 9007199254740993.0}) {
      const std::string text = value_text(value);
      const double back = strtod(text.c_str(), nullptr);
      CPPUNIT_ASSERT_MESSAGE(text, back == value && std::signbit(back) == std::signbit(value));
    }
    const double infinity = std::numeric_limits<double>::infinity();
    CPPUNIT_ASSERT_EQUAL(std::string("inf"), value_text(infinity));
    CPPUNIT_ASSERT_EQUAL(std::string("-inf"), value_text(-infinity));
    CPPUNIT_ASSERT_EQUAL(std::string("nan"), value_text(std::nan("")));
  }

  // More elements than are read at once, and the extremes at both ends.
  void the_spread_of_many_parts() {
    std::vector<int16_t> many(3 * kValuesAtOnce + 1, 2);
    many.front() = -30000;
    many.back() = 30000;
    const CheckpointFile file =
        folder_.file({.sections = {numbers<int16_t>("x", SUBLET_INT16, many)}});
    const Spread spread = spread_of(file, file.sections()[0]);
    CPPUNIT_ASSERT_EQUAL(std::string("-30000"), *spread.least);
    CPPUNIT_ASSERT_EQUAL(std::string("30000"), *spread.most);
    const double mean = strtod(spread.mean->c_str(), nullptr);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(2.0 * (3 * kValuesAtOnce - 1) / (3 * kValuesAtOnce + 1), mean,
                                 1e-12);
    uint64_t seen = 0;
    for_each_value(file, file.sections()[0], [&](auto) { ++seen; });
    CPPUNIT_ASSERT_EQUAL(uint64_t{many.size()}, seen);
  }

  void nans_are_counted_and_left_out() {
    const double nan = std::nan("");
    const auto spread = [&](const std::vector<double>& all) {
      const CheckpointFile file =
          folder_.file({.sections = {numbers<double>("x", SUBLET_FLOAT64, all)}});
      return spread_of(file, file.sections()[0]);
    };
    const Spread some = spread({nan, 3, nan, 1});
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, some.not_numbers);
    CPPUNIT_ASSERT(*some.least == "1" && *some.most == "3" && *some.mean == "2");
    const Spread none = spread({nan});
    CPPUNIT_ASSERT(none.not_numbers == 1 && !none.least);
    CPPUNIT_ASSERT(!spread({}).least);
  }

  std::string text(const MadeFile& made) { return checkpoint_text(folder_.file(made), 0, false); }

  void says(const std::string& text, const std::string& what) {
    CPPUNIT_ASSERT_MESSAGE(text, text.find(what) != std::string::npos);
  }

  void streams_are_shown_as_text_or_in_hexadecimal() {
    says(text({.sections = {stream("s", "it's\n")}}), "\"it's\\n\"");
    says(text({.sections = {stream("s", std::string("\0\x1b", 2))}}), "hex 001b");
    // 39 letters, and a character of two bytes that the cut parts.
    const std::string letters(39, 'x');
    says(text({.sections = {stream("s", letters + "\xc3\xa4")}}), "\"" + letters + "\" …");
  }

  void names_cannot_control_a_terminal() {
    const std::string shown =
        text({.sections = {stream("\x1b[2J", "\x1b[2J")}, .program = "p\x1b]0;x\x07\n"});
    CPPUNIT_ASSERT_EQUAL(std::string::npos, shown.find('\x1b'));
    CPPUNIT_ASSERT_EQUAL(std::string::npos, shown.find('\x07'));
    says(shown, "\\x1b[2J");
  }

  void as_data() {
    JsonWriter json;
    write_json(json, folder_.file({.sections = {numbers<int8_t>("x", SUBLET_INT8, {-2, 4})}}));
    says(json.str(), R"("sections":[{"name":"x","type":"int8","count":2,"bytes":2,"offset":192,)"
                     R"("least":"-2","most":"4","mean":"1","nans":0,"values":["-2","4"]}]})");
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(DescriptionTest);

}  // namespace
}  // namespace sublet::cli
