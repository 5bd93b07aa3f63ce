#include "job/axis.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <set>

namespace sublet {
namespace {

class AxisTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AxisTest);
  CPPUNIT_TEST(each_combination_once);
  CPPUNIT_TEST(last_axis_changes_fastest);
  CPPUNIT_TEST(values_are_put_in_once);
  CPPUNIT_TEST(places_are_counted);
  CPPUNIT_TEST_SUITE_END();

  void each_combination_once() {
    CPPUNIT_ASSERT(rc::check("each combination once", [] {
      std::vector<Axis> axes;
      uint64_t product = 1;
      for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
        const auto rows = *rc::gen::inRange<uint64_t>(1, 6);
        Axis axis{{"p" + std::to_string(i)}, {}, 0, 0, 1};
        if (*rc::gen::arbitrary<bool>()) {
          axis.range_count = rows;
          axis.step = -3;
        } else {
          for (uint64_t row = 0; row < rows; ++row) axis.values.push_back(std::to_string(row));
        }
        product *= rows;
        axes.push_back(axis);
      }
      std::set<Values> seen;
      for (uint64_t k = 0; k < product; ++k) RC_ASSERT(seen.insert(values_at(axes, k)).second);
    }));
  }

  void last_axis_changes_fastest() {
    const std::vector<Axis> axes = {{{"a", "b"}, {"1", "x", "2", "y"}, 0, 0, 1},
                                    {{"c"}, {}, 3, 10, 5}};
    std::string all;
    for (uint64_t k = 0; k < 6; ++k) all += fill("{a}{b}{c} ", values_at(axes, k));
    CPPUNIT_ASSERT_EQUAL(std::string("1x10 1x15 1x20 2y10 2y15 2y20 "), all);
  }

  void values_are_put_in_once() {
    const Values values = {{"a", "{b}"}, {"b", "{a}{a}"}};
    CPPUNIT_ASSERT_EQUAL(std::string("{b} {a}{a} {c} {} {{b}} {"),
                         fill("{a} {b} {c} {} {{a}} {", values));
    CPPUNIT_ASSERT_EQUAL(std::string("{x{b}"), fill("{x{a}", values));
    CPPUNIT_ASSERT_EQUAL(std::string(""), fill("", values));
  }

  void places_are_counted() {
    const Values values = {{"a", "123"}, {"b", ""}};
    const Places places = places_of("{a}{b}{c}{a}", values);
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, places.count);
    CPPUNIT_ASSERT_EQUAL(uint64_t{6}, places.bytes);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(AxisTest);

}  // namespace
}  // namespace sublet
