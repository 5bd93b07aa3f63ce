#include "server/spool/orphans.h"

#include <map>
#include <vector>

#include "base/log.h"
#include "base/text.h"

namespace sublet::server {
namespace {

constexpr Micros kDay = 86'400'000'000;
constexpr size_t kDateLength = 10;  // 2026-02-03

std::string date_of(Micros at) { return format_instant(at).substr(0, kDateLength); }

std::string orphans_folder(const std::string& spool) { return spool + "/orphans"; }

bool is_date(const std::string& name) {
  return name.size() == kDateLength && name[4] == '-' && name[7] == '-' &&
         name.find_first_not_of("0123456789-") == std::string::npos;
}

// In the spool folder ID.part is an unfinished upload, ID a content.
bool is_upload(const FolderEntry& entry) { return entry.name.ends_with(".part"); }

std::vector<FolderEntry> files_in(Files& files, const std::string& folder) {
  std::vector<FolderEntry> found;
  if (!files.exists(folder)) return found;
  for (FolderEntry& entry : files.list(folder))
    if (!entry.is_folder) found.push_back(std::move(entry));
  return found;
}

std::vector<std::string> dates(Files& files, const std::string& spool) {
  std::vector<std::string> found;
  if (!files.exists(orphans_folder(spool))) return found;
  for (const FolderEntry& entry : files.list(orphans_folder(spool)))
    if (entry.is_folder && is_date(entry.name)) found.push_back(entry.name);
  return found;
}

bool is_empty_or_missing(Files& files, const std::string& path) {
  for (const FolderEntry& entry : files.list(folder_of(path)))
    if (folder_of(path) + "/" + entry.name == path) return entry.size == 0;
  return true;
}

// "1 file (21.3 KiB)"
std::string amount(size_t count, uint64_t bytes) {
  return std::to_string(count) + (count == 1 ? " file (" : " files (") + format_bytes(bytes) + ")";
}

class Moves {
 public:
  Moves(Files& files, std::string from, std::string to)
      : files_(files), from_(std::move(from)), to_(std::move(to)) {}

  void add(const FolderEntry& entry) {
    if (count_ == 0) files_.make_folders(to_);
    files_.rename(from_ + "/" + entry.name, to_ + "/" + entry.name);
    ++count_;
    bytes_ += entry.size;
  }
  // The new names first: a loss of power may leave both, but never none.
  void sync() {
    if (count_ == 0) return;
    files_.sync_folder(to_);
    files_.sync_folder(from_);
  }
  bool any() const { return count_ > 0; }
  std::string what() const { return amount(count_, bytes_); }

 private:
  Files& files_;
  const std::string from_, to_;
  size_t count_ = 0;
  uint64_t bytes_ = 0;
};

void bring_back(Files& files, const std::string& spool, const std::set<std::string>& known) {
  for (const std::string& date : dates(files, spool)) {
    const std::string folder = orphans_folder(spool) + "/" + date;
    Moves back(files, folder, spool);
    for (const FolderEntry& entry : files_in(files, folder))
      if (known.count(entry.name) && !files.exists(spool + "/" + entry.name)) back.add(entry);
    back.sync();
    if (back.any())
      log(Severity::info) << back.what() << " came back from " << folder
                          << " because the database refers to them";
  }
}

void set_aside(Files& files, const std::string& spool, const std::set<std::string>& known,
               Micros now) {
  const std::string folder = orphans_folder(spool) + "/" + date_of(now);
  Moves aside(files, spool, folder);
  for (const FolderEntry& entry : files_in(files, spool)) {
    if (is_upload(entry))
      files.remove_file(spool + "/" + entry.name);
    else if (!known.count(entry.name))
      aside.add(entry);
  }
  aside.sync();
  if (aside.any())
    log(Severity::warning) << "the database does not refer to " << aside.what()
                           << " of the spool, which are kept in " << folder << " for "
                           << kKeepOrphansDays << " days";
}

void remove_old(Files& files, const std::string& spool, Micros now) {
  const std::string oldest = date_of(now - kKeepOrphansDays * kDay);
  for (const std::string& date : dates(files, spool))
    if (date < oldest) files.remove_tree(orphans_folder(spool) + "/" + date);
}

void require_empty(Files& files, const std::string& spool, const std::string& why) {
  size_t count = 0;
  uint64_t bytes = 0;
  for (const FolderEntry& entry : files_in(files, spool)) {
    if (is_upload(entry)) continue;
    ++count;
    bytes += entry.size;
  }
  if (count > 0)
    throw StoreError(why + ", but " + spool + " has " + amount(count, bytes) +
                     " of a pool: put its database back, or, for a new pool, move that folder "
                     "away");
}

}  // namespace

void require_database(Files& files, const std::string& database, const std::string& spool) {
  if (!is_empty_or_missing(files, database)) return;
  if (!is_empty_or_missing(files, database + "-wal"))
    throw StoreError(
        "the database " + database + " is missing, but its newest part, " + database +
        "-wal, is there: put the database back, or, for a new pool, move that away, too");
  require_empty(files, spool, "the database " + database + " is missing");
}

void require_empty_spool(Files& files, const std::string& spool) {
  require_empty(files, spool, "the database has never been used");
}

void set_orphan_aside(Files& files, const std::string& spool, const std::string& name, Micros now) {
  Moves aside(files, spool, orphans_folder(spool) + "/" + date_of(now));
  aside.add({.name = name});
  aside.sync();
  log(Severity::warning) << "content " << name
                         << " of the spool, which could not be read, is kept in "
                         << orphans_folder(spool) << "/" << date_of(now) << " for "
                         << kKeepOrphansDays << " days";
}

void sort_out_orphans(Files& files, const std::string& spool, const std::set<std::string>& known,
                      Micros now) {
  bring_back(files, spool, known);
  try {
    set_aside(files, spool, known, now);
  } catch (const FileError& error) {  // such as no room for a folder
    log(Severity::error) << "files that the database does not refer to stay in the spool: "
                         << error.what();
  }
  remove_old(files, spool, now);
}

}  // namespace sublet::server
