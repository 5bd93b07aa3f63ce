#include "server/store/archive/archive.h"

#include "server/store/archive/connections.h"
#include "server/store/archive/finished.h"
#include "server/store/rows.h"
#include "server/store/tables.h"

namespace sublet::server {

Archive::Archive(const std::string& path) {
  try {
    connections_ = std::make_unique<Connections>(path, 2);
    finished_ = std::make_unique<FinishedFiles>(path, path.substr(0, path.rfind('/')) + "/history");
  } catch (const soci::soci_error& e) {
    throw StoreError("cannot open the database " + path + ": " + e.get_error_message());
  }
}

Archive::~Archive() = default;

void Archive::serve_apart() { connections_->serve_apart(); }

void Archive::within(std::chrono::microseconds span, const std::function<void()>& f) {
  const sqlite::TimeLimit limit(span);
  f();
}

std::optional<BatchRow> Archive::batch(BatchId id) {
  const std::string where = "where id = " + std::to_string(id);
  auto found =
      connections_->with([&](soci::session& sql) { return row_of(sql, tables::kBatches, where); });
  if (!found)
    finished_->each(kAllJobs, [&](soci::session& sql) {
      if (!found) found = row_of(sql, tables::kBatches, where);
    });
  return found;
}

std::optional<PartRow> Archive::part(BatchId id, uint32_t number) {
  return connections_->with([&](soci::session& sql) {
    return row_of(
        sql, tables::kParts,
        "where batch = " + std::to_string(id) + " and number = " + std::to_string(number));
  });
}

DraftRow Archive::draft(BatchId id) {
  return connections_->with([&](soci::session& sql) {
    const std::string of_batch = "where batch = " + std::to_string(id);
    if (const auto row = row_of(sql, tables::kDrafts, of_batch)) return *row;
    DraftRow draft;
    draft.batch = id;
    draft.parts = number_of(sql, "select count(*) from parts " + of_batch);
    if (draft.parts == 0) return draft;
    draft.jobs = number_of(sql, "select sum(jobs) from parts " + of_batch);
    draft.bytes = number_of(sql, "select sum(length(cast(body as blob))) from parts " + of_batch);
    return draft;
  });
}

std::vector<DraftRow> Archive::entering() {
  return connections_->with([&](soci::session& sql) {
    return rows_of(sql, tables::kDrafts, "where entering = 1 order by batch");
  });
}

std::vector<std::pair<BatchId, scheduling::JobRange>> Archive::gated() {
  return connections_->with([&](soci::session& sql) {
    std::vector<std::pair<BatchId, scheduling::JobRange>> found;
    BatchId batch = 0;
    JobId first = 0, end = 0;
    Rows rows(sql);
    rows.into("j.batch", batch).into("min(r.job)", first).into("max(r.job + r.count)", end);
    rows.select("relations r join jobs j on j.id = r.job where r.gate <> 1 group by j.batch");
    rows.each([&] { found.push_back({batch, {first, end - first}}); });
    return found;
  });
}

std::vector<BatchRow> Archive::open_batches_before(Micros touched) {
  return connections_->with([&](soci::session& sql) {
    return rows_of(sql, tables::kBatches,
                   "where committed = 0 and touched < " + std::to_string(touched));
  });
}

std::vector<scheduling::ChangeRecord> Archive::changes(uint64_t after, const std::string& user,
                                                       uint32_t limit) {
  return connections_->with([&](soci::session& sql) {
    std::vector<scheduling::ChangeRecord> result;
    scheduling::ChangeRecord change;
    Rows rows(sql);
    rows.into(tables::kChanges, change).with("user", user);
    rows.select("changes where number > " + std::to_string(after) +
                " and (:user = '' or user_name = :user) order by number limit " +
                std::to_string(limit));
    rows.each([&] { result.push_back(change); });
    return result;
  });
}

uint64_t Archive::last_change() {
  return connections_->with([&](soci::session& sql) {
    // Changes are forgotten; their count is not.
    const uint64_t last = number_of(sql,
                                    "select max(n) from (select max(number) as n from changes "
                                    "union all select next_change - 1 as n from pool) as both");
    return std::max<uint64_t>(last, 1);
  });
}

uint64_t Archive::first_change() {
  return connections_->with([&](soci::session& sql) {
    // In one query: between two, the first of all may be committed, and seem to have been
    // forgotten.
    const uint64_t first = number_of(sql,
                                     "select coalesce((select min(number) from changes), "
                                     "(select next_change from pool))");
    return std::max<uint64_t>(first, 2);
  });
}

}  // namespace sublet::server
