#include "server/store/migration.h"

#include <soci/soci.h>

#include <vector>

#include "server/commit/store.h"
#include "server/store/replacement.h"
#include "server/store/sqlite.h"
#include "server/store/tables.h"
#include "server/store/unpacked_jobs.h"

namespace sublet::server {
namespace {

// The statements of each step; the first leads from kEarliestLayout to the next layout. Tables
// and indexes that are missing afterwards are created as tables.cc describes them, so that a
// step only drops an index that has changed, and makes a table only to change it.
const std::vector<std::vector<std::string>>& steps() {
  static const std::vector<std::vector<std::string>> kSteps = {
      // 6: jobs and attempts that deliver, jobs whose attempts were in vain. Events are stored
      // in another form; they are history, from which only the time is restored.
      {
          "alter table jobs add column vain bigint not null default 0",
          "drop index jobs_live",
          "drop index attempts_live",
          "update pool set now = max(now, coalesce((select max(at) from events), 0))",
          "delete from events",
      },
      // 7: machines that are drained, shares and quotas set by administrators.
      {
          "alter table users add column by_administrator integer not null default 0",
          "alter table machines add column draining integer not null default 0",
      },
      // 8: the steps of evictions.
      {
          "alter table ends add column told_us bigint not null default -1",
          "alter table ends add column demoted_us bigint not null default -1",
          "alter table ends add column save_asked_us bigint not null default -1",
          "alter table ends add column saved_us bigint not null default -1",
      },
      // 9: the peaks of attempts.
      {
          "alter table ends add column processes_peak bigint not null default 0",
          "alter table ends add column disk_peak bigint not null default 0",
      },
      // 10: the traffic of attempts.
      {
          "alter table ends add column network_bytes bigint not null default -1",
      },
      // 11: what the policies for the next job know of users and attempts.
      {
          "alter table users add column number bigint not null default 0",
          "alter table users add column last_grant bigint not null default 0",
          "alter table users add column owed double precision not null default 0",
          "alter table users add column up_down_index bigint not null default 0",
          "alter table attempts add column charged bigint not null default 0",
          "alter table attempts add column charged_left double precision not null default 0",
          "update users set number = (select count(*) from users u where u.name <= users.name)",
      },
      // 12: the policies in force, and what they know of users; what jobs require and prefer of
      // machines, what these offer besides, and that jobs wait for others; machines that fail.
      {
          "alter table users add column guaranteed bigint not null default 0",
          "alter table users add column drawn double precision not null default 0",
          "alter table jobs add column require text not null default ''",
          "alter table jobs add column prefer text not null default ''",
          "alter table jobs add column has_started integer not null default 0",
          "update jobs set has_started = 1 where exists (select 1 from attempts where "
          "attempts.job = jobs.id and attempts.started > 0)",
          "alter table batches add column on_never integer not null default 1",
          "alter table batches add column at_most bigint not null default 0",
          "alter table stops add column at_most bigint not null default 0",
          "alter table users add column placed bigint not null default 0",
          "alter table users add column placed_since bigint not null default 0",
          "alter table attempts add column preempted_for bigint not null default 0",
          "alter table jobs add column resources text not null default ''",
          "alter table machines add column resources text not null default ''",
          "alter table machines add column failures bigint not null default 0",
          "alter table machines add column failed_at bigint not null default 0",
          "alter table machines add column failure text not null default ''",
          "alter table machines add column rests_until bigint not null default 0",
      },
      // 13: local time, when jobs may be started, what was charged at renewals, how fast machines
      // are, which program a job runs, and when the indices of up-down are updated.
      {
          "alter table pool add column utc_offset integer not null default 0",
          "alter table jobs add column hours text not null default ''",
          "alter table jobs add column earliest bigint not null default 0",
          "alter table attempts add column charged_new bigint not null default 0",
          "alter table attempts add column charged_until bigint not null default 0",
          "update attempts set charged_until = max(started, (select last_tick from pool)) where "
          "state <> 5",
          "alter table users add column has_forgone integer not null default 0",
          "alter table machines add column unstarted integer not null default 0",
          "alter table machines add column unstarted_first text not null default ''",
          "alter table machines add column unstarted_second text not null default ''",
          "alter table machines add column speed double precision not null default 0",
          "alter table jobs add column program bigint not null default 0",
          "alter table pool add column indices_due bigint not null default 0",
      },
      // 14: the numbers of jobs, which the store counts when it opens the database; and how many
      // jobs of a batch are to come.
      {
          "alter table stops add column to_come bigint not null default 0",
      },
      // 15: what no query names of a job is in one column (pack_jobs).
      {
          "drop index if exists jobs_live",
          "drop index if exists jobs_batch",
          std::string("alter table jobs rename to ") + kUnpackedJobs,
      },
      // 16: batches whose jobs wait for others of the batch are entered in slices.
      {
          "create table if not exists relations (job bigint not null, count bigint not null, "
          "on_never integer not null, waits_for text not null, lost_by bigint not null, lost_as "
          "integer not null, primary key (job)) without rowid",
          "alter table relations add column gate integer not null default 1",
          "create table if not exists drafts (batch bigint not null, user_name text not null, "
          "parts bigint not null, jobs bigint not null, bytes bigint not null, entering integer "
          "not null, next_part bigint not null, next_range bigint not null, entered bigint not "
          "null, primary key (batch)) without rowid",
          "alter table drafts add column gated integer not null default 0",
      },
  };
  return kSteps;
}

void copy_database(const std::string& path, const std::string& copy) {
  soci::session old;
  sqlite::open_to_change(old, path);
  sqlite::copy_to(old, copy);
}

void change_layout(const std::string& path, int from) {
  soci::session sql;
  sqlite::open_to_change(sql, path);
  soci::transaction transaction(sql);
  for (int layout = from; layout < kSchemaVersion; ++layout)
    for (const std::string& statement : steps().at(static_cast<size_t>(layout - kEarliestLayout)))
      sql << statement;
  for (const Table* table : tables::all())
    for (const std::string& statement : creation(*table)) sql << statement;
  if (from < kJobsPacked) pack_jobs(sql);
  sql << "update pool set version = " << kSchemaVersion;
  transaction.commit();
}

}  // namespace

std::string migrate(Files& files, const std::string& path, int from) {
  const std::string kept = path + ".layout-" + std::to_string(from);
  try {
    replace_database(files, path, kept, [&](const std::string& copy) {
      copy_database(path, copy);
      change_layout(copy, from);
    });
  } catch (const std::exception& e) {
    throw StoreError("cannot bring the database " + path + " from layout " + std::to_string(from) +
                     " to " + std::to_string(kSchemaVersion) + ": " + e.what());
  }
  return kept;
}

}  // namespace sublet::server
