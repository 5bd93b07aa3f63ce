// Jobs of layout 14 and before, which had a column for each value.
#ifndef SUBLET_SERVER_STORE_UNPACKED_JOBS_H_
#define SUBLET_SERVER_STORE_UNPACKED_JOBS_H_

namespace soci {
class session;
}

namespace sublet::server {

// The first layout whose jobs are packed.
inline constexpr int kJobsPacked = 15;
// What table jobs was renamed to.
inline constexpr const char* kUnpackedJobs = "unpacked_jobs";

// Moves the rows of that table to the empty table jobs, and drops it. A damaged row is logged,
// and stays damaged: its named columns as they are, so that the spool knows of it, the others as
// text (kUnpackable), which each start refuses. Call it in a transaction. Throws soci::soci_error.
void pack_jobs(soci::session& sql);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_UNPACKED_JOBS_H_
