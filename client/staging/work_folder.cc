#include "client/staging/work_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

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

// A job may have made a hard link to another account's file, which must not be uploaded.
bool is_own(const struct stat& info, int64_t uid) {
  return info.st_uid == (uid >= 0 ? static_cast<uid_t>(uid) : geteuid());
}

// Opens the folder `part`, creating it if needed.
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
  if (name.empty() || name[0] == '/') fail(EINVAL, name, "is not a name inside the job's folder");
  if (name.size() > kLongestName) fail(EINVAL, name.substr(0, 40), "is too long");
  if (name.find('\0') != std::string::npos) fail(EINVAL, name, "contains a NUL byte");
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
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
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
  // O_NONBLOCK: opening a pipe left by the job must not block.
  UniqueFd file(openat(at.get(), parts.back().c_str(),
                       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid()) fail_errno(errno, name);
  struct stat info;
  if (fstat(file.get(), &info) != 0) fail_errno(errno, name);
  if (!S_ISREG(info.st_mode)) fail(EINVAL, name, "is not a regular file");
  if (!is_own(info, uid)) fail(EINVAL, name, "belongs to another account");
  return {std::move(file), static_cast<uint64_t>(info.st_size)};
}

namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// Searches a folder for the files of one output, in directory order.
class Finder {
 public:
  Finder(const OutputName& output, int64_t uid, FindBounds& left, const std::function<void()>& tick)
      : output_(output), uid_(uid), left_(left), tick_(tick) {}

  // Searches `folder`, whose path is `prefix` ("" or "a/b/") with `depth` components.
  void walk(UniqueFd folder, const std::string& prefix, size_t depth) {
    if (depth < output_.depth() && output_.is_literal(depth)) {
      look_at(folder.get(), prefix, output_.literal(depth), depth);
      return;
    }
    std::unique_ptr<DIR, CloseFolder> entries(fdopendir(folder.get()));
    if (!entries) fail_errno(errno, prefix);
    folder.release();
    while (const dirent* entry = readdir(entries.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") look_at(dirfd(entries.get()), prefix, name, depth);
    }
  }
  FoundFiles take() {
    std::sort(found_.names.begin(), found_.names.end());
    return std::move(found_);
  }

 private:
  void look_at(int folder, const std::string& prefix, const std::string& name, size_t depth) {
    if (++looked_at_ % 256 == 0) tick_();
    if (left_.looked_at == 0) fail(E2BIG, prefix.substr(0, 100), "has too many entries to search");
    --left_.looked_at;
    if (depth < output_.depth() && !output_.fits(depth, name)) return;
    struct stat info;
    if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return;
      fail_errno(errno, prefix + name);
    }
    const std::string path = prefix + name;
    if (S_ISDIR(info.st_mode)) return enter(folder, path, name, depth);
    const bool covered = output_.covers(path);
    if (covered && S_ISREG(info.st_mode) && is_own(info, uid_)) return add(path);
    // A link in place of a folder is reported, too.
    if (!covered && !S_ISLNK(info.st_mode)) return;
    if (found_.others++ == 0) found_.other = path;
  }

  void enter(int parent, const std::string& path, const std::string& name, size_t depth) {
    const bool wanted = depth + 1 < output_.depth() || output_.is_folder();
    if (!wanted) return;
    if (depth + 1 == OutputName::kDeepest)
      fail(ENAMETOOLONG, path.substr(0, 100), "is nested too deeply");
    UniqueFd folder(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder.valid()) fail_errno(errno, path);
    walk(std::move(folder), path + "/", depth + 1);
  }

  void add(const std::string& path) {
    if (path.size() > kLongestName) fail(ENAMETOOLONG, path.substr(0, 40), "is too long");
    if (left_.files == 0 || left_.name_bytes < path.size())
      fail(E2BIG, path.substr(0, 100),
           "exceeds the number of output files, or of bytes in their names");
    --left_.files;
    left_.name_bytes -= path.size();
    found_.names.push_back(path);
  }

  const OutputName& output_;
  const int64_t uid_;
  FindBounds& left_;
  const std::function<void()>& tick_;
  uint64_t looked_at_ = 0;
  FoundFiles found_;
};

}  // namespace

FoundFiles find_inside(const std::string& folder, const OutputName& output, int64_t uid,
                       FindBounds& left, const std::function<void()>& tick) {
  UniqueFd root(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root.valid()) fail_errno(errno, folder);
  Finder finder(output, uid, left, tick);
  finder.walk(std::move(root), "", 0);
  return finder.take();
}

}  // namespace sublet::client
