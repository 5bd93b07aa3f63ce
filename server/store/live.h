// Which rows the brain is rebuilt from, and statements that need an index. The tables also
// hold all jobs that have ended; a restart must not take longer as their number grows.
#ifndef SUBLET_SERVER_STORE_LIVE_H_
#define SUBLET_SERVER_STORE_LIVE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "scheduling/records.h"

namespace soci {
class session;
}

namespace sublet::server {

// What follows "select ... from", as one query or several that together find each row once.
// Includes final jobs with a live attempt, and the newest attempt of each waiting job.
// mostly_live: most jobs are live, so that reading all takes less time than looking them up.
std::vector<std::string> live_jobs(bool mostly_live = false);
std::vector<std::string> live_attempts();
uint64_t count_live_jobs(soci::session& sql);  // rows
// Whether so many are most of all.
bool are_most(soci::session& sql, uint64_t live);
// few: fewer batches have a stop condition or limit than jobs are live.
std::vector<std::string> live_stops(bool few = false);
std::vector<std::string> live_relations();

// All of them, without the highest ids. A row that cannot be read is skipped and reported in
// `damage`. Throws soci::soci_error.
scheduling::Snapshot live_rows(soci::session& sql, std::vector<std::string>* damage);

// The highest id: the id ranges of records do not overlap.
inline constexpr const char* kLastJob = "select id + count - 1 from jobs order by id desc limit 1";
// Of the batches whose jobs are yet to be entered.
inline constexpr const char* kLastReservedJob =
    "select max(first_job + batches.jobs - 1) from batches join drafts on drafts.batch = "
    "batches.id "
    "where entering = 1";

// Whether a row of `jobs` can leave for a file of history: the job is finished and not the newest
// (the next id is counted from it), no attempt of it still delivers, and no file needs it. The
// inputs of a batch are removed when its last job is final; that job waits for this.
inline constexpr const char* kMayLeave =
    "jobs.state in (5, 6, 7) and jobs.id < (select max(id) from jobs) and not exists (select 1 "
    "from attempts a where a.job = jobs.id and a.state <> 5) and not exists (select 1 from files f "
    "where f.job > 0 and f.job >= jobs.id and f.job < jobs.id + jobs.count) and (not exists "
    "(select 1 from files f where f.batch > 0 and f.batch = jobs.batch) or exists (select 1 from "
    "jobs j where j.batch = jobs.batch and j.state in (1, 2, 3, 4, 8, 9)))";

// The condition `content > 0` allows the partial index files_content to be used.
inline constexpr const char* kDropContent =
    "delete from contents where id = :id and not exists (select 1 from files where files.content > "
    "0 and files.content = contents.id)";

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_LIVE_H_
