#include "server/repair_commands.h"

#include <sys/stat.h>

#include <cerrno>
#include <iostream>

#include "base/account.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/os_error.h"
#include "base/text.h"
#include "server/commit/replay.h"
#include "server/commit/store.h"
#include "server/spool/spool_check.h"
#include "server/store/archive/event_files.h"
#include "server/store/repair.h"

namespace sublet::server {
namespace {

// From here on the process acts as the folder's owner, also for an administrator.
std::string database_of(const ServerSettings& settings) {
  become_owner_of(settings.state_folder);
  const std::string path = settings.state_folder + "/pool.db";
  struct stat about;
  if (stat(path.c_str(), &about) == 0) return path;
  if (errno != ENOENT && errno != ENOTDIR) throw OsError(errno, "open", path);
  throw StoreError("there is no database " + path + "; name the server's folder with --state");
}

void print(const std::vector<DamagedTable>& damaged) {
  for (const DamagedTable& table : damaged) {
    std::cout << "table " << table.name << " is damaged: " << table.findings[0];
    if (table.findings.size() > 1) std::cout << " (and " << table.findings.size() - 1 << " more)";
    std::cout << "\n";
  }
}

void print(const Salvage& salvaged) {
  for (const SalvagedTable& table : salvaged.tables) {
    if (table.refused > 0)
      std::cout << "table " << table.name << ": " << table.refused
                << (table.refused == 1 ? " row has" : " rows have")
                << " impossible values and cannot be kept\n";
    if (table.complete) continue;
    std::cout << "table " << table.name << ": " << table.rows
              << (table.rows == 1 ? " row" : " rows") << " could be read";
    if (!table.unreadable.empty()) std::cout << "; missing: some of " << table.unreadable;
    std::cout << "\n";
  }
  std::cout << "all other tables are complete\n"
            << "the damaged database is kept as " << salvaged.kept
            << "; remove it when the pool runs again\n";
}

// False: something in the spool is damaged.
bool check_spool_of(const ServerSettings& settings, const std::string& database,
                    const std::vector<DamagedTable>& damaged, bool bytes) {
  for (const DamagedTable& table : damaged)
    if (table.name.empty() || table.name == "contents") {
      std::cout << "the spool was not checked: check again after the salvage\n";
      return true;
    }
  const SpoolFindings found = check_spool(
      system_files(), settings.state_folder + "/spool", [&] { return contents_of(database); },
      bytes);
  for (const std::string& sentence : found.damage) std::cout << sentence << "\n";
  if (!found.damage.empty())
    std::cout << "restore these files from a backup; the server tells users whose files are "
                 "damaged, and jobs resume from an earlier checkpoint\n";
  for (const std::string& path : found.unused)
    std::cout
        << path
        << " belongs to nothing in the database: the server removes it, or sets it aside when it "
           "starts\n";
  return found.damage.empty();
}

// The databases in the history folder. False: one is damaged.
bool check_history_of(const ServerSettings& settings) {
  const std::string folder = settings.state_folder + "/history";
  if (!system_files().exists(folder)) return true;
  bool whole = true;
  for (const FolderEntry& entry : system_files().list(folder)) {
    if (!entry.name.ends_with(".db")) continue;
    const std::string path = folder + "/" + entry.name;
    try {
      const std::vector<DamagedTable> damaged = find_damage(path);
      if (damaged.empty()) continue;
      std::cout << path << ": table " << damaged[0].name
                << " is damaged: " << damaged[0].findings[0] << "\n";
    } catch (const StoreError& e) {
      std::cout << e.what() << "\n";
    }
    whole = false;
  }
  if (!whole)
    std::cout << "restore these files from a backup, or move them away; the pool does not need "
                 "them\n";
  return whole;
}

// False: the file does not lead to the next one.
bool print_replay(const std::string& path, const std::string& next) {
  try {
    const Replay played = replay(path);
    std::cout << path << ": " << played.events << (played.events == 1 ? " event" : " events")
              << " from " << format_instant(played.from) << " to " << format_instant(played.until);
    const std::string difference =
        !played.stopped.empty() || next.empty() ? "" : played.end.difference(books_at_head(next));
    if (!played.stopped.empty())
      std::cout << "; the rest cannot be replayed: " << played.stopped;
    else if (!difference.empty())
      std::cout << "; they do not lead to the next file: " << difference << " differs";
    else if (!next.empty())
      std::cout << "; they lead to the next file";
    std::cout << std::endl;
    return played.stopped.empty() && difference.empty();
  } catch (const StoreError& e) {
    std::cout << e.what() << std::endl;
    return false;
  }
}

}  // namespace

int check_pool(const ServerSettings& settings, bool bytes) {
  const std::string database = database_of(settings);
  const std::vector<DamagedTable> damaged = find_damage(database);
  print(damaged);
  if (!damaged.empty())
    std::cout << "stop the server and run `sublet-server salvage`: it makes a new database of all "
                 "rows that can be read, and keeps the old one\n";
  const bool spool_is_whole = check_spool_of(settings, database, damaged, bytes);
  const bool history_is_whole = check_history_of(settings);
  if (!damaged.empty() || !spool_is_whole || !history_is_whole) return 1;
  std::cout << database << ": nothing is damaged\n";
  return 0;
}

int replay_history(const ServerSettings& settings) {
  become_owner_of(settings.state_folder);
  const std::string folder = settings.state_folder + "/history";
  EventFiles history(settings.state_folder + "/pool.db", folder, system_files());
  const std::vector<EventFile> files = history.list();
  if (files.empty()) throw StoreError("there are no files of events in " + folder);
  bool good = true;
  for (size_t i = 0; i < files.size(); ++i) {
    const bool last = i + 1 == files.size();
    good = print_replay(files[i].path, last ? "" : files[i + 1].path) && good;
  }
  const uint64_t newer = history.waiting().count;
  if (newer > 0)
    std::cout << newer
              << (newer == 1 ? " newer event, still in the database, was"
                             : " newer events, still in the database, were")
              << " not replayed\n";
  return good ? 0 : 1;
}

int salvage_pool(const ServerSettings& settings) {
  const std::string database = database_of(settings);
  FolderLock lock(settings.state_folder);
  const std::vector<DamagedTable> damaged = find_damage(database);
  if (damaged.empty()) {
    std::cout << database << ": nothing is damaged; nothing was changed\n";
    return 0;
  }
  print(damaged);
  print(salvage(system_files(), database, format_instant(system_clock().utc_us())));
  return 0;
}

}  // namespace sublet::server
