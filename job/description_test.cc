#include "job/description.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include "job/array_check.h"
#include "job/check.h"
#include "job/codec.h"
#include "protocol/codec.h"

namespace sublet {
namespace {

JobDescription plain() {
  JobDescription spec;
  spec.name = "letters";
  spec.program = "./back-propagation";
  spec.arguments = {"--epochs", "{index}"};
  spec.environment = {"A=b"};
  spec.inputs = {{12, "letters.data", false}};
  spec.outputs = {{"weights-{index}.bin", true}, {"notes", false}};
  spec.needs = {"linux", "x86_64",    1,       2,
                3,       "cores > 1", "cores", rules::NamedAmounts::parse("gpu=2 ansys=1")};
  spec.bounds = {1, 2, 3, 4, 5, 6};
  spec.priority = -1;
  spec.retries = 3;
  spec.save_deadline_ms = 500;
  spec.programs = {{"linux/aarch64", "./back-propagation.arm"}};
  spec.submit_folder = "/home/anna/100 %";
  spec.submit_host = "desk";
  return spec;
}

class JobDescriptionTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(JobDescriptionTest);
  CPPUNIT_TEST(survives_the_store);
  CPPUNIT_TEST(standard_input_survives_the_store);
  CPPUNIT_TEST(times_survive_the_store);
  CPPUNIT_TEST(an_unknown_way_to_leave_is_not_the_default);
  CPPUNIT_TEST(an_unknown_network_is_none);
  CPPUNIT_TEST(index_is_filled_in);
  CPPUNIT_TEST(combinations_are_filled_in);
  CPPUNIT_TEST(bad_axes_are_named);
  CPPUNIT_TEST(a_job_is_bounded_with_its_values);
  CPPUNIT_TEST(each_value_is_looked_at_a_few_times);
  CPPUNIT_TEST(values_make_no_patterns);
  CPPUNIT_TEST(programs_of_platforms);
  CPPUNIT_TEST(names_that_escape_are_refused);
  CPPUNIT_TEST(each_bad_field_is_named);
  CPPUNIT_TEST(the_stored_octets_stay);
  CPPUNIT_TEST(damage_is_never_fatal);
  CPPUNIT_TEST_SUITE_END();

  void survives_the_store() {
    const std::vector<SpecRange> ranges = {{plain(), true, 7, 3}, {plain(), false, 0, 1}};
    const std::string bytes = encode(ranges);
    const auto got = decode_specs(bytes);
    CPPUNIT_ASSERT(got == ranges);
    CPPUNIT_ASSERT_EQUAL(bytes, encode(got));
  }

  // A description without it is stored as before there was one (the_stored_octets_stay).
  void standard_input_survives_the_store() {
    std::vector<SpecRange> ranges = {{plain(), false, 0, 1}};
    const size_t without = encode(ranges).size();
    ranges[0].spec.standard_input = "letters.data";
    ranges.push_back({plain(), true, 7, 3});
    CPPUNIT_ASSERT(decode_specs(encode(ranges)) == ranges);
    CPPUNIT_ASSERT_EQUAL(8 + 2 * (without - 8) + 2 * 8 + 14 + 12, encode(ranges).size());
  }

  // No workstation is told of them.
  void times_survive_the_store() {
    std::vector<SpecRange> ranges = {{plain(), false, 0, 1}, {plain(), true, 7, 3}};
    ranges[0].spec.hours = "mon-fri 19:00-07:00, sat, sun";
    ranges[0].spec.not_before_us = 1'800'000'000'000'000;
    ranges[1].spec.not_before_us = 1;
    CPPUNIT_ASSERT(decode_specs(encode(ranges)) == ranges);
    JobDescription told = for_workstation(ranges[0].spec);
    CPPUNIT_ASSERT(told.hours.empty() && told.not_before_us == 0);
  }

  // A later version may know stricter ways than this one.
  void an_unknown_way_to_leave_is_not_the_default() {
    std::vector<SpecRange> ranges = {{plain(), false, 0, 1}};
    ranges[0].spec.leaving = Leaving::kKill;
    std::string stored = encode(ranges);
    CPPUNIT_ASSERT(decode_specs(stored).at(0).spec.leaving == Leaving::kKill);
    stored.replace(stored.rfind("kill"), 4, "flee");
    CPPUNIT_ASSERT(decode_specs(stored).at(0).spec.leaving == Leaving::kSave);
  }

  // A later version may know networks that this one does not.
  void an_unknown_network_is_none() {
    std::vector<SpecRange> ranges = {{plain(), false, 0, 1}};
    std::string stored;
    for (const Network known : {Network::kAny, Network::kServer, Network::kNone}) {
      ranges[0].spec.network = known;
      stored = encode(ranges);
      CPPUNIT_ASSERT(decode_specs(stored) == ranges);
    }
    stored.replace(stored.rfind("none"), 4, "half");
    CPPUNIT_ASSERT(decode_specs(stored).at(0).spec.network == Network::kNone);
  }

