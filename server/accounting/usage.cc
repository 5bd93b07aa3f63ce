// Who used what: sums over table uses.
#include "server/accounting/usage.h"

#include <chrono>

#include "base/log.h"
#include "base/text.h"
#include "server/refusal.h"
#include "server/store/archive/connections.h"
#include "server/store/row.h"

namespace sublet::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kMachineName =
    "coalesce((select name from machines where machines.id = u.machine), 'gone')";
// Of the ISO week's Thursday, which is in the week's year. (strftime has no %G and
// %V in SQLite 3.40.)
constexpr const char* kThursday = "date(u.at / 1000000, 'unixepoch', '-3 days', 'weekday 4')";

std::string column(GroupBy by) {
  switch (by) {
    case GroupBy::kUser:
      return "u.user_name";
    case GroupBy::kMachine:
      return kMachineName;
    case GroupBy::kBatch:
      return "u.batch";
    case GroupBy::kDay:
      return "date(u.at / 1000000, 'unixepoch')";
    case GroupBy::kWeek:
      return std::string("printf('%s-W%02d', strftime('%Y', ") + kThursday + "), (strftime('%j', " +
             kThursday + ") - 1) / 7 + 1)";
    case GroupBy::kJob:
      return "u.job";
  }
  throw std::invalid_argument("no such grouping");
}
const char* name_of(GroupBy by) {
  constexpr const char* kNames[] = {"user", "machine", "batch", "day", "week", "job"};
  return kNames[static_cast<uint32_t>(by) - 1];
}
bool is_number(GroupBy by) { return by == GroupBy::kBatch || by == GroupBy::kJob; }

// A literal that no text can break out of.
std::string literal(const std::string& text) { return "cast(x'" + hex_encode(text) + "' as text)"; }

std::string literal(GroupBy by, const std::string& value) {
  if (!is_number(by)) return literal(value);
  if (value.empty() || value.size() > 18 ||
      value.find_first_not_of("0123456789") != std::string::npos)
    throw std::invalid_argument("no number");
  return value;
}

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// The rows to be summed up, as u.
std::string rows_of(const UsageQuery& query, bool by_job_first) {
  const std::string since = std::to_string(query.since), until = std::to_string(query.until);
  // Jobs are read in their order, a page at a time: not by the index on time.
  const std::string time = by_job_first ? "+finished" : "finished";
  std::string text =
      "(select job, user_name, machine, batch, finished as at, ended = 1 as done, 1 as attempts, "
      "ended between 16 and 20 as evicted, used, kept, lost, wall, charged, waited, 0 as spent "
      "from uses where " +
      time + " >= " + since + " and " + time + " < " + until;
  if (!query.user.empty()) text += " and user_name = " + literal(query.user);
  if (query.with_server)
    text +=
        " union all select 0, '', 0, 0, at, 0, 0, 0, 0, 0, 0, 0, 0, 0, cpu from spent where "
        "at >= " +
        since + " and at < " + until;
  return text + ") as u";
}

std::string statement(const UsageQuery& query) {
  std::vector<std::string> columns, after;
  for (size_t i = 0; i < query.by.size(); ++i) {
    columns.push_back(column(query.by[i]));
    if (!query.after.empty()) after.push_back(literal(query.by[i], query.after.at(i)));
  }
  const bool by_job_first = !query.by.empty() && query.by[0] == GroupBy::kJob;
  std::string text =
      "select sum(u.done), count(*), sum(u.attempts), sum(u.evicted), sum(u.used), "
      "sum(u.kept), sum(u.lost), sum(u.wall), sum(u.charged), sum(u.waited), "
      "sum(u.spent)";
  for (const auto& c : columns) text += ", " + c;
  text += " from " + rows_of(query, by_job_first);
  if (!after.empty()) text += " where (" + list(columns) + ") > (" + list(after) + ")";
  if (!after.empty() && by_job_first) text += " and u.job >= " + after[0];
  if (!columns.empty()) text += " group by " + list(columns) + " order by " + list(columns);
  if (query.limit > 0) text += " limit " + std::to_string(query.limit);
  return text;
}

