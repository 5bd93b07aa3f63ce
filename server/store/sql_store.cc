#include "server/store/sql_store.h"

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <algorithm>
#include <functional>
#include <set>

#include "protocol/codec.h"
#include "server/store/row.h"
#include "server/store/schema.h"
#include "server/store/sqlite_process.h"
#include "server/store/table.h"

namespace sublet::server {
namespace {

using scheduling::UserRecord;

// "insert into T (a, b) values (:a, :b) on conflict (a) do update set b = excluded.b"
std::string upsert(const std::string& table, const std::vector<std::string>& columns,
                   const std::string& key) {
  std::string names, values, updates;
  for (const auto& c : columns) {
    names += (names.empty() ? "" : ", ") + c;
    values += (values.empty() ? ":" : ", :") + c;
    if ((", " + key + ",").find(", " + c + ",") == std::string::npos)
      updates += (updates.empty() ? "" : ", ") + c + " = excluded." + c;
  }
  return "insert into " + table + " (" + names + ") values (" + values + ") on conflict (" + key +
         ") do update set " + updates;
}

// At a time: no transaction takes long.
constexpr int kForgotten = 20'000;

void forget_requests(soci::session& sql, Micros before) {
  if (before == 0) return;
  sql << "delete from requests where id in (select id from requests where at < " << before
      << " limit " << kForgotten << ")";
}

// Of a table whose rows are in order of number in order of time too: only the
// oldest are looked at, so no index by time has to be kept.
void forget_oldest(soci::session& sql, const char* table, Micros before) {
  if (before == 0) return;
  long long oldest = before;
  sql << "select at from " << table << " order by number limit 1", soci::into(oldest);
  if (oldest >= before) return;
  sql << "delete from " << table << " where number in (select number from (select number, at from "
      << table << " order by number limit " << kForgotten << ") where at < " << before << ")";
}

void forget_history(soci::session& sql, const Changes::ForgottenHistory& h) {
  if (h.uses_until > 0)
    sql << "delete from uses where (finished, job, attempt) <= (" << h.uses_until << ", "
        << h.last.job << ", " << h.last.attempt << ")";
  if (h.spent_before > 0) sql << "delete from spent where at < " << h.spent_before;
}

}  // namespace

struct SqlStore::Session {
  soci::session sql;
  SqlTable pool{upsert("pool",
                       {"id", "version", "next_job", "next_batch", "next_machine", "next_change",
                        "last_tick", "now"},
                       "id"),
                "iiiiiiii"};
  SqlTable users{upsert("users", {"name", "shares", "usage", "charges"}, "name"), "trrr"};
  SqlTable machines{upsert("machines",
                           {"id", "name", "os", "architecture", "cores", "slots", "memory", "disk",
                            "state", "state_since"},
                           "id"),
                    "itttiiiiii"};
  SqlTable credentials{upsert("credentials", {"machine", "secret", "uid"}, "machine"), "iti"};
  SqlTable members{upsert("members",
                          {"number", "role", "name", "serial", "previous_serial", "certificate",
                           "expires", "joined", "invited_by", "revoked"},
                          "number"),
                   "iittttiiti"};
  SqlTable invitations{
      upsert("invitations",
             {"id", "secret", "role", "name", "invited_by", "expires", "used_by", "revoked"}, "id"),
      "ttittiti"};
  SqlTable drop_invitation{"delete from invitations where id = :id", "t"};
  SqlTable batches{upsert("batches",
                          {"id", "uid", "user_name", "name", "submit_host", "committed", "touched",
                           "first_job", "jobs", "stop_done", "stop_failed", "stop_output"},
                          "id"),
                   "iitttiiiiiit"};
  SqlTable stops{
      upsert("stops",
             {"batch", "stop_done", "stop_failed", "stop_output", "done", "failed", "stopped_by"},
             "batch"),
      "iiitiii"};
  SqlTable parts{upsert("parts", {"batch", "number", "jobs", "body"}, "batch, number"), "iiit"};
  SqlTable specs{upsert("specs", {"first_job", "jobs", "name", "body"}, "first_job"), "iitt"};
  SqlTable jobs{upsert("jobs",
                       {"id",
                        "batch",
                        "idx",
                        "user_name",
                        "submit_host",
                        "state",
                        "attempts",
                        "os",
                        "architecture",
                        "cores",
                        "memory",
                        "disk",
                        "priority",
                        "retries_left",
                        "evictions",
                        "share_priority",
                        "share_priority_at",
                        "generation",
                        "checkpoint_bytes",
                        "submitted",
                        "changed",
                        "cpu_kept",
                        "cpu_lost",
                        "reason",
                        "refusals",
                        "not_before",
                        "count",
                        "share_priority_step",
                        "platforms"},
                       "id"),
                std::string(kJobColumns)};
  SqlTable attempts{upsert("attempts",
                           {"job", "attempt", "machine", "state", "ended", "reason", "decided",
                            "started", "finished", "resumed_generation", "generation", "cpu",
                            "cpu_lost", "leaving_since", "ready"},
                           "job, attempt"),
                    "iiiiitiiiiiiiii"};
  SqlTable ends{
      upsert("ends",
             {"job", "attempt", "exit_status", "signal", "memory_peak", "checkpoint_bytes",
              "resumed_ppm", "progress_ppm", "quiesce_us", "stdout_cut", "stderr_cut"},
             "job, attempt"),
      "iiiiiiiiiii"};
  SqlTable uses{upsert("uses",
                       {"job", "attempt", "user_name", "machine", "batch", "ended", "finished",
                        "wall", "used", "kept", "lost", "charged", "started", "waited"},
                       "job, attempt"),
                "iitiiiiiiiiiii"};
  SqlTable spent{
      "insert into spent (at, cpu) values (:at, :cpu) on conflict (at) do update set cpu = cpu + "
      "excluded.cpu",
      "ii"};
  SqlTable changes{
      upsert("changes",
             {"number", "at", "job", "batch", "user_name", "state", "attempt", "ended", "count"},
             "number"),
      "iiiitiiii"};
  SqlTable files{upsert("files",
                        {"id", "kind", "batch", "job", "attempt", "generation", "name", "size",
                         "digest", "in_row", "body", "counts", "user_name", "content"},
                        "id"),
                 "iiiiiititititi"};
  SqlTable contents{upsert("contents", {"id", "digest", "size", "identity", "damaged"}, "id"),
                    "ititi"};
  // A file that is written again counts once.
  SqlTable count_in{
      "insert into spool_use (user_name, kind, bytes) select :user, :kind, :bytes where not exists "
      "(select 1 from files where id = :id) on conflict (user_name, kind) do update set bytes = "
      "spool_use.bytes + excluded.bytes",
      "tiii"};
  SqlTable count_out{
      "update spool_use set bytes = spool_use.bytes - f.size from files f where f.id = :id and "
      "f.user_name = spool_use.user_name and (f.kind = 2) = (spool_use.kind = 1)",
      "i"};
  SqlTable removed_outputs{upsert("outputs_removed", {"job", "at"}, "job"), "ii"};
  SqlTable requests{upsert("requests", {"id", "digest", "answer", "at"}, "id"), "ttti"};
  SqlTable events{"insert into events (at, kind, body) values (:at, :kind, :body)", "iit"};
  SqlTable drop_batch{"delete from batches where id = :id", "i"};
  SqlTable drop_parts{"delete from parts where batch = :id", "i"};
  SqlTable drop_file{"delete from files where id = :id", "i"};
  SqlTable drop_content{kDropContent, "i"};
  SqlTable count_file{
      "update files set counts = 1 where id = :id and job = :job and attempt = :attempt and kind "
      ">= 3",
      "iii"};

