// Queries on committed state: lists, histories, reports, descriptions, rows of
// files. Uses separate, read-only connections to the database (WAL: readers and
// the committer do not block each other).
//
// Threads: any; calls share a small number of connections. Threads that must wait for none, or
// take long, have their own (serve_apart).
#ifndef SUBLET_SERVER_STORE_ARCHIVE_ARCHIVE_H_
#define SUBLET_SERVER_STORE_ARCHIVE_ARCHIVE_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "job/description.h"
#include "scheduling/records.h"
#include "server/accounting/usage.h"
#include "server/commit/changes.h"
#include "server/jobs/spec_cache.h"

namespace sublet::server {

// Selects jobs; see JobFilter in idl/job_scheduler.idl.
struct JobQuery {
  std::vector<scheduling::JobRange> ids;
  BatchId batch = 0;
  std::string user;
  std::vector<uint32_t> states;
  bool unfinished_only = false;
  bool runs = false;  // in lists: a row for each description of a record, not for each job
  // Whether to select removed jobs of batches whose stop condition was met.
  enum class Stopped { kAny, kOnly, kWithout };
  Stopped stopped = Stopped::kAny;
  // Of lists only:
  std::string name;  // a pattern as in a shell; empty: any
  Micros since = 0;  // submitted or changed then or later
  bool newest_first = false;
};

struct JobRow {
  scheduling::JobRecord job;
  std::string name;
  MachineId machine = 0;  // of the newest attempt; 0: none
};

struct JobPage {
  std::vector<JobRow> rows;
  JobId next = 0;  // `after` for the next page; 0: this is the last page
};

struct AttemptRow {
  scheduling::AttemptRecord attempt;
  std::string machine_name;
  EndRow end;
};

// A description as it was submitted, and the index of a job in it, from 0.
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

class FinishedFiles;

class Archive {
 public:
  // path: of the database, which must exist. Finished jobs that were moved are in files in the
  // folder `history` beside it. Throws StoreError, as all functions here do when the database
  // cannot be read; a file that cannot be read is logged and left out.
  explicit Archive(const std::string& path);
  ~Archive();

  // From now on the calling thread has a connection of its own: the committer, so that it never
  // waits for a query, and those that answer questions which may take long, so that none waits
  // for these. The thread must not use the archive after its end.
  void serve_apart();
  // Calls f. Queries of it that still run after this span throw Refusal kLimitExceeded
  // "question.too_long".
  void within(std::chrono::microseconds span, const std::function<void()>& f);

  // In order of id, from `after` + 1 on, or newest first, from `after` - 1 down (`after` 0:
  // from the beginning). At most `limit` rows, one per record, which may cover several
  // jobs (scheduling::JobRecord::count). Ignores JobQuery::name.
  // A damaged row is skipped, but counts towards `limit`.
  JobPage runs(const JobQuery& query, JobId after, uint32_t limit);
  // The same, but jobs with different descriptions (such as the jobs of a list of
  // commands) are in different rows, and only jobs of that name. A page may have fewer
  // rows than `limit`, or none, before the last.
  JobPage described_runs(const JobQuery& query, JobId after, uint32_t limit);
  // The same, with one row per job.
  JobPage jobs(const JobQuery& query, JobId after, uint32_t limit);
  // The number of jobs in each state. It is kept for all jobs, for each user's and for those of a
  // batch (server/store/job_counts.h); else the records are read, and if the query selects
  // finished ones and not a batch, that are all of them. Not for the committer: it may wait for a
  // move, which waits for the committer.
  std::vector<std::pair<uint32_t, uint64_t>> count(const JobQuery& query);
  std::optional<JobRow> job(JobId id);
  // In order of number, after `after`; at most `limit`.
  std::vector<AttemptRow> attempts(JobId id, uint32_t after = 0, uint32_t limit = UINT32_MAX);
  // In order of id, after `after`; at most `limit`. Without bodies.
  std::vector<FileRow> outputs(JobId id, uint64_t after = 0, uint32_t limit = UINT32_MAX);
  // By file id.
  std::map<uint64_t, SentFile> sent_files(scheduling::AttemptKey key);

  std::optional<SpecPlace> spec_place(JobId id);
  // The description of a job, "{index}" replaced.
  std::optional<JobDescription> spec(JobId id);
  // The same, for an attempt: inputs that are other jobs' outputs have their file if it is there.
  // One query for each of them.
  std::optional<JobDescription> spec_with_files(JobId id);
  // The name of the output that stops the batch of this job; "": none. The job must have
  // been placed.
  std::string awaited_output(JobId id);

  // Finished jobs that ended before `before`, of one UTC month, whose files have all been
  // removed. Examines `examined` records with ids above `after`, and sets `after` to the last
  // one examined, or to 0 when there are no more. The newest job is never among them, since
  // the next id is counted from it.
  Changes::MovedJobs finished_jobs(JobId& after, Micros before, uint32_t examined);
  // Copies them to the file of their month; on disk when it returns. Throws StoreError.
  void copy_to_file(const Changes::MovedJobs& finished);
  // Calls f, which deletes jobs that were copied; so that count() does not count
  // them in both databases.
  void while_moving(const std::function<void()>& f);

