// The database's tables. tables.cc describes them, one line per column: its name and the
// member of the row that it stores. The code that creates a table, and writes (writer.h) and
// reads (rows.h) its rows, is generated from this description.
#ifndef SUBLET_SERVER_STORE_TABLES_H_
#define SUBLET_SERVER_STORE_TABLES_H_

#include <span>
#include <string>

#include "scheduling/records.h"
#include "server/commit/changes.h"
#include "server/store/table.h"

namespace sublet::server {

// The layout of the database, kept in table pool. To change it, add a step to migration.cc and
// a dump of the old layout to layouts/.
inline constexpr int32_t kSchemaVersion = 16;

struct PoolRow {
  int32_t id = 1;  // the only row
  int32_t version = kSchemaVersion;
  scheduling::PoolRecord pool = {};
};

// scheduling::PolicyRecord.
struct PolicyRow {
  int32_t id = 1;  // the only row
  scheduling::PolicyChoice choice = {};
  scheduling::Micros since = 0;
  std::string by = {};
};

// The one row of table pool_id; pool_id.h writes and reads it.
struct PoolIdRow {
  std::string id;  // hexadecimal
};

// Bytes of a user's files in the spool: of checkpoints, or of all others.
struct SpoolUseRow {
  std::string user;
  bool checkpoints = false;
  uint64_t bytes = 0;
};

// How many jobs are in a state (job_counts.h).
struct JobCountRow {
  BatchId batch = 0;  // 0: of all batches
  std::string user;   // empty: of all users
  std::string month;  // "2026-01": in the file of history of that month; empty: in the database
  scheduling::JobState state = scheduling::JobState::kWaiting;
  int64_t jobs = 0;
};

// A job whose outputs have expired and were removed.
struct RemovedOutputRow {
  JobId job = 0;
  Micros at = 0;
};

// A scheduling::RelationRecord (relation_row.h).
struct RelationRow {
  JobId job = 0;  // the first of its jobs
  uint64_t count = 1;
  scheduling::OnNever on_never = scheduling::OnNever::kHold;
  std::string waits_for;  // encoded
  JobId lost_by = 0;
  scheduling::JobState lost_as = scheduling::JobState::kFailed;
  scheduling::Gate gate = scheduling::Gate::kOpen;
};

namespace tables {

extern const TableOf<PoolRow> kPool;
extern const TableOf<PoolIdRow> kPoolId;
extern const TableOf<PolicyRow> kPolicy;
extern const TableOf<scheduling::UserRecord> kUsers;
extern const TableOf<scheduling::MachineRecord> kMachines;
extern const TableOf<scheduling::AbsenceRecord> kAbsences;
extern const TableOf<CredentialRow> kCredentials;
extern const TableOf<BatchRow> kBatches;
extern const TableOf<scheduling::BatchRecord> kStops;
extern const TableOf<scheduling::ProgramRecord> kPrograms;
extern const TableOf<RelationRow> kRelations;
extern const TableOf<DraftRow> kDrafts;
extern const TableOf<PartRow> kParts;
extern const TableOf<SpecRow> kSpecs;
extern const TableOf<scheduling::JobRecord> kJobs;
extern const TableOf<JobCountRow> kJobCounts;
extern const TableOf<scheduling::AttemptRecord> kAttempts;
extern const TableOf<EndRow> kEnds;
extern const TableOf<scheduling::UseRecord> kUses;
extern const TableOf<SpentRow> kSpent;
extern const TableOf<scheduling::ChangeRecord> kChanges;
extern const TableOf<FeedRow> kFeeds;
extern const TableOf<FileRow> kFiles;
extern const TableOf<ContentRow> kContents;
extern const TableOf<SpoolUseRow> kSpoolUse;
extern const TableOf<RemovedOutputRow> kRemovedOutputs;
extern const TableOf<MemberRow> kMembers;
extern const TableOf<InvitationRow> kInvitations;
extern const TableOf<QuotaRow> kQuotas;
extern const TableOf<RequestRow> kRequests;
extern const TableOf<EventRow> kEvents;

// All tables; the pool comes first.
std::span<const Table* const> all();

}  // namespace tables
}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_TABLES_H_
