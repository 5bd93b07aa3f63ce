#include "cli/commands/job_options.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/files.h"
#include "base/text.h"
#include "cli/batch/instant.h"
#include "cli/batch/references.h"
#include "cli/batch/sweep.h"
#include "cli/batch/toml_reader.h"
#include "cli/names.h"
#include "cli/transfer/standard_input.h"
#include "job/at_most.h"
#include "job/check.h"

namespace sublet::cli {

namespace {

constexpr int64_t kMostOfAMachine = 100'000;  // cores, processes

void check(const std::string& option, const std::string& wrong) {
  if (!wrong.empty()) usage_error(option + ": " + wrong, "see `sublet submit --help`");
}

uint64_t size_option(const std::string& option, const std::string& text) {
  if (text.empty()) return 0;
  std::optional<uint64_t> bytes = parse_bytes(text);
  if (!bytes || *bytes == 0 || *bytes >= kBytesEnd)
    usage_error(option + ": '" + text + "' is not a size " + kBytesRange,
                "write it as \"2 GiB\" or 500MiB");
  return *bytes;
}

int64_t duration_option(const std::string& option, const std::string& text) {
  if (text.empty()) return 0;
  std::optional<int64_t> ms = parse_duration_ms(text);
  if (!ms || *ms == 0)
    usage_error(option + ": '" + text + "' is not a duration above 0",
                "write it as 90, 2h or \"1 h 30 min\"");
  return *ms;
}

template <typename Number>
Number number_option(const std::string& option, int64_t n, int64_t min, int64_t max) {
  if (n < min || n > max)
    usage_error(option + " must be between " + std::to_string(min) + " and " + std::to_string(max),
                "");
  return static_cast<Number>(n);
}

// 0, which is the description's default, if the option was not given.
uint32_t number_of_a_machine(const std::string& option, int64_t n) {
  if (n == JobOptions::kNotGiven) return 0;
  return number_option<uint32_t>(option, n, 1, kMostOfAMachine);
}

void add_environment(const std::string& word, PlannedJob* job) {
  size_t equals = word.find('=');
  std::string name = word.substr(0, equals);
  std::string value;
  if (equals != std::string::npos) {
    value = word.substr(equals + 1);
  } else {
    const char* here = name.empty() ? nullptr : getenv(name.c_str());
    if (here == nullptr)
      usage_error("--env: '" + name + "' is not set", "give a value: --env " + name + "=...");
    value = here;
  }
  check("--env", set_environment(job, name, value));
}

rules::NamedAmounts resources_option(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += word + " ";
  try {
    rules::NamedAmounts resources = rules::NamedAmounts::parse(all);
    for (const auto& [name, amount] : resources)
      if (amount == 0) throw rules::AmountError("it asks for 0 of '" + name + "'");
    return resources;
  } catch (const rules::AmountError& e) {
    usage_error(std::string("--resource: ") + e.what(), "write it as --resource gpu=1");
  }
}

std::string hours_option(const std::string& word) {
  std::string hours = word;
  if (hours.empty()) return "";
  if (const std::string wrong = settle_hours(hours); !wrong.empty())
    usage_error("--hours: " + wrong, "write them as in --hours \"mon-fri 19:00-07:00, sat, sun\"");
  return hours;
}

int64_t instant_option(const std::string& option, const std::string& word) {
  if (word.empty()) return 0;
  const auto instant = parse_instant(word);
  if (!instant) usage_error(option + ": '" + word + "' is not a valid time", kInstantForm);
  return *instant;
}

Leaving leaving_option(const std::string& word) {
  if (word.empty()) return Leaving::kDefault;
  const auto leaving = leaving_named(word);
  if (!leaving)
    usage_error("--leaving: '" + word + "' is not a way to leave",
                "write leave, suspend, linger or kill");
  return *leaving;
}

OwnCheckpoint checkpoint_options(const JobOptions& o) {
  OwnCheckpoint own;
  own.files = o.checkpoint;
  own.every_ms = duration_option("--checkpoint-every", o.checkpoint_every);
  if (!o.checkpoint_signal.empty()) {
    const auto signal = signal_named(o.checkpoint_signal);
    if (!signal)
      usage_error("--checkpoint-signal: '" + o.checkpoint_signal + "' does not ask to save",
                  "write TERM, HUP, INT, QUIT, USR1 or USR2");
    own.signal = *signal;
  }
  for (const std::string& word : o.checkpoint_exit) {
    uint32_t code = 0;
    const auto end = std::from_chars(word.data(), word.data() + word.size(), code);
    if (end.ec != std::errc() || end.ptr != word.data() + word.size() || code < 1 || code > 255)
      usage_error("--checkpoint-exit: '" + word + "' is not an exit status",
                  "write a number from 1 to 255");
    own.exit_codes.push_back(code);
  }
  if (const std::string wrong = wrong_with(own); !wrong.empty())
    usage_error("--checkpoint: " + wrong, "name the files in which the program saves its state");
  return own;
}

Network network_option(const std::string& word) {
  if (word.empty()) return Network::kDefault;
  const auto network = network_named(word);
  if (!network)
    usage_error("--network must be one of none, server, any, not '" + word + "'",
                "leave it out to use the machine's setting");
  return *network;
}

// Whether the word ends in a '?' that no backslash escapes.
bool ends_in_question_mark(const std::string& word) {
  if (!word.ends_with('?')) return false;
  size_t backslashes = 0;
  while (backslashes + 1 < word.size() && word[word.size() - 2 - backslashes] == '\\')
    ++backslashes;
  return backslashes % 2 == 0;
}

void add_inputs(const std::string& option, const std::vector<std::string>& words, bool executable,
                PlannedJob* job) {
  for (const std::string& word : words) {
    size_t equals = word.rfind('=');
    PlannedInput input;
    input.path = word.substr(0, equals);
    input.executable = executable;
    if (equals != std::string::npos) input.name = word.substr(equals + 1);
    if (input.path.empty() || (equals != std::string::npos && input.name.empty()))
      usage_error(option + ": '" + word + "' does not name a file",
                  "write " + option + " FILE or " + option + " FILE=NAME");
    check(option, add_input(job, std::move(input)));
  }
}

void add_inputs_from(const std::vector<std::string>& words, PlannedJob* job) {
  for (const std::string& word : words) {
    const size_t colon = word.find(':'), equals = word.rfind('=');
    if (colon == 0 || colon == std::string::npos || colon + 1 == word.size() ||
        (equals != std::string::npos && (equals <= colon + 1 || equals + 1 == word.size())))
      usage_error("--input-from: '" + word + "' does not name a job's output",
                  "write --input-from JOB:OUTPUT or --input-from JOB:OUTPUT=NAME");
    InputFile input;
    check("--input-from",
          check_relative_name(word.substr(colon + 1, equals - colon - 1), &input.source.name));
    if (equals != std::string::npos) input.name = word.substr(equals + 1);
    check("--input-from", add_input(job, std::move(input), {"", word.substr(0, colon)}));
  }
}

void add_standard_input(const JobOptions& o, PlannedJob* job) {
  job->what.standard_input = o.standard_input;
  if (o.standard_input == "-") {
    if (o.each) usage_error("--each and --stdin - both read standard input", "give --stdin a file");
    job->what.standard_input = "stdin";
    check("--stdin", add_input(job, {copy_standard_input(STDIN_FILENO), "stdin"}));
  }
  check("--stdin", send_standard_input(job, "", ""));
}

void add_outputs(const JobOptions& o, PlannedJob* job) {
  for (const std::string& word : o.outputs) {
    const bool optional = ends_in_question_mark(word);
    const std::string name = word.substr(0, word.size() - (optional ? 1 : 0));
    check("--output", add_output(job, name, !optional, ""));
  }
}

void set_needs(const JobOptions& o, Requirements* needs) {
  needs->os = o.os;
  needs->architecture = o.architecture;
  needs->cores = number_of_a_machine("--cores", o.cores);
  needs->memory = size_option("--memory", o.memory);
  needs->disk = size_option("--disk", o.disk);
  needs->require = o.require;
  needs->prefer = o.prefer;
  needs->resources = resources_option(o.resources);
}

void set_limits(const JobOptions& o, Limits* bounds) {
  bounds->cpu_ms = duration_option("--cpu-limit", o.cpu_limit);
  bounds->wall_ms = duration_option("--wall-limit", o.wall_limit);
  bounds->memory = size_option("--memory-limit", o.memory_limit);
  bounds->output_text = size_option("--output-text-limit", o.output_text_limit);
  bounds->output_file = size_option("--output-file-limit", o.output_file_limit);
  bounds->processes = number_of_a_machine("--processes-limit", o.processes_limit);
}

void add_axes(const JobOptions& o, PlannedJob* job) {
  const TomlReader reader("--parameter", "");
  for (const std::string& word : o.parameters) {
    const TomlMember table{"parameters", 1, 1, parse_toml(word + "\n", "--parameter")};
    add_parameters(reader, table, &job->axes);
  }
  if (o.table.empty()) return;
  try {
    check("--table", add_axis(read_table(o.table), &job->axes));
  } catch (const FileError& e) {
    throw PoolError(ErrorKind::invalid, "batch.file", e.what(), "", o.table);
  }
}

// Makes it an array if one of --count, --parameter, --table and --each is given.
void make_array(const JobOptions& o, PlannedJob* job) {
  const bool has_axes = !o.parameters.empty() || !o.table.empty();
  if ((o.count != -1) + has_axes + o.each > 1)
    usage_error("--count, --each, and --parameter or --table each make an array",
                "give only one of the three");
  if (o.count != -1)
    job->count = number_option<uint64_t>("--count", o.count, 1, int64_t{kJobsPerBatch});
  if (o.each) run_for_each(job, read_lines(STDIN_FILENO));
  if (has_axes) {
    add_axes(o, job);
    check("--parameter", count_combinations(job->axes, &job->count));
  }
}

// `program`: as it was given.
void check_placeholders(const JobOptions& o, const std::string& program, const PlannedJob& job) {
  const auto spelt = [&](const std::string& option, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) check(option, misspelt_placeholder(job, text));
  };
  spelt("PROGRAM", job.what.arguments);
  spelt("--env", job.what.environment);
  spelt("--output", o.outputs);
  spelt("--input", o.inputs);
  spelt("--executable", o.executables);
  spelt("--stdin", {o.standard_input});
  for (const std::string& file : o.checkpoint)
    check("--checkpoint", misplaced_placeholder(job, file, "a checkpoint file"));
  check("--name", misplaced_placeholder(job, o.name, "a job's name"));
  check("PROGRAM", misplaced_placeholder(job, program, "a job's program"));
  check(o.parameters.empty() ? "--table" : "--parameter", unused_parameter(job));
}

void add_stop_condition(const std::string& word, StopWhen* when) {
  const size_t equals = std::min(word.find('='), word.size());
  const std::string key = word.substr(0, equals);
  const std::string value = word.substr(std::min(equals + 1, word.size()));
  if (key == "output") return check("--stop-when", check_output_name(value, &when->output));
  uint64_t number = 0;
  const auto end = std::from_chars(value.data(), value.data() + value.size(), number);
  if ((key != "done" && key != "failed") || number == 0 || number > kJobsPerBatch ||
      end.ec != std::errc() || end.ptr != value.data() + value.size())
    usage_error("--stop-when: '" + word + "' is not a condition",
                "write done=N, failed=N or output=NAME");
  (key == "done" ? when->done : when->failed) = number;
}

void add_references(const char* list, const std::vector<std::string>& words, PlannedJob* job) {
  for (const std::string& word : words) job->references.push_back({list, word});
}

OnNever on_never_option(const std::string& word) {
  if (word.empty()) return OnNever::kHold;
  const auto on_never = on_never_named(word);
  if (!on_never)
    usage_error("--never-satisfied must be one of hold, remove, not '" + word + "'", "");
  return *on_never;
}

}  // namespace

