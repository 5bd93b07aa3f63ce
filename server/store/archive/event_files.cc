#include "server/store/archive/event_files.h"

#include <soci/soci.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "protocol/codec.h"
#include "server/commit/store.h"
#include "server/store/live.h"
#include "server/store/rows.h"
#include "server/store/sqlite.h"
#include "server/store/tables.h"
#include "server/store/writer.h"

namespace sublet::server {

using scheduling::Micros;

struct EventFiles::Held {
  soci::session sql;  // in a transaction that reads
  uint64_t last = 0;  // the newest event's number, 0: there is none
  bool with_last = false;
};

namespace {

constexpr char kStart[] = "events-";
constexpr char kEnd[] = ".db";
constexpr char kUnfinished[] = "events.new";
constexpr Micros kSecond = 1'000'000;

// "2026-11-23T08-19-05.123456Z"
std::string text_of(Micros instant) {
  const time_t seconds = instant / kSecond;
  tm parts;
  gmtime_r(&seconds, &parts);
  char text[64];
  const size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H-%M-%S", &parts);
  snprintf(text + length, sizeof text - length, ".%06dZ", static_cast<int>(instant % kSecond));
  return text;
}

std::optional<Micros> instant_in(const std::string& name) {
  if (!name.starts_with(kStart) || !name.ends_with(kEnd)) return std::nullopt;
  tm parts = {};
  int micros = 0, read = 0;
  const std::string text = name.substr(sizeof kStart - 1);
  const int fields =
      sscanf(text.c_str(), "%4d-%2d-%2dT%2d-%2d-%2d.%6dZ.db%n", &parts.tm_year, &parts.tm_mon,
             &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &micros, &read);
  if (fields != 7 || static_cast<size_t>(read) != text.size()) return std::nullopt;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return timegm(&parts) * kSecond + micros;
}

// Few enough that a pool with a million jobs takes no more memory than one with few.
constexpr size_t kRowsAtOnce = 1000;

// Writes the rows that these queries find; damaged ones are left out.
template <typename Row>
void copy_rows(soci::session& from, const TableOf<Row>& table,
               const std::vector<std::string>& questions, soci::session& to) {
  Writer<Row> writer(table);
  size_t waiting = 0;
  for (const std::string& question : questions) {
    Row row;
    Rows rows(from);
    rows.into(table, row, table.name).select(question);
    rows.each(
        [&] {
          writer.add(row);
          if (++waiting % kRowsAtOnce == 0) writer.flush(to);
        },
        [](const std::string&) {});  // named when the server started
  }
  writer.flush(to);
}

// The records that a brain is restored from.
void copy_head(soci::session& from, soci::session& to) {
  soci::transaction transaction(to);
  for (const Table* table : tables::all())
    for (const std::string& statement : creation(*table)) to << statement;
  Writer<PoolRow> pool(tables::kPool);  // of a new pool, whose first event is yet to come
  pool.add({});
  pool.flush(to);
  copy_rows(from, tables::kPool, {"pool"}, to);
  copy_rows(from, tables::kPolicy, {"policy"}, to);
  copy_rows(from, tables::kUsers, {"users"}, to);
  copy_rows(from, tables::kMachines, {"machines"}, to);
  copy_rows(from, tables::kAbsences, {"absences"}, to);
  const bool most = are_most(from, count_live_jobs(from));
  copy_rows(from, tables::kJobs, live_jobs(most), to);
  copy_rows(from, tables::kAttempts, live_attempts(), to);
  copy_rows(from, tables::kStops, live_stops(), to);
  copy_rows(from, tables::kPrograms, {"programs"}, to);
  copy_rows(from, tables::kRelations, live_relations(), to);
  transaction.commit();
}

// Copies events of the database attached as "live", with their numbers.
void copy(soci::session& sql, const std::string& where) {
  soci::transaction transaction(sql);
  sql << "insert into main.events (number, at, kind, body) select number, at, kind, body from "
         "live.events where " +
             where;
  transaction.commit();
}

uint64_t last_number(soci::session& sql, const std::string& database) {
  return number_of(sql, "select max(number) from " + database + ".events");
}

// The number of the last event in this file; nullopt: it cannot be read.
std::optional<uint64_t> last_in(soci::session& sql, const std::string& file) {
  try {
    sqlite::attach(sql, file, "file");
    return last_number(sql, "file");
  } catch (const soci::soci_error&) {
    return std::nullopt;
  }
}

StoreError failed(const std::string& what, const std::exception& why) {
  return StoreError(what + ": " + why.what());
}

}  // namespace

EventFiles::EventFiles(const std::string& pool, const std::string& folder, Files& files)
    : pool_(pool), folder_(folder), files_(files) {}

EventFiles::~EventFiles() = default;

std::string EventFiles::path_of(Micros begins) const {
  return folder_ + "/" + kStart + text_of(begins) + kEnd;
}

std::vector<EventFile> EventFiles::list() const {
  std::vector<EventFile> found;
  if (!files_.exists(folder_)) return found;
  for (const FolderEntry& entry : files_.list(folder_))
    if (const auto begins = instant_in(entry.name))
      found.push_back({folder_ + "/" + entry.name, *begins, entry.size});
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.begins < b.begins; });
  return found;
}

std::optional<EventFile> EventFiles::newest() const {
  const auto all = list();
  return all.empty() ? std::nullopt : std::optional(all.back());
}

void EventFiles::hold(bool with_last) {
  auto held = std::make_unique<Held>();
  try {
    sqlite::open_to_read(held->sql, pool_);
    held->sql << "begin";
    held->last = last_number(held->sql, "main");
    held->with_last = with_last;
  } catch (const soci::soci_error& e) {
    throw failed("the database could not be read", e);
  }
  held_ = std::move(held);
}

