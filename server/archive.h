// Questions about committed state: lists, histories, reports, descriptions,
// files' rows. A separate, read-only connection to the database (WAL: readers
// and the committer do not wait for each other).
//
// Threads: any; calls take turns at a small number of connections.
#ifndef SUBLET_SERVER_ARCHIVE_H_
#define SUBLET_SERVER_ARCHIVE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduling/records.h"
#include "server/changes.h"
#include "server/job_spec.h"

namespace sublet::server {

// Which jobs; idl/job_scheduler.idl, JobFilter.
struct JobQuery {
  std::vector<scheduling::JobRange> ids;
  BatchId batch = 0;
  std::string user;
  std::vector<uint32_t> states;
  bool unfinished_only = false;
};

struct JobRow {
  scheduling::JobRecord job;
  std::string name;
  MachineId machine = 0;  // of the newest attempt, 0 none
};

struct AttemptRow {
  scheduling::AttemptRecord attempt;
  std::string machine_name;
  EndRow end;
};

struct UsageQuery {
  Micros since = 0;
  Micros until = 0;
  std::vector<uint32_t> by;
  std::string user;
};
struct UsageRow {
  std::vector<std::pair<std::string, std::string>> group;
  uint64_t jobs_done = 0;
  uint64_t attempts = 0;
  uint64_t evictions = 0;
  int64_t used = 0;
  int64_t kept = 0;
  int64_t lost = 0;
  int64_t wall = 0;
  int64_t charged = 0;
};

class Archive {
 public:
  // path: of the database, which exists already. Throws StoreError, as every
  // function here does when the database cannot be read.
  explicit Archive(const std::string& path);
  ~Archive();

  // In order of id, from `after` + 1 on, at most `limit` rows: one for each job, or
  // for as many as are kept as one (scheduling::JobRecord::count).
  std::vector<JobRow> runs(const JobQuery& query, JobId after, uint32_t limit);
  // The same, a row for each job.
  std::vector<JobRow> jobs(const JobQuery& query, JobId after, uint32_t limit);
  // For each state, how many.
  std::vector<std::pair<uint32_t, uint64_t>> count(const JobQuery& query);
  std::optional<JobRow> job(JobId id);
  std::vector<AttemptRow> attempts(JobId id);
  std::vector<FileRow> outputs(JobId id);  // without bodies

  // The description of a job, "{index}" replaced.
  std::optional<JobSpec> spec(JobId id);

  std::optional<BatchRow> batch(BatchId id);
  std::vector<PartRow> parts(BatchId id);
  std::vector<BatchRow> open_batches_before(Micros touched);

  std::optional<FileRow> file(uint64_t id);  // with body
  // Newest first, up to and including that generation; with bodies.
  std::vector<FileRow> checkpoints(JobId job, uint64_t newest);
  std::optional<FileRow> output(JobId job, FileKind kind, const std::string& name);
  std::vector<uint64_t> file_ids();
  // Files that nothing needs any more: inputs of batches whose jobs are all
  // final, checkpoints of final jobs or older than the generation before the
  // newest, outputs of attempts that ended without counting.
  std::vector<uint64_t> unneeded_files(uint32_t limit);
  uint64_t last_file_id();

  std::optional<CredentialRow> credential(MachineId machine);
  // The machine that this member registered (CredentialRow::uid), 0 if none.
  MachineId machine_of(uint64_t uid);
  // All of them, in order of number; those without damage.
  std::vector<MemberRow> members();
  std::vector<InvitationRow> invitations();
  // The machine whose secret has this SHA-256 (hex), 0 if none.
  MachineId machine_with(const std::string& secret_sha256);

  std::vector<scheduling::ChangeRecord> changes(uint64_t after, const std::string& user,
                                                uint32_t limit);
  uint64_t last_change();
  uint64_t first_change();

  std::vector<UsageRow> usage(const UsageQuery& query);

 private:
  void add_runs(const JobQuery& query, const scheduling::JobRange& range, uint32_t limit,
                std::vector<JobRow>& result);

  class Connections;
  std::unique_ptr<Connections> connections_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_ARCHIVE_H_
