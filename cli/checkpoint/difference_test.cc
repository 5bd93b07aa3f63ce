// What `sublet checkpoint diff` finds.
#include "cli/checkpoint/difference.h"

#include <cppunit/extensions/HelperMacros.h>

#include <cmath>
#include <limits>

#include "cli/checkpoint/testing.h"
#include "cli/checkpoint/values.h"

namespace sublet::cli {
namespace {

class DifferenceTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(DifferenceTest);
  CPPUNIT_TEST(what_only_a_save_changes_does_not_count);
  CPPUNIT_TEST(sections_come_and_go);
  CPPUNIT_TEST(the_first_and_the_largest_difference);
  CPPUNIT_TEST(differences_beyond_the_range_of_the_type);
  CPPUNIT_TEST(values_are_compared_bit_for_bit);
  CPPUNIT_TEST(a_longer_section_is_compared_as_far_as_it_goes);
  CPPUNIT_TEST(streams_are_shown_as_text_or_in_hexadecimal);
  CPPUNIT_TEST(another_program_differs);
  CPPUNIT_TEST(names_cannot_control_a_terminal);
  CPPUNIT_TEST(as_data);
  CPPUNIT_TEST_SUITE_END();

  CheckpointFolder folder_;

  std::string text(const MadeFile& before, const MadeFile& after) {
    const CheckpointFile old(folder_.put("old", before));
    const CheckpointFile now(folder_.put("new", after));
    const CheckpointDifference difference = compare(old, now);
    const std::string said = difference_text(difference, old, now);
    CPPUNIT_ASSERT_EQUAL(said.empty(), difference.none());
    return said;
  }
  std::string text(const MadeSection& before, const MadeSection& after) {
    return text(MadeFile{.sections = {before}}, MadeFile{.sections = {after}});
  }

  void what_only_a_save_changes_does_not_count() {
    const MadeSection x = numbers<int8_t>("x", SUBLET_INT8, {1});
    const MadeSection y = stream("y", "a");
    CPPUNIT_ASSERT_EQUAL(std::string(), text({.sections = {x, y}, .generation = 1},
                                             {.sections = {y, x}, .generation = 9}));
  }

  void sections_come_and_go() {
    const MadeSection x = numbers<int32_t>("x", SUBLET_INT32, {1, 2});
    const MadeSection y = stream("y", "abc");
    const MadeSection float_x = numbers<float>("x", SUBLET_FLOAT32, {1, 2});
    CPPUNIT_ASSERT_EQUAL(std::string("- x: 2 × int32\n+ y: 3 × stream\n"), text(x, y));
    CPPUNIT_ASSERT_EQUAL(std::string("~ x: 2 × int32 → 2 × float32\n"), text(x, float_x));
  }

  // The differences lie in different parts of the file.
  void the_first_and_the_largest_difference() {
    std::vector<double> before(2 * kValuesAtOnce + 10, 1.5);
    std::vector<double> after = before;
    after[kValuesAtOnce + 3] = 1.25;
    after[2 * kValuesAtOnce + 9] = -2;
    CPPUNIT_ASSERT_EQUAL(
        std::string("~ x: 2 of 16394 differ, first [8195]: 1.5 → 1.25, largest difference 3.5\n"),
        text(numbers("x", SUBLET_FLOAT64, before), numbers("x", SUBLET_FLOAT64, after)));
  }

  void differences_beyond_the_range_of_the_type() {
    CPPUNIT_ASSERT_EQUAL(std::string("~ x: 1 of 1 differs, first [0]: -9223372036854775808 → "
                                     "9223372036854775807, largest difference "
                                     "18446744073709551615\n"),
                         text(numbers<int64_t>("x", SUBLET_INT64, {INT64_MIN}),
                              numbers<int64_t>("x", SUBLET_INT64, {INT64_MAX})));
    CPPUNIT_ASSERT_EQUAL(
        std::string("~ x: 1 of 1 differs, first [0]: -128 → 127, largest difference 255\n"),
        text(numbers<int8_t>("x", SUBLET_INT8, {-128}), numbers<int8_t>("x", SUBLET_INT8, {127})));
  }

