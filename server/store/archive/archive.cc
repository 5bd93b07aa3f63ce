#include "server/store/archive/archive.h"

#include "server/store/archive/connections.h"
#include "server/store/row.h"
#include "server/store/sqlite_process.h"

namespace sublet::server {

Archive::Archive(const std::string& path) {
  set_up_sqlite();
  try {
    connections_ = std::make_unique<Connections>(path, 2);
    reports_ = std::make_unique<Connections>(path, 1);
  } catch (const soci::soci_error& e) {
    throw StoreError("cannot open the database " + path + ": " + e.get_error_message());
  }
}

Archive::~Archive() = default;

void Archive::serve_apart() { connections_->serve_apart(); }

std::optional<BatchRow> Archive::batch(BatchId id) {
  return connections_->with([&](soci::session& sql) -> std::optional<BatchRow> {
    soci::rowset<soci::row> rows = (sql.prepare << "select * from batches where id = " << id);
    for (const auto& r : rows) return batch_from(r);
    return std::nullopt;
  });
}

std::optional<PartRow> Archive::part(BatchId id, uint32_t number) {
  return connections_->with([&](soci::session& sql) -> std::optional<PartRow> {
    PartRow part{id, number, 0, ""};
    long long jobs = 0;
    sql << "select jobs, body from parts where batch = " << id << " and number = " << number,
        soci::into(jobs), soci::into(part.body);
    if (!sql.got_data()) return std::nullopt;
    part.jobs = static_cast<uint64_t>(jobs);
    return part;
  });
}

uint64_t Archive::jobs_of_parts(BatchId id) {
  return connections_->with([&](soci::session& sql) {
    return number_of(sql, "select sum(jobs) from parts where batch = " + std::to_string(id));
  });
}

std::vector<PartRow> Archive::parts(BatchId id) {
  return connections_->with([&](soci::session& sql) {
    std::vector<PartRow> result;
    soci::rowset<soci::row> rows = (sql.prepare << "select number, jobs, body from parts where "
                                                   "batch = "
                                                << id << " order by number");
    for (const auto& r : rows) {
      PartRow part;
      part.batch = id;
      part.number = integer(r, 0);
      part.jobs = integer(r, 1);
      part.body = r.get<std::string>(2);
      result.push_back(std::move(part));
    }
    return result;
  });
}

std::vector<BatchRow> Archive::open_batches_before(Micros touched) {
  return connections_->with([&](soci::session& sql) {
    std::vector<BatchRow> result;
    soci::rowset<soci::row> rows =
        (sql.prepare << "select * from batches where committed = 0 and touched < " << touched);
    for (const auto& r : rows) result.push_back(batch_from(r));
    return result;
  });
}

std::vector<scheduling::ChangeRecord> Archive::changes(uint64_t after, const std::string& user,
                                                       uint32_t limit) {
  return connections_->with([&](soci::session& sql) {
    std::vector<scheduling::ChangeRecord> result;
    soci::rowset<soci::row> rows =
        (sql.prepare << "select * from changes where number > " << after
                     << " and (:user = '' or user_name = :user) order by number limit " << limit,
         soci::use(user, "user"));
    for (const auto& r : rows) {
      scheduling::ChangeRecord c;
      c.number = integer(r, 0);
      c.at = integer(r, 1);
      c.job = integer(r, 2);
      c.batch = integer(r, 3);
      c.user = r.get<std::string>(4);
      c.state = static_cast<scheduling::JobState>(integer(r, 5));
      c.attempt = integer(r, 6);
      c.ended = static_cast<scheduling::EndReason>(integer(r, 7));
      c.count = integer(r, 8);
      result.push_back(c);
    }
    return result;
  });
}

uint64_t Archive::last_change() {
  return connections_->with(
      [&](soci::session& sql) { return number_of(sql, "select max(number) from changes"); });
}

uint64_t Archive::first_change() {
  return connections_->with(
      [&](soci::session& sql) { return number_of(sql, "select min(number) from changes"); });
}

}  // namespace sublet::server