void usage_error(const std::string& message, const std::string& advice) {
  throw PoolError(ErrorKind::usage, "usage.submit", message, advice);
}

BatchPlan plan_of_command(const JobOptions& o, const std::vector<std::string>& command) {
  PlannedJob job;
  job.what.program = command.front();
  job.what.arguments.assign(command.begin() + 1, command.end());
  if (job.what.program.empty()) usage_error("the program's name is empty", "");
  job.what.name = to_utf8(o.name.empty() ? base_name(job.what.program) : o.name);
  add_inputs("--input", o.inputs, false, &job);
  add_inputs("--executable", o.executables, true, &job);
  add_inputs_from(o.inputs_from, &job);
  add_outputs(o, &job);
  for (const std::string& word : o.environment) add_environment(word, &job);
  check("PROGRAM", send_program_along(&job, "", ""));
  add_standard_input(o, &job);
  set_needs(o, &job.what.needs);
  set_limits(o, &job.what.bounds);
  job.what.retries = number_option<uint32_t>("--retries", o.retries, 0, 1000);
  job.what.priority =
      number_option<int32_t>("--priority", o.priority, -kMostPriority, kMostPriority);
  job.what.save_deadline_ms = duration_option("--save-deadline", o.save_deadline);
  if (job.what.save_deadline_ms > kMaxSaveDeadlineMs)
    usage_error("--save-deadline may be at most 10 min", "save less data, or more often");
  job.what.hours = hours_option(o.hours);
  job.what.not_before_us = instant_option("--not-before", o.not_before);
  job.what.own_checkpoint = checkpoint_options(o);
  job.what.leaving = leaving_option(o.leaving);
  job.what.network = network_option(o.network);
  add_references("after", o.after, &job);
  add_references("after_any", o.after_any, &job);
  add_references("after_start", o.after_start, &job);
  make_array(o, &job);
  check_placeholders(o, command.front(), job);
  BatchPlan plan;
  plan.name = job.what.name;
  for (const std::string& word : o.stop_when) add_stop_condition(word, &plan.stop_when);
  plan.on_never = on_never_option(o.never_satisfied);
  if (o.at_most != JobOptions::kNotGiven)
    plan.at_most = number_option<uint64_t>("--at-most", o.at_most, 1, int64_t{kLargestAtMost});
  plan.jobs = told_apart(job);
  check("--after", find_references(&plan).error);
  for (const char* condition : {"done", "failed", "output"})
    check("--stop-when", check_stop_when(plan, condition));
  return plan;
}

