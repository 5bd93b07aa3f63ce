// The database's tables. One statement each; all are `if not exists`. The
// version is kept in table pool, which comes first: a database of another version
// is refused before anything is done to it.
#ifndef SUBLET_SERVER_SCHEMA_H_
#define SUBLET_SERVER_SCHEMA_H_

namespace sublet::server {

// Versions before 5 were never released.
inline constexpr int kSchemaVersion = 5;

// `without rowid`: a row lies in the tree of its key, which is searched once and
// not twice. Not for rows that may be large and are many.

inline constexpr const char* kSchema[] = {
    "create table if not exists pool (id integer primary key, version integer not null, next_job "
    "bigint not null, next_batch bigint not null, next_machine bigint not null, next_change bigint "
    "not null, last_tick bigint not null, now bigint not null)",
    "create table if not exists users (name text primary key, shares real not null, usage real not "
    "null, charges real not null)",
    "create table if not exists machines (id bigint primary key, name text not null, os text not "
    "null, architecture text not null, cores integer not null, slots integer not null, memory "
    "bigint not null, disk bigint not null, state integer not null, state_since bigint not null) "
    "without rowid",
    "create table if not exists credentials (machine bigint primary key, secret text not null, uid "
    "bigint not null) without rowid",
    "create table if not exists batches (id bigint primary key, uid bigint not null, user_name "
    "text not null, name text not null, submit_host text not null, committed integer not null, "
    "touched bigint not null, first_job bigint not null, jobs bigint not null, stop_done bigint "
    "not null, stop_failed bigint not null, stop_output text not null) without rowid",
    "create table if not exists stops (batch bigint primary key, stop_done bigint not null, "
    "stop_failed bigint not null, stop_output text not null, done bigint not null, failed bigint "
    "not null, stopped_by bigint not null) without rowid",
    "create table if not exists parts (batch bigint not null, number bigint not null, jobs bigint "
    "not null, body text not null, primary key (batch, number))",
    "create table if not exists specs (first_job bigint primary key, jobs bigint not null, name "
    "text not null, body text not null)",
    "create table if not exists jobs (id bigint primary key, batch bigint not null, idx bigint not "
    "null, user_name text not null, submit_host text not null, state integer not null, attempts "
    "integer not null, os text not null, architecture text not null, cores integer not null, "
    "memory bigint not null, disk bigint not null, priority integer not null, retries_left integer "
    "not null, evictions integer not null, share_priority real not null, share_priority_at bigint "
    "not null, generation bigint not null, checkpoint_bytes bigint not null, submitted bigint not "
    "null, changed bigint not null, cpu_kept bigint not null, cpu_lost bigint not null, reason "
    "text not null, refusals integer not null, not_before bigint not null, count bigint not null, "
    "share_priority_step real not null, platforms text not null) without rowid",
    // `attempts` too, so that what waits for its first one need not be looked up.
    "create index if not exists jobs_live on jobs (id, attempts) where state < 5",
    "create index if not exists jobs_batch on jobs (batch, state)",
    "create table if not exists attempts (job bigint not null, attempt integer not null, machine "
    "bigint not null, state integer not null, ended integer not null, reason text not null, "
    "decided bigint not null, started bigint not null, finished bigint not null, "
    "resumed_generation bigint not null, generation bigint not null, cpu bigint not null, cpu_lost "
    "bigint not null, leaving_since bigint not null, ready bigint not null, primary key (job, "
    "attempt)) without rowid",
    "create index if not exists attempts_live on attempts (job) where state < 5",
    "create table if not exists ends (job bigint not null, attempt integer not null, exit_status "
    "integer not null, signal integer not null, memory_peak bigint not null, checkpoint_bytes "
    "bigint not null, resumed_ppm integer not null, progress_ppm integer not null, quiesce_us "
    "bigint not null, stdout_cut integer not null, stderr_cut integer not null, primary key (job, "
    "attempt)) without rowid",
    "create table if not exists uses (job bigint not null, attempt integer not null, user_name "
    "text not null, machine bigint not null, batch bigint not null, ended integer not null, "
    "finished bigint not null, wall bigint not null, used bigint not null, kept bigint not null, "
    "lost bigint not null, charged bigint not null, started bigint not null, waited bigint not "
    "null, primary key (job, attempt)) without rowid",
    "create index if not exists uses_finished on uses (finished)",
    // CPU time that the server itself has spent, by the minute.
    "create table if not exists spent (at bigint primary key, cpu bigint not null) without rowid",
    "create table if not exists changes (number bigint primary key, at bigint not null, job bigint "
    "not null, batch bigint not null, user_name text not null, state integer not null, attempt "
    "integer not null, ended integer not null, count bigint not null) without rowid",
    "create table if not exists files (id bigint primary key, kind integer not null, batch bigint "
    "not null, job bigint not null, attempt integer not null, generation bigint not null, name "
    "text not null, size bigint not null, digest text not null, in_row integer not null, body text "
    "not null, counts integer not null, user_name text not null default '', content bigint not "
    "null default 0)",
    // What lies in the spool folder, under its id; rows of table files refer to it.
    "create table if not exists contents (id bigint primary key, digest text not null, size bigint "
    "not null, identity text not null, damaged integer not null) without rowid",
    "create index if not exists contents_digest on contents (digest)",
    // Bytes of each user's files; kind 1: checkpoints, 0: all others.
    "create table if not exists spool_use (user_name text not null, kind integer not null, bytes "
    "bigint not null, primary key (user_name, kind)) without rowid",
    "create table if not exists outputs_removed (job bigint primary key, at bigint not null) "
    "without rowid",
    "create index if not exists files_job on files (job, kind) where job > 0",
    "create index if not exists files_content on files (content) where content > 0",
    "create index if not exists files_batch on files (batch) where batch > 0",
    "create table if not exists members (number bigint primary key, role integer not null, name "
    "text not null, serial text not null, previous_serial text not null, certificate text not "
    "null, expires bigint not null, joined bigint not null, invited_by text not null, revoked "
    "bigint not null) without rowid",
    "create table if not exists invitations (id text primary key, secret text not null, role "
    "integer not null, name text not null, invited_by text not null, expires bigint not null, "
    "used_by text not null, revoked bigint not null) without rowid",
    "create table if not exists requests (id text primary key, digest text not null, answer text "
    "not null, at bigint not null) without rowid",
    "create index if not exists requests_at on requests (at)",
    "create table if not exists events (number integer primary key, at bigint not null, kind "
    "integer not null, body text not null)",
};

// What the brain is made from. Through the indexes of what is live: everything that
// has ever ended lies in the same tables. A final job is of use to its live attempt;
// of a job that waits, the newest attempt.
inline constexpr const char* kLiveJobs[] = {
    "select * from jobs indexed by jobs_live where state < 5",
    "select * from jobs where state >= 5 and id in (select job from attempts indexed by "
    "attempts_live where state < 5)",
};
inline constexpr const char* kLiveAttempts =
    "select a.* from jobs j indexed by jobs_live cross join attempts a on a.job = j.id and "
    "a.attempt = j.attempts where j.state < 5 and j.attempts > 0 and a.state >= 5 union all select "
    "* from attempts indexed by attempts_live where state < 5 order by 1, 2";

// The highest id: what records stand for does not overlap.
inline constexpr const char* kLastJob = "select id + count - 1 from jobs order by id desc limit 1";
inline constexpr const char* kLiveStops =
    "select * from stops where batch in (select batch from jobs indexed by jobs_live where state < "
    "5)";

// `content > 0` lets it use the index files_content.
inline constexpr const char* kDropContent =
    "delete from contents where id = :id and not exists (select 1 from files where files.content > "
    "0 and files.content = contents.id)";

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SCHEMA_H_
