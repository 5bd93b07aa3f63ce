#include "client/staging/spare_folders.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "attempt/folder.h"
#include "base/log.h"
#include "client/attempts/assignment.h"

namespace sublet::client {
namespace {

constexpr char kSpareFolder[] = "/spare";

// The files of every attempt that only its daemons write. They are written over. In the order in
// which they are renamed: until the assignment is, it is an attempt that has ended, and then none.
constexpr std::array<const char*, 4> kWrittenOver = {SUBLET_ORDER_FILE, kAssignmentFile,
                                                     SUBLET_RECORD_FILE, SUBLET_EXIT_FILE};
// The job's own.
constexpr std::array<const char*, 2> kFolders = {SUBLET_WORK_FOLDER, SUBLET_CHECKPOINT_FOLDER};
constexpr size_t kMostCleared = 16;
constexpr off_t kLargestCleared = 1 << 20;
constexpr std::array<const char*, 2> kTexts = {SUBLET_STDOUT_FILE, SUBLET_STDERR_FILE};

bool is_among(const auto& names, const std::string& name) {
  return std::ranges::any_of(names, [&](const char* one) { return name == one; });
}

bool has_attributes(const std::string& path) {
  return llistxattr(path.c_str(), nullptr, 0) > 0;  // access control lists, too
}

bool is_as_made(const std::string& path, int64_t uid, mode_t mode) {
  struct stat about;
  return lstat(path.c_str(), &about) == 0 && about.st_mode == mode &&
         about.st_uid == static_cast<uid_t>(uid) && about.st_gid == static_cast<gid_t>(uid) &&
         (S_ISDIR(mode) || about.st_nlink == 1) && !has_attributes(path);
}

// Removes a few small files, which costs less than a new folder. False: there is more.
bool clear(const Files& files, const std::string& folder) {
  const std::vector<FolderEntry> entries = files.list(folder);
  if (entries.size() > kMostCleared) return false;
  return std::ranges::all_of(entries, [&](const FolderEntry& entry) {
    const std::string path = folder + "/" + entry.name;
    struct stat about;
    return lstat(path.c_str(), &about) == 0 && !S_ISDIR(about.st_mode) &&
           about.st_size <= kLargestCleared && unlink(path.c_str()) == 0;
  });
}

bool is_plain(const Files& files, const std::string& folder, int64_t uid) {
  for (const FolderEntry& entry : files.list(folder)) {
    const bool known = entry.is_folder
                           ? is_among(kFolders, entry.name)
                           : is_among(kWrittenOver, entry.name) || is_among(kTexts, entry.name) ||
                                 entry.name == SUBLET_STATUS_FILE;
    if (!known) return false;
  }
  for (const char* name : kFolders) {
    const std::string path = folder + "/" + name;
    if (!is_as_made(path, uid, S_IFDIR | 0700)) return false;
  }
  return is_as_made(folder + "/" SUBLET_STATUS_FILE, uid, S_IFREG | 0600);
}

}  // namespace

SpareFolders::SpareFolders(Files& files, const std::string& state_folder, size_t most)
    : files_(files), folder_(state_folder + kSpareFolder), most_(geteuid() == 0 ? most : 0) {
  try {
    files_.remove_tree(folder_);
    if (most_ > 0) files_.make_folders(folder_, 0700, Files::Outlives::kProcess);
  } catch (const FileError& error) {
    log(Severity::warning) << error.what();
  }
}

std::optional<SpareFolders::Spare> SpareFolders::find(int64_t uid, const std::string& user) {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      spares_, [&](const Spare& one) { return one.uid == uid && one.user == user; });
  if (found == spares_.end()) return std::nullopt;
  Spare spare = std::move(*found);
  spares_.erase(found);
  return spare;
}

void SpareFolders::make(const std::string& folder, int64_t uid, const std::string& user) {
  if (const auto spare = find(uid, user))
    if (rename(spare->folder.c_str(), folder.c_str()) == 0) {
      // outlive_power() may have come too late for the attempt before.
      files_.remove_file(folder + "/" + kSyncedFile);
      if (chmod(folder.c_str(), 0711) != 0) throw FileError(errno, "open", folder);
      return;
    }
  make_attempt_folder(files_, folder, uid, uid);
}

void SpareFolders::add(Spare spare) {
  std::optional<Spare> old;
  {
    std::lock_guard lock(mutex_);
    if (spares_.size() >= most_) {
      old = std::move(spares_.front());
      spares_.pop_front();
    }
    spares_.push_back(std::move(spare));
  }
  if (old) files_.remove_tree(old->folder);
}

bool SpareFolders::take(const std::string& folder, int64_t uid, const std::string& user) {
  if (most_ == 0 || uid < 0 || !is_plain(files_, folder, uid)) return false;
  for (const char* name : kFolders)
    if (!clear(files_, folder + "/" + name)) return false;
  for (const char* name : kTexts)
    if (unlink((folder + "/" + name).c_str()) != 0 && errno != ENOENT) return false;
  for (const char* name : kWrittenOver) {
    const std::string path = folder + "/" + name;
    if (rename(path.c_str(), Files::spare_name(path).c_str()) != 0 && errno != ENOENT) return false;
  }
  std::string spare;
  {
    std::lock_guard lock(mutex_);
    spare = folder_ + "/" + std::to_string(++number_);
  }
  if (rename(folder.c_str(), spare.c_str()) != 0) return false;
  add({uid, user, spare});
  return true;
}

}  // namespace sublet::client
