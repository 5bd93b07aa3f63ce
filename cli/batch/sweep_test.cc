#include "cli/batch/sweep.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>
#include <unistd.h>

#include "base/files.h"
#include "base/testing/temporary_folder.h"
#include "base/unique_fd.h"
#include "cli/batch/file.h"
#include "cli/transfer/submission.h"

namespace sublet::cli {
namespace {

class SweepTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SweepTest);
  CPPUNIT_TEST(lists_ranges_and_tables);
  CPPUNIT_TEST(errors_say_where);
  CPPUNIT_TEST(tables);
  CPPUNIT_TEST(tables_that_are_wrong);
  CPPUNIT_TEST(any_table_is_survived);
  CPPUNIT_TEST(inputs_that_depend_make_single_jobs);
  CPPUNIT_TEST(lines);
  CPPUNIT_TEST(long_sweeps_go_in_pieces);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;

  BatchPlan parse(const std::string& job) const {
    return parse_batch("[[job]]\nprogram = \"train\"\n" + job, "b.toml", folder_.path());
  }
  std::string error_of(const std::string& job) const {
    try {
      parse(job);
    } catch (const DocumentError& e) {
      return e.what();
    }
    return "no error";
  }
  void expect_error(const std::string& job, const std::string& part) const {
    const std::string error = error_of(job);
    CPPUNIT_ASSERT_MESSAGE(error + " lacks " + part, error.find(part) != std::string::npos);
  }
  static std::string csv_error(const std::string& text) {
    try {
      parse_csv(text, "t.csv");
    } catch (const DocumentError& e) {
      return e.what();
    }
    return "no error";
  }