void declare_program_options(Arguments& a, JobOptions* o) {
  a.option("--input", &o->inputs, "send this file; the job finds it as NAME (repeatable)",
           "FILE[=NAME]");
  a.option("--executable", &o->executables, "the same of a file that the job can execute",
           "FILE[=NAME]");
  a.option("--stdin", &o->standard_input,
           "send this file, and let the job read it as its standard input; -: that of this command",
           "FILE");
  a.option("--output", &o->outputs,
           "keep this file of the job's folder, this folder (NAME/) or what matches this pattern; "
           "a ? at the end makes it optional (repeatable)",
           "NAME[?]");
  a.option("--env", &o->environment, "set a variable, or copy the current one (repeatable)",
           "NAME[=VALUE]");
  a.option("--save-deadline", &o->save_deadline, "time to save when asked to leave, at most 10 min",
           "TIME");
  a.option(
      "--checkpoint", &o->checkpoint,
      "a file in which the program saves its state itself, a folder (NAME/) or a pattern: what "
      "is whole of it when the job must leave is there again where it goes on (repeatable)",
      "NAME");
  a.option("--checkpoint-signal", &o->checkpoint_signal,
           "the signal that asks the program to save and end (TERM)", "SIGNAL");
  a.words("--checkpoint-signal", signal_names());
  a.option("--checkpoint-exit", &o->checkpoint_exit,
           "an exit status with which the program says that it has saved and is to be run again "
           "(75 and 85; repeatable)",
           "N");
}

