#include "server/store/archive/finished.h"

#include <chrono>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "protocol/codec.h"
#include "server/commit/store.h"
#include "server/store/archive/connections.h"
#include "server/store/migration.h"
#include "server/store/rows.h"
#include "server/store/sqlite.h"
#include "server/store/tables.h"

namespace sublet::server {

namespace {

// Whether all of the file can be read, by itself.
bool can_be_read(const std::string& path) {
  try {
    soci::session sql;
    sqlite::open_to_read(sql, path);
    for (const Table* table : tables::all())
      if (!sqlite::damage_of(sql, table->name).empty()) return false;
    return true;
  } catch (const soci::soci_error&) {
    return false;
  }
}

}  // namespace

struct FinishedFiles::File {
  explicit File(std::string path) : path(std::move(path)) {}

  // Logs the first failure only: lists would repeat it with each page.
  void failed(const std::string& what) {
    std::lock_guard lock(mutex);
    if (!logged)
      log(Severity::error) << "the history file " << path << " could not be read: " << what
                           << "; the finished jobs in it are left out of lists: restore it from a "
                              "backup, and restart the server";
    logged = true;
  }

  // Null: none is open.
  std::unique_ptr<soci::session> take() {
    std::lock_guard lock(mutex);
    if (idle.empty()) return nullptr;
    auto session = std::move(idle.back());
    idle.pop_back();
    return session;
  }
  void give(std::unique_ptr<soci::session> session) {
    std::lock_guard lock(mutex);
    if (idle.size() < kMostIdle) idle.push_back(std::move(session));
  }

  // Whether all of it could be read when this was last looked at, a minute ago at most.
  bool is_sound() {
    std::lock_guard only(looking);
    const auto now = std::chrono::steady_clock::now();
    if (now >= believed_until) {
      sound = can_be_read(path);
      believed_until = std::chrono::steady_clock::now() + kBelieved;
    }
    return sound;
  }

  static constexpr size_t kMostIdle = 2;
  static constexpr std::chrono::seconds kBelieved{60};

