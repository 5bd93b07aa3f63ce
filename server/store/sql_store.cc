#include "server/store/sql_store.h"

#include <soci/soci.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "server/store/archive/event_files.h"
#include "server/store/archive/finished.h"
#include "server/store/job_counts.h"
#include "server/store/live.h"
#include "server/store/migration.h"
#include "server/store/relation_row.h"
#include "server/store/rows.h"
#include "server/store/set_aside.h"
#include "server/store/sqlite.h"
#include "server/store/tables.h"
#include "server/store/writer.h"

namespace sublet::server {
namespace {

// Rows deleted per transaction, so that none takes long.
constexpr int kForgotten = 20'000;

void forget_requests(soci::session& sql, Micros before) {
  if (before == 0) return;
  sql << "delete from requests where id in (select id from requests where at < " << before
      << " limit " << kForgotten << ")";
}

// For a table whose row numbers increase with time: only the oldest rows are examined, so
// no index on time is needed.
void forget_oldest(soci::session& sql, const char* table, Micros before) {
  if (before == 0) return;
  long long oldest = before;
  sql << "select at from " << table << " order by number limit 1", soci::into(oldest);
  if (oldest >= before) return;
  sql << "delete from " << table << " where number in (select number from (select number, at from "
      << table << " order by number limit " << kForgotten << ") where at < " << before << ")";
}

// The newest one stays: its number and instant are those that the next ones follow.
void forget_events(soci::session& sql, uint64_t until) {
  if (until == 0) return;
  sql << "delete from events where number in (select number from events where number <= " << until
      << " order by number limit " << EventFiles::kAtOnce
      << ") and number < (select max(number) from events)";
}

void forget_uses(soci::session& sql, const Changes::ForgottenHistory& h) {
  if (h.uses_until > 0)
    sql << "delete from uses where (finished, job, attempt) <= (" << h.uses_until << ", "
        << h.last.job << ", " << h.last.attempt << ")";
}

void forget_spent(soci::session& sql, const Changes::ForgottenHistory& h) {
  if (h.spent_before > 0) sql << "delete from spent where at < " << h.spent_before;
}

// counted: the numbers of jobs are kept.
void forget_moved(soci::session& sql, const Changes::MovedJobs& moved, bool counted) {
  if (moved.jobs.empty()) return;
  const std::string jobs = list_of(moved.jobs), batches = list_of(moved.batches);
  // Chosen a moment ago, on another connection: what holds a job may have appeared since.
  const std::string leaving = "id in (" + jobs + ") and " + kMayLeave;
  if (counted) count_moved(sql, moved.month, leaving);
  sql << "delete from jobs where " << leaving;
  for (const char* table : {"attempts", "ends"})
    sql << "delete from " << table << " where job in (" << jobs
        << ") and not exists (select 1 from jobs where jobs.id = " << table << ".job)";
  sql << "delete from specs where first_job in (" << list_of(moved.specs)
      << ") and not exists (select 1 from jobs where jobs.id >= coalesce((select max(j.id) from "
         "jobs j where j.id <= specs.first_job), 0) and jobs.id < specs.first_job + specs.jobs and "
         "jobs.id + jobs.count > specs.first_job)";
  sql << "delete from feeds where consumer in (" << list_of(moved.specs)
      << ") and not exists (select 1 from specs where specs.first_job = feeds.consumer)";
  // The newest batch stays, since the next id is counted from it.
  sql << "delete from batches where id in (" << batches
      << ") and id < (select max(id) from batches) and not exists (select 1 from jobs where "
         "jobs.batch = batches.id) and not exists (select 1 from files where files.batch > 0 and "
         "files.batch = batches.id)";
  sql << "delete from stops where batch in (" << batches
      << ") and not exists (select 1 from batches where batches.id = stops.batch)";
}

// What has failed, and what to do if the file is damaged.
std::string text_of(const std::exception& error) {
  const auto* from_soci = dynamic_cast<const soci::soci_error*>(&error);
  if (from_soci == nullptr) return error.what();
  const std::string text = from_soci->get_error_message();
  return sqlite::is_damage(*from_soci)
             ? "the file is damaged: `sublet-server check` says where, and what to do"
             : text;
}

}  // namespace

struct SqlStore::Session {
  Session(const std::string& path, const LogSizes& sizes) : mover(path, sizes) {}