  std::vector<SqlTable*> in_order() {
    return {
        &pool,      &users,  &machines,   &credentials, &members,   &invitations, &drop_invitation,
        &batches,   &stops,  &parts,      &specs,       &jobs,      &attempts,    &ends,
        &uses,      &spent,  &changes,    &count_in,    &files,     &contents,    &removed_outputs,
        &requests,  &events, &drop_batch, &drop_parts,  &count_out, &drop_file,   &drop_content,
        &count_file};
  }
  void add(const Changes& changes);
  void add_books(const Changes& changes);
};

void SqlStore::Session::add(const Changes& c) {
  for (const auto& [id, j] : c.jobs)
    jobs.add(j.id, j.batch, j.index, j.user, j.submit_host, j.state, j.attempts, j.needs.os,
             j.needs.architecture, j.needs.cores, j.needs.memory, j.needs.disk, j.priority,
             j.retries_left, j.evictions, j.share_priority, j.share_priority_at, j.generation,
             j.checkpoint_bytes, j.submitted, j.changed, j.cpu_kept, j.cpu_lost, j.reason,
             j.refusals, j.not_before, j.count, j.share_priority_step, j.needs.platforms);
  for (const auto& [key, a] : c.attempts)
    attempts.add(a.key.job, a.key.attempt, a.machine, a.state, a.ended, a.reason, a.decided,
                 a.started, a.finished, a.resumed_generation, a.generation, a.cpu, a.cpu_lost,
                 a.leaving_since, a.ready);
  for (const auto& [id, m] : c.machines)
    machines.add(m.id, m.name, m.os, m.architecture, m.cores, m.slots, m.memory, m.disk, m.state,
                 m.state_since);
  for (const auto& [name, u] : c.users) users.add(u.name, u.shares, u.usage, u.charges);
  for (const auto& u : c.uses)
    uses.add(u.key.job, u.key.attempt, u.user, u.machine, u.batch, u.ended, u.finished, u.wall,
             u.used, u.kept, u.lost, u.charged, u.started, u.waited);
  for (const auto& r : c.changes)
    changes.add(r.number, r.at, r.job, r.batch, r.user, r.state, r.attempt, r.ended, r.count);
  for (const auto& [id, b] : c.stops)
    stops.add(b.id, b.stop_when.done, b.stop_when.failed, b.stop_when.output, b.done, b.failed,
              b.stopped_by);
  if (c.has_pool)
    pool.add(1, kSchemaVersion, c.pool.next_job, c.pool.next_batch, c.pool.next_machine,
             c.pool.next_change, c.pool.last_tick, c.pool.now);
}

void SqlStore::Session::add_books(const Changes& c) {
  for (const auto& [id, b] : c.batches)
    batches.add(b.id, b.uid, b.user, b.name, b.submit_host, b.committed, b.touched, b.first_job,
                b.count, b.stop_when.done, b.stop_when.failed, b.stop_when.output);
  for (const auto& p : c.parts) parts.add(p.batch, p.number, p.jobs, p.body);
  for (const auto& s : c.specs) specs.add(s.first_job, s.count, s.name, s.body);
  for (const auto& [id, f] : c.files) {
    count_in.add(f.user, f.kind == FileKind::kCheckpoint, f.size, f.id);
    files.add(f.id, f.kind, f.batch, f.job, f.attempt, f.generation, f.name, f.size, f.digest,
              f.in_row, f.body, f.counts, f.user, f.content);
  }
  for (const auto& [id, k] : c.contents)
    contents.add(k.id, k.digest, k.size, k.identity, k.damaged);
  for (const auto& [job, at] : c.removed_outputs) removed_outputs.add(job, at);
  for (const auto& [id, m] : c.credentials) credentials.add(m.machine, m.secret_digest, m.uid);
  for (const auto& [number, m] : c.members)
    members.add(m.number, m.role, m.name, m.serial, m.previous_serials, m.certificate, m.expires,
                m.joined, m.invited_by, m.revoked);
  for (const auto& [id, i] : c.invitations)
    invitations.add(i.id, i.secret_digest, i.role, i.name, i.invited_by, i.expires, i.used_by,
                    i.revoked);
  for (const auto& id : c.dropped_invitations) drop_invitation.add(id);
  for (const auto& e : c.ends)
    ends.add(e.key.job, e.key.attempt, e.exit_status, e.signal, e.memory_peak, e.checkpoint_bytes,
             e.resumed_ppm, e.progress_ppm, e.quiesce_us, e.stdout_cut, e.stderr_cut);
  for (const auto& s : c.spent) spent.add(s.at, s.cpu);
  for (const auto& [key, r] : c.requests) requests.add(r.key, r.digest, r.answer, r.at);
  for (const auto& e : c.events) events.add(e.at, e.kind, e.body);
  for (BatchId id : c.dropped_batches) drop_batch.add(id);
  for (BatchId id : c.dropped_parts) drop_parts.add(id);
  for (uint64_t id : std::set(c.dropped_files.begin(), c.dropped_files.end())) {
    count_out.add(id);
    drop_file.add(id);
  }
  for (uint64_t id : std::set(c.loosened_contents.begin(), c.loosened_contents.end()))
    drop_content.add(id);
  for (const auto& f : c.counted_files) count_file.add(f.file, f.key.job, f.key.attempt);
}

SqlStore::SqlStore(const std::string& path) : session_(std::make_unique<Session>()) {
  set_up_sqlite();
  try {
    soci::session& sql = session_->sql;
    sql.open(soci::sqlite3, "db=" + path + " timeout=10");
    sql << "PRAGMA journal_mode=WAL";
    sql << "PRAGMA synchronous=FULL";
    sql << kSchema[0];
    int version = kSchemaVersion;
    sql << "select version from pool where id = 1", soci::into(version);
    if (version != kSchemaVersion)
      throw StoreError("the database " + path + " is of version " + std::to_string(version) +
                       ", this server is for version " + std::to_string(kSchemaVersion) +
                       ": install the server that made it, or move it away");
    for (const char* statement : kSchema) sql << statement;
  } catch (const soci::soci_error& e) {
    throw StoreError("cannot open the database " + path + ": " + e.get_error_message());
  }
}

SqlStore::~SqlStore() = default;

void SqlStore::commit(const Changes& changes) {
  Session& s = *session_;
  try {
    s.add(changes);
    s.add_books(changes);
    soci::transaction transaction(s.sql);
    for (SqlTable* table : s.in_order()) table->flush(s.sql);
    forget_requests(s.sql, changes.forget_requests);
    forget_oldest(s.sql, "events", changes.forget_events);
    forget_oldest(s.sql, "changes", changes.forget_changes);
    forget_history(s.sql, changes.forget_history);
    transaction.commit();
  } catch (const std::exception& e) {
    for (SqlTable* table : s.in_order()) table->clear();
    throw StoreError(std::string("the database could not be written: ") + e.what());
  }
}

std::optional<RequestRow> SqlStore::find_request(const std::string& key) {
  try {
    RequestRow row;
    row.key = key;
    long long at = 0;
    session_->sql << "select digest, answer, at from requests where id = :id",
        soci::into(row.digest), soci::into(row.answer), soci::into(at), soci::use(key);
    if (!session_->sql.got_data()) return std::nullopt;
    row.at = at;
    return row;
  } catch (const soci::soci_error& e) {
    throw StoreError(std::string("the database could not be read: ") + e.get_error_message());
  }
}

namespace {

std::string left_out(const std::string& what, const std::exception& e) {
  return "a row of " + what + " was left out: " + e.what();
}

// Reads rows one at a time, so that a damaged one costs itself only.
template <typename Read>
void each_row(soci::session& sql, const std::string& query, const std::string& what,
              std::vector<std::string>* damage, Read read) {
  soci::rowset<soci::row> rows = (sql.prepare << query);
  for (auto it = rows.begin(); it != rows.end(); ++it) {
    try {
      read(*it);
    } catch (const std::exception& e) {
      damage->push_back(left_out(what, e));
    }
  }
}

void read_jobs(soci::session& sql, const std::string& query, std::vector<std::string>* damage,
               std::vector<scheduling::JobRecord>* jobs) {
  JobRows rows(sql, query);
  for (bool more = true; more;) {
    try {
      scheduling::JobRecord job;
      more = rows.next(&job);
      if (more) jobs->push_back(std::move(job));
    } catch (const protocol::Damaged& e) {
      damage->push_back(left_out("table jobs", e));
    }
  }
}

}  // namespace

scheduling::Snapshot SqlStore::load(std::vector<std::string>* damage) {
  scheduling::Snapshot snapshot;
  soci::session& sql = session_->sql;
  try {
    each_row(sql,
             "select next_job, next_batch, next_machine, next_change, last_tick, now from pool",
             "table pool", damage, [&](const soci::row& r) {
               snapshot.pool = {static_cast<JobId>(integer(r, 0)),
                                static_cast<BatchId>(integer(r, 1)),
                                static_cast<MachineId>(integer(r, 2)),
                                static_cast<uint64_t>(integer(r, 3)),
                                integer(r, 4),
                                integer(r, 5)};
             });
    auto newest = [&sql](const char* query) -> uint64_t {
      long long value = 0;
      soci::indicator some = soci::i_null;
      sql << query, soci::into(value, some);
      return some == soci::i_ok ? static_cast<uint64_t>(value) : 0;
    };
    snapshot.last_job = newest(kLastJob);
    snapshot.last_batch = newest("select max(id) from batches");
    snapshot.last_machine = newest("select max(id) from machines");
    snapshot.last_change = newest("select max(number) from changes");
    snapshot.pool.now = std::max<scheduling::Micros>(
        snapshot.pool.now, newest("select at from events order by number desc limit 1"));
    each_row(sql, "select name, shares, usage, charges from users", "table users", damage,
             [&](const soci::row& r) {
               snapshot.users.push_back(
                   UserRecord{r.get<std::string>(0), real(r, 1), real(r, 2), real(r, 3)});
             });
    each_row(sql, "select * from machines order by id", "table machines", damage,
             [&](const soci::row& r) { snapshot.machines.push_back(machine_from(r)); });
    for (const char* query : kLiveJobs) read_jobs(sql, query, damage, &snapshot.jobs);
    each_row(sql, kLiveAttempts, "table attempts", damage,
             [&](const soci::row& r) { snapshot.attempts.push_back(attempt_from(r)); });
    each_row(sql, kLiveStops, "table stops", damage,
             [&](const soci::row& r) { snapshot.batches.push_back(stop_from(r)); });
  } catch (const soci::soci_error& e) {
    throw StoreError(std::string("the database could not be read: ") + e.get_error_message());
  }
  return snapshot;
}

}  // namespace sublet::server
