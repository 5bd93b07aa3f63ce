// show and why.
#include "cli/commands/commands.h"
#include "cli/names.h"
#include "cli/pool/pool_client.h"
#include "cli/views/jobs.h"

namespace sublet::cli {

namespace {

constexpr uint32_t kShown = 100;

// The first of these jobs; adjacent ones that do not differ are joined.
struct Runs {
  std::vector<JobSummary> jobs;
  bool more = false;
};

Runs first_runs(JobFilter filter, uint32_t limit, Context& context) {
  filter.runs = true;
  JobPage page = context.pool().list(filter, "", limit);
  const bool more = !page.next.empty() && any_jobs(context.pool(), filter, page.next);
  return {std::move(page.jobs), more};
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

// Each job, or each run of an array's, with what it waits for.
int show_graph(const JobFilter& filter, Context& context) {
  if (std::optional<PoolError> missing = missing_jobs(context.pool(), filter)) throw *missing;
  const Runs runs = first_runs(filter, kPageLimit, context);
  std::vector<GraphLine> lines;
  for (const JobSummary& run : runs.jobs)
    lines.push_back({run, context.pool().show(run.id).description});
  if (context.json) {
    JsonWriter json;
    json.begin_object().key("jobs").begin_array();
    for (const GraphLine& line : lines) write_json(json, line);
    json.end_array().field("more", runs.more).end_object();
    print(json.str() + "\n");
    return 0;
  }
  print(graph_table(lines, context.terminal.columns, context.terminal.colour));
  if (runs.more) say("there are more");
  return 0;
}

int run_show(const Selection& selection, bool graph, Context& context) {
  const JobFilter filter = selection.filter();
  if (graph) return show_graph(filter, context);
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

Command show_command(Arguments& top) {
  auto selection = std::make_shared<Selection>();
  auto graph = std::make_shared<bool>(false);
  Arguments& a = top.command(
      "show",
      "Show everything about one job: description, attempts, outputs; or a summary of several");
  selection->declare(a);
  a.flag("--graph", graph.get(), "show which of the jobs wait for which");
  return {&a,
          [selection, graph](Context& context) { return run_show(*selection, *graph, context); }};
}

Command why_command(Arguments& top) {
  auto selection = std::make_shared<Selection>();
  Arguments& a = top.command(
      "why", "Say in a sentence why a job waits, where it runs, who holds it, how it ended");
  selection->declare(a);
  return {&a, [selection](Context& context) { return run_why(*selection, context); }};
}

}  // namespace sublet::cli
