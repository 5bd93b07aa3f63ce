#include "cli/batch/equal_outputs.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "cli/batch/file.h"
#include "cli/transfer/fetching.h"

namespace sublet::cli {
namespace {

class EqualOutputsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(EqualOutputsTest);
  CPPUNIT_TEST(files);
  CPPUNIT_TEST(folders);
  CPPUNIT_TEST(what_may_be_equal);
  CPPUNIT_TEST(values_of_parameters);
  CPPUNIT_TEST(where_they_stand);
  CPPUNIT_TEST(many_names);
  CPPUNIT_TEST(says_what_was_not_compared);
  CPPUNIT_TEST(finds_what_cannot_be_fetched);
  CPPUNIT_TEST_SUITE_END();

  static BatchPlan parse(const std::string& jobs) {
    return parse_batch("[defaults]\nprogram = \"a\"\n" + jobs, "b.toml", "");
  }
  // "NAME", "NAME in FOLDER" or "".
  static std::string equal(const std::string& jobs) {
    const EqualOutputs found = find_equal_outputs(parse(jobs));
    return found.name + (found.inside.empty() ? "" : " in " + found.inside);
  }
  static std::string job(const std::string& outputs) {
    return "[[job]]\noutputs = [" + outputs + "]\n";
  }
  static void expect(const std::string& expected, const std::string& jobs) {
    CPPUNIT_ASSERT_EQUAL(expected, equal(jobs));
  }

  void files() {
    const std::string one = job("\"out\"");
    expect("", one);
    expect("out", one + one);
    expect("out", one + "count = 2\n");
    const std::string by_index = "[[job]]\ncount = 3\noutputs = [\"w-{index}\"]\n";
    expect("", by_index);
    expect("w-2", by_index + job("\"w-2\""));
    expect("", by_index + job("\"w-3\""));
    const std::string sweep =
        "[[job]]\nparameters = { a = [1, 2], b = [1, 2] }\narguments = "
        "[\"{a}\", \"{b}\"]\noutputs = [\"";
    expect("1", sweep + "{a}\"]");
    expect("", sweep + "{a}-{b}\"]");
  }

  void folders() {
    const std::string folder = job("\"d/\"");
    expect("", folder);
    expect("d/", folder + folder);
    expect("d/", folder + "count = 3\n");
    expect("d/x in d/", folder + job("\"d/x\""));
    expect("d/x in d/", job("\"d/x\"") + folder);
    expect("d/x in d", job("\"d\"") + job("\"d/x\""));
    expect("d/e/ in d/", folder + job("\"d/e/\""));
    expect("d/e/x in d/", folder + job("\"c\", \"d/e/x\""));
    expect("d", folder + job("\"d\""));
    expect("d-/x in d-/", job("\"d\", \"d-/\"") + job("\"d-/x\""));
    expect("", job("\"d/x\"") + job("\"d/y\"") + job("\"d.x\"") + job("\"dx/\""));
    expect("", "[[job]]\ncount = 3\noutputs = [\"d/{index}/\", \"d/{index}.log\"]\n");
    expect("1/x in 1/", "[[job]]\ncount = 3\noutputs = [\"{index}/\"]\n" + job("\"1/x\""));
  }

  void what_may_be_equal() {
    // Only one of the jobs may leave it; and patterns may match different files.
    expect("",
           "[[job]]\ncount = 2\noutputs = [{ name = \"key\", required = false }, "
           "{ name = \"d/\", required = false }, \"*.png\", \"run-*/\", \"d/*\"]\n");
    // One job's outputs are stored once, however many of its names they match.
    expect("", job("\"d/\", \"d/x\""));
    expect("", "[[job]]\nparameters = { a = [1], b = [1] }\noutputs = [\"{a}\", \"{b}\"]\n");
    expect("d/y in d/", job("\"d/\", \"d/x\"") + job("\"d/y\""));
  }

