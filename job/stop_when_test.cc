#include "job/stop_when.h"

#include <cppunit/extensions/HelperMacros.h>

#include <functional>

#include "job/check.h"

namespace sublet {
namespace {

std::string refused(const std::function<void()>& action) {
  try {
    action();
  } catch (const JobError& r) {
    CPPUNIT_ASSERT(r.kind == JobError::Kind::kInvalid);
    return r.what();
  }
  return "";
}

class StopWhenTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(StopWhenTest);
  CPPUNIT_TEST(details_are_read);
  CPPUNIT_TEST(bad_details_are_refused);
  CPPUNIT_TEST(only_what_can_happen_is_accepted);
  CPPUNIT_TEST(an_arrays_output_is_filled_in);
  CPPUNIT_TEST_SUITE_END();

  static SpecRange array() {
    SpecRange range;
    range.spec.program = "search";
    range.spec.outputs = {{"log", true}, {"key-{part}.txt", false}};
    range.is_array = true;
    range.axes = {{{"part"}, {"a", "b"}}};
    range.count = 2;
    return range;
  }

  void details_are_read() {
    CPPUNIT_ASSERT(!read_stop_when({{"colour", "red"}}).is_set());
    const Details details = {
        {"stop_when.done", "3"}, {"stop_when.output", "key"}, {"stop_when.failed", "1000000"}};
    CPPUNIT_ASSERT((read_stop_when(details) == StopWhen{3, 1'000'000, "key"}));
    CPPUNIT_ASSERT((read_stop_when(details_of({0, 7, "a"})) == StopWhen{0, 7, "a"}));
    CPPUNIT_ASSERT(details_of(StopWhen{}).empty());
  }

  void bad_details_are_refused() {
    const Details bad[] = {{{"stop_when.don", "3"}},
                           {{"stop_when.", "3"}},
                           {{"stop_when.done", "0"}},
                           {{"stop_when.done", ""}},
                           {{"stop_when.done", "3 "}},
                           {{"stop_when.failed", "-1"}},
                           {{"stop_when.failed", "99999999999999999999"}},
                           {{"stop_when.output", ""}},
                           {{"stop_when.done", "1"}, {"stop_when.done", "1"}}};
    for (const Details& details : bad)
      CPPUNIT_ASSERT_MESSAGE(details[0].first, refused([&] { read_stop_when(details); }) != "");
  }

  void only_what_can_happen_is_accepted() {
    const auto check = [](const StopWhen& when) {
      StopWhenCheck jobs(when);
      jobs.add(array());
      jobs.add(SpecRange{});
      return refused([&] { jobs.finish(); });
    };
    CPPUNIT_ASSERT_EQUAL(std::string(), check({3, 3, "key-{part}.txt"}));
    CPPUNIT_ASSERT(check({4, 0, ""}).find("has only 3") != std::string::npos);
    CPPUNIT_ASSERT(check({0, 4, ""}).find("has only 3") != std::string::npos);
    CPPUNIT_ASSERT(check({0, 0, "key.txt"}).find("`key.txt`") != std::string::npos);
  }

  void an_arrays_output_is_filled_in() {
    const auto left = [](const std::set<std::string>& kept) {
      return left_of("key-{part}.txt", array(), 1, kept);
    };
    CPPUNIT_ASSERT_EQUAL(std::string("key-b.txt"), left({"log", "key-b.txt"}));
    CPPUNIT_ASSERT_EQUAL(std::string(), left({"log", "key-a.txt"}));
    CPPUNIT_ASSERT_EQUAL(std::string(), left({"log", "key-{part}.txt"}));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(StopWhenTest);

}  // namespace
}  // namespace sublet
