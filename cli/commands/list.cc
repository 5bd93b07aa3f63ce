// ls.
#include <algorithm>
#include <functional>

#include "cli/commands/commands.h"
#include "cli/names.h"
#include "cli/pool/pool_client.h"
#include "cli/views/jobs.h"
#include "cli/views/when.h"

namespace sublet::cli {

namespace {

// Jobs whose columns are aligned with each other: a longer list is printed in several tables.
constexpr size_t kTableJobs = 10'000;

struct ListOptions {
  bool all = false;
  std::string user;
  std::string batch;
  std::vector<std::string> states;
  std::string name;
  std::string since;
  std::string sort;
  bool reverse = false;
  int64_t limit = 1000;
  bool each_job = false;
};

using Jobs = std::vector<JobSummary>;

template <auto member>
bool less(const JobSummary& a, const JobSummary& b) {
  return a.*member < b.*member;
}
template <auto member>
bool more(const JobSummary& a, const JobSummary& b) {
  return a.*member > b.*member;
}

// Times and amounts in descending order, words in ascending order.
struct SortKey {
  const char* word;
  bool (*before)(const JobSummary& a, const JobSummary& b);
};
constexpr SortKey kSortKeys[] = {
    {"id", more<&JobSummary::id>},
    {"submitted", more<&JobSummary::submitted_us>},
    {"changed", more<&JobSummary::changed_us>},
    {"name", less<&JobSummary::name>},
    {"user", less<&JobSummary::user>},
    {"state", less<&JobSummary::state>},
    {"machine", less<&JobSummary::machine>},
    {"cpu", more<&JobSummary::cpu_kept_ms>},
    {"lost", more<&JobSummary::cpu_lost_ms>},
    {"evictions", more<&JobSummary::evictions>},
};

std::vector<std::string> sort_words() {
  std::vector<std::string> words;
  for (const SortKey& key : kSortKeys) words.emplace_back(key.word);
  return words;
}

const SortKey& sort_key(const std::string& word) {
  for (const SortKey& key : kSortKeys)
    if (word == key.word) return key;
  throw unknown_word("usage.sort", "--sort: ", word, sort_words());
}

JobFilter list_filter(const ListOptions& o, const Context& context) {
  JobFilter filter;
  filter.user = o.user.empty() ? context.user() : o.user == "*" ? "" : o.user;
  if (!o.batch.empty()) filter.batch = parse_number(o.batch, "batch id");
  for (const std::string& word : o.states) filter.states.push_back(parse_job_state(word));
  if (const std::string wrong = check_name_pattern(o.name); !wrong.empty())
    throw PoolError(ErrorKind::usage, "usage.name", "--name: '" + o.name + "': " + wrong,
                    "write a backslash before a character that stands for itself", o.name);
  filter.name = o.name;
  if (!o.since.empty()) filter.since_us = parse_when("--since", o.since, now_us());
  filter.unfinished_only = !o.all && o.states.empty() && o.batch.empty() && o.since.empty();
  filter.newest_first = !o.reverse || !o.sort.empty();
  filter.runs = !o.each_job && !context.json;
  return filter;
}

// Shows jobs as they come, so that a long list needs little memory.
class ListPrinter {
 public:
  ListPrinter(bool join, const Context& context) : join_(join), context_(context) {}
  void add(const JobSummary& job) {
    if (context_.json) return print_json(job);
    jobs_.push_back(job);
    if (jobs_.size() == kTableJobs) print_table();
  }
  void finish(bool more) {
    if (context_.json) {
      print(separator_ == kStart ? kStart : "");
      return print(std::string("],\"more\":") + (more ? "true" : "false") + "}\n");
    }
    if (!jobs_.empty()) print_table();
    if (more) say("there are more; --limit N lists up to N, --limit 0 all");
  }

 private:
  void print_json(const JobSummary& job) {
    JsonWriter json;
    write_json(json, job);
    print(separator_ + json.str());
    separator_ = ",";
  }
  void print_table() {
    const Jobs jobs = join_ ? joined(jobs_) : std::move(jobs_);
    jobs_.clear();
    print(jobs_table(jobs, now_us(), context_.terminal.columns, context_.terminal.colour));
  }

  static constexpr const char* kStart = "{\"jobs\":[";

