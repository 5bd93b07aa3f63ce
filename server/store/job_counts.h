// The numbers of jobs in each state, kept in table job_counts so that a count of millions of
// jobs reads some rows: of all jobs, of each user's, and of each large batch's. What the numbers
// count is in the database or, by month, in files of history, which may be moved away.
//
// Numbers change in the transaction of the rows that they count. A table without rows was not
// counted: the next start counts anew, and until then whoever asks must count the jobs themselves.
// Includes SOCI, so only the store's own files may include this.
//
// Threads: a JobCounter's functions and count_jobs() by the committer only; the others by any.
#ifndef SUBLET_SERVER_STORE_JOB_COUNTS_H_
#define SUBLET_SERVER_STORE_JOB_COUNTS_H_

#include <soci/soci.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "server/commit/changes.h"
#include "server/store/tables.h"
#include "server/store/writer.h"

namespace sublet::server {

// Batches of at least so many jobs have numbers of their own. Jobs of smaller ones are soon
// counted.
inline constexpr uint64_t kLargeBatch = 100;

// Follows what the committer writes.
class JobCounter {
 public:
  // Adds what these changes will change of the numbers: what they write, less the rows that they
  // replace, which must still be there. Throws soci::soci_error.
  void add(soci::session& sql, const Changes& changes);
  // Write what was added; in this order.
  std::array<Bulk*, 2> in_order() { return {&numbers_, &of_large_batches_}; }

 private:
  // By batch, user and state.
  using Differences = std::map<std::tuple<BatchId, std::string, scheduling::JobState>, int64_t>;
  void subtract_old(soci::session& sql, const Changes& changes, Differences& differences);

  Writer<JobCountRow> numbers_{tables::kJobCounts};
  Statement<BatchId, std::string, scheduling::JobState, int64_t> of_large_batches_{
      "insert into job_counts (batch, user_name, month, state, jobs) select :batch, :user, '', "
      ":state, :jobs where exists (select 1 from job_counts where batch = :batch) on conflict "
      "(batch, user_name, month, state) do update set jobs = job_counts.jobs + excluded.jobs"};
};

// In the transaction that deletes these jobs from the database, before it does. `leaving`: the
// condition on which a row of `jobs` is deleted. Throws soci::soci_error.
void count_moved(soci::session& sql, const std::string& month, const std::string& leaving);

// Whether the table has rows. Throws soci::soci_error.
bool has_job_counts(soci::session& sql);
// Counts all jobs, if there are no numbers; `history`: the folder of the files. One that cannot be
// read is logged, and its jobs are not counted. False: the rows of jobs cannot be read, and nothing
// is counted. Throws soci::soci_error.
bool count_jobs(soci::session& sql, const std::string& database, const std::string& history);

// The numbers of a batch's jobs, or of this user's ("": of all), in the database and in all files
// of history; nullopt: these are not kept, or cannot be right. Throws soci::soci_error.
std::optional<std::vector<JobCountRow>> kept_counts(soci::session& sql, BatchId batch,
                                                    const std::string& user);

// A sentence if what is kept differs from the jobs in the database; "": it agrees, or nothing is
// kept. Reads all jobs. Throws soci::soci_error.
std::string wrong_count(soci::session& sql);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_JOB_COUNTS_H_
