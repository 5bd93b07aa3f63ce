#include "cli/batch/file.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include "base/options/toml_document.h"

namespace sublet::cli {
namespace {

class BatchFileTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(BatchFileTest);
  CPPUNIT_TEST(everything);
  CPPUNIT_TEST(defaults);
  CPPUNIT_TEST(program_is_sent_along);
  CPPUNIT_TEST(standard_input_is_sent);
  CPPUNIT_TEST(programs_of_platforms);
  CPPUNIT_TEST(default_arrays);
  CPPUNIT_TEST(when_jobs_may_be_started);
  CPPUNIT_TEST(folders_and_patterns);
  CPPUNIT_TEST(errors_say_where);
  CPPUNIT_TEST(misspelt_parameters_are_found_where_they_stand);
  CPPUNIT_TEST(parameters_that_are_not_replaced);
  CPPUNIT_TEST(unsafe_names);
  CPPUNIT_TEST(too_much);
  CPPUNIT_TEST(any_bytes_are_survived);
  CPPUNIT_TEST(missing_file);
  CPPUNIT_TEST_SUITE_END();

  static BatchPlan parse(const std::string& text) { return parse_batch(text, "b.toml", "dir"); }

  // The error's text for a batch file of these lines.
  static std::string error_of(const std::string& text) {
    try {
      parse(text);
    } catch (const DocumentError& e) {
      return e.what();
    }
    return "no error";
  }
  static void expect_error(const std::string& text, const std::string& place,
                           const std::string& part) {
    std::string error = error_of(text);
    CPPUNIT_ASSERT_MESSAGE(error + " is not at " + place, error.starts_with("b.toml:" + place));
    CPPUNIT_ASSERT_MESSAGE(error + " lacks " + part, error.find(part) != std::string::npos);
  }