  const bool join_;
  const Context& context_;
  std::string separator_ = kStart;  // before the next job
  Jobs jobs_;
};

// Calls take() for up to `limit` jobs. Returns whether there are more.
bool each_job(const JobFilter& filter, uint64_t limit, Context& context,
              const std::function<void(const JobSummary&)>& take) {
  std::string cursor;
  while (limit > 0) {
    const auto want = static_cast<uint32_t>(std::min<uint64_t>(kPageLimit, limit));
    const JobPage page = context.pool().list(filter, cursor, want);
    for (const JobSummary& job : page.jobs) take(job);
    limit -= std::min<uint64_t>(limit, page.jobs.size());
    cursor = page.next;
    if (cursor.empty()) return false;
  }
  return any_jobs(context.pool(), filter, cursor);
}

Jobs sorted(const ListOptions& o, const JobFilter& filter, Context& context) {
  const SortKey& key = sort_key(o.sort);
  Jobs jobs;
  each_job(filter, UINT64_MAX, context, [&](const JobSummary& job) { jobs.push_back(job); });
  if (filter.runs) jobs = joined(jobs);
  std::stable_sort(jobs.begin(), jobs.end(), [&](const JobSummary& a, const JobSummary& b) {
    return o.reverse ? key.before(b, a) : key.before(a, b);
  });
  return jobs;
}

void require_batch(uint64_t batch, Context& context) {
  JobFilter filter;
  filter.batch = batch;
  if (std::optional<PoolError> missing = missing_jobs(context.pool(), filter)) throw *missing;
}

int run_list(const ListOptions& o, Context& context) {
  if (o.limit < 0)
    throw PoolError(ErrorKind::usage, "usage.limit", "--limit must not be negative",
                    "give a number, or 0 for no limit");
  const JobFilter filter = list_filter(o, context);
  const uint64_t limit = o.limit == 0 ? UINT64_MAX : static_cast<uint64_t>(o.limit);
  uint64_t count = 0;
  bool more = false;
  ListPrinter printer(filter.runs && o.sort.empty(), context);
  const auto add = [&](const JobSummary& job) {
    ++count;
    printer.add(job);
  };
  if (o.sort.empty()) {
    more = each_job(filter, limit, context, add);
  } else {
    Jobs jobs = sorted(o, filter, context);
    more = jobs.size() > limit;
    if (more) jobs.resize(limit);
    for (const JobSummary& job : jobs) add(job);
  }
  if (count == 0 && filter.batch != 0) require_batch(filter.batch, context);
  printer.finish(more);
  if (count > 0 || context.json) return 0;
  say(filter.unfinished_only
          ? "no unfinished jobs; `sublet ls --all` also lists those that have ended"
          : "no such jobs");
  return 0;
}

}  // namespace

bool any_jobs(PoolClient& pool, const JobFilter& filter, std::string cursor) {
  do {
    const JobPage page = pool.list(filter, cursor, kPageLimit);
    if (!page.jobs.empty()) return true;
    cursor = page.next;
  } while (!cursor.empty());
  return false;
}

Command list_command(Arguments& top) {
  auto o = std::make_shared<ListOptions>();
  Arguments& a =
      top.command("ls", "List jobs, newest first; by default your own that have not ended");
  a.flag("--all", &o->all, "include jobs that have ended");
  a.option("--user", &o->user, "another user's jobs; '*' for everyone's", "U");
  a.option("--state", &o->states,
           "waiting, placed, running, suspended, delivering, held, done, failed or removed; may be "
           "repeated",
           "S");
  a.words("--state", job_state_names());
  a.option("--batch", &o->batch, "all jobs of this batch, even ended ones", "B");
  a.option("--name", &o->name,
           "jobs of this name; * stands for any text, ? for any character, [abc] for one of these",
           "PATTERN");
  a.option("--since", &o->since,
           "jobs submitted or changed since then, even ended ones: \"2 h\" ago, 2026-11-20, "
           "\"2026-11-20 14:00\" UTC",
           "WHEN");
  a.option("--sort", &o->sort,
           "id, submitted, changed, cpu, lost or evictions (newest or largest first), name, user, "
           "state or machine",
           "KEY");
  a.words("--sort", sort_words());
  a.flag("--reverse", &o->reverse, "in the opposite order");
  a.option("--limit", &o->limit, "at most this many (1000); 0: no limit", "N");
  a.flag("--each-job", &o->each_job,
         "print each job on a line of its own; do not combine similar ones");
  return {&a, [o](Context& context) { return run_list(*o, context); }};
}

}  // namespace sublet::cli