  soci::session sql;
  LogMover mover;
  int log_pages = 0;
  bool counts_jobs = true;  // false: what table job_counts has is not complete
  JobCounter counter;
  Writer<PoolRow> pool{tables::kPool};
  Writer<PolicyRow> policy{tables::kPolicy};
  Writer<scheduling::UserRecord> users{tables::kUsers};
  Writer<scheduling::MachineRecord> machines{tables::kMachines};
  Writer<scheduling::AbsenceRecord> absences{tables::kAbsences};
  Writer<CredentialRow> credentials{tables::kCredentials};
  Writer<MemberRow> members{tables::kMembers};
  Writer<InvitationRow> invitations{tables::kInvitations};
  Statement<std::string> drop_invitation{"delete from invitations where id = :id"};
  Writer<QuotaRow> quotas{tables::kQuotas};
  Statement<std::string> drop_quota{"delete from quotas where user_name = :user"};
  Writer<BatchRow> batches{tables::kBatches};
  Writer<scheduling::BatchRecord> stops{tables::kStops};
  Writer<RelationRow> relations{tables::kRelations};
  Writer<scheduling::ProgramRecord> programs{tables::kPrograms};
  // The difference to what was counted before.
  Statement<std::string, uint64_t, BatchId> count_draft_in{
      "insert into spool_use (user_name, kind, bytes) select :user, 0, :bytes - coalesce((select "
      "bytes from drafts where batch = :batch), 0) where true on conflict (user_name, kind) do "
      "update set bytes = spool_use.bytes + excluded.bytes"};
  Writer<DraftRow> drafts{tables::kDrafts};
  Writer<PartRow> parts{tables::kParts};
  Writer<SpecRow> specs{tables::kSpecs};
  Writer<scheduling::JobRecord> jobs{tables::kJobs};
  Writer<scheduling::AttemptRecord> attempts{tables::kAttempts};
  Writer<EndRow> ends{tables::kEnds};
  Writer<scheduling::UseRecord> uses{tables::kUses};
  Writer<SpentRow> spent{tables::kSpent};
  Writer<scheduling::ChangeRecord> changes{tables::kChanges};
  // A file that is written again is counted once.
  Statement<std::string, bool, uint64_t, uint64_t> count_in{
      "insert into spool_use (user_name, kind, bytes) select :user, :kind, :bytes where not exists "
      "(select 1 from files where id = :id) on conflict (user_name, kind) do update set bytes = "
      "spool_use.bytes + excluded.bytes"};
  Writer<FeedRow> feeds{tables::kFeeds};
  Writer<FileRow> files{tables::kFiles};
  Writer<ContentRow> contents{tables::kContents};
  Writer<RemovedOutputRow> removed_outputs{tables::kRemovedOutputs};
  Writer<RequestRow> requests{tables::kRequests};
  Writer<EventRow> events{tables::kEvents};
  Statement<BatchId> drop_batch{"delete from batches where id = :id"};
  Statement<BatchId> drop_parts{"delete from parts where batch = :id"};
  Statement<BatchId, uint32_t> drop_entered_parts{
      "delete from parts where batch = :id and number < :number"};
  Statement<BatchId> count_draft_out{
      "update spool_use set bytes = spool_use.bytes - d.bytes from drafts d where d.batch = :id "
      "and "
      "d.user_name = spool_use.user_name and spool_use.kind = 0"};
  Statement<BatchId> drop_draft{"delete from drafts where batch = :id"};
  Statement<uint64_t> count_out{
      "update spool_use set bytes = spool_use.bytes - f.size from files f where f.id = :id and "
      "f.user_name = spool_use.user_name and (f.kind = 2) = (spool_use.kind = 1)"};
  Statement<uint64_t> drop_file{"delete from files where id = :id"};
  Statement<uint64_t> drop_content{kDropContent};
  Statement<uint64_t, JobId, uint32_t> count_file{
      "update files set counts = 1 where id = :id and job = :job and attempt = :attempt and kind "
      ">= 3"};

