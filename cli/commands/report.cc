// report: usage, its goodput, and the users' standing.
#include <algorithm>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/names.h"
#include "cli/pool/pool_client.h"
#include "cli/views/policies.h"
#include "cli/views/reports.h"
#include "cli/views/when.h"

namespace sublet::cli {
namespace {

const std::vector<std::string> kReports = {"users", "machines", "jobs", "pool", "evictions"};
// In the order of GroupBy.
const std::vector<std::string> kGroups = {"user", "machine", "batch", "day", "week", "job"};

struct ReportOptions {
  std::string what;
  std::vector<std::string> by;
  std::string since;
  std::string until;
  std::string user;
  bool csv = false;
};

// What the lines are grouped by, outermost first.
std::vector<std::string> groups(const ReportOptions& o) {
  static const std::vector<std::string> kOwn = {"user", "machine", "job", "", "machine"};
  std::vector<std::string> by;
  if (!o.what.empty()) {
    const auto found = std::find(kReports.begin(), kReports.end(), o.what);
    if (found == kReports.end())
      throw unknown_word("usage.report", "the report ", o.what, kReports);
    const std::string& own = kOwn[static_cast<size_t>(found - kReports.begin())];
    if (!own.empty() && (o.what != "evictions" || o.by.empty())) by.push_back(own);
  } else if (o.by.empty()) {
    by.push_back("user");
  }
  for (const std::string& word : o.by) {
    if (std::find(kGroups.begin(), kGroups.end(), word) == kGroups.end())
      throw unknown_word("usage.by", "--by: ", word, kGroups);
    if (std::find(by.begin(), by.end(), word) == by.end()) by.push_back(word);
  }
  return by;
}

ReportQuery query_of(const ReportOptions& o, const std::vector<std::string>& by) {
  ReportQuery query;
  query.user = o.user;
  query.steps = o.what == "evictions";
  for (const std::string& word : by)
    query.by.push_back(
        static_cast<uint64_t>(std::find(kGroups.begin(), kGroups.end(), word) - kGroups.begin()) +
        kByUser);
  const int64_t now = now_us();
  if (!o.since.empty()) query.since_us = parse_when("--since", o.since, now);
  if (!o.until.empty()) query.until_us = parse_when("--until", o.until, now);
  if (query.until_us > 0 && query.since_us >= query.until_us)
    throw PoolError(ErrorKind::usage, "usage.until", "--until is not after --since",
                    "give the earlier time to --since", o.until);
  return query;
}

Report fetch(Context& context, const ReportOptions& o, const ReportQuery& query) {
  Report report;
  std::string cursor;
  do {
    UsagePage page = context.pool().usage(query, cursor, kPageLimit);
    report.usage.insert(report.usage.end(), page.lines.begin(), page.lines.end());
    cursor = page.next;
  } while (!cursor.empty());
  report.of_steps = query.steps;
  if (query.steps) {
    ReportQuery all = query;
    all.by.clear();
    const UsagePage page = context.pool().usage(all, "", 1);
    if (!page.lines.empty()) report.total_steps = page.lines.front().steps;
  }
  report.of_users = o.what.empty() || o.what == "users";
  if (!report.of_users) return report;
  report.policies = context.pool().policies_in_force();
  report.standings = context.pool().current_standings();
  if (!o.user.empty())
    std::erase_if(report.standings, [&](const Standing& s) {
      const bool shares_it = std::find(s.users.begin(), s.users.end(), o.user) != s.users.end();
      return s.user != o.user && !shares_it;
    });
  return report;
}

int run_report(const ReportOptions& o, Context& context) {
  if (o.csv && context.json)
    throw PoolError(ErrorKind::usage, "usage.csv", "--csv and --json cannot be used together",
                    "give one of them");
  const std::vector<std::string> by = groups(o);
  const Report report = fetch(context, o, query_of(o, by));
  if (context.json) {
    JsonWriter json;
    write_json(json, report);
    print(json.str() + "\n");
    return 0;
  }
  if (o.csv) {
    print(report.of_steps ? steps_csv(report, by) : report_csv(report, by));
    return 0;
  }
  const Terminal& t = context.terminal;
  if (report.of_steps) {
    print(report.total_steps.empty()
              ? "no job had to leave in that period\n"
              : steps_table(report.usage, report.total_steps, t.columns, t.colour));
    return 0;
  }
  print(report.usage.empty() ? "nothing was used in that period\n"
                             : usage_table(report.usage, t.columns, t.colour));
  if (report.of_users) print("\n" + policy_line(report.policies, now_us(), t.columns) + "\n");
  if (!report.standings.empty()) print(standings_table(report.standings, t.columns, t.colour));
  const bool own_only = o.what == "pool" && o.user.empty() && !report.usage.empty() &&
                        report.usage.front().local_us < 0;
  if (own_only) say("this is your own usage; only administrators see the whole pool's");
  return 0;
}

}  // namespace

Command report_command(Arguments& top) {
  auto o = std::make_shared<ReportOptions>();
  Arguments& a = top.command("report", "Show who used what, what was gained, and how users stand");
  a.positional("WHAT", &o->what, "users (the default), machines, jobs, pool or evictions", false);
  a.words("WHAT", kReports);
  a.option("--by", &o->by, "one line per user, machine, batch, job, day or week; repeatable",
           "GROUP");
  a.words("--by", kGroups);
  a.option("--since", &o->since, "start: \"7 d\" ago, 2026-11-20, \"2026-11-20 14:00\" UTC",
           "TIME");
  a.option("--until", &o->until, "end, exclusive; same forms", "TIME");
  a.option("--user", &o->user, "only this user", "U");
  a.flag("--csv", &o->csv, "print comma-separated values");
  return {&a, [o](Context& context) { return run_report(*o, context); }};
}

}  // namespace sublet::cli
