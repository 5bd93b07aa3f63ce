#include "cli/batch/references.h"

#include <cppunit/extensions/HelperMacros.h>

#include "base/options/toml_document.h"
#include "cli/batch/file.h"

namespace sublet::cli {
namespace {

class ReferencesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ReferencesTest);
  CPPUNIT_TEST(names_elements_and_ids);
  CPPUNIT_TEST(several_jobs_of_one_name);
  CPPUNIT_TEST(defaults_are_replaced);
  CPPUNIT_TEST(what_is_not_there);
  CPPUNIT_TEST(what_becomes_of_the_rest);
  CPPUNIT_TEST(outputs_of_other_jobs);
  CPPUNIT_TEST(element_by_element);
  CPPUNIT_TEST_SUITE_END();

  static constexpr const char* kMesh = "[[job]]\nname = 'mesh'\nprogram = 'x'\ncount = 10\n";

  static BatchPlan parse(const std::string& text) { return parse_batch(text, "b.toml", "dir"); }
  static std::string error_of(const std::string& text) {
    try {
      parse(text);
    } catch (const DocumentError& e) {
      return e.what();
    }
    return "no error";
  }

 public:
  void names_elements_and_ids() {
    const BatchPlan plan = parse(std::string(kMesh) +
                                 "[[job]]\nprogram = 'y'\nafter = ['mesh', 17, '20-29']\n"
                                 "after_any = ['mesh[3]']\nafter_start = ['z']\n"
                                 "[[job]]\nprogram = 'z'\n");
    const Dependences& waits_for = plan.jobs.at(1).what.waits_for;
    CPPUNIT_ASSERT(
        (waits_for.after == JobReferences{{true, 0, 10}, {false, 17, 1}, {false, 20, 10}}));
    CPPUNIT_ASSERT((waits_for.after_any == JobReferences{{true, 3, 1}}));
    CPPUNIT_ASSERT((waits_for.after_start == JobReferences{{true, 11, 1}}));
    CPPUNIT_ASSERT(plan.jobs.at(0).what.waits_for.empty());
  }

  // Neighbours are one range, also those that their inputs tell apart.
  void several_jobs_of_one_name() {
    const BatchPlan plan = parse(
        "[[job]]\nname = 'a'\nprogram = 'x'\ninputs = ['{n}.txt']\n"
        "parameters = { n = [1, 2, 3] }\n[[job]]\nprogram = 'b'\nafter = ['a[2]']\n"
        "[[job]]\nname = 'a'\nprogram = 'x'\n[[job]]\nprogram = 'c'\nafter = ['a', 'a[3]']\n");
    CPPUNIT_ASSERT((plan.jobs.at(3).what.waits_for.after == JobReferences{{true, 2, 1}}));
    CPPUNIT_ASSERT((plan.jobs.at(5).what.waits_for.after ==
                    JobReferences{{true, 0, 3}, {true, 4, 1}, {true, 4, 1}}));
  }

  void defaults_are_replaced() {
    const BatchPlan plan = parse(
        "[defaults]\nprogram = 'x'\nafter = [5]\n[[job]]\nafter = [6]\n"
        "[[job]]\n[[job]]\nafter = []\n");
    CPPUNIT_ASSERT((plan.jobs.at(0).what.waits_for.after == JobReferences{{false, 6, 1}}));
    CPPUNIT_ASSERT((plan.jobs.at(1).what.waits_for.after == JobReferences{{false, 5, 1}}));
    CPPUNIT_ASSERT(plan.jobs.at(2).what.waits_for.empty());
  }

  void what_is_not_there() {
    const auto with = [](const std::string& after) {
      return error_of(std::string(kMesh) + "[[job]]\nprogram = 'y'\nafter = [" + after + "]\n");
    };
    CPPUNIT_ASSERT_EQUAL(
        std::string("b.toml:7:10: no job of this batch is called 'mash'; did you mean 'mesh'?"),
        with("'mash'"));
    CPPUNIT_ASSERT_EQUAL(
        std::string("b.toml:7:10: there is no job mesh[10]: 10 are called 'mesh', counted from 0"),
        with("'mesh[10]'"));
    CPPUNIT_ASSERT_EQUAL(std::string("b.toml:7:10: 'mesh[x]' is not one of the jobs called "
                                     "'mesh': write mesh[0] for the first"),
                         with("'mesh[x]'"));
    CPPUNIT_ASSERT(with("'20-10'").starts_with("b.toml:7:10: "));
    CPPUNIT_ASSERT(with("0").starts_with("b.toml:7:10: "));
    CPPUNIT_ASSERT_EQUAL(
        std::string(
            "b.toml:7:10: after must name jobs by strings and ids, not by a number with a point"),
        with("1.5"));
  }

  void what_becomes_of_the_rest() {
    CPPUNIT_ASSERT(parse(kMesh).on_never == OnNever::kHold);
    CPPUNIT_ASSERT(parse("[batch]\nnever_satisfied = 'remove'\n" + std::string(kMesh)).on_never ==
                   OnNever::kRemove);
    CPPUNIT_ASSERT_EQUAL(std::string("b.toml:2:19: never_satisfied must be hold or remove"),
                         error_of("[batch]\nnever_satisfied = 'kill'\n" + std::string(kMesh)));
  }

  void outputs_of_other_jobs() {
    const BatchPlan plan =
        parse(std::string(kMesh) +
              "[[job]]\nprogram = 'y'\ninputs = [{ job = 'mesh[2]', output = 'out/a' }, "
              "{ job = 17, output = 'b', name = 'c' }]\n");
    const std::vector<InputFile> expected = {{0, "a", false, {true, 2, "out/a"}},
                                             {0, "c", false, {false, 17, "b"}}};
    CPPUNIT_ASSERT(plan.jobs.at(1).what.inputs == expected);
    CPPUNIT_ASSERT(plan.jobs.at(1).inputs.empty());
    const auto with = [](const std::string& input) {
      return error_of(std::string(kMesh) + "[[job]]\nprogram = 'y'\ninputs = [{ " + input +
                      " }]\n");
    };
    CPPUNIT_ASSERT_EQUAL(std::string("b.toml:7:11: 'mesh' are several jobs: name the one whose "
                                     "output it is, such as NAME[0]"),
                         with("job = 'mesh', output = 'a'"));
    CPPUNIT_ASSERT_EQUAL(std::string("b.toml:7:11: an input from another job needs job and output"),
                         with("job = 'mesh[0]'"));
    CPPUNIT_ASSERT(with("job = 'mesh[0]', output = '../a'").starts_with("b.toml:7:"));
  }

  void element_by_element() {
    const BatchPlan plan =
        parse(std::string(kMesh) +
              "[[job]]\nprogram = 'y'\ncount = 3\n"
              "inputs = [{ job = 'mesh[{index}]', output = 'o-{index}', name = 'in' }]\n"
              "[[job]]\nprogram = 'z'\ncount = 2\nafter_any = ['mesh[{index}]']\n");
    CPPUNIT_ASSERT_EQUAL(size_t{6}, plan.jobs.size());
    CPPUNIT_ASSERT((plan.jobs[3].what.inputs.at(0) == InputFile{0, "in", false, {true, 2, "o-2"}}));
    CPPUNIT_ASSERT((plan.jobs[5].what.waits_for.after_any == JobReferences{{true, 1, 1}}));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ReferencesTest);
}  // namespace
}  // namespace sublet::cli