  Statement<JobId> drop_relation{"delete from relations where job = :job"};
  Statement<uint64_t, std::string, int32_t> drop_program{
      "delete from programs where program = :program and architecture = :architecture and speed = "
      ":speed"};

  std::vector<Bulk*> in_order() {
    return {&pool,
            &policy,
            &users,
            &machines,
            &credentials,
            &members,
            &invitations,
            &drop_invitation,
            &quotas,
            &drop_quota,
            &batches,
            &stops,
            &parts,
            &specs,
            &jobs,
            &attempts,
            &ends,
            &uses,
            &spent,
            &changes,
            &count_in,
            &files,
            &contents,
            &removed_outputs,
            &requests,
            &events,
            &drop_batch,
            &drop_parts,
            &count_out,
            &drop_file,
            &drop_content,
            &count_file,
            &relations,
            &drop_relation,
            &feeds,
            &absences,
            &programs,
            &drop_program,
            counter.in_order()[0],
            counter.in_order()[1],
            &count_draft_in,
            &drafts,
            &drop_entered_parts,
            &count_draft_out,
            &drop_draft};
  }
  // The table whose damage makes this statement fail, if it can be set aside.
  const Table* table_of(const Bulk* bulk);
  void add(const Changes& changes);
  void clear();
  // Writes what was added. `at`: the table being written, if that can be set aside.
  void write(const Changes& changes, const Table*& at);
  void delete_moved(const Changes::MovedJobs& moved);
  // Calls `work`, which sets `at` to the table that it is about to use. If a page of that table
  // is damaged and serving does not need it, sets the table aside and calls `work` again.
  void or_set_aside(const Table*& at, const std::function<void()>& work);
  // Has numbers of jobs in table job_counts, if they can be had.
  void begin_counting(const std::string& path);
  bool complained = false;  // of rows that could not be deleted
};

const Table* SqlStore::Session::table_of(const Bulk* bulk) {
  if (bulk == &ends) return &tables::kEnds;
  if (bulk == &uses) return &tables::kUses;
  if (bulk == &spent) return &tables::kSpent;
  if (bulk == &changes) return &tables::kChanges;
  if (bulk == &requests) return &tables::kRequests;
  if (bulk == &events) return &tables::kEvents;
  if (bulk == counter.in_order()[0] || bulk == counter.in_order()[1]) return &tables::kJobCounts;
  return nullptr;
}

void SqlStore::Session::or_set_aside(const Table*& at, const std::function<void()>& work) {
  for (std::set<const Table*> aside;;) {
    try {
      return work();
    } catch (const soci::soci_error& e) {
      const bool again = sqlite::is_damage(e) && at && can_be_set_aside(*at);
      if (!again || !aside.insert(at).second) throw;
      set_aside(sql, *at);
      if (at == &tables::kJobCounts) counts_jobs = false;
    }
  }
}

void SqlStore::Session::begin_counting(const std::string& path) {
  const Table* at = nullptr;
  or_set_aside(at, [&] {
    at = &tables::kJobCounts;
    const bool has_numbers = has_job_counts(sql);
    at = nullptr;
    counts_jobs = has_numbers || count_jobs(sql, path, folder_of(path) + "/history");
  });
}

void SqlStore::Session::clear() {
  for (Bulk* bulk : in_order()) bulk->clear();
}

namespace {

template <typename Row>
void add_all(Writer<Row>& writer, const std::vector<Row>& rows) {
  for (const Row& row : rows) writer.add(row);
}
template <typename Key, typename Row>
void add_all(Writer<Row>& writer, const std::map<Key, Row>& rows) {
  for (const auto& [key, row] : rows) writer.add(row);
}

}  // namespace

void SqlStore::Session::add(const Changes& c) {
  if (c.has_pool) pool.add({.pool = c.pool});
  if (c.policy) policy.add({1, c.policy->choice, c.policy->since, c.policy->by});
  add_all(users, c.users);
  add_all(machines, c.machines);
  add_all(absences, c.absences);
  add_all(credentials, c.credentials);
  add_all(members, c.members);
  add_all(invitations, c.invitations);
  for (const auto& id : c.dropped_invitations) drop_invitation.add(id);
  add_all(quotas, c.quotas);
  for (const auto& user : c.dropped_quotas) drop_quota.add(user);
  add_all(batches, c.batches);
  add_all(stops, c.stops);
  for (const auto& [id, d] : c.drafts) count_draft_in.add(d.user, d.bytes, id);
  add_all(drafts, c.drafts);
  add_all(parts, c.parts);
  add_all(specs, c.specs);
  add_all(jobs, c.jobs);
  add_all(attempts, c.attempts);
  add_all(ends, c.ends);
  add_all(uses, c.uses);
  add_all(spent, c.spent);
  add_all(changes, c.changes);
  for (const auto& [id, f] : c.files)
    count_in.add(f.user, f.kind == FileKind::kCheckpoint, f.size, f.id);
  add_all(feeds, c.feeds);
  add_all(files, c.files);
  add_all(contents, c.contents);
  for (const auto& [job, at] : c.removed_outputs) removed_outputs.add({job, at});
  add_all(requests, c.requests);
  add_all(events, c.events);
  for (BatchId id : c.dropped_batches) drop_batch.add(id);
  for (BatchId id : c.dropped_parts) {
    drop_parts.add(id);
    count_draft_out.add(id);
    drop_draft.add(id);
  }
  for (const auto& [id, number] : c.entered_parts) drop_entered_parts.add(id, number);
  for (uint64_t id : std::set(c.dropped_files.begin(), c.dropped_files.end())) {
    count_out.add(id);
    drop_file.add(id);
  }
  for (uint64_t id : std::set(c.loosened_contents.begin(), c.loosened_contents.end()))
    drop_content.add(id);
  for (const auto& [first, relation] : c.relations)
    relation.over ? drop_relation.add(first) : relations.add(row_of(relation));
  for (const auto& [key, p] : c.programs)
    p.forgotten ? drop_program.add(p.program, p.architecture, p.speed) : programs.add(p);
  for (const auto& f : c.counted_files) count_file.add(f.file, f.key.job, f.key.attempt);
}

namespace {

int layout_of(soci::session& sql) {
  for (const std::string& statement : creation(tables::kPool)) sql << statement;
  int layout = kSchemaVersion;  // of a new database
  sql << "select version from pool where id = 1", soci::into(layout);
  return layout;
}

// Refuses a database of a later layout before changing it.
void open_present_layout(soci::session& sql, const std::string& path) {
  sqlite::open_to_write(sql, path);
  const int layout = layout_of(sql);
  if (layout == kSchemaVersion) return;
  if (layout < kEarliestLayout || layout > kSchemaVersion)
    throw StoreError("the database " + path + " has layout " + std::to_string(layout) +
                     ", but this server needs layout " + std::to_string(kSchemaVersion) +
                     ": install the server that created it, or, for a new pool, move it and the "
                     "spool beside it away");
  sql.close();
  log(Severity::info) << "bringing the database from layout " << layout << " to " << kSchemaVersion;
  const std::string old = migrate(system_files(), path, layout);
  log(Severity::info) << "the database was brought from layout " << layout << " to "
                      << kSchemaVersion << "; the old one is kept as " << old;
  sqlite::open_to_write(sql, path);
}

}  // namespace

SqlStore::SqlStore(const std::string& path, const LogSizes& log)
    : session_(std::make_unique<Session>(path, log)) {
  try {
    open_present_layout(session_->sql, path);
    sqlite::leave_log(session_->sql, &session_->log_pages);
    for (const Table* table : tables::all())
      for (const std::string& statement : creation(*table)) session_->sql << statement;
    session_->begin_counting(path);
  } catch (const soci::soci_error& e) {
    throw StoreError("cannot open the database " + path + ": " + text_of(e));
  }
}

SqlStore::~SqlStore() = default;

void SqlStore::Session::write(const Changes& changes, const Table*& at) {
  soci::transaction transaction(sql);
  at = nullptr;
  if (counts_jobs) counter.add(sql, changes);
  for (Bulk* bulk : in_order()) {
    at = table_of(bulk);
    bulk->flush(sql);
  }
  at = &tables::kRequests;
  forget_requests(sql, changes.forget_requests);
  at = &tables::kEvents;
  forget_events(sql, changes.forget_events);
  at = &tables::kChanges;
  forget_oldest(sql, "changes", changes.forget_changes);
  at = &tables::kUses;
  forget_uses(sql, changes.forget_history);
  at = &tables::kSpent;
  forget_spent(sql, changes.forget_history);
  at = nullptr;
  transaction.commit();
  delete_moved(changes.moved_jobs);
}

// Not in the transaction of the events: if a page is damaged, these rows stay where they are, and
// nobody's event is refused for them. They are in their file already.
void SqlStore::Session::delete_moved(const Changes::MovedJobs& moved) {
  if (moved.jobs.empty()) return;
  try {
    soci::transaction transaction(sql);
    forget_moved(sql, moved, counts_jobs);
    transaction.commit();
  } catch (const soci::soci_error& e) {
    if (!complained)
      log(Severity::error) << "finished jobs that are in a file of history could not be deleted: "
                           << text_of(e);
    complained = true;
  }
}

void SqlStore::commit(const Changes& changes) {
  const Table* at = nullptr;
  try {
    session_->or_set_aside(at, [&] {
      session_->clear();
      session_->add(changes);
      session_->write(changes, at);
    });
    session_->mover.noted(session_->log_pages);
  } catch (const std::bad_alloc&) {
    session_->clear();
    throw;
  } catch (const std::exception& e) {
    session_->clear();
    if (sqlite::is_out_of_memory(e)) throw std::bad_alloc();
    throw StoreError("the database could not be written: " + text_of(e));
  }
}

std::optional<RequestRow> SqlStore::find_request(const std::string& key) {
  const Table* at = &tables::kRequests;
  try {
    std::optional<RequestRow> found;
    session_->or_set_aside(at, [&] {
      RequestRow row;
      Rows rows(session_->sql);
      rows.into(tables::kRequests, row).with("id", key).select("requests where id = :id");
      if (rows.next()) found = std::move(row);
    });
    return found;
  } catch (const std::exception& e) {
    throw StoreError("the database could not be read: " + text_of(e));
  }
}

namespace {

// An instant that is further ahead of the clock is damage.
constexpr Micros kAhead = 24 * 3600ll * 1'000'000;

// Of a table whose row numbers increase with time. A damaged instant among the last ones would
// stop the brain's clock until then.
Micros last_instant(soci::session& sql, const std::string& table, Micros latest) {
  const std::string last = "(select at from " + table + " order by number desc limit 100)";
  return static_cast<Micros>(
      number_of(sql, "select max(at) from " + last + " where at <= " + std::to_string(latest)));
}

}  // namespace

scheduling::Snapshot SqlStore::load(std::vector<std::string>* damage) {
  scheduling::Snapshot snapshot;
  soci::session& sql = session_->sql;
  try {
    snapshot = live_rows(sql, damage);
    snapshot.last_job = std::max(number_of(sql, kLastJob), number_of(sql, kLastReservedJob));
    snapshot.last_batch = number_of(sql, "select max(id) from batches");
    snapshot.last_machine = number_of(sql, "select max(id) from machines");
    const Micros latest = std::max(snapshot.pool.now, system_clock().utc_us()) + kAhead;
    const Table* at = &tables::kChanges;
    session_->or_set_aside(at, [&] {
      snapshot.last_change = number_of(sql, "select max(number) from changes");
      snapshot.pool.now = std::max(snapshot.pool.now, last_instant(sql, "changes", latest));
    });
    at = &tables::kEvents;
    session_->or_set_aside(at, [&] {
      snapshot.pool.now = std::max(snapshot.pool.now, last_instant(sql, "events", latest));
    });
  } catch (const soci::soci_error& e) {
    throw StoreError("the database could not be read: " + text_of(e));
  }
  return snapshot;
}

}  // namespace sublet::server
