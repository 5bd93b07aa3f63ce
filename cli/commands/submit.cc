// submit: submits jobs from the command line or a batch file.
#include <filesystem>

#include "base/text.h"
#include "cli/batch/equal_outputs.h"
#include "cli/batch/file.h"
#include "cli/batch/plan.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_options.h"
#include "cli/commands/waiting.h"
#include "cli/interrupts.h"
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
  JobOptions job;
  bool wait = false;
  bool dry_run = false;
  bool even_so = false;
  std::string into;
  bool by_job = false;
};

BatchPlan plan_of(const SubmitOptions& o) {
  if (o.command.empty() == o.file.empty())
    usage_error(
        o.file.empty() ? "nothing to run" : "give either a batch file or a program, not both",
        "write `sublet submit FILE.toml` or `sublet submit -- PROGRAM ARGS`");
  if ((!o.into.empty() || o.by_job) && !o.wait)
    usage_error("--into and --by-job need --wait",
                "`sublet fetch --into FOLDER` fetches outputs later");
  if (o.file.empty()) return plan_of_command(o.job, o.command);
  if (!o.file.ends_with(".toml"))
    usage_error("'" + o.file + "' is not a batch file (FILE.toml)",
                "to run a program, put -- before it: `sublet submit -- PROGRAM ARGS`");
  if (o.job != JobOptions{})
    usage_error("job options cannot be used with a batch file", "write them into " + o.file);
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

JobFilter filter_of(const Submitted& submitted) {
  JobFilter filter;
  if (submitted.batch != 0)
    filter.batch = submitted.batch;
  else
    filter.ids = {submitted.jobs};
  return filter;
}

void print_result(const Submitted& submitted, const Context& context) {
  if (!context.json) return print_submitted(submitted, false);
  JsonWriter json;
  json.begin_object();
  write_json(json, submitted);
  json.end_object();
  print(json.str() + "\n");
}

// For WhenInterrupted: whatever the instant, one thing is said, and it is true.
void tell_interrupted(Submission& submission, const SubmitOptions& o, const Context& context) {
  submission.interrupt(
      [&](const PoolError& error) {
        context.json ? print(error_json(error)) : say(error_line(error));
      },
      [&](const Submitted& submitted) {
        if (!o.wait) return print_result(submitted, context);
        tell_how_to_continue(context, filter_of(submitted), "--fetch " + fetch_options(o).words(),
                             [&](JsonWriter& json) { write_json(json, submitted); })();
      });
}

int wait_and_fetch(const SubmitOptions& o, Submission& submission, const Submitted& submitted,
                   Context& context) {
  const JobFilter filter = filter_of(submitted);
  const FetchOptions options = fetch_options(o);
  WaitResult result = wait_for_jobs(context, filter, std::nullopt);
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
    submission.tell([&] { print(json.str() + "\n"); });
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

// Notes the folder to which `sublet fetch --follow` fetches the outputs.
void note_folder(BatchPlan* plan) {
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  if (error) return;
  for (PlannedJob& job : plan->jobs) {
    job.what.submit_folder = folder;
    job.what.submit_host = host_name();
  }
}

std::string sentence(const EqualOutputs& equal) {
  const std::string name = "`" + escape_for_terminal(equal.name) + "`";
  return (equal.where.empty() ? "" : equal.where + ": ") +
         (equal.inside.empty() ? "several jobs leave an output " + name
                               : "the output " + name + " of one job lies in the output `" +
                                     escape_for_terminal(equal.inside) + "` of another");
}

// Two jobs' outputs of one name cannot be fetched into one folder.
void check_outputs(const SubmitOptions& o, const BatchPlan& plan) {
  if (o.by_job || plan.stop_when.is_set()) return;  // then one of the jobs may leave it
  const EqualOutputs equal = find_equal_outputs(plan);
  if (equal.name.empty()) {
    if (equal.compared < equal.names)
      say("sublet: of the jobs' " + std::to_string(equal.names) + " outputs only the first " +
          std::to_string(equal.compared) +
          " were compared: fetch them with --by-job if several may have the same name");
    return;
  }
  if (!o.wait) return say("sublet: " + sentence(equal) + ": fetch them with --by-job");
  throw PoolError(ErrorKind::conflict, "output.twice", sentence(equal),
                  "give each its own name, such as one with {index} in an array, or use --by-job; "
                  "nothing was submitted",
                  equal.name);
}

// Finds a folder that cannot be written to before anything runs. A single job without outputs
// has nothing to store.
void check_folder(const SubmitOptions& o, const BatchPlan& plan) {
  const bool stores = plan.job_count() > 1 || !plan.jobs.front().what.outputs.empty();
  if (!o.wait || (o.into.empty() && !stores)) return;
  try {
    fetch_options(o).check_folder(!o.dry_run);
  } catch (PoolError& e) {
    e.advice += (e.advice.empty() ? "" : "; ") + std::string("nothing was submitted");
    throw;
  }
}

int run_submit(const SubmitOptions& o, Context& context) {
  Submission submission;
  const WhenInterrupted interrupted([&] { tell_interrupted(submission, o, context); });
  BatchPlan plan = plan_of(o);
  InputFiles files;
  files.read(plan);
  note_folder(&plan);
  if (o.even_so)
    for (PlannedJob& job : plan.jobs) job.what.even_so = true;
  check_plan(plan);
  check_outputs(o, plan);
  check_folder(o, plan);
  if (o.dry_run) {
    print(context.json ? plan_json(plan, files) : plan_text(plan, files, context.terminal));
    return 0;
  }
  const Submitted submitted = submission.run(context.pool(), plan, files);
  if (o.wait) {
    if (!context.json) submission.announce([&] { print_submitted(submitted, true); });
    return wait_and_fetch(o, submission, submitted, context);
  }
  submission.tell([&] { print_result(submitted, context); });
  return 0;
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
  declare_job_options(a, &o->job);
  a.flag("--even-so", &o->even_so,
         "also submit what no machine of the pool could run, and wait for such a machine");
  a.flag("--wait", &o->wait, "wait until all have ended, then fetch their outputs");
  a.option("--into", &o->into, "with --wait: folder for the outputs (the current one)", "FOLDER");
  a.not_empty("--into");
  a.flag("--by-job", &o->by_job, "with --wait: put each job's outputs into FOLDER/ID");
  a.flag("--dry-run", &o->dry_run, "check everything and say what would be sent; send nothing");
  return {&a, [o](Context& context) { return run_submit(*o, context); }};
}

}  // namespace sublet::cli