  void index_is_filled_in() {
    const JobDescription third = spec_at({plain(), true, 7, 3}, 2);
    CPPUNIT_ASSERT_EQUAL(std::string("9"), third.arguments[1]);
    CPPUNIT_ASSERT_EQUAL(std::string("weights-9.bin"), third.outputs[0].name);
    const JobDescription single = spec_at({plain(), false, 7, 1}, 0);
    CPPUNIT_ASSERT_EQUAL(std::string("{index}"), single.arguments[1]);
  }

  static std::string refusal(SpecRange range) {
    try {
      check_axes(range, "job 0");
    } catch (const JobError& r) {
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
    const JobDescription fourth = spec_at(decode_specs(encode({&range, 1})).at(0), 3);
    CPPUNIT_ASSERT_EQUAL(std::string("0.2/5"), fourth.arguments[0]);
    CPPUNIT_ASSERT_EQUAL(std::string("3"), fourth.arguments[1]);
    CPPUNIT_ASSERT_EQUAL(std::string("{other}"), fourth.arguments[2]);
    CPPUNIT_ASSERT_EQUAL(std::string("RATE=0.2"), fourth.environment[0]);
    CPPUNIT_ASSERT_EQUAL(std::string("w-0.2--5"), spec_at(range, 5).outputs[0].name);
  }

  void bad_axes_are_named() {
    const auto expect = [](std::vector<Axis> axes, const char* what) {
      const std::string message = refusal(sweep(std::move(axes)));
      CPPUNIT_ASSERT_MESSAGE(message + " lacks " + what, message.find(what) != std::string::npos);
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

  // However many outputs they are used in.
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
    // Three measures, and the check that each is a name by itself.
    CPPUNIT_ASSERT(check.values_read() >= 1002);
    CPPUNIT_ASSERT(check.values_read() <= 4 * 1002);
    std::vector<std::string> columns;
    for (int i = 0; i < 1001; ++i) columns.push_back("c" + std::to_string(i));
    CPPUNIT_ASSERT(refusal(sweep({{columns, columns, 0, 0, 1}})).find("1,000 columns") !=
                   std::string::npos);
  }

  void a_job_is_bounded_with_its_values() {
    for (const size_t size : {100'000, 200'000}) {
      SpecRange range = sweep({{{"rate"}, {std::string(size, 'v')}, 0, 0, 1}});
      range.spec.arguments = {std::string(900'000, 'a'), "{rate}"};
      range.spec.environment.clear();
      range.spec.outputs.clear();
      const bool fits = size == 100'000;
      CPPUNIT_ASSERT_EQUAL(fits, refusal(range).find("more than 1 MiB") == std::string::npos);
      CPPUNIT_ASSERT_EQUAL(fits, refusal(range).empty());
    }
  }

  // A sweep can use file names that contain a star or a bracket.
  void values_make_no_patterns() {
    SpecRange range = sweep({{{"rate"}, {"a*", "[1]", "back\\slash", "d/e?"}, 0, 0, 1}});
    range.spec.outputs = {{"{rate}.out", true}, {"r-{rate}/", true}, {"{rate}*.png", false}};
    CPPUNIT_ASSERT_EQUAL(std::string(), refusal(range));
    check_axes(range, "job 0");
    const char* names[] = {"a*", "[1]", "back\\slash", "d/e?"};
    for (uint64_t k = 0; k < 4; ++k) {
      const std::string name = names[k];
      const JobDescription spec = spec_at(range, k);
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
    // With every character quoted the name becomes too long.
    range = sweep({{{"rate"}, {std::string(3000, '*')}, 0, 0, 1}});
    range.spec.outputs = {{"{rate}", true}};
    CPPUNIT_ASSERT(refusal(range).find("too long") != std::string::npos);
  }

  void programs_of_platforms() {
    JobDescription spec = plain();
    spec.programs = {{"linux/x86_64", "./a"}, {"linux/aarch64", "./b"}};
    CPPUNIT_ASSERT_EQUAL(std::string(), refusal(spec));
    for (const char* platform :
         {"", "linux", "linux/", "/x86_64", "linux/x86 64", "a/b/c", "linux/x86_64"}) {
      JobDescription bad = spec;
      bad.programs.emplace_back(platform, "./c");
      CPPUNIT_ASSERT_MESSAGE(
          platform, refusal(bad).find("program@" + std::string(platform)) != std::string::npos);
    }
    spec.programs = {{"linux/x86_64", ""}};
    CPPUNIT_ASSERT(refusal(spec) != "");
  }

  void names_that_escape_are_refused() {
    for (const char* name : {"a", "a/b", "..a", "a..", "...", "a/.b"})
      CPPUNIT_ASSERT_MESSAGE(name, is_inside(name));
    for (const char* name : {"", "/a", "..", "a/..", "../a", "a/../b", ".", "a//b", "a/", "./a"})
      CPPUNIT_ASSERT_MESSAGE(name, !is_inside(name));
    CPPUNIT_ASSERT(!is_inside(std::string("a\0b", 3)));
  }

  static std::string refusal(const JobDescription& spec) {
    try {
      check_description(spec, "job 0");
      check_inputs_sent(spec, "job 0");
    } catch (const JobError& r) {
      return r.what();
    }
    return "";
  }

  void each_bad_field_is_named() {
    CPPUNIT_ASSERT_EQUAL(std::string(), refusal(plain()));
    auto expect = [](const std::string& part, auto change) {
      JobDescription spec = plain();
      change(spec);
      const std::string message = refusal(spec);
      CPPUNIT_ASSERT_MESSAGE(part + " in: " + message, message.find(part) != std::string::npos);
    };
    expect("no program", [](JobDescription& s) { s.program.clear(); });
    expect("environment variable", [](JobDescription& s) { s.environment = {"oops"}; });
    expect("`../x`", [](JobDescription& s) { s.outputs[0].name = "../x"; });
    expect("a [ has no ]", [](JobDescription& s) { s.outputs[0].name = "[a"; });
    expect("stream", [](JobDescription& s) { s.outputs[0].name = "stdout"; });
    expect("folders or patterns", [](JobDescription& s) {
      s.outputs.clear();
      for (int i = 0; i < 65; ++i) s.outputs.push_back({"d" + std::to_string(i) + "/", true});
    });
    expect("`letters` is not an input", [](JobDescription& s) { s.standard_input = "letters"; });
    expect("two outputs", [](JobDescription& s) { s.outputs[1].name = s.outputs[0].name; });
    expect("not sent", [](JobDescription& s) { s.inputs[0].file = 0; });
    expect("NUL", [](JobDescription& s) { s.arguments[0] = std::string("a\0", 2); });
    expect("negative", [](JobDescription& s) { s.bounds.cpu_ms = -1; });
    expect("retries", [](JobDescription& s) { s.retries = 100000; });
    expect("1 MiB", [](JobDescription& s) { s.arguments[0].assign(2 << 20, 'x'); });
    expect("1 MiB", [](JobDescription& s) {
      for (int i = 0; i < 9; ++i) {
        s.arguments.emplace_back(100'000, 'x');
        s.outputs.push_back({std::to_string(i) + std::string(4000, 'x'), false});
      }
      s.environment = {"A=" + std::string(120'000, 'x')};
    });
    expect("1,024 octets", [](JobDescription& s) { s.name.assign(1025, 'x'); });
    expect("`hours`: column 1: 'late' is not a day", [](JobDescription& s) { s.hours = "late"; });
    expect("`not_before` is negative", [](JobDescription& s) { s.not_before_us = -1; });
    expect("`not_before` is after the year 9999",
           [](JobDescription& s) { s.not_before_us = 253'402'300'800'000'000; });
    expect("details", [](JobDescription& s) { s.submit_folder.assign(6000, ' '); });
    expect("4,096", [](JobDescription& s) { s.arguments.assign(5000, "x"); });
  }

  // Old data stays readable: these octets are of the first version of the format.
  void the_stored_octets_stay() {
    SpecRange one{{}, true, 7, 3};
    one.spec.program = "a";
    one.spec.programs = {{"linux/x86_64", "./b"}};
    std::string expected;
    const auto numbers = [&](std::initializer_list<uint64_t> values) {
      protocol::Encoder out;
      for (uint64_t value : values) out.number(value);
      expected += out.take();
    };
    numbers({1});
    expected += '\1';
    numbers({7, 3, 0, 1});
    expected += "a";
    numbers({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 20});
    expected += "program@linux/x86_64";
    numbers({3});
    expected += "./b";
    CPPUNIT_ASSERT_EQUAL(expected, encode({&one, 1}));
    // An unknown detail, which an older server stored unchecked.
    expected.replace(expected.find("program@"), 8, "colours@");
    CPPUNIT_ASSERT(decode_specs(expected).at(0).spec.programs.empty());
    expected[7] = 1;  // a later version
    CPPUNIT_ASSERT_THROW(decode_specs(expected), protocol::Damaged);
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
CPPUNIT_TEST_SUITE_REGISTRATION(JobDescriptionTest);

}  // namespace
}  // namespace sublet