  std::optional<BatchRow> batch(BatchId id);
  std::optional<PartRow> part(BatchId id, uint32_t number);
  // None has been appended: a row of zeros. Of a batch of an earlier server's: read from its parts.
  DraftRow draft(BatchId id);
  // The committed batches whose jobs are yet to be entered, in order of id.
  std::vector<DraftRow> entering();
  // The batches of jobs that are behind a gate (scheduling::Gate), each with a range that has
  // these.
  std::vector<std::pair<BatchId, scheduling::JobRange>> gated();
  std::vector<BatchRow> open_batches_before(Micros touched);

  std::optional<FileRow> file(uint64_t id);  // with body
  // Newest first, up to and including that generation; with bodies.
  std::vector<FileRow> checkpoints(JobId job, uint64_t newest);
  std::optional<FileRow> output(JobId job, FileKind kind, const std::string& name);
  // The names of the job's outputs that jobs which have not ended need as inputs.
  std::set<std::string> needed_outputs(JobId job);
  std::vector<uint64_t> content_ids();
  bool content_exists(uint64_t id);
  // The newest content with this digest (hex) that is not known to be damaged.
  std::optional<ContentRow> content(const std::string& digest);
  bool has_content(uint64_t id);
  // Bytes of this user's files in the spool.
  SpoolUse spool_use(const std::string& user);
  // Of every user who has, or had, files there.
  std::map<std::string, SpoolUse> spool_uses();
  // The quota that an administrator has set for this user, for every such user.
  std::optional<uint64_t> quota(const std::string& user);
  std::map<std::string, uint64_t> quotas();
  // Files that are no longer needed: inputs of batches whose jobs are all final,
  // checkpoints of final jobs, checkpoints older than the two newest generations,
  // outputs of ended attempts that do not count. Without bodies. Examines `examined`
  // files with ids above `after`, and sets `after` to the last one's id, or to 0
  // when there are no more.
  std::vector<FileRow> unneeded_files(uint64_t& after, uint32_t examined);
  // Outputs of jobs that ended before `ended`; without bodies.
  std::vector<FileRow> outputs_before(Micros ended, uint32_t limit);
  // When the job's outputs were removed; 0: they still exist, or there were none.
  Micros outputs_removed_at(JobId job);
  uint64_t last_file_id();
  // Whether any batch was ever opened, without which there are no jobs and no files.
  bool was_used();

  std::optional<CredentialRow> credential(MachineId machine);
  // The machine that this member registered (CredentialRow::uid), 0 if none.
  MachineId machine_of(uint64_t uid);
  // All undamaged rows, in order of number.
  std::vector<MemberRow> members();
  std::vector<InvitationRow> invitations();
  // The machine whose secret has this digest (hex), 0 if none.
  MachineId machine_with(const std::string& secret_digest);

  std::vector<scheduling::ChangeRecord> changes(uint64_t after, const std::string& user,
                                                uint32_t limit);
  // The newest change that there was, kept or not; 1 before the first, which is number 2.
  uint64_t last_change();
  // The oldest that is kept; if none is, that of the next one.
  uint64_t first_change();

  // In order of the groups. Throws Refusal kLimitExceeded "report.too_long" when
  // it takes longer than query.may_take.
  std::vector<UsageRow> usage(const UsageQuery& query);
  // The newest uses that ended after `since`, newest first.
  std::vector<scheduling::UseRecord> recent_uses(Micros since, uint32_t limit);
  // The oldest uses that ended before this instant, in order of finished, job, attempt.
  std::vector<OldUse> oldest_uses(Micros before, uint32_t limit);
  // CPU time that the server used in the minutes before this instant, oldest first.
  std::vector<SpentRow> spent_before(Micros before);
  // The instant of the oldest of these rows; 0: there are none.
  Micros oldest_history();

 private:
  std::optional<std::map<uint32_t, uint64_t>> kept_count(const JobQuery& query);
  std::vector<std::pair<uint32_t, uint64_t>> count_once(const JobQuery& query);
  JobId add_described(const JobQuery& query, const JobRow& run, uint32_t limit, JobPage& page);

  std::shared_ptr<const SpecRange> spec_range(JobId id, uint64_t* first_job);
  std::shared_ptr<const SpecRange> read_spec(JobId id, uint64_t* first_job);

  class Connection;
  class Connections;
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<FinishedFiles> finished_;
  std::atomic<uint64_t> moves_{0};  // begun and ended; odd: one goes on
  // Enough for a million lines of command arguments.
  SpecCache arrays_{64u << 20};
  SpecCache single_jobs_{4u << 20};
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_ARCHIVE_ARCHIVE_H_
