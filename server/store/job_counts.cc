#include "server/store/job_counts.h"

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "server/store/archive/finished.h"
#include "server/store/rows.h"
#include "server/store/sqlite.h"

namespace sublet::server {

using scheduling::JobRecord;
using scheduling::JobState;

void JobCounter::add(soci::session& sql, const Changes& changes) {
  // Numbers of a new large batch begin here; without them those of its jobs are not kept.
  for (const auto& [id, batch] : changes.batches)
    if (batch.committed && batch.count >= kLargeBatch)
      numbers_.add({id, batch.user, "", JobState::kWaiting, 0});
  Differences differences;
  subtract_old(sql, changes, differences);
  for (const auto& [id, job] : changes.jobs)
    differences[{job.batch, job.user, job.state}] += static_cast<int64_t>(job.count);
  Differences sums;
  for (const auto& [what, jobs] : differences) {
    const auto& [batch, user, state] = what;
    if (jobs == 0) continue;
    if (batch != 0) of_large_batches_.add(batch, user, state, jobs);
    sums[{0, user, state}] += jobs;
    if (!user.empty()) sums[{0, "", state}] += jobs;
  }
  for (const auto& [what, jobs] : sums)
    if (jobs != 0) numbers_.add({0, std::get<1>(what), "", std::get<2>(what), jobs});
}

void JobCounter::subtract_old(soci::session& sql, const Changes& changes,
                              Differences& differences) {
  if (changes.jobs.empty()) return;
  // New jobs have higher ids than all others.
  const uint64_t last = number_of(sql, "select max(id) from jobs");
  long long id = 0, batch = 0, state = 0, count = 0;
  std::string user;
  soci::statement old =
      (sql.prepare << "select batch, user_name, state, count from jobs where id "
                      "= :id",
       soci::into(batch), soci::into(user), soci::into(state), soci::into(count), soci::use(id));
  for (const auto& [job, record] : changes.jobs) {
    if (job > last) break;
    id = static_cast<long long>(job);
    if (!old.execute(true)) continue;
    do differences[{static_cast<BatchId>(batch), user, static_cast<JobState>(state)}] -= count;
    while (old.fetch());
  }
}

namespace {

// Sums of some rows of `jobs`, as rows of job_counts for this month: of all jobs, of each user's,
// and of each of the batches that `large` selects.
std::array<std::string, 3> sums(const std::string& month, const std::string& sign,
                                const std::string& rows, const std::string& large) {
  const auto sum = [&](const std::string& batch, const std::string& user,
                       const std::string& condition, const std::string& groups) {
    return "select " + batch + " as batch, " + user + " as user_name, '" + month +
           "' as month, state, " + sign + "sum(count) as jobs from jobs where " + rows + condition +
           " group by " + groups;
  };
  return {sum("0", "''", "", "state"),
          sum("0", "user_name", " and user_name <> ''", "user_name, state"),
          sum("batch", "user_name", " and batch in (" + large + ")", "batch, user_name, state")};
}

void add(soci::session& sql, const std::string& rows) {
  sql << "insert into job_counts (batch, user_name, month, state, jobs) " << rows
      << " on conflict (batch, user_name, month, state) do update set jobs = job_counts.jobs + "
         "excluded.jobs";
}

bool is_empty(soci::session& sql, const char* table) {
  return number_of(sql, std::string("select exists (select 1 from ") + table + ")") == 0;
}

const std::string& large_batches() {
  static const std::string kLarge =
      "select id from batches where committed = 1 and jobs >= " + std::to_string(kLargeBatch);
  return kLarge;
}

// Of the jobs of a file that have left the database.
std::vector<JobCountRow> counts_of(const std::string& file, const std::string& month,
                                   const std::string& database) {
  soci::session sql;
  sqlite::open_to_read(sql, file);
  sqlite::attach(sql, database, "live");
  std::vector<JobCountRow> result;
  for (const std::string& sum :
       sums(month, "", "not exists (select 1 from live.jobs l where l.id = jobs.id)",
            large_batches())) {
    JobCountRow row;
    Rows rows(sql);
    rows.into(tables::kJobCounts, row).select("(" + sum + ")");
    rows.each([&] { result.push_back(row); });
  }
  return result;
}

std::vector<JobCountRow> counts_of_files(const std::string& database, const std::string& history) {
  std::vector<JobCountRow> result;
  if (!system_files().exists(history)) return result;
  for (const FolderEntry& entry : system_files().list(history)) {
    const std::string month = month_of(entry.name);
    if (month.empty()) continue;
    try {
      const auto found = counts_of(history + "/" + entry.name, month, database);
      result.insert(result.end(), found.begin(), found.end());
    } catch (const soci::soci_error& e) {
      log(Severity::error) << "the jobs in " << entry.name
                           << " are not counted: " << e.get_error_message();
    }
  }
  return result;
}

}  // namespace

void count_moved(soci::session& sql, const std::string& month, const std::string& leaving) {
  const std::string large = "select batch from job_counts where batch > 0";
  for (const std::string& sum : sums(month, "", leaving, large)) add(sql, sum);
  for (const std::string& sum : sums("", "-", leaving, large)) add(sql, sum);
}

bool has_job_counts(soci::session& sql) { return !is_empty(sql, "job_counts"); }

bool count_jobs(soci::session& sql, const std::string& database, const std::string& history) {
  try {
    if (is_empty(sql, "jobs")) return true;
    log(Severity::info) << "counting the jobs";
    const std::vector<JobCountRow> of_files = counts_of_files(database, history);
    soci::transaction transaction(sql);
    for (const std::string& sum : sums("", "", "1 = 1", large_batches())) add(sql, sum);
    Writer<JobCountRow> writer(tables::kJobCounts);
    for (const JobCountRow& row : of_files) writer.add(row);
    writer.flush(sql);
    transaction.commit();
    return true;
  } catch (const soci::soci_error& e) {
    if (!sqlite::is_damage(e)) throw;
    log(Severity::error) << "the jobs cannot be counted, because the database is damaged";
    return false;
  }
}

std::optional<std::vector<JobCountRow>> kept_counts(soci::session& sql, BatchId batch,
                                                    const std::string& user) {
  std::vector<JobCountRow> result;
  bool sound = true, kept = false;
  JobCountRow row;
  Rows rows(sql);
  rows.into(tables::kJobCounts, row);
  if (batch == 0) rows.with("user", user);
  // A user without a number has no jobs, if there are numbers of all.
  rows.select("job_counts where batch = " + std::to_string(batch) +
              (batch == 0 ? " and user_name in ('', :user)" : ""));
  rows.each(
      [&] {
        kept = true;
        sound = sound && row.jobs >= 0;
        if (batch == 0 ? row.user == user : user.empty() || row.user == user) result.push_back(row);
      },
      [&](const std::string& what) {
        log(Severity::error) << what;
        sound = false;
      });
  if (!kept || !sound) return std::nullopt;
  return result;
}

std::string wrong_count(soci::session& sql) {
  if (!has_job_counts(sql)) return "";
  const auto [all, by_user, by_batch] = sums("", "", "1 = 1", large_batches());
  const std::string counted = all + " union all " + by_user + " union all " + by_batch;
  const std::string kept =
      "select batch, user_name, month, state, jobs from job_counts where month = '' and jobs <> 0";
  const auto beyond = [&](const std::string& these, const std::string& those) {
    return number_of(sql, "select count(*) from (select * from (" + these +
                              ") except select * from (" + those + "))");
  };
  const uint64_t wrong = std::max(beyond(kept, counted), beyond(counted, kept));
  return wrong == 0 ? "" : "its numbers of jobs are wrong: " + std::to_string(wrong);
}

}  // namespace sublet::server