void declare_job_options(Arguments& a, JobOptions* o) {
  a.option("--name", &o->name, "name of the job (default: the program's)", "NAME");
  declare_program_options(a, o);
  a.option("--os", &o->os, "operating system it needs, as `uname -s` prints it in lower case",
           "NAME");
  a.option("--architecture", &o->architecture, "architecture it needs, as `uname -m` prints it",
           "NAME");
  a.option("--memory", &o->memory, "memory it needs at most, such as \"2 GiB\"", "SIZE");
  a.option("--disk", &o->disk, "disk space it needs", "SIZE");
  a.option("--cores", &o->cores, "cores it needs (1)", "N");
  a.option("--require", &o->require,
           "what its machine must offer, such as \"cores >= 8 and memory_mb >= 16384\"",
           "EXPRESSION");
  a.option("--prefer", &o->prefer,
           "which machines it prefers: those for which this number is largest, such as memory_mb",
           "EXPRESSION");
  a.option("--resource", &o->resources,
           "an amount of what its machine offers besides, or of the pool's licences, such as gpu=1 "
           "(repeatable)",
           "NAME=AMOUNT");
  a.option("--hours", &o->hours,
           "when it may be started, in the server's local time: days, times, or both, such as "
           "\"mon-fri 19:00-07:00, sat, sun\" (any time); once started, it goes on",
           "HOURS");
  a.option("--not-before", &o->not_before,
           "it is not started before this time, such as \"2026-12-01 18:00\", which is local time, "
           "or 2026-12-01T18:00+01:00",
           "TIME");
  a.option("--retries", &o->retries, "how often a failed run is repeated (0)", "N");
  a.option("--cpu-limit", &o->cpu_limit, "limit for the CPU time of one run", "TIME");
  a.option("--wall-limit", &o->wall_limit, "limit for the duration of one run", "TIME");
  a.option("--memory-limit", &o->memory_limit, "limit for its memory", "SIZE");
  a.option("--output-text-limit", &o->output_text_limit,
           "how much of its stdout, and of its stderr, is kept", "SIZE");
  a.option("--output-file-limit", &o->output_file_limit, "limit for each file that it writes",
           "SIZE");
  a.option("--processes-limit", &o->processes_limit, "limit for the number of its processes", "N");
  a.option("--priority", &o->priority, "among your own jobs: higher runs earlier (0)", "N");
  a.option("--checkpoint-every", &o->checkpoint_every,
           "copy these files also while the job runs, so often (as often as the machine chooses)",
           "TIME");
  a.option("--leaving", &o->leaving,
           "what it does when the machine's owner is back, if that is stricter than the machine's "
           "own way: leave, suspend, linger or kill",
           "WAY");
  a.words("--leaving", leaving_names());
  a.option("--network", &o->network,
           "what it may reach: none, only its own loopback; server, only the pool's server and the "
           "machine's loopback; any, everything, and it runs only where the owner permits that "
           "(default: the machine's setting)",
           "NETWORK");
  a.words("--network", network_names());
  a.option("--input-from", &o->inputs_from,
           "an output of that job, when it is done; the job finds it as NAME (repeatable)",
           "JOB:OUTPUT[=NAME]");
  a.option("--after", &o->after, "wait until these jobs are done: ids, as 17 or 17-20 (repeatable)",
           "JOBS");
  a.option("--after-any", &o->after_any, "wait until these jobs have ended, however (repeatable)",
           "JOBS");
  a.option("--after-start", &o->after_start, "wait until these jobs have started (repeatable)",
           "JOBS");
  a.option("--never-satisfied", &o->never_satisfied,
           "what becomes of the job when what it waits for cannot happen any more: hold (the "
           "default) or remove",
           "WHAT");
  a.words("--never-satisfied", {"hold", "remove"});
  a.option("--at-most", &o->at_most, "how many of the jobs may be on machines at a time", "N");
  a.option("--count", &o->count, "an array of N jobs; {index} stands for 0, 1, ...", "N");
  a.option("--parameter", &o->parameters,
           "an array with a job for each combination of the values; VALUES as in a batch file: "
           "'rate=[0.1, 0.2]', 'seed={from=1, to=9}' (repeatable)",
           "NAME=VALUES");
  a.option("--table", &o->table, "an array with a job for each line of this table", "FILE.csv");
  a.flag(
      "--each", &o->each,
      "submit a job for each line of standard input; the line replaces {} in ARGS, or is appended");
  a.option("--stop-when", &o->stop_when,
           "remove the rest when done=N or failed=N jobs have ended so, or one has left "
           "output=NAME (repeatable)",
           "CONDITION");
}

}  // namespace sublet::cli
