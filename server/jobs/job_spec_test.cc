#include "server/jobs/job_spec.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include "protocol/codec.h"
#include "server/jobs/array_check.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {

JobSpec plain() {
  JobSpec spec;
  spec.name = "letters";
  spec.program = "./back-propagation";
  spec.arguments = {"--epochs", "{index}"};
  spec.environment = {"A=b"};
  spec.inputs = {{12, "letters.data", false}};
  spec.outputs = {{"weights-{index}.bin", true}, {"notes", false}};
  spec.needs = {"linux", "x86_64", 1, 2, 3};
  spec.limits = {1, 2, 3, 4, 5, 6};
  spec.priority = -1;
  spec.retries = 3;
  spec.save_deadline_ms = 500;
  spec.more = {{"colour", "blue"}};
  return spec;
}

class JobSpecTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(JobSpecTest);
  CPPUNIT_TEST(survives_the_store);
  CPPUNIT_TEST(index_is_filled_in);
  CPPUNIT_TEST(combinations_are_filled_in);
  CPPUNIT_TEST(bad_axes_are_named);
  CPPUNIT_TEST(each_value_is_looked_at_a_few_times);
  CPPUNIT_TEST(values_make_no_patterns);
  CPPUNIT_TEST(programs_of_platforms);
  CPPUNIT_TEST(names_that_escape_are_refused);
  CPPUNIT_TEST(each_bad_field_is_named);
  CPPUNIT_TEST(damage_is_never_fatal);
  CPPUNIT_TEST_SUITE_END();

  void survives_the_store() {
    const std::vector<SpecRange> ranges = {{plain(), true, 7, 3}, {plain(), false, 0, 1}};
    const std::string bytes = encode(ranges);
    const auto got = decode_specs(bytes);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, got.size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, got[0].count);
    CPPUNIT_ASSERT_EQUAL(std::string("letters.data"), got[1].spec.inputs.at(0).name);
    CPPUNIT_ASSERT_EQUAL(bytes, encode(got));
  }

  void index_is_filled_in() {
    const JobSpec third = spec_at({plain(), true, 7, 3}, 2);
    CPPUNIT_ASSERT_EQUAL(std::string("9"), third.arguments[1]);
    CPPUNIT_ASSERT_EQUAL(std::string("weights-9.bin"), third.outputs[0].name);
    const JobSpec single = spec_at({plain(), false, 7, 1}, 0);
    CPPUNIT_ASSERT_EQUAL(std::string("{index}"), single.arguments[1]);
  }

  static std::string refusal(SpecRange range) {
    try {
      check_axes(range, "job 0");
    } catch (const Refusal& r) {
      return r.what();
    }
    return "";
  }
  static SpecRange sweep(std::vector<Axis> axes) {
    SpecRange range{plain(), true, 0, 1, std::move(axes)};
    range.spec.arguments = {"{rate}/{seed}", "{index}", "{other}"};
    range.spec.environment = {"RATE={rate}"};
    range.spec.outputs = {{"w-{rate}-{seed}", true}};
    return range;
  }

  void combinations_are_filled_in() {
    SpecRange range = sweep({{{"rate"}, {"0.1", "0.2"}, 0, 0, 1}, {{"seed"}, {}, 3, 5, -5}});
    check_axes(range, "job 0");
    CPPUNIT_ASSERT_EQUAL(uint64_t{6}, range.count);
    const JobSpec fourth = spec_at(decode_specs(encode({&range, 1})).at(0), 3);
    CPPUNIT_ASSERT_EQUAL(std::string("0.2/5"), fourth.arguments[0]);
    CPPUNIT_ASSERT_EQUAL(std::string("3"), fourth.arguments[1]);
    CPPUNIT_ASSERT_EQUAL(std::string("{other}"), fourth.arguments[2]);
    CPPUNIT_ASSERT_EQUAL(std::string("RATE=0.2"), fourth.environment[0]);
    CPPUNIT_ASSERT_EQUAL(std::string("w-0.2--5"), spec_at(range, 5).outputs[0].name);
  }

  void bad_axes_are_named() {
    const auto expect = [](std::vector<Axis> axes, const char* what) {
      const std::string told = refusal(sweep(std::move(axes)));
      CPPUNIT_ASSERT_MESSAGE(told + " lacks " + what, told.find(what) != std::string::npos);
    };
    expect({{{"a b"}, {"1"}, 0, 0, 1}}, "`a b` is not a parameter name");
    expect({{{"index"}, {"1"}, 0, 0, 1}}, "`index` is not a parameter name");
    expect({{{"a"}, {"1"}, 0, 0, 1}, {{"a"}, {"1"}, 0, 0, 1}}, "two parameters are called `a`");
    expect({{{"a"}, {}, 0, 0, 1}}, "has no values");
    expect({{{}, {"1"}, 0, 0, 1}}, "has no values");
    expect({{{"a", "b"}, {"1", "2", "3"}, 0, 0, 1}}, "rows of different length");
    expect({{{"a", "b"}, {}, 2, 0, 1}}, "rows of different length");
    expect({{{"a"}, {std::string(1, '\0')}, 0, 0, 1}}, "NUL");
    expect({{{"a"}, {}, 3, INT64_MAX - 1, 1}}, "too large");
    expect({{{"a"}, {}, 2'000'000, 0, 1}}, "too many");
    expect({{{"a"}, {}, 2000, 0, 1}, {{"b"}, {}, 2000, 0, 1}}, "1,000,000 combinations");
    expect({{{"rate"}, {"1", "x/../.."}, 0, 0, 1}}, "could leave the job's folder");
    expect({{{"rate"}, {"1", "x/."}, 0, 0, 1}, {{"seed"}, {"1", "./x"}, 0, 0, 1}},
           "with `x/.` could leave the job's folder");
    expect({{{"rate"}, {"1", "/x"}, 0, 0, 1}}, "could leave the job's folder");
    std::string deep = "x";
    for (int i = 0; i < 40; ++i) deep += "/x";
    expect({{{"rate"}, {"1", deep}, 0, 0, 1}, {{"seed"}, {"1", deep}, 0, 0, 1}}, "too deep");
    const std::string long_name(3000, 'x');
    expect({{{"rate"}, {"1", long_name}, 0, 0, 1}, {{"seed"}, {"1", long_name}, 0, 0, 1}},
           "too long");
    expect({{{"rate"}, {std::string(400'000, 'x')}, 0, 0, 1}}, "more than 1 MiB");
  }

  // However many outputs they stand in.
  void each_value_is_looked_at_a_few_times() {
    SpecRange range = sweep({{{"rate"}, {}, 0, 0, 1}, {{"a", "b"}, {"1", "2"}, 0, 0, 1}});
    for (int i = 0; i < 1000; ++i) range.axes[0].values.push_back("v" + std::to_string(i));
    range.spec.environment.clear();
    range.spec.arguments.clear();
    range.spec.outputs.clear();
    for (int i = 0; i < 500; ++i)
      range.spec.outputs.push_back({"{rate}/{a}-" + std::to_string(i), false});
    ArrayCheck check(range, "job 0");
    check.run();
    CPPUNIT_ASSERT_EQUAL(uint64_t{1000}, range.count);
    // Three measures, and whether each is a name by itself.
    CPPUNIT_ASSERT(check.values_read() >= 1002);
    CPPUNIT_ASSERT(check.values_read() <= 4 * 1002);
    std::vector<std::string> columns;
    for (int i = 0; i < 1001; ++i) columns.push_back("c" + std::to_string(i));
    CPPUNIT_ASSERT(refusal(sweep({{columns, columns, 0, 0, 1}})).find("1,000 columns") !=
                   std::string::npos);
  }

  // Names of files that hold a star or a bracket are swept over like others.
  void values_make_no_patterns() {
    SpecRange range = sweep({{{"rate"}, {"a*", "[1]", "back\\slash", "d/e?"}, 0, 0, 1}});
    range.spec.outputs = {{"{rate}.out", true}, {"r-{rate}/", true}, {"{rate}*.png", false}};
    CPPUNIT_ASSERT_EQUAL(std::string(), refusal(range));
    check_axes(range, "job 0");
    const char* names[] = {"a*", "[1]", "back\\slash", "d/e?"};
    for (uint64_t k = 0; k < 4; ++k) {
      const std::string name = names[k];
      const JobSpec spec = spec_at(range, k);
      CPPUNIT_ASSERT(describes(spec, name + ".out"));
      CPPUNIT_ASSERT(describes(spec, "r-" + name + "/x"));
      CPPUNIT_ASSERT(describes(spec, name + "-7.png"));
      for (const char* other : {"ab.out", "1.out", "d/ef.out", "r-ab/x"})
        CPPUNIT_ASSERT(!describes(spec, other));
    }
    for (const char* bad : {"[{rate}]", "[{index}]x", "x[a{rate}b]*", "\\{rate}"}) {
      range.spec.outputs = {{bad, true}};
      CPPUNIT_ASSERT_MESSAGE(bad, refusal(range) != "" || refusal(range.spec) != "");
    }
    // So many are quoted that the name gets too long.
    range = sweep({{{"rate"}, {std::string(3000, '*')}, 0, 0, 1}});
    range.spec.outputs = {{"{rate}", true}};
    CPPUNIT_ASSERT(refusal(range).find("too long") != std::string::npos);
  }

  void programs_of_platforms() {
    JobSpec spec = plain();
    CPPUNIT_ASSERT_EQUAL(std::string(), platforms_of(spec));
    spec.more = {{"program@linux/x86_64", "./a"}, {"x", "y"}, {"program@linux/aarch64", "./b"}};
    CPPUNIT_ASSERT_EQUAL(std::string(), refusal(spec));
    CPPUNIT_ASSERT_EQUAL(std::string("linux/aarch64 linux/x86_64"), platforms_of(spec));
    for (const char* name : {"program@", "program@linux", "program@linux/", "program@/x86_64",
                             "program@linux/x86 64", "program@a/b/c", "program@linux/x86_64"}) {
      JobSpec bad = spec;
      bad.more.emplace_back(name, "./c");
      CPPUNIT_ASSERT_MESSAGE(name, refusal(bad).find(name) != std::string::npos);
    }
    spec.more = {{"program@linux/x86_64", ""}};
    CPPUNIT_ASSERT(refusal(spec) != "");
  }

  void names_that_escape_are_refused() {
    for (const char* name : {"a", "a/b", "..a", "a..", "...", "a/.b"})
      CPPUNIT_ASSERT_MESSAGE(name, is_inside(name));
    for (const char* name : {"", "/a", "..", "a/..", "../a", "a/../b", ".", "a//b", "a/", "./a"})
      CPPUNIT_ASSERT_MESSAGE(name, !is_inside(name));
    CPPUNIT_ASSERT(!is_inside(std::string("a\0b", 3)));
  }

  static std::string refusal(const JobSpec& spec) {
    try {
      check_spec(spec, "job 0");
    } catch (const Refusal& r) {
      return r.message;
    }
    return "";
  }

  void each_bad_field_is_named() {
    CPPUNIT_ASSERT_EQUAL(std::string(), refusal(plain()));
    auto expect = [](const std::string& part, auto change) {
      JobSpec spec = plain();
      change(spec);
      const std::string message = refusal(spec);
      CPPUNIT_ASSERT_MESSAGE(part + " in: " + message, message.find(part) != std::string::npos);
    };
    expect("no program", [](JobSpec& s) { s.program.clear(); });
    expect("environment variable", [](JobSpec& s) { s.environment = {"oops"}; });
    expect("`../x`", [](JobSpec& s) { s.outputs[0].name = "../x"; });
    expect("a [ has no ]", [](JobSpec& s) { s.outputs[0].name = "[a"; });
    expect("stream", [](JobSpec& s) { s.outputs[0].name = "stdout"; });
    expect("folders or patterns", [](JobSpec& s) {
      s.outputs.clear();
      for (int i = 0; i < 65; ++i) s.outputs.push_back({"d" + std::to_string(i) + "/", true});
    });
    expect("two outputs", [](JobSpec& s) { s.outputs[1].name = s.outputs[0].name; });
    expect("not sent", [](JobSpec& s) { s.inputs[0].file = 0; });
    expect("NUL", [](JobSpec& s) { s.arguments[0] = std::string("a\0", 2); });
    expect("negative", [](JobSpec& s) { s.limits.cpu_ms = -1; });
    expect("retries", [](JobSpec& s) { s.retries = 100000; });
    expect("1 MiB", [](JobSpec& s) { s.arguments[0].assign(2 << 20, 'x'); });
    expect("4,096", [](JobSpec& s) { s.arguments.assign(5000, "x"); });
  }

  void damage_is_never_fatal() {
    const std::string good = encode(std::vector<SpecRange>{{plain(), false, 0, 1}});
    CPPUNIT_ASSERT(rc::check([&](size_t at, char value, size_t cut) {
      std::string bad = good;
      bad[at % bad.size()] = value;
      bad.resize(cut % (bad.size() + 1));
      try {
        decode_specs(bad);
      } catch (const protocol::Damaged&) {
      }
    }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(JobSpecTest);

}  // namespace
}  // namespace sublet::server