  void values_of_parameters() {
    // A quoted character is the character; and in a value it needs no quotes.
    expect("a*",
           job("\"a\\\\*\"") + "[[job]]\nparameters = { n = [\"a*\"] }\noutputs = [\"{n}\"]\n");
    expect("a-b", job("\"a\\\\-b\"") + job("\"a-b\""));
    expect("x/y in x/",
           job("\"x/\"") + "[[job]]\nparameters = { n = [\"x/y\", \"z\"] }\noutputs = [\"{n}\"]\n");
    // Submitted as single jobs.
    expect("o", "[[job]]\ncount = 2\ninputs = [\"in-{index}\"]\noutputs = [\"o\"]\n");
    expect("", "[[job]]\ncount = 2\ninputs = [\"in-{index}\"]\noutputs = [\"o-{index}\"]\n");
  }

  void where_they_stand() {
    const auto where = [](const std::string& jobs) {
      return find_equal_outputs(parse(jobs)).where;
    };
    CPPUNIT_ASSERT_EQUAL(std::string("b.toml:4:12"), where(job("\"d/\"") + "count = 2\n"));
    CPPUNIT_ASSERT_EQUAL(std::string("b.toml:6:17"), where(job("\"d/\"") + job("\"x\", \"d/x\"")));
    CPPUNIT_ASSERT_EQUAL(std::string("b.toml:6:12"), where(job("\"d/x\"") + job("\"d/\"")));
    CPPUNIT_ASSERT_EQUAL(std::string("b.toml:5:12"),
                         where("[[job]]\ncount = 2\noutputs = [\"o\"]\ninputs = [\"{index}\"]\n"));
  }

  void many_names() {
    const std::string many = "[[job]]\ncount = 999_999\noutputs = [\"x{index}\"]\n";
    expect("", many + job("\"x999999\""));
    expect("x999998", many + job("\"x999998\""));
    // Two names of a million equal ones suffice.
    const EqualOutputs all =
        find_equal_outputs(parse("[[job]]\ncount = 1_000_000\noutputs = [\"same\"]\n"));
    CPPUNIT_ASSERT_EQUAL(std::string("same"), all.name);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, all.compared);
  }

  void says_what_was_not_compared() {
    const BatchPlan plan = parse("[[job]]\ncount = 9\noutputs = [\"x{index}\"]\n" + job("\"x8\""));
    const EqualOutputs all = find_equal_outputs(plan);
    CPPUNIT_ASSERT_EQUAL(uint64_t{10}, all.names);
    CPPUNIT_ASSERT_EQUAL(uint64_t{10}, all.compared);
    CPPUNIT_ASSERT_EQUAL(std::string("x8"), all.name);
    const EqualOutputs few = find_equal_outputs(plan, {9});
    CPPUNIT_ASSERT_EQUAL(uint64_t{10}, few.names);
    CPPUNIT_ASSERT_EQUAL(uint64_t{9}, few.compared);
    CPPUNIT_ASSERT_EQUAL(std::string(), few.name);
    CPPUNIT_ASSERT_EQUAL(uint64_t{4}, find_equal_outputs(plan, {100, 8}).compared);
  }

  // Files only, so that the names are what the jobs leave: what is found agrees with what fetch
  // refuses.
  void finds_what_cannot_be_fetched() {
    CPPUNIT_ASSERT(rc::check([] {
      const auto names = *rc::gen::container<std::vector<std::string>>(
          *rc::gen::inRange<size_t>(0, 6),
          rc::gen::element<std::string>("a", "a/b", "a/b/c", "a-", "a.b", "b", "a/c"));
      BatchPlan plan;
      std::vector<JobDetail> details;
      for (const std::string& name : names) {
        plan.jobs.emplace_back();
        add_output(&plan.jobs.back(), name, true, "");
        details.emplace_back();
        details.back().summary.id = details.size();
        details.back().outputs.push_back({name, 1, {}, false});
      }
      bool refused = false;
      try {
        plan_fetch(details, false);
      } catch (const PoolError& e) {
        refused = e.code == "output.twice";
      }
      RC_ASSERT(refused == !find_equal_outputs(plan).name.empty());
    }));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(EqualOutputsTest);

}  // namespace
}  // namespace sublet::cli
