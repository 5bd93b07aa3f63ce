#include "client/work_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace sublet::client {
namespace {

constexpr size_t kMostComponents = 64;
constexpr size_t kLongestName = 4095;

[[noreturn]] void fail(int code, const std::string& name, const std::string& what) {
  throw WorkFolderError(code, "'" + escape_for_terminal(name) + "' " + what);
}

[[noreturn]] void fail_errno(int code, const std::string& name) {
  if (code == ELOOP || code == ENOTDIR) fail(code, name, "leads through a symbolic link or a file");
  if (code == ENOENT) fail(code, name, "does not exist");
  fail(code, name, std::string("cannot be opened: ") + std::strerror(code));
}

UniqueFd open_folder(int parent, const std::string& part) {
  return UniqueFd(openat(parent, part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void give_to(int fd, int64_t uid, const std::string& name) {
  if (uid < 0) return;
  if (fchown(fd, static_cast<uid_t>(uid), static_cast<gid_t>(uid)) != 0) fail_errno(errno, name);
}

// Opens or makes the folder `part`.
UniqueFd enter(const UniqueFd& parent, const std::string& part, int64_t uid,
               const std::string& name) {
  bool made = mkdirat(parent.get(), part.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) fail_errno(errno, name);
  UniqueFd folder(
      openat(parent.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) fail_errno(errno, name);
  if (made) give_to(folder.get(), uid, name);
  return folder;
}

}  // namespace

std::vector<std::string> split_name(const std::string& name) {
  if (name.empty() || name[0] == '/') fail(EINVAL, name, "is no name inside the job's folder");
  if (name.size() > kLongestName) fail(EINVAL, name.substr(0, 40), "is too long a name");
  if (name.find('\0') != std::string::npos) fail(EINVAL, name, "holds a NUL byte");
  std::vector<std::string> parts;
  for (size_t from = 0; from <= name.size();) {
    size_t to = std::min(name.find('/', from), name.size());
    std::string part = name.substr(from, to - from);
    if (part == "..") fail(EINVAL, name, "leads out of the job's folder");
    if (part.empty() && to == name.size()) fail(EINVAL, name, "names a folder, not a file");
    if (!part.empty() && part != ".") parts.push_back(part);
    from = to + 1;
  }
  if (parts.empty() || name.ends_with("/.")) fail(EINVAL, name, "names a folder, not a file");
  if (parts.size() > kMostComponents) fail(EINVAL, name, "has too many folders");
  return parts;
}

UniqueFd create_inside(const std::string& folder, const std::string& name, bool executable,
                       int64_t uid) {
  std::vector<std::string> parts = split_name(name);
  UniqueFd at(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!at.valid()) fail_errno(errno, folder);
  for (size_t i = 0; i + 1 < parts.size(); ++i) at = enter(at, parts[i], uid, name);
  if (unlinkat(at.get(), parts.back().c_str(), 0) != 0 && errno != ENOENT) fail_errno(errno, name);
  UniqueFd file(openat(at.get(), parts.back().c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       executable ? 0700 : 0600));
  if (!file.valid()) fail_errno(errno, name);
  if (fchmod(file.get(), executable ? 0700 : 0600) != 0) fail_errno(errno, name);
  give_to(file.get(), uid, name);
  return file;
}

OpenedFile open_inside(const std::string& folder, const std::string& name, int64_t uid) {
  std::vector<std::string> parts = split_name(name);
  UniqueFd at(open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!at.valid()) fail_errno(errno, folder);
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    at = open_folder(at.get(), parts[i]);
    if (!at.valid()) fail_errno(errno, name);
  }
  // O_NONBLOCK: a pipe that the job left here must not hold us up.
  UniqueFd file(openat(at.get(), parts.back().c_str(),
                       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid()) fail_errno(errno, name);
  struct stat info;
  if (fstat(file.get(), &info) != 0) fail_errno(errno, name);
  if (!S_ISREG(info.st_mode)) fail(EINVAL, name, "is no regular file");
  // A hard link to a file that is not the job's own must not leave the machine.
  uid_t own = uid >= 0 ? static_cast<uid_t>(uid) : geteuid();
  if (info.st_uid != own) fail(EINVAL, name, "belongs to another account");
  return {std::move(file), static_cast<uint64_t>(info.st_size)};
}

}  // namespace sublet::client