  void values_are_compared_bit_for_bit() {
    const double nan = std::nan("");
    const double infinity = std::numeric_limits<double>::infinity();
    const auto doubles = [](const std::vector<double>& all) {
      return numbers("x", SUBLET_FLOAT64, all);
    };
    CPPUNIT_ASSERT_EQUAL(std::string(), text(doubles({nan, infinity}), doubles({nan, infinity})));
    CPPUNIT_ASSERT_EQUAL(
        std::string("~ x: 1 of 1 differs, first [0]: 0 → -0, largest difference 0\n"),
        text(doubles({0.0}), doubles({-0.0})));
    CPPUNIT_ASSERT_EQUAL(std::string("~ x: 1 of 1 differs, first [0]: 1 → nan\n"),
                         text(doubles({1}), doubles({nan})));
    CPPUNIT_ASSERT_EQUAL(
        std::string("~ x: 1 of 1 differs, first [0]: -inf → inf, largest difference inf\n"),
        text(doubles({-infinity}), doubles({infinity})));
  }

  void a_longer_section_is_compared_as_far_as_it_goes() {
    CPPUNIT_ASSERT_EQUAL(
        std::string("~ x: 1 × int8 → 2 × int8; 1 of 1 differs, first [0]: 9 → 1, "
                    "largest difference 8\n"),
        text(numbers<int8_t>("x", SUBLET_INT8, {9}), numbers<int8_t>("x", SUBLET_INT8, {1, 0})));
    CPPUNIT_ASSERT_EQUAL(
        std::string("~ x: 1 × int8 → 0 × int8\n"),
        text(numbers<int8_t>("x", SUBLET_INT8, {9}), numbers<int8_t>("x", SUBLET_INT8, {})));
  }

  void streams_are_shown_as_text_or_in_hexadecimal() {
    CPPUNIT_ASSERT_EQUAL(
        std::string("~ x: 1 × stream → 2 × stream; 1 of 1 differs, first [0]; \"9\" → \"10\"\n"),
        text(stream("x", "9"), stream("x", "10")));
    CPPUNIT_ASSERT_EQUAL(std::string("~ x: 1 × stream → 2 × stream; \"1\" → \"10\"\n"),
                         text(stream("x", "1"), stream("x", "10")));
    CPPUNIT_ASSERT_EQUAL(std::string("~ x: 1 of 1 differs, first [0]; hex 1b → \"\\n\"\n"),
                         text(stream("x", "\x1b"), stream("x", "\n")));
  }

  void another_program_differs() {
    CPPUNIT_ASSERT_EQUAL(std::string("program: a → b\nlayout: 1 → 2\n"),
                         text({.program = "a"}, {.program = "b", .layout = 2}));
  }

  void names_cannot_control_a_terminal() {
    const std::string said = text({.sections = {stream("\x1b[2J", "")}, .program = "a\x1b"}, {});
    CPPUNIT_ASSERT_EQUAL(std::string("program: a\\x1b → p\n- \\x1b[2J: 0 × stream\n"), said);
  }

  void as_data() {
    const CheckpointFile old(
        folder_.put("old", {.sections = {numbers<int8_t>("x", SUBLET_INT8, {1})}}));
    const CheckpointFile now(
        folder_.put("new", {.sections = {numbers<int8_t>("x", SUBLET_INT8, {3})}}));
    JsonWriter json;
    write_json(json, compare(old, now), old, now);
    CPPUNIT_ASSERT_MESSAGE(
        json.str(),
        json.str().ends_with(R"("sections":[{"name":"x","kind":"changed","old_type":"int8",)"
                             R"("old_count":1,"new_type":"int8","new_count":1,"differing":1,)"
                             R"("first":0,"old_value":"1","new_value":"3",)"
                             R"("largest_difference":"2"}]})"));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(DifferenceTest);

}  // namespace
}  // namespace sublet::cli
