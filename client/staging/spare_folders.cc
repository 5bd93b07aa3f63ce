#include "client/staging/spare_folders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

#include "attempt/folder.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "client/attempts/assignment.h"
#include "client/machine/folder_names.h"

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

bool is_among(const auto& names, std::string_view name) {
  return std::ranges::any_of(names, [&](const char* one) { return name == one; });
}

// The kernel would wait for the other end of a pipe.
UniqueFd open_there(int folder, const char* name, int flags) {
  return UniqueFd(openat(folder, name, flags | O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

uint64_t bytes_of(const struct stat& about) {
  constexpr uint64_t kBlock = 512;  // unit of st_blocks on every file system
  return static_cast<uint64_t>(about.st_blocks) * kBlock;
}

// What it takes of the disk (bytes); none: it is not.
std::optional<uint64_t> is_as_made(const UniqueFd& opened, int64_t uid, mode_t mode) {
  struct stat about;
  const bool is = opened.valid() && fstat(opened.get(), &about) == 0 && about.st_mode == mode &&
                  about.st_uid == static_cast<uid_t>(uid) &&
                  about.st_gid == static_cast<gid_t>(uid) &&
                  (S_ISDIR(mode) || about.st_nlink == 1) &&
                  flistxattr(opened.get(), nullptr, 0) <= 0;  // access control lists, too
  return is ? std::optional(bytes_of(about)) : std::nullopt;
}

// Until the next attempt begins.
bool is_closed(int folder) {
  struct stat about;
  if (fstat(folder, &about) != 0) return false;
  return (about.st_mode & 077) == 0 || fchmod(folder, 0700) == 0;
}

// Removes a few small files, which costs less than a new folder. False: there is more.
bool clear(int folder) {
  std::vector<std::string> found;
  FolderNames names(folder);
  while (const dirent64* entry = names.next()) {
    if (found.size() == kMostCleared) return false;
    found.emplace_back(entry->d_name);
  }
  return !names.failed() && std::ranges::all_of(found, [folder](const std::string& name) {
    struct stat about;
    return fstatat(folder, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0 &&
           !S_ISDIR(about.st_mode) && about.st_size <= kLargestCleared &&
           unlinkat(folder, name.c_str(), 0) == 0;
  });
}

bool is_folder(int above, const dirent64& entry) {
  struct stat about;
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  return fstatat(above, entry.d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(about.st_mode);
}

enum class Texts { kMayBe, kNone };

bool has_only_known_names(int folder, Texts texts) {
  FolderNames names(folder);
  while (const dirent64* entry = names.next()) {
    const std::string_view name = entry->d_name;
    const bool known = is_folder(folder, *entry)
                           ? is_among(kFolders, name)
                           : is_among(kWrittenOver, name) || name == SUBLET_STATUS_FILE ||
                                 (texts == Texts::kMayBe && is_among(kTexts, name));
    if (!known) return false;
  }
  return !names.failed();
}

bool is_empty(int folder) {
  FolderNames names(folder);
  return names.next() == nullptr && !names.failed();
}

// So that it is as a new one, but for what is written over. False: it cannot be used again.
bool make_plain(int folder, int64_t uid) {
  if (!has_only_known_names(folder, Texts::kMayBe)) return false;
  const UniqueFd status = open_there(folder, SUBLET_STATUS_FILE, 0);
  if (!is_as_made(status, uid, S_IFREG | 0600)) return false;
  std::array<UniqueFd, kFolders.size()> inner;
  for (size_t i = 0; i < kFolders.size(); ++i) {
    inner[i] = open_there(folder, kFolders[i], O_DIRECTORY);
    if (!is_as_made(inner[i], uid, S_IFDIR | 0700)) return false;
  }
  for (const UniqueFd& one : inner)
    if (!clear(one.get())) return false;
  return std::ranges::all_of(kTexts, [folder](const char* name) {
    return unlinkat(folder, name, 0) == 0 || errno == ENOENT;
  });
}

bool set_aside(int folder, const char* name) {
  const std::string spare = Files::spare_name(name);
  return renameat(folder, name, folder, spare.c_str()) == 0 || errno == ENOENT;
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

std::optional<uint64_t> SpareFolders::untouched(const std::string& folder, int64_t uid) const {
  if (most_ == 0 || uid < 0) return std::nullopt;
  const UniqueFd opened = open_there(AT_FDCWD, folder.c_str(), O_DIRECTORY);
  if (!opened.valid() || !is_closed(opened.get()) ||
      !has_only_known_names(opened.get(), Texts::kNone))
    return std::nullopt;
  const UniqueFd status = open_there(opened.get(), SUBLET_STATUS_FILE, 0);
  auto bytes = is_as_made(status, uid, S_IFREG | 0600);
  for (const char* name : kFolders) {
    const UniqueFd inner = open_there(opened.get(), name, O_DIRECTORY);
    const auto more = is_as_made(inner, uid, S_IFDIR | 0700);
    if (!bytes || !more || !is_empty(inner.get())) return std::nullopt;
    *bytes += *more;
  }
  struct stat about;
  for (const char* name : kWrittenOver)
    if (fstatat(opened.get(), name, &about, AT_SYMLINK_NOFOLLOW) == 0) *bytes += bytes_of(about);
  return bytes;
}

bool SpareFolders::take(const std::string& folder, int64_t uid, const std::string& user,
                        bool is_untouched) {
  if (most_ == 0 || uid < 0) return false;
  const UniqueFd opened = open_there(AT_FDCWD, folder.c_str(), O_DIRECTORY);
  if (!opened.valid()) return false;
  if (!is_untouched && (!is_closed(opened.get()) || !make_plain(opened.get(), uid))) return false;
  for (const char* name : kWrittenOver)
    if (!set_aside(opened.get(), name)) return false;
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
