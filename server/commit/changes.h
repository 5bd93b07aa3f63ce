// Everything one transaction writes. The pipeline collects it while it applies
// events, so that a row changed several times is written once.
//
// Threads: the committer only.
#ifndef SUBLET_SERVER_COMMIT_CHANGES_H_
#define SUBLET_SERVER_COMMIT_CHANGES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "job/file_place.h"
#include "job/stop_when.h"
#include "protocol/eviction.h"
#include "scheduling/records.h"
#include "transport/membership.h"

namespace sublet::server {

using scheduling::BatchId;
using scheduling::JobId;
using scheduling::MachineId;
using scheduling::Micros;

struct BatchRow {
  BatchId id = 0;
  uint64_t uid = 0;  // Caller::uid
  std::string user;
  std::string name;
  std::string submit_host;
  bool committed = false;
  Micros touched = 0;  // of an open batch: the last call for it
  JobId first_job = 0;
  uint64_t count = 0;
  StopWhen stop_when = {};  // as submitted
  OnNever on_never = OnNever::kHold;
  uint64_t at_most = 0;  // of its jobs are on machines at a time; 0: any number
};

// What is known of the parts of a batch, from its first append until its jobs have all been entered
// (server/jobs/entering.h).
struct DraftRow {
  BatchId batch = 0;
  std::string user;    // whose quota the bytes count towards
  uint64_t parts = 0;  // appended
  uint64_t jobs = 0;
  uint64_t bytes = 0;     // of the parts, in the quota; 0 once it is committed
  bool entering = false;  // it is committed; how far its jobs have been entered:
  uint32_t next_part = 0;
  uint64_t next_range = 0;  // in that part
  uint64_t entered = 0;     // jobs
  bool gated = false;       // its jobs wait for others (scheduling::Submitted::Piece)
  bool operator==(const DraftRow&) const = default;
};

// One append of an open batch: encoded SpecRanges.
struct PartRow {
  BatchId batch = 0;
  uint32_t number = 0;
  uint64_t jobs = 0;
  std::string body;
};

// One description and its jobs: first_job to first_job + count - 1.
struct SpecRow {
  JobId first_job = 0;
  uint64_t count = 1;
  std::string name;
  std::string body;  // encoded, exactly one SpecRange
};

// An output that jobs have as an input: it is kept while one of them has not ended.
struct FeedRow {
  JobId producer = 0;
  std::string name;    // of the output
  JobId consumer = 0;  // the first of `count`, which share a description
  uint64_t count = 1;
};

struct FileRow {
  uint64_t id = 0;
  FileKind kind = FileKind::kInput;
  BatchId batch = 0;
  JobId job = 0;
  uint32_t attempt = 0;
  uint64_t generation = 0;
  std::string name;
  uint64_t size = 0;
  std::string digest;   // hex
  bool in_row = false;  // stored in `body`, otherwise in the spool folder
  std::string body;
  bool counts = false;   // outputs: of the attempt whose end was accepted as done or failed
  std::string user;      // whose quota it counts towards
  uint64_t content = 0;  // its ContentRow; 0: stored in the row
  // From that ContentRow, if the archive read this.
  std::string identity;
  bool damaged = false;
};

// One stored content. Files with the same digest share it; it is deleted with the
// last of them, in the same transaction.
struct ContentRow {
  uint64_t id = 0;     // its name in the spool folder
  std::string digest;  // hex
  uint64_t size = 0;
  std::string identity;  // of the file when its bytes were last verified; "": never
  bool damaged = false;  // does not match its digest: no new file refers to it
};

// A machine's credential, in addition to the brain's MachineRecord.
struct CredentialRow {
  MachineId machine = 0;
  std::string secret_digest;  // hex
  uint64_t uid = 0;           // who registered it: Caller::uid
};

// A remote member: the holder of a certificate of this pool, valid or not.
struct MemberRow {
  uint64_t number = 0;
  Role role = Role::kMachine;
  std::string name;
  std::string serial;            // of the certificate
  std::string previous_serials;  // of its predecessors, newest first, separated by spaces
  std::string certificate;       // PEM
  Micros expires = 0;
  Micros joined = 0;
  std::string invited_by;
  Micros revoked = 0;  // 0: a member
};

// A join token, without its secret.
struct InvitationRow {
  std::string id;             // hex
  std::string secret_digest;  // hex
  Role role = Role::kMachine;
  std::string name;
  std::string invited_by;
  Micros expires = 0;
  std::string used_by;  // digest of the public key, hex; empty: not used
  Micros revoked = 0;
};

// The data of an attempt's end report that is in no other record;
// idl/execution_server.idl.
struct EndRow {
  scheduling::AttemptKey key;
  int64_t exit_status = -1;
  int64_t signal = 0;
  uint64_t memory_peak = 0;
  uint64_t processes_peak = 0;  // this and disk_peak: 0: not known
  uint64_t disk_peak = 0;
  int64_t network_bytes = -1;  // -1: not known
  uint64_t checkpoint_bytes = 0;
  int64_t resumed_ppm = -1;
  int64_t progress_ppm = -1;
  protocol::EvictionSteps steps;
  bool stdout_cut = false;
  bool stderr_cut = false;
};

// A user's quota in the spool, set by an administrator.
struct QuotaRow {
  std::string user;
  uint64_t bytes = 0;
};

struct RequestRow {
  std::string key;     // uid and request id, hex
  std::string digest;  // of operation and arguments, hex
  std::string answer;
  Micros at = 0;
};

struct EventRow {
  Micros at = 0;
  uint32_t kind = 0;
  std::string body;
};

// CPU time the server used in the minute that began at `at`; several rows add up.
struct SpentRow {
  Micros at = 0;
  Micros cpu = 0;
};

struct Changes {
  std::map<JobId, scheduling::JobRecord> jobs;
  std::map<scheduling::AttemptKey, scheduling::AttemptRecord> attempts;
  std::map<MachineId, scheduling::MachineRecord> machines;
  std::map<MachineId, scheduling::AbsenceRecord> absences;
  std::map<std::string, scheduling::UserRecord> users;
  std::vector<scheduling::UseRecord> uses;
  std::vector<scheduling::ChangeRecord> changes;
  std::map<BatchId, scheduling::BatchRecord> stops;
  std::map<JobId, scheduling::RelationRecord> relations;  // by their first job
  // By program, architecture and speed.
  std::map<std::tuple<uint64_t, std::string, int32_t>, scheduling::ProgramRecord> programs;
  bool has_pool = false;
  scheduling::PoolRecord pool;
  std::optional<scheduling::PolicyRecord> policy;
  std::map<BatchId, BatchRow> batches;
  std::vector<BatchId> dropped_batches;  // with their parts
  std::vector<BatchId> dropped_parts;    // with what is known of them
  std::map<BatchId, DraftRow> drafts;
  std::map<BatchId, uint32_t> entered_parts;  // those below this number are deleted
  std::vector<PartRow> parts;
  std::vector<SpecRow> specs;
  std::vector<FeedRow> feeds;
  std::map<uint64_t, FileRow> files;
  std::vector<uint64_t> dropped_files;
  std::map<uint64_t, ContentRow> contents;
  // Contents that lost a file; deleted if no other file refers to them.
  std::vector<uint64_t> loosened_contents;
  std::map<JobId, Micros> removed_outputs;  // jobs whose outputs have expired
  struct Counted {
    uint64_t file = 0;
    scheduling::AttemptKey key;
  };
  std::vector<Counted> counted_files;  // outputs of this attempt that now count
  std::map<MachineId, CredentialRow> credentials;
  std::map<uint64_t, MemberRow> members;
  std::map<std::string, InvitationRow> invitations;
  std::vector<std::string> dropped_invitations;
  std::map<std::string, QuotaRow> quotas;
  std::vector<std::string> dropped_quotas;  // the settings count again
  std::vector<EndRow> ends;
  std::vector<SpentRow> spent;
  std::map<std::string, RequestRow> requests;
  std::vector<EventRow> events;
  // Delete rows older than these instants, a bounded number at a time; 0: none.
  Micros forget_requests = 0;
  Micros forget_changes = 0;
  // Delete events up to this number, except the newest, a bounded number at a time, because they
  // are in a file of history (server/commit/event_history.h); 0: none.
  uint64_t forget_events = 0;
  // Rows to delete because they are in history files (server/accounting/history.h):
  // uses in order of finished, job, attempt up to and including `last`, which
  // finished at `uses_until`; CPU time of the minutes before `spent_before`. 0: none.
  struct ForgottenHistory {
    Micros uses_until = 0;
    scheduling::AttemptKey last;
    Micros spent_before = 0;
  };
  ForgottenHistory forget_history;
  // Finished jobs to delete because they are in a history file (server/jobs/history.h): the ids
  // of their records, and of the descriptions and batches that they refer to. A description
  // or a batch goes with the last of its jobs.
  struct MovedJobs {
    std::string month;  // of the file: "2026-01"
    std::vector<JobId> jobs;
    std::vector<JobId> specs;  // SpecRow::first_job
    std::vector<BatchId> batches;
  };
  MovedJobs moved_jobs;

  bool empty() const;
  // Adds a record of the brain; it replaces an earlier one of the same subject.
  void add(const scheduling::Record& record);
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_COMMIT_CHANGES_H_