  void lists_ranges_and_tables() {
    system_files().write_atomic(folder_ / "points.csv", "x,y\n1,2\n3,4\n");
    const BatchPlan plan = parse(
        "arguments = [\"{rate} {on} {seed} {x},{y} {index}\"]\ntable = \"points.csv\"\n"
        "[job.parameters]\nrate = [0.1, 2, \"three\"]\non = [true]\n"
        "seed = { from = 9, to = 2, step = -3 }\n");
    const PlannedJob& job = plan.jobs.at(0);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2 * 3 * 1 * 3}, job.count);
    CPPUNIT_ASSERT_EQUAL(uint64_t{18}, plan.job_count());
    CPPUNIT_ASSERT_EQUAL(size_t{4}, job.axes.size());
    CPPUNIT_ASSERT_EQUAL(std::string("0.1 true 9 1,2"),
                         fill("{rate} {on} {seed} {x},{y}", values_at(job.axes, 0)));
    CPPUNIT_ASSERT_EQUAL(std::string("three true 3 3,4"),
                         fill("{rate} {on} {seed} {x},{y}", values_at(job.axes, 17)));
  }

  void errors_say_where() {
    const std::string use = "arguments = [\"{rate}\"]\n";
    expect_error(use + "parameters = { rate = 5 }\n", "b.toml:4:");
    expect_error(use + "parameters = { rate = 5 }\n", "must be a list such as");
    expect_error(use + "parameters = { rate = [] }\n", "must be a list such as");
    expect_error(use + "parameters = { rate = [[1]] }\n", "a value must be a string");
    expect_error(use + "parameters = { rate = { from = 1 } }\n", "needs from and to");
    expect_error(use + "parameters = { rate = { from = 1, to = 3, step = 0 } }\n",
                 "from 1 to 3 cannot have step 0");
    expect_error(use + "parameters = { rate = { from = 3, to = 1 } }\n",
                 "from 3 to 1 cannot have step 1");
    expect_error(use + "parameters = { rate = { form = 3, to = 1 } }\n", "did you mean 'from'?");
    expect_error(use + "parameters = { rate = { from = 0, to = 1000000 } }\n",
                 "more than 1000000 combinations");
    expect_error(use + "parameters = { rate = [1], index = [2] }\n", "a built-in parameter");
    expect_error(use + "parameters = { rate = [1], \"a b\" = [2] }\n", "not a parameter name");
    expect_error(use + "parameters = { rate = [1] }\ncount = 3\n", "cannot be used together");
    expect_error(use + "parameters = { rate = [1], seed = [2] }\n",
                 "the parameter 'seed' is not used");
    expect_error("arguments = [\"{rats}\"]\nparameters = { rate = [1] }\n", "did you mean {rate}?");
    expect_error(use + "table = \"none.csv\"\n", "none.csv");
    // Other braces are left alone.
    parse(
        "arguments = [\"{rate}\", \"{\\\"a\\\": 1}\", \"{}\", \"{\"]\nparameters = { rate = [1] "
        "}\n");
  }

  void tables() {
    const Axis axis = parse_csv(
        "\xef\xbb\xbf"
        "a,b\r\n\"1,\"\"x\"\"\",\"two\nlines\"\r\n\n,last",
        "t.csv");
    CPPUNIT_ASSERT_EQUAL(size_t{2}, axis.names.size());
    const std::vector<std::string> expected = {"1,\"x\"", "two\nlines", "", "last"};
    CPPUNIT_ASSERT(expected == axis.values);
  }

  void tables_that_are_wrong() {
    const auto expect = [](const std::string& text, const std::string& part) {
      const std::string error = csv_error(text);
      CPPUNIT_ASSERT_MESSAGE(error + " lacks " + part, error.find(part) != std::string::npos);
    };
    expect("", "the table is empty");
    expect("a\n", "has no rows");
    expect("a,b\n1,2\n\"x\ny\",3\n4\n", "t.csv:5:1: this row has 1 values");
    expect("a b\n1\n", "not a parameter name");
    expect("a\n\"1\n", "has no closing quote");
    expect("a\n\"1\"x\n", "unexpected text after");
    expect(std::string("a\n1\0\n", 5), "NUL");
  }

  void any_table_is_survived() {
    CPPUNIT_ASSERT(rc::check("any table is survived", [] {
      const auto text =
          *rc::gen::container<std::string>(rc::gen::element('a', ',', '"', '\n', '\r', '\0'));
      csv_error(text);
    }));
  }

  void inputs_that_depend_make_single_jobs() {
    const BatchPlan plan = parse(
        "arguments = [\"{n}\", \"{index}\"]\ninputs = [{ file = \"in-{n}\", name = \"in\" }]\n"
        "outputs = [\"out-{n}\"]\nparameters = { n = [\"a\", \"b\"] }\n");
    CPPUNIT_ASSERT_EQUAL(size_t{2}, plan.jobs.size());
    const PlannedJob& second = plan.jobs[1];
    CPPUNIT_ASSERT(second.count == 0 && second.axes.empty());
    CPPUNIT_ASSERT_EQUAL(folder_ / "in-b", second.inputs.at(0).path);
    CPPUNIT_ASSERT_EQUAL(std::string("b"), second.what.arguments.at(0));
    CPPUNIT_ASSERT_EQUAL(std::string("1"), second.what.arguments.at(1));
    CPPUNIT_ASSERT_EQUAL(std::string("out-b"), second.what.outputs.at(0).name);
    // In an output's name a value is not a pattern.
    const BatchPlan stars = parse(
        "inputs = [\"{n}\"]\noutputs = [\"{n}.out\"]\n"
        "parameters = { n = [\"a*[1]\", \"b\"] }\n");
    CPPUNIT_ASSERT_EQUAL(std::string("a\\*\\[1].out"), stars.jobs[0].what.outputs.at(0).name);
    CPPUNIT_ASSERT_EQUAL(std::string("a*[1]"), stars.jobs[0].inputs.at(0).name);
  }

  static std::vector<std::string> lines_of(const std::string& text) {
    int ends[2];
    CPPUNIT_ASSERT_EQUAL(0, pipe(ends));
    UniqueFd reader(ends[0]);
    {
      UniqueFd writer(ends[1]);
      CPPUNIT_ASSERT(write(writer.get(), text.data(), text.size()) == ssize_t(text.size()));
    }
    return read_lines(reader.get());
  }

  void lines() {
    CPPUNIT_ASSERT((std::vector<std::string>{"1", "two words", "3"}) ==
                   lines_of("1\n\ntwo words\n3"));
    CPPUNIT_ASSERT_THROW(lines_of("\n\n"), PoolError);
    CPPUNIT_ASSERT_THROW(lines_of(std::string("a\0b\n", 4)), PoolError);
    PlannedJob job;
    job.what.arguments = {"-n", "{}", "x{}y{}"};
    run_for_each(&job, {"1", "2"});
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, job.count);
    CPPUNIT_ASSERT_EQUAL(std::string("x2y2"),
                         fill(job.what.arguments.at(2), values_at(job.axes, 1)));
    PlannedJob bare;
    run_for_each(&bare, {"1"});
    CPPUNIT_ASSERT_EQUAL(std::string("1"),
                         fill(bare.what.arguments.at(0), values_at(bare.axes, 0)));
  }

  void long_sweeps_go_in_pieces() {
    Axis slow{{"a", "b"}, {}, 0, 0, 1};
    for (int row = 0; row < 3000; ++row) {
      slow.values.push_back(std::to_string(row));
      slow.values.emplace_back(500, 'x');
    }
    const std::vector<Axis> axes = {slow, {{"c"}, {}, 7, 0, 1}};
    const auto pieces = sweep_pieces(axes);
    CPPUNIT_ASSERT(pieces.size() >= 3);
    uint64_t next = 0;
    for (const SweepPiece& piece : pieces) {
      CPPUNIT_ASSERT_EQUAL(next, piece.first_index);
      CPPUNIT_ASSERT(values_at(piece.axes, 5) == values_at(axes, piece.first_index + 5));
      next += piece.axes[0].count() * 7;
    }
    CPPUNIT_ASSERT_EQUAL(uint64_t{21'000}, next);
    CPPUNIT_ASSERT_EQUAL(
        size_t{1},
        sweep_pieces({axes[1], slow.count() ? Axis{{"d"}, {"1"}, 0, 0, 1} : slow}).size());
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(SweepTest);

}  // namespace
}  // namespace sublet::cli