void EventFiles::drop() { held_ = nullptr; }

uint64_t EventFiles::held_after() const { return held_->last - (held_->with_last ? 1 : 0); }

void EventFiles::begin_file() {
  const std::string first = std::to_string(held_after() + 1);
  const std::string path = folder_ + "/" + kUnfinished;
  files_.make_folders(folder_);
  for (const char* part : {"", "-wal", "-shm", "-journal"}) files_.remove_file(path + part);
  Micros begins = 0;
  try {
    soci::session sql;
    sqlite::open_new(sql, path);
    copy_head(held_->sql, sql);
    sqlite::attach(sql, pool_, "live");
    copy(sql, "number = " + first);
    begins = static_cast<Micros>(number_of(sql, "select at from main.events"));
  } catch (const soci::soci_error& e) {
    throw failed("the records of the brain could not be copied to " + path, e);
  }
  if (begins == 0) throw StoreError("event " + first + " is not in the database");
  files_.sync_file(path);
  files_.rename(path, path_of(begins));
  files_.sync_folder(folder_);
  drop();
}

EventFiles::Waiting EventFiles::waiting() const {
  const auto file = newest();
  if (!file) return {};
  try {
    soci::session sql;
    sqlite::open_to_read(sql, pool_);
    const uint64_t newest = last_number(sql, "main");
    const std::optional<uint64_t> in_file = last_in(sql, file->path);
    if (!in_file) return {.follow = false};
    const uint64_t last = *in_file;
    if (newest <= last) return {0, 0, newest == last};
    const std::string after = " from main.events where number > " + std::to_string(last);
    const uint64_t next = number_of(sql, "select min(number)" + after);
    const uint64_t since = number_of(sql, "select at" + after + " order by number limit 1");
    return {newest - next + 1, static_cast<Micros>(since), next == last + 1};
  } catch (const soci::soci_error& e) {
    throw failed("the events that wait for " + file->path + " could not be counted", e);
  }
}

namespace {
// The last of the events after this one that are copied together; 0: one is too large for that.
uint64_t last_at_once(soci::session& sql, uint64_t after) {
  return number_of(sql,
                   "select max(number) from (select number, sum(length(cast(body as blob))) over "
                   "(order by number) as bytes from live.events where number > " +
                       std::to_string(after) + " order by number limit " +
                       std::to_string(EventFiles::kAtOnce) +
                       ") where bytes <= " + std::to_string(EventFiles::kBytesAtOnce));
}
}  // namespace

EventFiles::Copied EventFiles::copy_events(uint64_t up_to) {
  const auto file = newest();
  if (!file) throw StoreError("there is no file of events in " + folder_);
  try {
    soci::session sql;
    sqlite::open_to_write(sql, file->path);
    sqlite::attach(sql, pool_, "live");
    const uint64_t last = last_number(sql, "main");
    uint64_t end = last_number(sql, "live");
    if (up_to != 0) end = std::min(end, up_to);
    const uint64_t until = std::min(end, std::max(last + 1, last_at_once(sql, last)));
    if (until > last)
      copy(sql, "number > " + std::to_string(last) + " and number <= " + std::to_string(until));
    return {std::max(last, until), until < end};
  } catch (const soci::soci_error& e) {
    throw failed("events could not be copied to " + file->path, e);
  }
}

namespace {

StoreError unreadable(const std::string& path, const std::string& why) {
  return StoreError(path + " cannot be replayed: " + why);
}

}  // namespace

struct EventFileReader::Open {
  soci::session sql;
  std::optional<Rows> rows;
  EventFileReader::Event event;
  long long number = 0;
};

EventFileReader::EventFileReader(const std::string& path)
    : path_(path), open_(std::make_unique<Open>()) {
  try {
    sqlite::open_to_read(open_->sql, path);
    const uint64_t layout = number_of(open_->sql, "select version from pool where id = 1");
    if (layout == kSchemaVersion) return;
    throw unreadable(path, "it has layout " + std::to_string(layout) +
                               ", and this server has layout " + std::to_string(kSchemaVersion) +
                               "; use the version of the server that wrote it");
  } catch (const soci::soci_error& e) {
    throw unreadable(path, e.get_error_message());
  }
}

EventFileReader::~EventFileReader() = default;

scheduling::Snapshot EventFileReader::head() {
  std::vector<std::string> damage;
  try {
    scheduling::Snapshot snapshot = live_rows(open_->sql, &damage);
    if (damage.empty()) return snapshot;
  } catch (const soci::soci_error& e) {
    damage.push_back(e.get_error_message());
  }
  throw unreadable(path_, damage.front());
}

const EventFileReader::Event* EventFileReader::next() {
  Open& open = *open_;
  try {
    if (!open.rows) {
      open.rows.emplace(open.sql);
      open.rows->into(tables::kEvents, open.event.row).into("number", open.number);
      open.rows->select("events order by number");
    }
    if (!open.rows->next()) return nullptr;
  } catch (const soci::soci_error& e) {
    throw protocol::Damaged(e.get_error_message());
  }
  open.event.number = static_cast<uint64_t>(open.number);
  return &open.event;
}

std::vector<EventFile> EventFiles::remove_old(Micros before, uint64_t most_bytes) {
  const std::vector<EventFile> all = list();
  uint64_t bytes = 0;
  for (const EventFile& file : all) bytes += file.bytes;
  std::vector<EventFile> removed;
  // A file's last event is older than the first one of the next file.
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const bool old = before != 0 && all[i + 1].begins < before;
    if (!old && bytes <= most_bytes) break;
    for (const char* part : {"-wal", "-shm", ""}) files_.remove_file(all[i].path + part);
    bytes -= all[i].bytes;
    removed.push_back(all[i]);
  }
  return removed;
}

}  // namespace sublet::server
