// Queries on table uses: sums and rows.
#include <algorithm>
#include <stdexcept>

#include "server/refusal.h"
#include "server/store/archive/archive.h"
#include "server/store/archive/connections.h"
#include "server/store/rows.h"
#include "server/store/tables.h"

namespace sublet::server {
namespace {

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
      "end as done, 1 as attempts, case when ended between 16 and 20 or ended = 26 then 1 else 0 "
      "end as "
      "evicted, "
      "used, kept, lost, wall, charged, waited, 0 as spent from uses where " +
      time + " >= " + since + " and " + time + " < " + until;
  if (!query.user.empty()) text += " and user_name = :user";
  if (query.with_server)
    text +=
        " union all select 0, '', 0, 0, at, 0, 0, 0, 0, 0, 0, 0, 0, 0, cpu from spent where "
        "at >= " +
        since + " and at < " + until;
  return text + ") as u";
}

// What follows "select SUMS, GROUPS from". query.after is bound as parameters where groups
// are names.
std::string groups_of(const UsageQuery& query) {
  std::vector<std::string> groups, after;
  for (size_t i = 0; i < query.by.size(); ++i) {
    groups.push_back(expression_of(query.by[i]));
    if (query.after.empty()) continue;
    if (!is_numbered(query.by[i])) {
      after.push_back(":after" + std::to_string(i));
    } else if (const auto number = group_number(query.by[i], query.after.at(i))) {
      after.push_back(std::to_string(*number));
    } else {
      throw std::invalid_argument("no such group");
    }
  }
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
    if (!query.after.empty() && !is_numbered(query.by[i]))
      rows.with("after" + std::to_string(i), query.after.at(i));
  }
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

}  // namespace

std::vector<UsageRow> Archive::usage(const UsageQuery& query) {
  const std::chrono::microseconds may_take(query.may_take);
  return reports_->with(
      [&](soci::session& sql) {
        const sqlite::TimeLimit limit(sql, may_take);
        try {
          return sums_of(sql, query);
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
