// Queries on table uses: sums and rows.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "server/refusal.h"
#include "server/store/archive/archive.h"
#include "server/store/archive/connections.h"
#include "server/store/rows.h"
#include "server/store/tables.h"

namespace sublet::server {
namespace {

// As protocol::had_to_leave().
constexpr const char* kWasEvicted = "(ended between 16 and 20 or ended = 26)";
// The name of machine m, which may have been removed since.
constexpr const char* kMachineName = "coalesce(m.name, 'gone')";

// The expression to group by.
std::string expression_of(GroupBy by) {
  switch (by) {
    case GroupBy::kUser:
      return "u.user_name";
    case GroupBy::kMachine:
      return kMachineName;
    case GroupBy::kBatch:
      return "u.batch";
    case GroupBy::kDay:
      return "u.at / 86400000000";
    case GroupBy::kWeek:  // 1970-01-01 was a Thursday
      return "(u.at / 86400000000 + 3) / 7";
    case GroupBy::kJob:
      return "u.job";
  }
  throw std::invalid_argument("no such grouping");
}

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// The rows to sum up, with the alias u.
std::string summed_rows(const UsageQuery& query, bool by_job_first) {
  const std::string since = std::to_string(query.since), until = std::to_string(query.until);
  // Grouped by job, rows are read in the order of the primary key, one page at a time; the
  // unary + disables the index on time.
  const std::string time = by_job_first ? "+finished" : "finished";
  std::string text =
      "(select job, user_name, machine, batch, finished as at, case when ended = 1 then 1 else 0 "
      "end as done, 1 as attempts, case when " +
      std::string(kWasEvicted) +
      " then 1 else 0 end as evicted, used, kept, lost, wall, charged, waited, 0 as spent from "
      "uses "
      "where " +
      time + " >= " + since + " and " + time + " < " + until;
  if (!query.user.empty()) text += " and user_name = :user";
  if (query.with_server)
    text +=
        " union all select 0, '', 0, 0, at, 0, 0, 0, 0, 0, 0, 0, 0, 0, cpu from spent where "
        "at >= " +
        since + " and at < " + until;
  return text + ") as u";
}

std::vector<std::string> expressions(const UsageQuery& query) {
  std::vector<std::string> groups;
  for (const GroupBy by : query.by) groups.push_back(expression_of(by));
  return groups;
}

// For comparison with these: `values`, one for each group. Names are parameters, `prefix` with the
// group's place.
std::vector<std::string> compared_with(const UsageQuery& query, const std::string& prefix,
                                       const std::vector<std::string>& values) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!is_numbered(query.by.at(i))) {
      texts.push_back(":" + prefix + std::to_string(i));
    } else if (const auto number = group_number(query.by[i], values[i])) {
      texts.push_back(std::to_string(*number));
    } else {
      throw std::invalid_argument("no such group");
    }
  }
  return texts;
}
void bind_groups(Rows& rows, const UsageQuery& query, const std::string& prefix,
                 const std::vector<std::string>& values) {
  for (size_t i = 0; i < values.size(); ++i)
    if (!is_numbered(query.by.at(i))) rows.with(prefix + std::to_string(i), values[i]);
}

// What follows "select SUMS, GROUPS from".
std::string groups_of(const UsageQuery& query) {
  const std::vector<std::string> groups = expressions(query);
  const std::vector<std::string> after = compared_with(query, "after", query.after);
  const bool by_job_first = !query.by.empty() && query.by[0] == GroupBy::kJob;
  std::string text = summed_rows(query, by_job_first);
  if (std::count(query.by.begin(), query.by.end(), GroupBy::kMachine) > 0)
    text += " left join machines m on m.id = u.machine";
  if (!after.empty()) text += " where (" + list(groups) + ") > (" + list(after) + ")";
  if (!after.empty() && by_job_first) text += " and u.job >= " + after[0];
  if (!groups.empty()) text += " group by " + list(groups);
  text += " having count(*) > 0";
  if (!groups.empty()) text += " order by " + list(groups);
  if (query.limit > 0) text += " limit " + std::to_string(query.limit);
  return text;
}

std::vector<UsageRow> sums_of(soci::session& sql, const UsageQuery& query) {
  UsageRow sums;
  Micros spent = 0;
  std::vector<std::string> names(query.by.size());
  std::vector<int64_t> numbers(query.by.size());
  Rows rows(sql);
  rows.into("sum(u.done)", sums.jobs_done).into("sum(u.attempts)", sums.attempts);
  rows.into("sum(u.evicted)", sums.evictions).into("sum(u.used)", sums.used);
  rows.into("sum(u.kept)", sums.kept).into("sum(u.lost)", sums.lost);
  rows.into("sum(u.wall)", sums.wall).into("sum(u.charged)", sums.charged);
  rows.into("sum(u.waited)", sums.waited).into("sum(u.spent)", spent);
  if (!query.user.empty()) rows.with("user", query.user);
  for (size_t i = 0; i < query.by.size(); ++i) {
    const std::string group = expression_of(query.by[i]);
    is_numbered(query.by[i]) ? rows.into(group, numbers[i]) : rows.into(group, names[i]);
  }
  bind_groups(rows, query, "after", query.after);
  rows.select(groups_of(query));
  std::vector<UsageRow> result;
  rows.each([&] {
    UsageRow& row = result.emplace_back(sums);
    if (query.with_server) row.server_cpu = spent;
    for (size_t i = 0; i < query.by.size(); ++i)
      row.group.emplace_back(name_of(query.by[i]), is_numbered(query.by[i])
                                                       ? group_text(query.by[i], numbers[i])
                                                       : names[i]);
  });
  return result;
}