  const std::string path;
  std::mutex mutex;
  std::vector<std::unique_ptr<soci::session>> idle;
  bool logged = false;
  // Reading a file whole takes long, and lists would ask again with each page.
  std::mutex looking;  // for the two below
  bool sound = false;
  std::chrono::steady_clock::time_point believed_until;  // sound
};

namespace {

bool has_jobs_of(soci::session& sql, const scheduling::JobRange& range) {
  const uint64_t first = number_of(sql, "select min(id) from jobs");
  const uint64_t last = number_of(sql, "select id + count - 1 from jobs order by id desc limit 1");
  return first != 0 && first < range.first + range.count && last >= range.first;
}

void bring_to_present_layout(const std::string& path) {
  soci::session sql;
  sqlite::open_to_change(sql, path);
  const auto layout = static_cast<int>(number_of(sql, "select version from pool where id = 1"));
  sql.close();
  if (layout == kSchemaVersion) return;
  if (layout < kEarliestLayout || layout > kSchemaVersion)
    throw StoreError("it has layout " + std::to_string(layout) + ", but this server needs layout " +
                     std::to_string(kSchemaVersion));
  migrate(system_files(), path, layout);
}

std::string columns_of(const Table& table) {
  std::string list;
  for (const Column& column : table.columns())
    list += (list.empty() ? "" : ", ") + std::string(column.name);
  return list;
}

// Copies rows as they are: a damaged one stays what it is, and costs itself only.
void copy(soci::session& sql, const Table& table, const std::string& where) {
  const std::string columns = columns_of(table);
  sql << "insert or replace into " << table.name << " (" << columns << ") select " << columns
      << " from live." << table.name << " where " << where;
}

}  // namespace

std::string month_of(const std::string& name) {
  constexpr std::string_view kBefore = "jobs-", kBehind = ".db";
  if (!name.starts_with(kBefore) || !name.ends_with(kBehind)) return "";
  return name.substr(kBefore.size(), name.size() - kBefore.size() - kBehind.size());
}

std::string list_of(const std::vector<uint64_t>& ids) {
  std::string list;
  for (uint64_t id : ids) list += (list.empty() ? "" : ", ") + std::to_string(id);
  return list;
}

FinishedFiles::FinishedFiles(const std::string& pool, const std::string& folder)
    : pool_(pool), folder_(folder) {
  if (!system_files().exists(folder_)) return;
  for (const auto& entry : system_files().list(folder_)) {
    if (month_of(entry.name).empty()) continue;
    const auto found = file(folder_ + "/" + entry.name);
    try {
      bring_to_present_layout(found->path);
    } catch (const std::exception& e) {
      found->failed(e.what());
      files_.erase(found->path);
    }
  }
}

FinishedFiles::~FinishedFiles() = default;

std::string FinishedFiles::path_of(const std::string& month) const {
  return folder_ + "/jobs-" + month + ".db";
}

std::shared_ptr<FinishedFiles::File> FinishedFiles::file(const std::string& path) {
  std::lock_guard lock(mutex_);
  auto& found = files_[path];
  if (!found) found = std::make_shared<File>(path);
  return found;
}

bool FinishedFiles::has(const std::string& month) {
  std::lock_guard lock(mutex_);
  return files_.contains(path_of(month));
}

void FinishedFiles::each(const scheduling::JobRange& range,
                         const std::function<void(soci::session&)>& f) {
  std::vector<std::shared_ptr<File>> files;
  {
    std::lock_guard lock(mutex_);
    for (auto i = files_.rbegin(); i != files_.rend(); ++i) files.push_back(i->second);
  }
  for (const auto& file : files) {
    try {
      auto session = file->take();
      if (!session) session = open(file->path);
      if (has_jobs_of(*session, range)) f(*session);
      file->give(std::move(session));
    } catch (const soci::soci_error& e) {
      if (sqlite::was_interrupted(e)) throw too_long();
      blame(*file, e.get_error_message());
    } catch (const protocol::Damaged& e) {  // a row of the file
      file->failed(e.what());
    }
  }
}

std::unique_ptr<soci::session> FinishedFiles::open(const std::string& path) const {
  auto session = std::make_unique<soci::session>();
  sqlite::open_to_read(*session, path);
  sqlite::attach(*session, pool_, "live");
  return session;
}

// The error of a statement that reads both databases does not say which one has failed.
void FinishedFiles::blame(File& file, const std::string& what) {
  if (!file.is_sound()) return file.failed(what);
  throw StoreError("the database could not be read: " + what);
}

void FinishedFiles::write(const std::string& month, const Changes::MovedJobs& moved) {
  system_files().make_folders(folder_);
  const std::string path = path_of(month);
  soci::session sql;
  sqlite::open_to_write(sql, path);
  sqlite::attach(sql, pool_, "live");
  const std::string jobs = list_of(moved.jobs), batches = list_of(moved.batches);
  soci::transaction transaction(sql);
  for (const Table* table : tables::all())
    for (const std::string& statement : creation(*table)) sql << statement;
  const auto layout = number_of(sql, "select version from main.pool where id = 1");
  if (layout != 0 && layout != kSchemaVersion)
    throw StoreError("the history file " + path + " has layout " + std::to_string(layout));
  copy(sql, tables::kPool, "id = 1");
  copy(sql, tables::kMachines,
       "id in (select machine from live.attempts where job in (" + jobs + "))");
  copy(sql, tables::kBatches, "id in (" + batches + ")");
  copy(sql, tables::kStops, "batch in (" + batches + ")");
  copy(sql, tables::kSpecs, "first_job in (" + list_of(moved.specs) + ")");
  copy(sql, tables::kJobs, "id in (" + jobs + ")");
  copy(sql, tables::kAttempts, "job in (" + jobs + ")");
  copy(sql, tables::kEnds, "job in (" + jobs + ")");
  transaction.commit();
  file(path);
}

}  // namespace sublet::server
