// submit: submits jobs from the command line or a batch file.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "base/text.h"
#include "cli/batch/file.h"
#include "cli/batch/plan.h"
#include "cli/batch/sweep.h"
#include "cli/commands/commands.h"
#include "cli/commands/waiting.h"
#include "cli/names.h"
#include "cli/transfer/fetching.h"
#include "cli/transfer/submission.h"
#include "cli/views/jobs.h"
#include "cli/views/plan.h"

namespace sublet::cli {

namespace {

struct SubmitOptions {
  std::string file;
  std::vector<std::string> command;
  std::string name, memory, disk, cpu_limit, wall_limit;
  std::vector<std::string> inputs, outputs, environment;
  int64_t cores = 0;
  int64_t retries = 0;
  int64_t priority = 0;
  bool wait = false;
  bool dry_run = false;
  bool each = false;
  std::string into;
  bool by_job = false;
};

[[noreturn]] void usage(const std::string& message, const std::string& advice) {
  throw PoolError(ErrorKind::usage, "usage.submit", message, advice);
}

void check(const std::string& option, const std::string& wrong) {
  if (!wrong.empty()) usage(option + ": " + wrong, "see `sublet submit --help`");
}

uint64_t size_option(const std::string& option, const std::string& text) {
  if (text.empty()) return 0;
  std::optional<uint64_t> bytes = parse_bytes(text);
  if (!bytes || *bytes == 0 || *bytes > std::numeric_limits<int64_t>::max())
    usage(option + ": '" + text + "' is not a size", "write it as \"2 GiB\" or 500MB");
  return *bytes;
}

int64_t duration_option(const std::string& option, const std::string& text) {
  if (text.empty()) return 0;
  std::optional<int64_t> ms = parse_duration_ms(text);
  if (!ms || *ms == 0)
    usage(option + ": '" + text + "' is not a duration", "write it as 90, 2h or \"1 h 30 min\"");
  return *ms;
}

int64_t number_option(const std::string& option, int64_t n, int64_t min, int64_t max) {
  if (n < min || n > max)
    usage(option + " must be between " + std::to_string(min) + " and " + std::to_string(max), "");
  return n;
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
      usage("--env: '" + name + "' is not set", "give a value: --env " + name + "=...");
    value = here;
  }
  check("--env", set_environment(job, name, value));
}

// Whether the word ends in a '?' that no backslash escapes.
bool ends_in_question_mark(const std::string& word) {
  if (!word.ends_with('?')) return false;
  size_t backslashes = 0;
  while (backslashes + 1 < word.size() && word[word.size() - 2 - backslashes] == '\\')
    ++backslashes;
  return backslashes % 2 == 0;
}

void add_files(const SubmitOptions& o, PlannedJob* job) {
  for (const std::string& word : o.inputs) {
    size_t equals = word.rfind('=');
    PlannedInput input;
    input.path = word.substr(0, equals);
    if (equals != std::string::npos) input.name = word.substr(equals + 1);
    if (input.path.empty() || (equals != std::string::npos && input.name.empty()))
      usage("--input: '" + word + "' does not name a file",
            "write --input FILE or --input FILE=NAME");
    check("--input", add_input(job, std::move(input)));
  }
  for (const std::string& word : o.outputs) {
    const bool optional = ends_in_question_mark(word);
    check("--output", add_output(job, word.substr(0, word.size() - (optional ? 1 : 0)), !optional));
  }
}

BatchPlan plan_of_words(const SubmitOptions& o) {
  PlannedJob job;
  job.what.program = o.command.front();
  job.what.arguments.assign(o.command.begin() + 1, o.command.end());
  if (job.what.program.empty()) usage("the program's name is empty", "");
  job.what.name = to_utf8(o.name.empty() ? base_name(job.what.program) : o.name);
  add_files(o, &job);
  for (const std::string& word : o.environment) add_environment(word, &job);
  check("PROGRAM", send_program_along(&job, "", ""));
  job.what.needs.memory = size_option("--memory", o.memory);
  job.what.needs.disk = size_option("--disk", o.disk);
  job.what.needs.cores = static_cast<uint32_t>(number_option("--cores", o.cores, 0, 100'000));
  job.what.bounds.cpu_ms = duration_option("--cpu-limit", o.cpu_limit);
  job.what.bounds.wall_ms = duration_option("--wall-limit", o.wall_limit);
  job.what.retries = static_cast<uint32_t>(number_option("--retries", o.retries, 0, 1000));
  job.what.priority =
      static_cast<int32_t>(number_option("--priority", o.priority, -1'000'000, 1'000'000));
  if (o.each) run_for_each(&job, read_lines(STDIN_FILENO));
  BatchPlan plan;
  plan.name = job.what.name;
  plan.jobs.push_back(std::move(job));
  return plan;
}

// Whether options are given that apply only to a job on the command line.
bool has_job_options(const SubmitOptions& o) {
  return !(o.name.empty() && o.memory.empty() && o.disk.empty() && o.cpu_limit.empty() &&
           o.wall_limit.empty() && o.inputs.empty() && o.outputs.empty() && o.environment.empty() &&
           o.cores == 0 && o.retries == 0 && o.priority == 0 && !o.each);
}

BatchPlan plan_of(const SubmitOptions& o) {
  if (o.command.empty() == o.file.empty())
    usage(o.file.empty() ? "nothing to run" : "give either a batch file or a program, not both",
          "write `sublet submit FILE.toml` or `sublet submit -- PROGRAM ARGS`");
  if ((!o.into.empty() || o.by_job) && !o.wait)
    usage("--into and --by-job need --wait", "`sublet fetch --into FOLDER` fetches outputs later");
  if (o.file.empty()) return plan_of_words(o);
  if (!o.file.ends_with(".toml"))
    usage("'" + o.file + "' is not a batch file (FILE.toml)",
          "to run a program, put -- before it: `sublet submit -- PROGRAM ARGS`");
  if (has_job_options(o))
    usage("job options cannot be used with a batch file", "write them into " + o.file);
  return read_batch_file(o.file);
}

void print_submitted(const Submitted& s, bool waiting) {
  std::string line = s.jobs.count == 1 && s.batch == 0
                         ? "job " + std::to_string(s.jobs.first)
                         : "batch " + std::to_string(s.batch) + ": " +
                               counted(s.jobs.count, "job") + ", " + format_ids({s.jobs});
  // With --wait, stdout is for the job's output.
  if (waiting)
    say(line);
  else
    print(line + "\n");
}

void write_json(JsonWriter& json, const Submitted& s) {
  if (s.batch != 0) json.field("batch", s.batch);
  json.key("jobs").begin_object().field("first", s.jobs.first).field("count", s.jobs.count);
  json.end_object();
}

FetchOptions fetch_options(const SubmitOptions& o) {
  return {o.into.empty() ? "." : o.into, o.by_job};
}

int wait_and_fetch(const SubmitOptions& o, const Submitted& submitted, Context& context) {
  JobFilter filter;
  if (submitted.batch != 0)
    filter.batch = submitted.batch;
  else
    filter.ids = {submitted.jobs};
  const FetchOptions options = fetch_options(o);
  WaitResult result = wait_for_jobs(context, filter, std::nullopt, "--fetch " + options.words());
  if (context.json) {
    FetchResult fetched = fetch_jobs(context, filter, options);
    JsonWriter json;
    json.begin_object();
    write_json(json, submitted);
    json.field("evictions_seen", result.evictions).field("stopped", result.stopped);
    json.key("counts");
    write_json(json, result.counts);
    json.key("fetched");
    write_json(json, fetched, options);
    json.end_object();
    print(json.str() + "\n");
    return result.exit_status();
  }
  if (submitted.jobs.count == 1) {
    if (result.counts.removed == 0) fetch_and_print(context, submitted.jobs.first, options);
    if (result.counts.done == 1) return 0;
    JobDetail job = context.pool().show(submitted.jobs.first);
    say("sublet: job " + std::to_string(job.summary.id) + " " + job_state_name(job.summary.state) +
        ": " + escape_for_terminal(job.summary.reason));
    return kExitJobsFailed;
  }
  int status = report_wait(context, filter, result);
  report_fetch(fetch_jobs(context, filter, options), options);
  return status;
}

// Notes the folder to which `sublet return` fetches the outputs.
void note_folder(BatchPlan* plan) {
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  if (error) return;
  for (PlannedJob& job : plan->jobs) {
    job.what.submit_folder = folder;
    job.what.submit_host = host_name();
  }
}

// Two jobs' outputs of one name cannot be fetched into one folder.
void check_outputs(const SubmitOptions& o, const BatchPlan& plan) {
  if (o.by_job || plan.stop_when.is_set()) return;  // then one of the jobs may leave it
  const std::string twice = equal_output(plan);
  if (twice.empty()) return;
  const std::string what = "several jobs leave an output `" + escape_for_terminal(twice) + "`";
  if (o.wait)
    throw PoolError(ErrorKind::conflict, "output.twice", what,
                    "give each its own name, such as one with {index} in an array, or use --by-job",
                    twice);
  say("sublet: " + what + ": fetch them with --by-job");
}

int run_submit(const SubmitOptions& o, Context& context) {
  BatchPlan plan = plan_of(o);
  InputFiles files;
  files.read(plan);
  note_folder(&plan);
  check_plan(plan);
  check_outputs(o, plan);
  if (o.dry_run) {
    print(context.json ? plan_json(plan, files) : plan_text(plan, files, context.terminal));
    return 0;
  }
  if (!o.into.empty()) fetch_options(o).check_folder();
  Submitted submitted = submit_plan(context.pool(), plan, files);
  if (o.wait) {
    if (!context.json) print_submitted(submitted, true);
    return wait_and_fetch(o, submitted, context);
  }
  if (context.json) {
    JsonWriter json;
    json.begin_object();
    write_json(json, submitted);
    json.end_object();
    print(json.str() + "\n");
  } else {
    print_submitted(submitted, false);
  }
  return 0;
}

void declare_job_options(Arguments& a, SubmitOptions* o) {
  a.option("--name", &o->name, "name of the job (default: the program's)", "NAME");
  a.option("--input", &o->inputs, "send this file; the job finds it as NAME (repeatable)",
           "FILE[=NAME]");
  a.option("--output", &o->outputs,
           "keep this file of the job's folder, this folder (NAME/) or what matches this pattern; "
           "a ? at the end makes it optional (repeatable)",
           "NAME[?]");
  a.option("--env", &o->environment, "set a variable, or copy the current one (repeatable)",
           "NAME[=VALUE]");
  a.option("--memory", &o->memory, "memory it needs at most, such as \"2 GiB\"", "SIZE");
  a.option("--disk", &o->disk, "disk space it needs", "SIZE");
  a.option("--cores", &o->cores, "cores it needs (1)", "N");
  a.option("--retries", &o->retries, "how often a failed run is repeated (0)", "N");
  a.option("--cpu-limit", &o->cpu_limit, "limit for the CPU time of one run", "TIME");
  a.option("--wall-limit", &o->wall_limit, "limit for the duration of one run", "TIME");
  a.option("--priority", &o->priority, "among your own jobs: higher runs earlier (0)", "N");
}

}  // namespace

Command submit_command(Arguments& top) {
  auto o = std::make_shared<SubmitOptions>();
  Arguments& a =
      top.command("submit",
                  "Submit a program, or the jobs of a batch file. A program with a slash in its "
                  "name is sent along; any other is looked up on the workstation.");
  a.positional("FILE.toml", &o->file, "batch file (docs/batch-files.md)", false);
  a.passthrough("PROGRAM", &o->command, "program and its arguments");
  declare_job_options(a, o.get());
  a.flag("--wait", &o->wait, "wait until all have ended, then fetch their outputs");
  a.option("--into", &o->into, "with --wait: folder for the outputs (the current one)", "FOLDER");
  a.flag("--by-job", &o->by_job, "with --wait: put each job's outputs into FOLDER/ID");
  a.flag(
      "--each", &o->each,
      "submit a job for each line of standard input; the line replaces {} in ARGS, or is appended");
  a.flag("--dry-run", &o->dry_run, "check everything and say what would be sent; send nothing");
  return {&a, [o](Context& context) { return run_submit(*o, context); }};
}

}  // namespace sublet::cli