// What follows "select GROUPS, STEPS from", for the groups of these lines.
std::string evictions_of(const UsageQuery& query, const std::vector<std::string>& last) {
  const std::vector<std::string> groups = expressions(query);
  std::string text =
      "(select job, attempt, user_name, machine, batch, finished as at from uses where finished "
      ">= " +
      std::to_string(query.since) + " and finished < " + std::to_string(query.until) + " and " +
      kWasEvicted;
  if (!query.user.empty()) text += " and user_name = :user";
  text += ") as u join ends e on e.job = u.job and e.attempt = u.attempt";
  if (std::count(query.by.begin(), query.by.end(), GroupBy::kMachine) > 0)
    text += " left join machines m on m.id = u.machine";
  if (!groups.empty())
    text += " where (" + list(groups) + ") <= (" + list(compared_with(query, "last", last)) + ")";
  if (!query.after.empty())
    text +=
        " and (" + list(groups) + ") > (" + list(compared_with(query, "after", query.after)) + ")";
  if (!groups.empty()) text += " order by " + list(groups);
  return text;
}

std::vector<std::string> values_of(const UsageRow& row) {
  std::vector<std::string> values;
  for (const auto& [name, value] : row.group) values.push_back(value);
  return values;
}

// Fills in UsageRow::steps.
void add_steps(soci::session& sql, const UsageQuery& query, std::vector<UsageRow>& lines) {
  if (lines.empty()) return;
  const std::vector<std::string> last = values_of(lines.back());
  std::vector<std::string> names(query.by.size());
  std::vector<int64_t> numbers(query.by.size());
  EndRow end;
  Rows rows(sql);
  for (size_t i = 0; i < query.by.size(); ++i) {
    const std::string group = expression_of(query.by[i]);
    is_numbered(query.by[i]) ? rows.into(group, numbers[i]) : rows.into(group, names[i]);
  }
  rows.into(tables::kEnds, end, "e");
  if (!query.user.empty()) rows.with("user", query.user);
  bind_groups(rows, query, "after", query.after);
  bind_groups(rows, query, "last", last);
  rows.select(evictions_of(query, last));
  std::map<uint32_t, std::vector<int64_t>> values;  // by step
  auto line = lines.begin();
  const auto finish = [&] {
    for (auto& [step, measured] : values) line->steps.push_back(spread_of(step, measured));
    values.clear();
  };
  rows.each([&] {
    std::vector<std::string> group;
    for (size_t i = 0; i < query.by.size(); ++i)
      group.push_back(is_numbered(query.by[i]) ? group_text(query.by[i], numbers[i]) : names[i]);
    if (group != values_of(*line)) finish();
    while (line + 1 != lines.end() && group != values_of(*line)) ++line;
    for (const protocol::EvictionStep& step : protocol::kEvictionSteps)
      if (end.steps.*step.after_us >= 0) values[step.number].push_back(end.steps.*step.after_us);
  });
  finish();
}

}  // namespace

std::vector<UsageRow> Archive::usage(const UsageQuery& query) {
  const std::chrono::microseconds may_take(query.may_take);
  return connections_->with(
      [&](soci::session& sql) {
        const sqlite::TimeLimit limit(may_take);
        try {
          std::vector<UsageRow> lines = sums_of(sql, query);
          if (query.with_steps) add_steps(sql, query, lines);
          return lines;
        } catch (const soci::soci_error&) {
          if (!limit.is_over()) throw;
          throw Refusal(Refusal::Kind::kLimitExceeded, "report.too_long",
                        "this report takes longer than the server allows",
                        "Ask for a shorter period: --since, --until.", "report");
        }
      },
      may_take);
}

std::vector<scheduling::UseRecord> Archive::recent_uses(Micros since, uint32_t limit) {
  return connections_->with([&](soci::session& sql) {
    return rows_of(sql, tables::kUses,
                   "where finished > " + std::to_string(since) + " order by finished desc limit " +
                       std::to_string(limit));
  });
}

std::vector<OldUse> Archive::oldest_uses(Micros before, uint32_t limit) {
  return connections_->with([&](soci::session& sql) {
    std::vector<OldUse> result;
    OldUse old;
    Rows rows(sql);
    rows.into(tables::kUses, old.use, "u").into(kMachineName, old.machine_name);
    rows.select("uses u left join machines m on m.id = u.machine where u.finished < " +
                std::to_string(before) + " order by u.finished, u.job, u.attempt limit " +
                std::to_string(limit));
    rows.each([&] { result.push_back(old); });
    return result;
  });
}

std::vector<SpentRow> Archive::spent_before(Micros before) {
  return connections_->with([&](soci::session& sql) {
    return rows_of(sql, tables::kSpent, "where at < " + std::to_string(before) + " order by at");
  });
}

Micros Archive::oldest_history() {
  return connections_->with([&](soci::session& sql) {
    return static_cast<Micros>(
        number_of(sql,
                  "select min(at) from (select min(finished) as at from uses union all select "
                  "min(at) from spent) as oldest"));
  });
}

}  // namespace sublet::server
