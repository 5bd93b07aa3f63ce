// The spool's files and contents.
#include "server/store/archive/archive.h"
#include "server/store/archive/connections.h"
#include "server/store/row.h"

namespace sublet::server {
namespace {

// With `body` (a column or a text), the columns that file_from() reads.
std::string select_files(const char* body) {
  return std::string(
             "select f.id, f.kind, f.batch, f.job, f.attempt, f.generation, f.name, f.size, "
             "f.digest, f.in_row, ") +
         body +
         ", f.counts, f.user_name, f.content, coalesce(c.identity, ''), coalesce(c.damaged, 0) "
         "from files f left join contents c on c.id = f.content ";
}
const std::string kFile = select_files("f.body");
const std::string kFileWithoutBody = select_files("''");

std::vector<FileRow> files_of(soci::session& sql, const std::string& query) {
  std::vector<FileRow> result;
  soci::rowset<soci::row> rows = (sql.prepare << query);
  for (const auto& r : rows) result.push_back(file_from(r));
  return result;
}

std::optional<FileRow> one_file(soci::session& sql, const std::string& condition,
                                const std::string& name = "") {
  soci::rowset<soci::row> rows =
      (sql.prepare << kFile << "where (:name = '' or f.name = :name) and " << condition,
       soci::use(name, "name"));
  for (const auto& r : rows) return file_from(r);
  return std::nullopt;
}

}  // namespace

std::vector<FileRow> Archive::outputs(JobId id, uint64_t after, uint32_t limit) {
  return connections_->with([&](soci::session& sql) {
    return files_of(sql, kFileWithoutBody + "where f.job = " + std::to_string(id) +
                             " and f.job > 0 and f.kind >= 3 and f.counts = 1 and f.attempt = "
                             "(select attempts from jobs where jobs.id = f.job) and f.id > " +
                             std::to_string(after) + " order by f.id limit " +
                             std::to_string(limit));
  });
}

std::map<uint64_t, SentFile> Archive::sent_files(scheduling::AttemptKey key) {
  return connections_->with([&](soci::session& sql) {
    std::map<uint64_t, SentFile> sent;
    soci::rowset<soci::row> rows = (sql.prepare << "select id, kind, name from files where job > 0 "
                                                   "and job = "
                                                << key.job << " and attempt = " << key.attempt);
    for (const auto& r : rows)
      sent[integer(r, 0)] = {static_cast<FileKind>(integer(r, 1)), r.get<std::string>(2)};
    return sent;
  });
}

std::optional<FileRow> Archive::file(uint64_t id) {
  return connections_->with(
      [&](soci::session& sql) { return one_file(sql, "f.id = " + std::to_string(id)); });
}

std::vector<FileRow> Archive::checkpoints(JobId job, uint64_t newest) {
  return connections_->with([&](soci::session& sql) {
    return files_of(sql, kFile + "where f.job > 0 and f.job = " + std::to_string(job) +
                             " and f.kind = 2 and f.generation <= " + std::to_string(newest) +
                             " order by f.generation desc, f.id desc limit 10");
  });
}

std::optional<FileRow> Archive::output(JobId job, FileKind kind, const std::string& name) {
  return connections_->with([&](soci::session& sql) {
    return one_file(sql,
                    "f.job > 0 and f.job = " + std::to_string(job) +
                        " and f.counts = 1 and f.attempt = (select attempts from jobs where "
                        "jobs.id = f.job) and f.kind = " +
                        std::to_string(static_cast<uint32_t>(kind)),
                    kind == FileKind::kOutput ? name : "");
  });
}

std::vector<uint64_t> Archive::content_ids() {
  return connections_->with([&](soci::session& sql) {
    std::vector<uint64_t> result;
    soci::rowset<soci::row> rows = (sql.prepare << "select id from contents");
    for (const auto& r : rows) result.push_back(integer(r, 0));
    return result;
  });
}

std::vector<FileRow> Archive::unneeded_files(uint64_t& after, uint32_t examined) {
  return connections_->with([&](soci::session& sql) {
    const std::string from = std::to_string(after);
    // With `examined` or more left, the last of them.
    after = number_of(sql, "select id from files where id > " + from +
                               " order by id limit 1 offset " + std::to_string(examined - 1));
    const std::string to = after ? " and f.id <= " + std::to_string(after) : "";
    return files_of(
        sql,
        kFileWithoutBody + "where f.id > " + from + to +
            " and ((f.kind = 1 and (not exists (select 1 from batches b where "
            "b.id = f.batch) or (exists (select 1 from batches b where b.id = f.batch and "
            "b.committed = "
            "1) and not exists (select 1 from jobs j where j.batch = f.batch and j.state < 5)))) "
            "or "
            "(f.kind = 2 and (not exists (select 1 from jobs j where j.id = f.job and j.state < 5) "
            "or "
            "(select count(*) from files n where n.job = f.job and n.job > 0 and n.kind = 2 and "
            "n.generation > f.generation) >= 2)) or (f.kind >= 3 and exists (select 1 from "
            "attempts a "
            "where a.job = f.job and a.attempt = f.attempt and a.state = 5) and (f.counts = 0 or "
            "f.attempt < (select attempts from jobs j where j.id = f.job))))");
  });
}

bool Archive::content_exists(uint64_t id) {
  return connections_->with([&](soci::session& sql) {
    return number_of(sql, "select count(*) from contents where id = " + std::to_string(id)) > 0;
  });
}

std::optional<ContentRow> Archive::content(const std::string& digest) {
  return connections_->with([&](soci::session& sql) -> std::optional<ContentRow> {
    ContentRow row;
    long long id = 0, size = 0;
    sql << "select id, size, identity from contents where digest = :digest and damaged = 0 order "
           "by id desc limit 1",
        soci::into(id), soci::into(size), soci::into(row.identity), soci::use(digest);
    if (!sql.got_data()) return std::nullopt;
    row.id = static_cast<uint64_t>(id);
    row.size = static_cast<uint64_t>(size);
    row.digest = digest;
    return row;
  });
}

SpoolUse Archive::spool_use(const std::string& user) {
  return connections_->with([&](soci::session& sql) {
    SpoolUse use;
    soci::rowset<soci::row> rows =
        (sql.prepare << "select kind, bytes from spool_use where user_name = :user",
         soci::use(user, "user"));
    for (const auto& r : rows) (integer(r, 0) == 1 ? use.checkpoints : use.files) = integer(r, 1);
    return use;
  });
}

// A file's id is at most the instant of its upload (spool.cc), and its job ended
// after that: only old rows are looked at.
std::vector<FileRow> Archive::outputs_before(Micros ended, uint32_t limit) {
  return connections_->with([&](soci::session& sql) {
    const std::string before = std::to_string(ended);
    return files_of(sql, kFileWithoutBody + "join jobs j on j.id = f.job where f.id < " + before +
                             " and f.kind >= 3 and f.counts = 1 and j.state >= 5 and j.changed < " +
                             before + " order by f.id limit " + std::to_string(limit));
  });
}

Micros Archive::outputs_removed_at(JobId job) {
  return connections_->with([&](soci::session& sql) {
    return static_cast<Micros>(
        number_of(sql, "select at from outputs_removed where job = " + std::to_string(job)));
  });
}

uint64_t Archive::last_file_id() {
  return connections_->with(
      [&](soci::session& sql) { return number_of(sql, "select max(id) from files"); });
}

}  // namespace sublet::server
