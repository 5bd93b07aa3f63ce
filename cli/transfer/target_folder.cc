#include "cli/transfer/target_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/names.h"
#include "cli/pool/pool.h"

namespace sublet::cli {

namespace {

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

[[noreturn]] void fail(int code, const std::string& doing, const std::string& path) {
  if (code == ELOOP || code == ENOTDIR)
    throw PoolError(ErrorKind::invalid, "output.link",
                    path + " is a symbolic link or not a folder, and is not followed",
                    "remove it or fetch into another folder", path);
  if (code == EISDIR)
    throw PoolError(ErrorKind::invalid, "output.write", path + " is a folder",
                    "remove it or fetch into another folder", path);
  OsError error(code, doing, path);
  bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  throw PoolError(full ? ErrorKind::limit_exceeded : ErrorKind::invalid,
                  full ? "output.disk" : "output.write", error.what(), "", path);
}

// Opens a subfolder, creating it if missing.
UniqueFd enter(int folder, const std::string& part, const std::string& shown) {
  for (int tries = 0;; ++tries) {
    UniqueFd next(openat(folder, part.c_str(), kFolderFlags | O_NOFOLLOW));
    if (next.valid()) return next;
    if (errno != ENOENT || tries > 0) fail(errno, "open", shown);
    if (mkdirat(folder, part.c_str(), 0777) != 0 && errno != EEXIST) fail(errno, "make", shown);
  }
}

void check_permission(int folder, const std::string& name, const std::string& shown) {
  if (faccessat(folder, name.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    fail(errno, "write to", shown == "." ? "the current folder" : shown);
}

}  // namespace

void TargetFolder::check_possible(const std::string& path) {
  std::string there = path;  // it, or the nearest folder around it that exists
  struct stat s {};
  for (; stat(there.c_str(), &s) != 0; there = folder_of(there)) {
    if (errno != ENOENT || folder_of(there) == there) fail(errno, "open the folder", path);
    if (lstat(there.c_str(), &s) == 0) fail(ELOOP, "open the folder", there);  // leads nowhere
  }
  if (!S_ISDIR(s.st_mode)) fail(ENOTDIR, "open the folder", there);
  check_permission(AT_FDCWD, there, there);
}

TargetFolder::TargetFolder(const std::string& path) : path_(path) {
  try {
    system_files().make_folders(path_, 0777);
  } catch (const FileError& e) {
    fail(e.code(), "make the folder", path_);
  }
  fd_.reset(open(path_.c_str(), kFolderFlags));
  if (!fd_.valid()) fail(errno, "open the folder", path_);
}

void TargetFolder::check_writable() const { check_permission(fd_.get(), ".", path_); }

void TargetFolder::check(const std::string& name) {
  std::string normal;
  std::string wrong = check_relative_name(name, &normal);
  if (!wrong.empty())
    throw PoolError(
        ErrorKind::invalid, "output.name", "an output called '" + name + "' is refused: " + wrong,
        "nothing was written; correct the job's output names to fetch the other outputs", name);
}

std::unique_ptr<TargetFolder::Pending> TargetFolder::begin(const std::string& name) const {
  check(name);
  std::string normal;
  check_relative_name(name, &normal);
  UniqueFd folder(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!folder.valid()) fail(errno, "open the folder", path_);
  size_t at = 0;
  for (size_t slash; (slash = normal.find('/', at)) != std::string::npos; at = slash + 1)
    folder =
        enter(folder.get(), normal.substr(at, slash - at), path_ + "/" + normal.substr(0, slash));
  return std::unique_ptr<Pending>(
      new Pending(std::move(folder), normal.substr(at), path_ + "/" + normal));
}

TargetFolder::Pending::Pending(UniqueFd folder, std::string name, std::string shown)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      temporary_(".sublet-" + hex_encode(random_bytes(8)) + ".part"),
      shown_(std::move(shown)) {
  // Set before openat, so that an interrupt right after it removes the file.
  guard_ = std::make_unique<WhenInterrupted>(
      [folder = folder_.get(), name = temporary_] { unlinkat(folder, name.c_str(), 0); });
  file_.reset(openat(folder_.get(), temporary_.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file_.valid()) fail(errno, "write", shown_);
}

TargetFolder::Pending::~Pending() {
  if (!committed_) unlinkat(folder_.get(), temporary_.c_str(), 0);
}

void TargetFolder::Pending::write(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(file_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno, "write", shown_);
    bytes.remove_prefix(static_cast<size_t>(n));
    size_ += static_cast<uint64_t>(n);
  }
  writeback_.written(file_.get(), size_);
}

void TargetFolder::Pending::commit() {
  if (fsync(file_.get()) != 0) fail(errno, "write", shown_);
  if (renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) != 0)
    fail(errno, "rename", shown_);
  committed_ = true;
  if (fsync(folder_.get()) != 0) fail(errno, "sync the folder of", shown_);
}

}  // namespace sublet::cli
