// ls and show.
#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/job_views.h"
#include "cli/names.h"
#include "cli/pool_client.h"

namespace sublet::cli {

namespace {

constexpr int64_t kListMax = 1'000'000;

struct ListOptions {
  bool all = false;
  std::string user;
  std::string batch;
  std::vector<std::string> states;
  int64_t limit = 1000;
};

// As the server calls this user.
std::string own_name() {
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : "uid" + std::to_string(geteuid());
}

JobFilter list_filter(const ListOptions& o) {
  if (o.limit < 1 || o.limit > kListMax)
    throw PoolError(ErrorKind::usage, "usage.limit", "--limit must be between 1 and 1000000");
  JobFilter filter;
  filter.user = o.user.empty() ? own_name() : o.user == "*" ? "" : o.user;
  if (!o.batch.empty()) filter.batch = parse_number(o.batch, "id of a batch");
  for (const std::string& word : o.states) filter.states.push_back(parse_job_state(word));
  filter.unfinished_only = !o.all && o.states.empty() && o.batch.empty();
  return filter;
}

int run_list(const ListOptions& o, Context& context) {
  JobFilter filter = list_filter(o);
  std::vector<JobSummary> jobs;
  std::string cursor;
  uint64_t limit = static_cast<uint64_t>(o.limit);
  do {
    uint64_t want = std::min<uint64_t>(kPageLimit, limit - jobs.size());
    JobPage page = context.pool().list(filter, cursor, static_cast<uint32_t>(want));
    jobs.insert(jobs.end(), page.jobs.begin(), page.jobs.end());
    cursor = page.next;
  } while (!cursor.empty() && jobs.size() < limit);
  // A full page may have been the last one.
  bool more = !cursor.empty() && !context.pool().list(filter, cursor, 1).jobs.empty();
  if (context.json) {
    JsonWriter json;
    json.begin_object().key("jobs").begin_array();
    for (const JobSummary& job : jobs) write_json(json, job);
    json.end_array().field("more", more).end_object();
    print(json.str() + "\n");
    return 0;
  }
  if (jobs.empty()) {
    say(filter.unfinished_only ? "no unfinished jobs; `sublet ls --all` shows those that ended too"
                               : "no such jobs");
    return 0;
  }
  print(jobs_table(jobs, now_us(), context.terminal.columns, context.terminal.colour));
  if (more) say("there are more; --limit N shows up to N");
  return 0;
}

int run_show(const std::string& word, Context& context) {
  JobDetail job = context.pool().show(parse_number(word, "job id"));
  if (context.json) {
    JsonWriter json;
    write_json(json, job);
    print(json.str() + "\n");
  } else {
    print(job_story(job, now_us(), context.terminal.columns, context.terminal.colour));
  }
  return 0;
}

}  // namespace

Command list_command(Arguments& top) {
  auto o = std::make_shared<ListOptions>();
  Arguments& a =
      top.command("ls", "List jobs: your own that have not ended, unless told otherwise");
  a.flag("--all", &o->all, "those that have ended, too");
  a.option("--user", &o->user, "another user's jobs; '*' for everyone's", "U");
  a.option("--state", &o->states,
           "waiting, placed, running, held, done, failed or removed; may be repeated", "S");
  a.option("--batch", &o->batch, "the jobs of this batch, ended or not", "B");
  a.option("--limit", &o->limit, "at most this many (1000)", "N");
  return {&a, [o](Context& context) { return run_list(*o, context); }};
}

Command show_command(Arguments& top) {
  auto job = std::make_shared<std::string>();
  Arguments& a = top.command("show", "Tell one job's whole story: what it is, attempts, outputs");
  a.positional("JOB", job.get(), "id of the job", true);
  return {&a, [job](Context& context) { return run_show(*job, context); }};
}

}  // namespace sublet::cli