  void everything() {
    BatchPlan plan = parse(R"([batch]
name = "letters"
stop_when = { done = 3, failed = 10, output = "./w-{index}.bin" }
[[job]]
name = "train"
program = "python3"
arguments = ["train.py", "{index}"]
environment = { SEED = "5", LANG = "C" }
inputs = ["train.py", { file = "/data/x", name = "data/x", executable = true }]
outputs = ["w-{index}.bin", { name = "log", required = false }]
needs = { os = "linux", architecture = "x86_64", cores = 2, memory = "2 GiB", disk = 4096 }
limits = { cpu = "1 h", wall = 90, memory = "1 GiB", output_text = "1 MB", output_file = "2 MB", processes = 7 }
retries = 3
priority = -5
save_deadline = "500 ms"
count = 10
)");
    CPPUNIT_ASSERT_EQUAL(std::string("letters"), plan.name);
    CPPUNIT_ASSERT_EQUAL(uint64_t{10}, plan.job_count());
    CPPUNIT_ASSERT_EQUAL(uint64_t{310}, plan.stop_when.done * 100 + plan.stop_when.failed);
    CPPUNIT_ASSERT_EQUAL(std::string("w-{index}.bin"), plan.stop_when.output);
    const PlannedJob& job = plan.jobs.at(0);
    CPPUNIT_ASSERT_EQUAL(std::string("python3"), job.what.program);
    CPPUNIT_ASSERT_EQUAL(std::string("{index}"), job.what.arguments.at(1));
    CPPUNIT_ASSERT_EQUAL(std::string("SEED=5"), job.what.environment.at(0));
    CPPUNIT_ASSERT_EQUAL(std::string("dir/train.py"), job.inputs.at(0).path);
    CPPUNIT_ASSERT_EQUAL(std::string("train.py"), job.inputs.at(0).name);
    CPPUNIT_ASSERT_EQUAL(std::string("b.toml:9:11"), job.inputs.at(0).where);
    CPPUNIT_ASSERT_EQUAL(std::string("/data/x"), job.inputs.at(1).path);
    CPPUNIT_ASSERT_EQUAL(std::string("data/x"), job.inputs.at(1).name);
    CPPUNIT_ASSERT(job.inputs.at(1).executable && !job.inputs.at(0).executable);
    CPPUNIT_ASSERT(job.what.outputs.at(0).required && !job.what.outputs.at(1).required);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2} << 30, job.what.needs.memory);
    CPPUNIT_ASSERT_EQUAL(uint64_t{4096}, job.what.needs.disk);
    CPPUNIT_ASSERT_EQUAL(int64_t{3'600'000}, job.what.bounds.cpu_ms);
    CPPUNIT_ASSERT_EQUAL(int64_t{90'000}, job.what.bounds.wall_ms);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2'000'000}, job.what.bounds.output_file);
    CPPUNIT_ASSERT_EQUAL(uint32_t{7}, job.what.bounds.processes);
    CPPUNIT_ASSERT_EQUAL(uint32_t{3}, job.what.retries);
    CPPUNIT_ASSERT_EQUAL(int32_t{-5}, job.what.priority);
    CPPUNIT_ASSERT_EQUAL(int64_t{500}, job.what.save_deadline_ms);
    CPPUNIT_ASSERT_EQUAL(uint64_t{10}, job.count);
  }

  void defaults() {
    BatchPlan plan = parse(R"([defaults]
program = "sh"
inputs = ["a"]
environment = { A = "1", B = "2" }
retries = 2
needs = { memory = "1 GiB", cores = 4 }
[[job]]
[[job]]
name = "two"
arguments = ["-c", "true"]
inputs = ["b"]
environment = { B = "3" }
retries = 0
needs = { cores = 1 }
)");
    CPPUNIT_ASSERT_EQUAL(size_t{2}, plan.jobs.size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, plan.job_count());
    CPPUNIT_ASSERT_EQUAL(std::string("sh"), plan.jobs[0].what.name);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, plan.jobs[0].count);
    CPPUNIT_ASSERT_EQUAL(uint32_t{2}, plan.jobs[0].what.retries);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, plan.jobs[1].inputs.size());
    CPPUNIT_ASSERT_EQUAL(std::string("B=3"), plan.jobs[1].what.environment.at(1));
    CPPUNIT_ASSERT_EQUAL(uint32_t{0}, plan.jobs[1].what.retries);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1} << 30, plan.jobs[1].what.needs.memory);
    CPPUNIT_ASSERT_EQUAL(uint32_t{1}, plan.jobs[1].what.needs.cores);
  }

  void program_is_sent_along() {
    BatchPlan plan = parse(R"([[job]]
program = "./build/train"
[[job]]
program = "/opt/tool"
[[job]]
program = "bin/run"
inputs = [{ file = "elsewhere", name = "bin/run" }]
)");
    CPPUNIT_ASSERT_EQUAL(std::string("./train"), plan.jobs[0].what.program);
    CPPUNIT_ASSERT_EQUAL(std::string("dir/./build/train"), plan.jobs[0].inputs.at(0).path);
    CPPUNIT_ASSERT_EQUAL(std::string("train"), plan.jobs[0].inputs.at(0).name);
    CPPUNIT_ASSERT(plan.jobs[0].inputs.at(0).executable);
    CPPUNIT_ASSERT_EQUAL(std::string("train"), plan.jobs[0].what.name);
    CPPUNIT_ASSERT_EQUAL(std::string("/opt/tool"), plan.jobs[1].inputs.at(0).path);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, plan.jobs[2].inputs.size());
    CPPUNIT_ASSERT_EQUAL(std::string("./bin/run"), plan.jobs[2].what.program);
    CPPUNIT_ASSERT(plan.jobs[2].inputs.at(0).executable);
  }

  void standard_input_is_sent() {
    BatchPlan plan = parse(R"([defaults]
program = "sort"
stdin = "data/all"
[[job]]
[[job]]
inputs = ["data/other", { file = "elsewhere", name = "b" }]
stdin = "./b"
[[job]]
stdin = ""
[[job]]
stdin = "part-{n}"
parameters = { n = [3, 5] }
)");
    CPPUNIT_ASSERT_EQUAL(std::string("all"), plan.jobs[0].what.standard_input);
    CPPUNIT_ASSERT_EQUAL(std::string("dir/data/all"), plan.jobs[0].inputs.at(0).path);
    CPPUNIT_ASSERT_EQUAL(std::string("all"), plan.jobs[0].inputs.at(0).name);
    CPPUNIT_ASSERT(!plan.jobs[0].inputs.at(0).executable);
    CPPUNIT_ASSERT_EQUAL(std::string("b"), plan.jobs[1].what.standard_input);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, plan.jobs[1].inputs.size());
    CPPUNIT_ASSERT_EQUAL(std::string(), plan.jobs[2].what.standard_input);
    CPPUNIT_ASSERT(plan.jobs[2].inputs.empty());
    CPPUNIT_ASSERT_EQUAL(std::string("part-5"), plan.jobs.at(4).what.standard_input);
    CPPUNIT_ASSERT_EQUAL(std::string("dir/part-5"), plan.jobs[4].inputs.at(0).path);
    expect_error("[[job]]\nprogram = \"cat\"\ninputs = [\"a/x\"]\nstdin = \"b/x\"\n", "4:9",
                 "two inputs are called 'x'");
    expect_error("[[job]]\nprogram = \"cat\"\ninputs = [\"none\"]\nstdin = \"b/\"\n", "4:9",
                 "input name");
    expect_error("[[job]]\nprogram = \"cat\"\ncount = 2\nstdin = \"b-{indx}\"\n", "4:9",
                 "did you mean {index}?");
  }

  void programs_of_platforms() {
    BatchPlan plan = parse(R"([defaults]
program = { "linux/x86_64" = "./x86/prog", "linux/aarch64" = "/arm/prog" }
[[job]]
[[job]]
program = { "linux/x86_64" = "prog" }
[[job]]
program = "prog"
[[job]]
inputs = [{ file = "elsewhere", name = "x86/prog" }]
)");
    const PlannedJob& both = plan.jobs[0];
    CPPUNIT_ASSERT_EQUAL(size_t{2}, both.what.programs.size());
    CPPUNIT_ASSERT_EQUAL(std::string("linux/x86_64"), both.what.programs[0].first);
    CPPUNIT_ASSERT_EQUAL(std::string("./prog.linux-x86_64"), both.what.programs[0].second);
    CPPUNIT_ASSERT_EQUAL(std::string("./prog.linux-aarch64"), both.what.programs[1].second);
    CPPUNIT_ASSERT_EQUAL(std::string("./prog.linux-x86_64"), both.what.program);
    CPPUNIT_ASSERT_EQUAL(std::string("prog"), both.what.name);
    CPPUNIT_ASSERT_EQUAL(std::string("dir/./x86/prog"), both.inputs.at(0).path);
    CPPUNIT_ASSERT_EQUAL(std::string("prog.linux-x86_64"), both.inputs.at(0).name);
    CPPUNIT_ASSERT_EQUAL(std::string("/arm/prog"), both.inputs.at(1).path);
    CPPUNIT_ASSERT(both.inputs[0].executable && both.inputs[1].executable);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, plan.jobs[1].what.programs.size());
    CPPUNIT_ASSERT(plan.jobs[1].inputs.empty());
    CPPUNIT_ASSERT(plan.jobs[2].what.programs.empty());
    CPPUNIT_ASSERT_EQUAL(std::string("./x86/prog"), plan.jobs[3].what.programs[0].second);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, plan.jobs[3].inputs.size());
    const std::string job = "[[job]]\nprogram = ";
    expect_error(job + "{ \"linux\" = \"a\" }", "2:", "'linux' is not a platform such as");
    expect_error(job + "{ \"Linux/x86_64\" = \"a\" }", "2:", "is not a platform");
    expect_error(job + "{ \"linux/x86/64\" = \"a\" }", "2:", "is not a platform");
    expect_error(job + "{ \"linux/x86_64\" = \"\" }", "2:", "name is empty");
    expect_error(job + "{ \"linux/x86_64\" = 5 }", "2:", "must be a string");
    expect_error(job + "{}", "2:", "needs a program");
  }

  void when_jobs_may_be_started() {
    const BatchPlan plan = parse(R"([defaults]
hours = " SAT,sun 7:00 - 24:00 "
not_before = "2026-12-01T18:00+01:00"
[[job]]
program = "a"
[[job]]
program = "a"
hours = "mon"
not_before = 2026-12-01T17:00:00Z
)");
    CPPUNIT_ASSERT_EQUAL(std::string("sat, sun 07:00-24:00"), plan.jobs[0].what.hours);
    CPPUNIT_ASSERT_EQUAL(std::string("mon"), plan.jobs[1].what.hours);
    for (const PlannedJob& job : plan.jobs)
      CPPUNIT_ASSERT_EQUAL(int64_t{1'796'144'400'000'000}, job.what.not_before_us);
    const std::string job = "[[job]]\nprogram = 'a'\n";
    expect_error(job + "hours = 'mon 19:00-7'", "3:9", "hours: column 11: '7' is not a time");
    expect_error(job + "hours = ''", "3:9", "a window is missing");
    expect_error(job + "hours = ['mon']", "3:9", "hours must be a string");
    expect_error(job + "not_before = 'soon'", "3:14", "not_before is not a valid time: write");
    expect_error(job + "not_before = 12:00:00", "3:14", "not_before is not a valid time");
    expect_error(job + "not_before = 1", "3:14", "not_before must be a string");
  }

  void default_arrays() {
    const std::string sweep =
        "[defaults]\nprogram = \"a\"\narguments = [\"{n}\"]\nparameters = { n = [1, 2] }\n";
    BatchPlan plan = parse(sweep +
                           "[[job]]\n[[job]]\ncount = 5\n[[job]]\n"
                           "parameters = { n = { from = 1, to = 9 } }\n");
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, plan.jobs[0].count);
    CPPUNIT_ASSERT_EQUAL(uint64_t{5}, plan.jobs[1].count);
    CPPUNIT_ASSERT(plan.jobs[1].axes.empty());
    CPPUNIT_ASSERT_EQUAL(uint64_t{9}, plan.jobs[2].count);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, plan.jobs[2].axes.size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{7},
                         parse("[defaults]\ncount = 7\n[[job]]\nprogram = \"a\"").jobs[0].count);
    expect_error(sweep + "count = 3\n[[job]]\n", "6:1", "cannot be used together");
    expect_error(sweep + "[[job]]\narguments = []\n", "5:1", "'n' is not used");
  }

  void folders_and_patterns() {
    BatchPlan plan = parse("[[job]]\nprogram = \"a\"\noutputs = [\"./results/\", \"*.png\"]");
    CPPUNIT_ASSERT_EQUAL(std::string("results/"), plan.jobs[0].what.outputs.at(0).name);
    CPPUNIT_ASSERT_EQUAL(std::string("*.png"), plan.jobs[0].what.outputs.at(1).name);
    expect_error("[[job]]\nprogram = \"a\"\noutputs = [\"r-[a\"]", "3:12", "a [ has no ]");
    expect_error("[[job]]\nprogram = \"a\"\noutputs = [\"../*\"]", "3:12",
                 "leaves the job's folder");
  }

  void misspelt_parameters_are_found_where_they_stand() {
    const std::string array = "[[job]]\nprogram = \"a\"\ncount = 2\n";
    expect_error(array + "arguments = [\"x\", \"{indx}\"]", "4:19", "did you mean {index}?");
    expect_error(array + "environment = { A = \"{Index}\" }", "4:21", "did you mean {index}?");
    expect_error(array + "inputs = [{ file = \"in.{inde}\" }]", "4:20", "did you mean {index}?");
    expect_error(array + "outputs = [\n \"w-{indx}\"]", "5:2", "did you mean {index}?");
    expect_error("[defaults]\noutputs = [\"w-{indx}\"]\n" + array, "2:12", "{index}?");
    const std::string sweep = "[[job]]\nprogram = \"a\"\nparameters = { rate = [1, 2] }\n";
    expect_error(sweep + "arguments = [\"{rate}\",\n\"{rats}\"]", "5:1", "did you mean {rate}?");
    // Without count they are ordinary text; and what is far from any name stays.
    parse("[[job]]\nprogram = \"a\"\narguments = [\"{indx}\"]");
    parse(array + "arguments = [\"{print}\", \"{}\", \"{ index }\", \"${indx}\"]");
    parse("[defaults]\narguments = [\"{indx}\"]\n" + array + "arguments = [\"{index}\"]");
    // A shell's variable excuses only itself.
    parse(sweep + "arguments = [\"${RATE} {rate} ${rats}\"]");
    expect_error(sweep + "arguments = [\"${rats} {rate} {rats}\"]", "4:14", "did you mean {rate}?");
    expect_error(sweep + "arguments = [\"{rats} {rate} ${rats}\"]", "4:14", "did you mean {rate}?");
  }

  void parameters_that_are_not_replaced() {
    const std::string sweep =
        "[[job]]\nprogram = \"a\"\nparameters = { rate = [1, 2] }\narguments = [\"{rate}\"]\n";
    const std::string same = " is the same for all jobs of an array: ";
    expect_error(sweep + "name = \"r-{rate}\"", "5:8",
                 "a job's name" + same + "{rate} is not replaced in it");
    expect_error(sweep + "name = \"{rats}\"", "5:8", "{rats} is not replaced in it");
    expect_error(sweep + "name = \"{index}\"", "5:8", "{index} is not replaced in it");
    const std::string program = "arguments = [\"{rate}\"]\nparameters = { rate = [1, 2] }\n";
    expect_error("[[job]]\nprogram = \"./{rate}/x\"\n" + program, "2:11",
                 "a job's program" + same + "{rate} is not replaced in it");
    expect_error("[defaults]\nprogram = { \"linux/x86_64\" = \"{rates}\" }\n[[job]]\n" + program,
                 "2:30", "{rates} is not replaced in it");
    parse(sweep + "name = \"{other} {} { rate } {\"");
    parse("[[job]]\nprogram = \"{index}\"\nname = \"{index}\"");
    parse("[defaults]\nprogram = \"{rate}\"\n[[job]]\nprogram = \"a\"\n" + program);
  }

  void errors_say_where() {
    expect_error("x = 1", "1:1", "unknown key 'x' in the batch file");
    expect_error("[job]\nprogram = \"a\"", "1:1", "write [[job]] instead of [job]");
    expect_error("[[job]]\nprogramm = \"a\"", "2:1", "did you mean 'program'?");
    expect_error("[[job]]\nprogram = 5", "2:11", "program must be a string");
    expect_error("[[job]]\nprogram = \"a\"\narguments = \"x\"", "3:13", "must be a list");
    expect_error("[[job]]\nprogram = \"a\"\narguments = [\"x\", 5]", "3:19", "an argument must be");
    expect_error("[[job]]\nprogram = \"a\"\nenvironment = { A = 5 }", "3:21", "A must be a string");
    expect_error("[[job]]\nprogram = \"a\"\nenvironment = { \"A=B\" = \"5\" }", "3:", "A=B");
    expect_error("[[job]]\nprogram = \"a\"\ninputs = [3]", "3:11", "an input must be");
    expect_error("[[job]]\nprogram = \"a\"\ninputs = [{ name = \"x\" }]", "3:11", "needs a file");
    expect_error("[[job]]\nprogram = \"a\"\ninputs = [\"p\", \"q/p\"]", "3:16", "two inputs");
    expect_error("[[job]]\nprogram = \"a\"\noutputs = [\"p\", \"./p\"]", "3:17", "two outputs");
    expect_error("[[job]]\nprogram = \"a\"\noutputs = [{ nme = \"p\" }]", "3:14", "'name'");
    expect_error("[[job]]\nprogram = \"a\"\nneeds = { memory = \"lots\" }", "3:20", "such as");
    for (const char* size : {"\"9999 TiB\"", "\"1 EiB\"", "9000000000000000", "0"})
      expect_error("[[job]]\nprogram = \"a\"\nneeds = { disk = " + std::string(size) + " }", "3:18",
                   "above 0 and below 9000 TB");
    parse("[[job]]\nprogram = \"a\"\nneeds = { disk = \"8999 TB\", memory = 8999999999999999 }");
    expect_error("[[job]]\nprogram = \"a\"\nneeds = { memry = 1 }", "3:11", "'memory'");
    expect_error("[[job]]\nprogram = \"a\"\nneeds = { cores = 0 }", "3:19", "between 1 and");
    expect_error("[[job]]\nprogram = \"a\"\nlimits = { cpu = \"long\" }", "3:18", "duration");
    expect_error("[[job]]\nprogram = \"a\"\nlimits = { wall = -5 }", "3:19", "duration");
    expect_error("[[job]]\nprogram = \"a\"\nretries = 1.5", "3:11", "retries must be a whole");
    expect_error("[[job]]\nprogram = \"a\"\nretries = -1", "3:11", "between 0 and");
    expect_error("[[job]]\nprogram = \"a\"\ncount = 0", "3:9", "between 1 and");
    expect_error("[[job]]\nprogram = \"a\"\nsave_deadline = \"1 h\"", "3:17", "10 min");
    expect_error("[[job]]\nname = \"n\"", "1:1", "needs a program");
    expect_error("[[job]]\nprogram = \"\"", "2:11", "needs a program");
    expect_error("[[job]]\nprogram = \"a/\"", "2:11", "slash");
    expect_error("[[job]]\nprogram = \"./p\"\ninputs = [\"x/p\", \"q\"]\n[batch]\nnam = \"x\"",
                 "5:1", "'name'");
    expect_error("job = 5", "1:7", "job must be a list");
    const std::string job = "[[job]]\nprogram = \"a\"\noutputs = [\"key.txt\"]\n[batch]\n";
    expect_error(job + "stop_when = 1", "5:13", "stop_when must be a table");
    expect_error(job + "stop_when = {}", "5:13", "needs done, failed or output");
    expect_error(job + "stop_when = { outptu = \"x\" }", "5:15", "did you mean 'output'?");
    expect_error(job + "stop_when = { done = 0 }", "5:22", "between 1 and");
    expect_error(job + "stop_when = { done = \"1\" }", "5:22", "must be a whole");
    expect_error(job + "stop_when = { done = 2 }", "5:22", "has only 1 job");
    expect_error(job + "stop_when = { failed = 2 }", "5:24", "has only 1 job");
    expect_error(job + "stop_when = { output = \"../k\" }", "5:24", "leaves the job's folder");
    expect_error(job + "stop_when = { output = \"key.tx\" }", "5:24",
                 "no job describes an output 'key.tx'; did you mean 'key.txt'?");
    expect_error("job = [5]", "1:8", "[[job]] must be a table");
    expect_error("[defaults]\nname = \"x\"", "2:1", "unknown key 'name' in [defaults]");
    expect_error("", "1:1", "no [[job]]");
    expect_error("job = []", "1:1", "no [[job]]");
    expect_error("[[job]\n", "1:", "");
    expect_error("[[job]]\nprogram = \"a\\u0000b\"", "2:11", "NUL");
    expect_error("[[job]]\nprogram = \"a\"\n\"\\u001b[2J\" = 1", "3:1", "\\x1b");
  }

  void unsafe_names() {
    for (const char* name : {"../x", "/etc/passwd", "a/../../b", "", "a//b", "stdout"})
      expect_error("[[job]]\nprogram = \"a\"\noutputs = [\"" + std::string(name) + "\"]", "3:12",
                   "output name");
    expect_error("[[job]]\nprogram = \"a\"\ninputs = [{ file = \"x\", name = \"../../y\" }]",
                 "3:11", "leaves the job's folder");
  }

  void too_much() {
    expect_error("[[job]]\nprogram = \"a\"\ncount = 1000001", "3:9", "between 1 and 1000000");
    expect_error("[[job]]\nprogram = \"a\"\ncount = 1000000\n[[job]]\nprogram = \"a\"", "4:1",
                 "more than 1000000 jobs");
    std::string outputs;
    for (int i = 0; i < 4097; ++i) outputs += "\"o" + std::to_string(i) + "\",";
    expect_error("[[job]]\nprogram = \"a\"\noutputs = [" + outputs + "]", "3:", "more than 4096");
    // A small file that would take much memory.
    std::string jobs;
    for (int i = 0; i < 5000; ++i) jobs += "[[job]]\n";
    expect_error(
        "[defaults]\nprogram = \"a\"\narguments = [\"" + std::string(120'000, 'x') + "\"]\n" + jobs,
        "44", "512 MiB");
  }

  void any_bytes_are_survived() {
    CPPUNIT_ASSERT(rc::check([] {
      std::string seed = "[[job]]\nprogram = \"./a\"\noutputs = [\"x\"]\nneeds = { cores = 1 }\n";
      size_t edits = *rc::gen::inRange<size_t>(1, 6);
      for (size_t i = 0; i < edits; ++i) {
        size_t at = *rc::gen::inRange<size_t>(0, seed.size());
        seed[at] = *rc::gen::arbitrary<char>();
      }
      try {
        BatchPlan plan = parse_batch(seed, "b.toml", "");
        RC_ASSERT(plan.job_count() >= 1);
      } catch (const DocumentError& e) {
        RC_ASSERT(e.line() >= 1);
      }
    }));
  }

  void missing_file() {
    try {
      read_batch_file("no-such-folder/x.toml");
      CPPUNIT_FAIL("read a file that does not exist");
    } catch (const PoolError& e) {
      CPPUNIT_ASSERT(e.kind == ErrorKind::invalid);
      CPPUNIT_ASSERT(e.message.find("no-such-folder/x.toml") != std::string::npos);
    }
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(BatchFileTest);

}  // namespace
}  // namespace sublet::cli
