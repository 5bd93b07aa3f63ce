#include "server/store/live.h"

#include <soci/soci.h>

#include <algorithm>

#include "server/store/relation_row.h"
#include "server/store/rows.h"
#include "server/store/sqlite.h"
#include "server/store/tables.h"

// A job is final in states 5, 6 and 7, an attempt in state 5. Conditions on `state` must be
// those of the indexes (tables.cc).
namespace sublet::server {

using sqlite::through;

// The planner uses no index for `+state`.
std::vector<std::string> live_jobs(bool mostly_live) {
  return {mostly_live ? "jobs where +state not in (5, 6, 7)"
                      : "jobs" + through("jobs_live") + " where state not in (5, 6, 7)",
          "jobs where state in (5, 6, 7) and id in (select job from attempts" +
              through("attempts_live") + " where state <> 5)"};
}

std::vector<std::string> live_attempts() {
  return {"attempts" + through("attempts_live") + " where state <> 5",
          "jobs j" + through("jobs_live") +
              " cross join attempts where attempts.job = j.id and attempts.attempt = j.attempts "
              "and j.state not in (5, 6, 7) and j.attempts > 0 and attempts.state = 5"};
}

// The states are those of live jobs, so that index jobs_batch serves.
std::vector<std::string> live_stops(bool few) {
  if (few)
    return {
        "stops where exists (select 1 from jobs where jobs.batch = stops.batch and jobs.state "
        "in (1, 2, 3, 4, 8, 9)) or exists (select 1 from drafts where drafts.batch = "
        "stops.batch and entering = 1)"};
  return {"stops where batch in (select batch from jobs" + through("jobs_live") +
          " where state not in (5, 6, 7) union select batch from drafts" + through("drafts_live") +
          " where entering = 1)"};
}

std::vector<std::string> live_relations() { return {"relations order by job"}; }

namespace {

// Adds the rows that each query finds; damaged ones are skipped and reported in `damage`.
template <typename Row>
void load_rows(soci::session& sql, const TableOf<Row>& table,
               const std::vector<std::string>& questions, std::vector<std::string>* damage,
               std::vector<Row>* result) {
  for (const std::string& question : questions) {
    Row row;
    Rows rows(sql);
    rows.into(table, row, table.name).select(question);
    rows.each([&] { result->push_back(std::move(row)); },
              [&](const std::string& what) { damage->push_back(what); });
  }
}

}  // namespace

namespace {

void load_relations(soci::session& sql, std::vector<std::string>* damage,
                    std::vector<scheduling::RelationRecord>* result) {
  std::vector<RelationRow> rows;
  load_rows(sql, tables::kRelations, live_relations(), damage, &rows);
  for (const RelationRow& row : rows) {
    try {
      result->push_back(record_of(row));
    } catch (const protocol::Damaged& e) {
      damage->push_back("what job " + std::to_string(row.job) + " waits for: " + e.what());
    }
  }
}

}  // namespace

uint64_t count_live_jobs(soci::session& sql) {
  return number_of(
      sql, "select count(*) from jobs" + through("jobs_live") + " where state not in (5, 6, 7)");
}

// There are no more jobs than ids.
bool are_most(soci::session& sql, uint64_t live) {
  const uint64_t ids = number_of(
      sql, "select coalesce((select max(id) from jobs) - (select min(id) from jobs) + 1, 0)");
  return 2 * live > ids;
}

scheduling::Snapshot live_rows(soci::session& sql, std::vector<std::string>* damage) {
  scheduling::Snapshot snapshot;
  std::vector<PoolRow> pool;
  load_rows(sql, tables::kPool, {"pool"}, damage, &pool);
  if (!pool.empty()) snapshot.pool = pool.front().pool;
  std::vector<PolicyRow> policy;
  load_rows(sql, tables::kPolicy, {"policy"}, damage, &policy);
  if (!policy.empty()) {
    PolicyRow& row = policy.front();
    snapshot.policy = scheduling::PolicyRecord{row.choice, row.since, row.by};
  }
  load_rows(sql, tables::kUsers, {"users"}, damage, &snapshot.users);
  load_rows(sql, tables::kMachines, {"machines order by id"}, damage, &snapshot.machines);
  load_rows(sql, tables::kAbsences, {"absences order by machine"}, damage, &snapshot.absences);
  const uint64_t live = count_live_jobs(sql);
  snapshot.jobs.reserve(live);
  load_rows(sql, tables::kJobs, live_jobs(are_most(sql, live)), damage, &snapshot.jobs);
  load_rows(sql, tables::kAttempts, live_attempts(), damage, &snapshot.attempts);
  std::sort(snapshot.attempts.begin(), snapshot.attempts.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  const bool few_stops = number_of(sql, "select count(*) from stops") < live;
  load_rows(sql, tables::kStops, live_stops(few_stops), damage, &snapshot.batches);
  load_rows(sql, tables::kPrograms, {"programs"}, damage, &snapshot.programs);
  load_relations(sql, damage, &snapshot.relations);
  return snapshot;
}

}  // namespace sublet::server
