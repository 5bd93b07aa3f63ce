// Questions about committed state: lists, histories, reports, descriptions,
// files' rows. A separate, read-only connection to the database (WAL: readers
// and the committer do not wait for each other).
//
// Threads: any; calls take turns at a small number of connections. Reports have
// one of their own, since they may take long, and so has the committer.
#ifndef SUBLET_SERVER_STORE_ARCHIVE_ARCHIVE_H_
#define SUBLET_SERVER_STORE_ARCHIVE_ARCHIVE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/description.h"
#include "scheduling/records.h"
#include "server/accounting/usage.h"
#include "server/commit/changes.h"
#include "server/jobs/spec_cache.h"

namespace sublet::server {

// Which jobs; idl/job_scheduler.idl, JobFilter.
struct JobQuery {
  std::vector<scheduling::JobRange> ids;
  BatchId batch = 0;
  std::string user;
  std::vector<uint32_t> states;
  bool unfinished_only = false;
  bool runs = false;  // in lists: a row for each description of a record, not for each job
  // The removed jobs of batches that have stopped.
  enum class Stopped { kAny, kOnly, kWithout };
  Stopped stopped = Stopped::kAny;
};

struct JobRow {
  scheduling::JobRecord job;
  std::string name;
  MachineId machine = 0;  // of the newest attempt, 0 none
};

struct JobPage {
  std::vector<JobRow> rows;
  JobId next = 0;  // list from after this one; 0: the end
};

struct AttemptRow {
  scheduling::AttemptRecord attempt;
  std::string machine_name;
  EndRow end;
};

// A description as it was submitted, and which of its jobs is meant, from 0.
struct SpecPlace {
  std::shared_ptr<const SpecRange> range;
  uint64_t offset = 0;
};

// A file that an attempt has sent.
struct SentFile {
  FileKind kind = FileKind::kOutput;
  std::string name;
};

struct SpoolUse {
  uint64_t files = 0;  // inputs and outputs, bytes
  uint64_t checkpoints = 0;
};

class Archive {
 public:
  // path: of the database, which exists already. Throws StoreError, as every
  // function here does when the database cannot be read.
  explicit Archive(const std::string& path);
  ~Archive();

  // From now on the calling thread, the committer, has a connection of its own:
  // nobody's long question keeps it waiting.
  void serve_apart();

  // In order of id, from `after` + 1 on, at most `limit` rows: one for each job, or
  // for as many as are kept as one (scheduling::JobRecord::count).
  // A damaged row costs itself only, and takes a place on the page.
  JobPage runs(const JobQuery& query, JobId after, uint32_t limit);
  // The same, but what has descriptions of its own (as the jobs of a list of
  // commands) is a row of its own.
  JobPage described_runs(const JobQuery& query, JobId after, uint32_t limit);
  // The same, a row for each job.
  JobPage jobs(const JobQuery& query, JobId after, uint32_t limit);
  // For each state, how many.
  std::vector<std::pair<uint32_t, uint64_t>> count(const JobQuery& query);
  std::optional<JobRow> job(JobId id);
  // In order of number, after `after`; at most `limit`.
  std::vector<AttemptRow> attempts(JobId id, uint32_t after = 0, uint32_t limit = UINT32_MAX);
  // In order of id, after `after`; at most `limit`. Without bodies.
  std::vector<FileRow> outputs(JobId id, uint64_t after = 0, uint32_t limit = UINT32_MAX);
  // By their ids.
  std::map<uint64_t, SentFile> sent_files(scheduling::AttemptKey key);

  std::optional<SpecPlace> spec_place(JobId id);
  // The description of a job, "{index}" replaced.
  std::optional<JobDescription> spec(JobId id);
  // The output that would stop the batch of this job, which has been placed; "": none.
  std::string awaited_output(JobId id);

  std::optional<BatchRow> batch(BatchId id);
  std::vector<PartRow> parts(BatchId id);
  std::optional<PartRow> part(BatchId id, uint32_t number);
  uint64_t jobs_of_parts(BatchId id);
  std::vector<BatchRow> open_batches_before(Micros touched);

  std::optional<FileRow> file(uint64_t id);  // with body
  // Newest first, up to and including that generation; with bodies.
  std::vector<FileRow> checkpoints(JobId job, uint64_t newest);
  std::optional<FileRow> output(JobId job, FileKind kind, const std::string& name);
  std::vector<uint64_t> content_ids();
  bool content_exists(uint64_t id);
  // The newest content of this digest (hex) that is not known to be damaged.
  std::optional<ContentRow> content(const std::string& digest);
  // Bytes of this user's files in the spool.
  SpoolUse spool_use(const std::string& user);
  // Files that nothing needs any more: inputs of batches whose jobs are all
  // final, checkpoints of final jobs or older than the generation before the
  // newest, outputs of attempts that ended without counting. Without bodies;
  // of `examined` files after the id `after`, which becomes the last one's, or 0
  // when there are no more.
  std::vector<FileRow> unneeded_files(uint64_t& after, uint32_t examined);
  // Outputs of jobs that ended before `ended`; without bodies.
  std::vector<FileRow> outputs_before(Micros ended, uint32_t limit);
  // When the job's outputs were kept no longer; 0: they are still there, or there
  // were none.
  Micros outputs_removed_at(JobId job);
  uint64_t last_file_id();

  std::optional<CredentialRow> credential(MachineId machine);
  // The machine that this member registered (CredentialRow::uid), 0 if none.
  MachineId machine_of(uint64_t uid);
  // All of them, in order of number; those without damage.
  std::vector<MemberRow> members();
  std::vector<InvitationRow> invitations();
  // The machine whose secret has this digest (hex), 0 if none.
  MachineId machine_with(const std::string& secret_digest);

  std::vector<scheduling::ChangeRecord> changes(uint64_t after, const std::string& user,
                                                uint32_t limit);
  uint64_t last_change();
  uint64_t first_change();

  // In order of the groups. Throws Refusal kLimitExceeded "report.too_long" when
  // it takes longer than it may.
  std::vector<UsageRow> usage(const UsageQuery& query);
  // The newest uses that ended after `since`, newest first.
  std::vector<scheduling::UseRecord> recent_uses(Micros since, uint32_t limit);
  // The oldest ones that ended before, in order of finished, job, attempt.
  std::vector<OldUse> oldest_uses(Micros before, uint32_t limit);
  // CPU that the server spent in the minutes before, oldest first.
  std::vector<SpentRow> spent_before(Micros before);
  // When the oldest of these rows is from; 0: there are none.
  Micros oldest_history();

 private:
  void add_runs(const JobQuery& query, const scheduling::JobRange& range, uint32_t limit,
                JobPage& page);
  bool add_described(const JobRow& run, uint32_t limit, JobPage& page);

  std::shared_ptr<const SpecRange> spec_range(JobId id, uint64_t* first_job);
  std::shared_ptr<const SpecRange> read_spec(JobId id, uint64_t* first_job);

  class Connection;
  class Connections;
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<Connections> reports_;
  // Room for a million lines of a command's arguments.
  SpecCache arrays_{64u << 20};
  SpecCache single_jobs_{4u << 20};
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_ARCHIVE_ARCHIVE_H_