UsageRow row_from(const soci::row& r, const UsageQuery& query) {
  UsageRow row;
  row.jobs_done = integer(r, 0);
  row.attempts = integer(r, 2);
  row.evictions = integer(r, 3);
  row.used = integer(r, 4);
  row.kept = integer(r, 5);
  row.lost = integer(r, 6);
  row.wall = integer(r, 7);
  row.charged = integer(r, 8);
  row.waited = integer(r, 9);
  if (query.with_server) row.server_cpu = integer(r, 10);
  size_t at = 11;
  for (const GroupBy by : query.by) {
    row.group.emplace_back(name_of(by),
                           is_number(by) ? std::to_string(integer(r, at)) : r.get<std::string>(at));
    ++at;
  }
  return row;
}

// Interrupts a statement that takes too long.
class TimeLimit {
 public:
  TimeLimit(soci::session& sql, Micros span)
      : db_(static_cast<soci::sqlite3_session_backend*>(sql.get_backend())->conn_),
        end_(Clock::now() + std::chrono::microseconds(span)) {
    sqlite_api::sqlite3_progress_handler(db_, 10'000, &TimeLimit::over, this);
  }
  ~TimeLimit() { sqlite_api::sqlite3_progress_handler(db_, 0, nullptr, nullptr); }
  TimeLimit(const TimeLimit&) = delete;
  bool is_over() const { return Clock::now() >= end_; }

 private:
  static int over(void* self) { return static_cast<TimeLimit*>(self)->is_over(); }
  sqlite_api::sqlite3* db_;
  Clock::time_point end_;
};

// A damaged row costs itself only (rule 9).
template <typename Read>
void each_use(soci::rowset<soci::row>& rows, Read read) {
  for (const auto& r : rows) {
    try {
      read(r);
    } catch (const std::exception& e) {
      log(Severity::error) << "a row of table uses was skipped: " << e.what();
    }
  }
}

}  // namespace

std::vector<UsageRow> Archive::usage(const UsageQuery& query) {
  return reports_->with(
      [&](soci::session& sql) {
        const TimeLimit limit(sql, query.may_take);
        std::vector<UsageRow> result;
        try {
          soci::rowset<soci::row> rows = (sql.prepare << statement(query));
          for (const auto& r : rows)
            if (integer(r, 1) > 0) result.push_back(row_from(r, query));
        } catch (const soci::soci_error&) {
          if (!limit.is_over()) throw;
          throw Refusal(Refusal::Kind::kLimitExceeded, "report.too_long",
                        "this report takes longer than the server allows",
                        "Ask for a shorter period: --since, --until.", "report");
        }
        return result;
      },
      std::chrono::microseconds(query.may_take));
}

std::vector<scheduling::UseRecord> Archive::recent_uses(Micros since, uint32_t limit) {
  return connections_->with([&](soci::session& sql) {
    std::vector<scheduling::UseRecord> result;
    soci::rowset<soci::row> rows = (sql.prepare << "select * from uses where finished > " << since
                                                << " order by finished desc limit " << limit);
    each_use(rows, [&](const soci::row& r) { result.push_back(use_from(r)); });
    return result;
  });
}

std::vector<OldUse> Archive::oldest_uses(Micros before, uint32_t limit) {
  return connections_->with([&](soci::session& sql) {
    std::vector<OldUse> result;
    soci::rowset<soci::row> rows =
        (sql.prepare << "select u.*, " << kMachineName << " from uses u where u.finished < "
                     << before << " order by u.finished, u.job, u.attempt limit " << limit);
    each_use(rows, [&](const soci::row& r) {
      result.push_back({use_from(r), r.get<std::string>(14)});
    });
    return result;
  });
}

std::vector<SpentRow> Archive::spent_before(Micros before) {
  return connections_->with([&](soci::session& sql) {
    std::vector<SpentRow> result;
    soci::rowset<soci::row> rows =
        (sql.prepare << "select at, cpu from spent where at < " << before << " order by at");
    for (const auto& r : rows) result.push_back({integer(r, 0), integer(r, 1)});
    return result;
  });
}

Micros Archive::oldest_history() {
  return connections_->with([&](soci::session& sql) -> Micros {
    long long oldest = 0;
    soci::indicator some = soci::i_null;
    sql << "select min(at) from (select min(finished) as at from uses union all select min(at) "
           "from spent)",
        soci::into(oldest, some);
    return some == soci::i_ok ? oldest : 0;
  });
}

}  // namespace sublet::server
