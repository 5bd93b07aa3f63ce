// The spool's files and contents.
#include "server/store/archive/archive.h"
#include "server/store/archive/connections.h"
#include "server/store/rows.h"
#include "server/store/tables.h"

namespace sublet::server {
namespace {

enum class Bodies { kRead, kLeave };

// Rows of table files (alias f), joined with their contents (alias c).
class FileRows : public Rows {
 public:
  FileRows(soci::session& sql, Bodies bodies) : Rows(sql) {
    into(tables::kFiles, file, "f", bodies == Bodies::kRead ? "" : "body");
    into("coalesce(c.identity, '')", file.identity);
    into("coalesce(c.damaged, 0)", file.damaged);
  }
  void select(const std::string& rest) {
    Rows::select("files f left join contents c on c.id = f.content " + rest);
  }

  FileRow file;
};

std::vector<FileRow> files_of(soci::session& sql, Bodies bodies, const std::string& rest) {
  std::vector<FileRow> result;
  FileRows rows(sql, bodies);
  rows.select(rest);
  rows.each([&] { result.push_back(std::move(rows.file)); });
  return result;
}

std::optional<FileRow> one_file(soci::session& sql, const std::string& condition,
                                const std::string& name = "") {
  FileRows rows(sql, Bodies::kRead);
  rows.with("name", name);
  rows.select("where (:name = '' or f.name = :name) and " + condition);
  if (!rows.next()) return std::nullopt;
  return rows.file;
}

}  // namespace

std::vector<FileRow> Archive::outputs(JobId id, uint64_t after, uint32_t limit) {
  return connections_->with([&](soci::session& sql) {
    return files_of(sql, Bodies::kLeave,
                    "where f.job = " + std::to_string(id) +
                        " and f.job > 0 and f.kind >= 3 and f.counts = 1 and f.attempt = "
                        "(select attempts from jobs where jobs.id = f.job) and f.id > " +
                        std::to_string(after) + " order by f.id limit " + std::to_string(limit));
  });
}

std::map<uint64_t, SentFile> Archive::sent_files(scheduling::AttemptKey key) {
  return connections_->with([&](soci::session& sql) {
    std::map<uint64_t, SentFile> sent;
    uint64_t id = 0;
    SentFile file;
    Rows rows(sql);
    rows.into("id", id).into("kind", file.kind).into("name", file.name);
    rows.select("files where job > 0 and job = " + std::to_string(key.job) +
                " and attempt = " + std::to_string(key.attempt));
    rows.each([&] { sent[id] = file; });
    return sent;
  });
}

std::optional<FileRow> Archive::file(uint64_t id) {
  return connections_->with(
      [&](soci::session& sql) { return one_file(sql, "f.id = " + std::to_string(id)); });
}

std::vector<FileRow> Archive::checkpoints(JobId job, uint64_t newest) {
  return connections_->with([&](soci::session& sql) {
    return files_of(sql, Bodies::kRead,
                    "where f.job > 0 and f.job = " + std::to_string(job) +
                        " and f.kind = 2 and f.generation <= " + std::to_string(newest) +
                        " order by f.generation desc, f.id desc limit 10");
  });
}

namespace {
// Whether this output of this producer feeds a job that has not ended.
std::string feeds_a_live_job(const std::string& producer, const std::string& name) {
  return "exists (select 1 from feeds d where d.producer = " + producer + " and d.name = " + name +
         " and exists (select 1 from jobs j where j.id >= coalesce((select max(i.id) from jobs i "
         "where i.id <= d.consumer), 0) and j.id < d.consumer + d.count and j.id + j.count > "
         "d.consumer and j.state not in (5, 6, 7)))";
}
}  // namespace

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

std::set<std::string> Archive::needed_outputs(JobId job) {
  return connections_->with([&](soci::session& sql) {
    std::set<std::string> names;
    std::string name;
    Rows rows(sql);
    const std::string producer = std::to_string(job);
    rows.into("f.name", name);
    rows.select("(select distinct name from feeds where producer = " + producer + ") f where " +
                feeds_a_live_job(producer, "f.name"));
    rows.each([&] { names.insert(name); });
    return names;
  });
}

std::vector<uint64_t> Archive::content_ids() {
  return connections_->with([&](soci::session& sql) {
    std::vector<uint64_t> result;
    uint64_t id = 0;
    Rows rows(sql);
    rows.into("id", id).select("contents");
    rows.each([&] { result.push_back(id); });
    return result;
  });
}

std::vector<FileRow> Archive::unneeded_files(uint64_t& after, uint32_t examined) {
  return connections_->with([&](soci::session& sql) {
    const std::string from = std::to_string(after);
    // The last one to examine, or 0 if fewer than `examined` are left.
    after = number_of(sql, "select id from files where id > " + from +
                               " order by id limit 1 offset " + std::to_string(examined - 1));
    const std::string to = after ? " and f.id <= " + std::to_string(after) : "";
    return files_of(
        sql, Bodies::kLeave,
        "where f.id > " + from + to +
            " and ((f.kind = 1 and not exists (select 1 from batches b where b.id = f.batch and "
            "b.committed = 0) and not exists (select 1 from drafts d where d.batch = f.batch) and "
            "not exists (select 1 from jobs j where j.batch = f.batch and "
            "j.state in (1, 2, 3, 4, 8, 9))) or (f.kind = 2 and (not exists (select 1 from jobs j "
            "where "
            "j.id = f.job and j.state not "
            "in (5, 6, 7)) "
            "or "
            "(select count(*) from files n where n.job = f.job and n.job > 0 and n.kind = 2 and "
            "n.generation > f.generation) >= 2)) or (f.kind >= 3 and exists (select 1 from "
            "attempts a "
            "where a.job = f.job and a.attempt = f.attempt and a.state = 5) and (f.counts = 0 or "
            "f.attempt < (select attempts from jobs j where j.id = f.job))) or (f.kind >= 3 and "
            "exists (select 1 from outputs_removed o where o.job = f.job) and not " +
            feeds_a_live_job("f.job", "f.name") + "))");
  });
}

bool Archive::content_exists(uint64_t id) {
  return connections_->with([&](soci::session& sql) {
    return number_of(sql, "select count(*) from contents where id = " + std::to_string(id)) > 0;
  });
}

std::optional<ContentRow> Archive::content(const std::string& digest) {
  return connections_->with([&](soci::session& sql) -> std::optional<ContentRow> {
    ContentRow content;
    Rows rows(sql);
    rows.into(tables::kContents, content).with("digest", digest);
    rows.select("contents where digest = :digest and damaged = 0 order by id desc limit 1");
    if (!rows.next()) return std::nullopt;
    return content;
  });
}

bool Archive::has_content(uint64_t id) {
  return connections_->with([&](soci::session& sql) {
    return number_of(sql, "select count(*) from contents where id = " + std::to_string(id)) > 0;
  });
}

SpoolUse Archive::spool_use(const std::string& user) {
  return connections_->with([&](soci::session& sql) {
    SpoolUse use;
    SpoolUseRow row;
    Rows rows(sql);
    rows.into(tables::kSpoolUse, row)
        .with("user", user)
        .select("spool_use where user_name = :user");
    rows.each([&] { (row.checkpoints ? use.checkpoints : use.files) = row.bytes; });
    return use;
  });
}

std::map<std::string, SpoolUse> Archive::spool_uses() {
  return connections_->with([&](soci::session& sql) {
    std::map<std::string, SpoolUse> uses;
    SpoolUseRow row;
    Rows rows(sql);
    rows.into(tables::kSpoolUse, row).select("spool_use");
    rows.each([&] {
      SpoolUse& use = uses[row.user];
      (row.checkpoints ? use.checkpoints : use.files) = row.bytes;
    });
    return uses;
  });
}

std::optional<uint64_t> Archive::quota(const std::string& user) {
  return connections_->with([&](soci::session& sql) -> std::optional<uint64_t> {
    QuotaRow row;
    Rows rows(sql);
    rows.into(tables::kQuotas, row).with("user", user).select("quotas where user_name = :user");
    return rows.next() ? std::optional(row.bytes) : std::nullopt;
  });
}

std::map<std::string, uint64_t> Archive::quotas() {
  return connections_->with([&](soci::session& sql) {
    std::map<std::string, uint64_t> quotas;
    QuotaRow row;
    Rows rows(sql);
    rows.into(tables::kQuotas, row).select("quotas");
    rows.each([&] { quotas[row.user] = row.bytes; });
    return quotas;
  });
}

// A file's id is at most the instant of its upload (spool.cc), and its job ended
// later, so the condition on the id limits the search to old rows.
std::vector<FileRow> Archive::outputs_before(Micros ended, uint32_t limit) {
  return connections_->with([&](soci::session& sql) {
    const std::string before = std::to_string(ended);
    return files_of(
        sql, Bodies::kLeave,
        "join jobs j on j.id = f.job where f.id < " + before +
            " and f.kind >= 3 and f.counts = 1 and j.state in (5, 6, 7) and j.changed < " + before +
            " and not " + feeds_a_live_job("f.job", "f.name") + " order by f.id limit " +
            std::to_string(limit));
  });
}

Micros Archive::outputs_removed_at(JobId job) {
  return connections_->with([&](soci::session& sql) {
    return static_cast<Micros>(
        number_of(sql, "select at from outputs_removed where job = " + std::to_string(job)));
  });
}

bool Archive::was_used() {
  return connections_->with([](soci::session& sql) {
    return number_of(sql, "select next_batch from pool where id = 1") > 1 ||
           number_of(sql, "select max(id) from batches") > 0 ||
           number_of(sql, "select max(id) from contents") > 0;
  });
}

uint64_t Archive::last_file_id() {
  return connections_->with(
      [&](soci::session& sql) { return number_of(sql, "select max(id) from files"); });
}

}  // namespace sublet::server
