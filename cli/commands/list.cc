// ls, show and why.
#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/names.h"
#include "cli/pool/pool_client.h"
#include "cli/views/jobs.h"

namespace sublet::cli {

namespace {

constexpr int64_t kListMax = 1'000'000;

struct ListOptions {
  bool all = false;
  std::string user;
  std::string batch;
  std::vector<std::string> states;
  int64_t limit = 1000;
  bool each_job = false;
};

JobFilter list_filter(const ListOptions& o, const Context& context) {
  if (o.limit < 1 || o.limit > kListMax)
    throw PoolError(ErrorKind::usage, "usage.limit", "--limit must be between 1 and 1000000");
  JobFilter filter;
  filter.user = o.user.empty() ? context.user() : o.user == "*" ? "" : o.user;
  if (!o.batch.empty()) filter.batch = parse_number(o.batch, "batch id");
  for (const std::string& word : o.states) filter.states.push_back(parse_job_state(word));
  filter.unfinished_only = !o.all && o.states.empty() && o.batch.empty();
  return filter;
}

// Whether jobs follow the cursor: a full page may have been the last one.
bool follows(const JobFilter& filter, const std::string& cursor, Context& context) {
  return !cursor.empty() && !context.pool().list(filter, cursor, 1).jobs.empty();
}

int run_list(const ListOptions& o, Context& context) {
  JobFilter filter = list_filter(o, context);
  filter.runs = !o.each_job && !context.json;
  std::vector<JobSummary> jobs;
  std::string cursor;
  uint64_t limit = static_cast<uint64_t>(o.limit);
  do {
    uint64_t want = std::min<uint64_t>(kPageLimit, limit - jobs.size());
    JobPage page = context.pool().list(filter, cursor, static_cast<uint32_t>(want));
    jobs.insert(jobs.end(), page.jobs.begin(), page.jobs.end());
    cursor = page.next;
  } while (!cursor.empty() && jobs.size() < limit);
  if (jobs.empty() && filter.batch != 0) {
    JobFilter batch;
    batch.batch = filter.batch;
    if (std::optional<PoolError> missing = missing_jobs(context.pool(), batch)) throw *missing;
  }
  const bool more = follows(filter, cursor, context);
  if (context.json) {
    JsonWriter json;
    json.begin_object().key("jobs").begin_array();
    for (const JobSummary& job : jobs) write_json(json, job);
    json.end_array().field("more", more).end_object();
    print(json.str() + "\n");
    return 0;
  }
  if (jobs.empty()) {
    say(filter.unfinished_only
            ? "no unfinished jobs; `sublet ls --all` also lists those that have ended"
            : "no such jobs");
    return 0;
  }
  if (!o.each_job) jobs = joined(jobs);
  print(jobs_table(jobs, now_us(), context.terminal.columns, context.terminal.colour));
  if (more) say("there are more; use --limit N to list up to N");
  return 0;
}

constexpr uint32_t kShown = 100;

// The first of these jobs; adjacent ones that do not differ are joined.
struct Runs {
  std::vector<JobSummary> jobs;
  bool more = false;
};

Runs first_runs(JobFilter filter, uint32_t limit, Context& context) {
  filter.runs = true;
  JobPage page = context.pool().list(filter, "", limit);
  return {std::move(page.jobs), follows(filter, page.next, context)};
}

// Joins a whole page, for display.
Runs first_joined(const JobFilter& filter, Context& context) {
  Runs runs = first_runs(filter, kPageLimit, context);
  runs.jobs = joined(runs.jobs);
  runs.more = runs.more || runs.jobs.size() > kShown;
  if (runs.jobs.size() > kShown) runs.jobs.resize(kShown);
  return runs;
}

int show_one(uint64_t id, Context& context) {
  JobDetail job = context.pool().show(id);
  if (context.json) {
    JsonWriter json;
    write_json(json, job);
    print(json.str() + "\n");
  } else {
    print(job_story(job, now_us(), context.terminal.columns, context.terminal.colour));
  }
  return 0;
}

// The counts by state, and the first of the jobs.
int show_several(const JobFilter& filter, Context& context) {
  if (std::optional<PoolError> missing = missing_jobs(context.pool(), filter)) throw *missing;
  const JobCounts counts = context.pool().count(filter);
  const Runs runs =
      context.json ? first_runs(filter, kShown, context) : first_joined(filter, context);
  if (context.json) {
    JsonWriter json;
    json.begin_object().key("counts");
    write_json(json, counts);
    json.key("jobs").begin_array();
    for (const JobSummary& run : runs.jobs) write_run(json, run);
    json.end_array().field("more", runs.more).end_object();
    print(json.str() + "\n");
    return 0;
  }
  print(counts_line(counts) + "\n\n" +
        jobs_table(runs.jobs, now_us(), context.terminal.columns, context.terminal.colour));
  if (runs.more) say("there are more");
  return 0;
}

int run_show(const Selection& selection, Context& context) {
  const JobFilter filter = selection.filter();
  const bool one = filter.batch == 0 && count_ids(filter.ids) == 1;
  return one ? show_one(filter.ids[0].first, context) : show_several(filter, context);
}

// Prints the current reason of each job, from the brain.
int run_why(const Selection& selection, Context& context) {
  const JobFilter filter = selection.filter();
  if (std::optional<PoolError> missing = missing_jobs(context.pool(), filter)) throw *missing;
  Runs runs = first_runs(filter, kShown, context);
  for (JobSummary& run : runs.jobs) {
    const JobSummary now = context.pool().show(run.id).summary;
    // The job's state may have changed since it was listed.
    if (now.state == run.state) run.reason = now.reason;
  }
  if (context.json) {
    JsonWriter json;
    json.begin_object().key("jobs").begin_array();
    for (const JobSummary& run : runs.jobs) write_run(json, run);
    json.end_array().field("more", runs.more).end_object();
    print(json.str() + "\n");
    return 0;
  }
  for (const JobSummary& run : runs.jobs) print(why_line(run, now_us()) + "\n");
  if (runs.more) say("there are more; name fewer jobs");
  return 0;
}

}  // namespace

Command list_command(Arguments& top) {
  auto o = std::make_shared<ListOptions>();
  Arguments& a = top.command("ls", "List jobs; by default your own that have not ended");
  a.flag("--all", &o->all, "include jobs that have ended");
  a.option("--user", &o->user, "another user's jobs; '*' for everyone's", "U");
  a.option("--state", &o->states,
           "waiting, placed, running, delivering, held, done, failed or removed; may be repeated",
           "S");
  a.words("--state", job_state_names());
  a.option("--batch", &o->batch, "all jobs of this batch, even ended ones", "B");
  a.option("--limit", &o->limit, "at most this many (1000)", "N");
  a.flag("--each-job", &o->each_job,
         "print each job on a line of its own; do not combine similar ones");
  return {&a, [o](Context& context) { return run_list(*o, context); }};
}

Command show_command(Arguments& top) {
  auto selection = std::make_shared<Selection>();
  Arguments& a = top.command(
      "show",
      "Show everything about one job: description, attempts, outputs; or a summary of several");
  selection->declare(a);
  return {&a, [selection](Context& context) { return run_show(*selection, context); }};
}

Command why_command(Arguments& top) {
  auto selection = std::make_shared<Selection>();
  Arguments& a = top.command(
      "why", "Say in a sentence why a job waits, where it runs, who holds it, how it ended");
  selection->declare(a);
  return {&a, [selection](Context& context) { return run_why(*selection, context); }};
}

}  // namespace sublet::cli
