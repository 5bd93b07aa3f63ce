#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/random.h"
#include "base/text.h"

namespace sublet {
namespace {

constexpr std::string_view kTemporaryPrefix = ".sublet-tmp-";

// Depth beyond which remove_tree moves folders up to the top, so that a deep tree
// cannot exhaust descriptors or the stack.
constexpr int kRemoveDepth = 32;

struct CloseFolder {
  void operator()(DIR* d) const { closedir(d); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

Folder open_entries(int folder, const std::string& path) {
  // Opened again (as "."), because a duplicate would share the read position.
  UniqueFd fd(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Folder entries(fd.valid() ? fdopendir(fd.get()) : nullptr);
  if (!entries) throw FileError(errno, "read", path);
  fd.release();
  return entries;
}

// The next name, or nullptr at the end.
const char* next_entry(DIR* entries, const std::string& path) {
  for (;;) {
    errno = 0;
    const dirent* e = readdir(entries);
    if (e == nullptr && errno != 0) throw FileError(errno, "read", path);
    if (e == nullptr) return nullptr;
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) return e->d_name;
  }
}

}  // namespace

std::string folder_of(const std::string& path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Files& system_files() {
  static Files files;
  return files;
}

int Files::before(FileStep, const std::string&) const { return 0; }
void Files::after(FileStep, const std::string&, const std::string&) {}

void Files::ask(FileStep step, const char* doing, const std::string& path) const {
  if (int code = before(step, path)) throw FileError(code, doing, path);
}

UniqueFd Files::open(const std::string& path, int flags, mode_t mode) const {
  ask(FileStep::open, "open", path);
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, mode));
  if (!fd.valid()) throw FileError(errno, "open", path);
  return fd;
}

std::string Files::read_file(const std::string& path, uint64_t max_bytes) const {
  UniqueFd fd = open(path, O_RDONLY, 0);
  ask(FileStep::read, "read", path);
  std::string bytes;
  char piece[1 << 16];
  for (;;) {
    ssize_t n = ::read(fd.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw FileError(errno, "read", path);
    if (n == 0) return bytes;
    if (static_cast<uint64_t>(n) > max_bytes - bytes.size()) {
      throw FileError(EFBIG, "read", path, "at most " + format_bytes(max_bytes) + " are allowed");
    }
    bytes.append(piece, static_cast<size_t>(n));
  }
}

void Files::write_all(int fd, const std::string& path, std::string_view bytes) {
  ask(FileStep::write, "write", path);
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw FileError(errno, "write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  after(FileStep::write, path);
}

UniqueFd Files::create(const std::string& path, mode_t mode) {
  return open(path, O_RDWR | O_CREAT | O_EXCL, mode);
}

void Files::write_at(int fd, const std::string& path, uint64_t offset, std::string_view bytes) {
  ask(FileStep::write, "write", path);
  while (!bytes.empty()) {
    ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw FileError(errno, "write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  after(FileStep::write, path);
}

void Files::reserve(int fd, const std::string& path, uint64_t bytes) {
  ask(FileStep::write, "reserve space for", path);
  const int code = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (code != 0) throw FileError(code, "reserve space for", path);
  after(FileStep::write, path);
}

UniqueFd Files::open_to_read(const std::string& path) const {
  return open(path, O_RDONLY | O_NOFOLLOW, 0);
}

size_t Files::read_at(int fd, const std::string& path, uint64_t offset,
                      std::span<char> into) const {
  ask(FileStep::read, "read", path);
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t n =
        pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw FileError(errno, "read", path);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

void Files::sync(int fd, const std::string& path) {
  ask(FileStep::sync, "sync", path);
  if (fsync(fd) != 0) throw FileError(errno, "sync", path);
  after(FileStep::sync, path);
}

void Files::sync_file(const std::string& path) {
  const UniqueFd fd = open(path, O_RDONLY, 0);
  sync(fd.get(), path);
}

bool Files::sync_below(int folder, const std::string& path, size_t* left) {
  constexpr int kLook = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(dup(folder)), closedir);
  if (!entries) return false;
  while (const dirent* entry = readdir(entries.get())) {
    const std::string name = entry->d_name;
    const bool has_contents =
        entry->d_type == DT_REG || entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
    if (name == "." || name == ".." || !has_contents) continue;
    const UniqueFd fd(openat(folder, name.c_str(), kLook));
    struct stat about;
    if ((*left)-- == 0 || !fd.valid() || fstat(fd.get(), &about) != 0) return false;
    if (S_ISREG(about.st_mode)) sync(fd.get(), path + "/" + name);
    if (S_ISDIR(about.st_mode) && !sync_below(fd.get(), path + "/" + name, left)) return false;
  }
  sync(folder, path);
  return true;
}

void Files::sync_tree(const std::string& path, size_t most) {
  const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid() && errno == ENOENT) return;
  if (!folder.valid()) throw FileError(errno, "open", path);
  if (sync_below(folder.get(), path, &most)) return;
  ask(FileStep::sync, "sync", path);
  if (syncfs(folder.get()) != 0) throw FileError(errno, "sync", path);
}

void Files::link(const std::string& from, const std::string& to) {
  ask(FileStep::link, "link to", to);
  if (::link(from.c_str(), to.c_str()) != 0) throw FileError(errno, "link to", to);
  after(FileStep::link, to, from);
}

void Files::rename(const std::string& from, const std::string& to) {
  ask(FileStep::rename, "rename to", to);
  if (::rename(from.c_str(), to.c_str()) != 0) throw FileError(errno, "rename to", to);
  after(FileStep::rename, to, from);
}

void Files::remove_quietly(const std::string& path) {
  // Ignores errors: the caller is about to throw the original one.
  if (before(FileStep::remove, path) == 0 && unlink(path.c_str()) == 0) {
    after(FileStep::remove, path);
  }
}

void Files::write_atomic(const std::string& path, std::string_view bytes, mode_t mode,
                         Outlives outlives) {
  const std::string temporary =
      folder_of(path) + "/" + std::string(kTemporaryPrefix) + hex_encode(random_bytes(8));
  UniqueFd fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL, mode);
  write_through(fd, temporary, path, bytes, mode, outlives);
}

void Files::write_through(const UniqueFd& fd, const std::string& temporary, const std::string& path,
                          std::string_view bytes, mode_t mode, Outlives outlives) {
  try {
    struct stat before;
    if (fstat(fd.get(), &before) != 0) throw FileError(errno, "examine", temporary);
    // The umask may have cleared bits.
    const bool has_mode = (before.st_mode & 07777) == mode;
    if (!has_mode && fchmod(fd.get(), mode) != 0)
      throw FileError(errno, "set the mode of", temporary);
    write_all(fd.get(), temporary, bytes);
    const auto size = static_cast<off_t>(bytes.size());
    if (before.st_size > size && ftruncate(fd.get(), size) != 0)
      throw FileError(errno, "set the size of", temporary);
    if (outlives == Outlives::kPower) sync(fd.get(), temporary);
    rename(temporary, path);
  } catch (const FileError& e) {
    remove_quietly(temporary);
    throw FileError(e.code(), e.doing(), path, e.advice());
  }
  if (outlives == Outlives::kPower) sync_folder(folder_of(path));
}

std::string Files::spare_name(const std::string& path) {
  const size_t name = path.rfind('/') + 1;
  return path.substr(0, name) + "." + path.substr(name) + ".new";
}

void Files::write_over(const std::string& path, std::string_view bytes, Outlives outlives) {
  constexpr mode_t kMode = 0600;
  const std::string temporary = spare_name(path);
  UniqueFd fd = open(temporary, O_WRONLY | O_CREAT | O_NOFOLLOW, kMode);
  write_through(fd, temporary, path, bytes, kMode, outlives);
}

void Files::append(const std::string& path, std::string_view bytes, mode_t mode) {
  const bool is_new = !exists(path);
  UniqueFd fd = open(path, O_WRONLY | O_CREAT | O_APPEND, mode);
  struct stat st;
  if (fstat(fd.get(), &st) != 0) throw FileError(errno, "examine", path);
  try {
    if (is_new && fchmod(fd.get(), mode) != 0) throw FileError(errno, "set the mode of", path);
    write_all(fd.get(), path, bytes);
    sync(fd.get(), path);
    if (is_new) sync_folder(folder_of(path));
  } catch (const FileError& e) {
    if (before(FileStep::write, path) != 0 || ftruncate(fd.get(), st.st_size) != 0) {
      throw FileError(e.code(), e.doing(), path, "and it could not be truncated to its old size");
    }
    throw;
  }
}

void Files::move(const std::string& from, const std::string& to) {
  rename(from, to);
  sync_folder(folder_of(to));
  if (folder_of(from) != folder_of(to)) sync_folder(folder_of(from));
}

bool Files::remove_file(const std::string& path) {
  ask(FileStep::remove, "remove", path);
  if (unlink(path.c_str()) != 0) {
    if (errno == ENOENT) return false;
    throw FileError(errno, "remove", path);
  }
  after(FileStep::remove, path);
  return true;
}

void Files::make_folders(const std::string& path, mode_t mode, Outlives outlives) {
  struct stat st;
  if (stat(path.c_str(), &st) == 0) {
    if (!S_ISDIR(st.st_mode)) throw FileError(ENOTDIR, "make the folder", path);
    return;
  }
  const std::string above = folder_of(path);
  if (above != path) make_folders(above, mode, outlives);
  ask(FileStep::make_folder, "make the folder", path);
  if (mkdir(path.c_str(), mode) != 0) {
    const int error = errno;
    if (error != EEXIST) throw FileError(error, "make the folder", path);
    // Created meanwhile, or a symbolic link that leads nowhere.
    if (stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return;
    throw FileError(ENOTDIR, "make the folder", path);
  }
  if (chmod(path.c_str(), mode) != 0) throw FileError(errno, "set the mode of", path);
  after(FileStep::make_folder, path);
  if (outlives == Outlives::kPower) sync_folder(above);
}

// The state of one remove_some.
struct Files::Removal {
  int top;
  uint64_t left;  // entries that may still be removed
  uint64_t moved = 0;
};

bool Files::remove_some(const std::string& path, uint64_t most) {
  ask(FileStep::remove, "remove", path);
  if (unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return true;
  if (errno != EISDIR) throw FileError(errno, "remove", path);
  UniqueFd top(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!top.valid()) throw FileError(errno, "remove", path);
  Removal removal{top.get(), most};
  uint64_t moved;
  do {
    moved = removal.moved;
    empty_folder(removal, top.get(), path, 0);
  } while (removal.moved != moved && removal.left > 0);
  if (removal.left == 0) return false;
  if (rmdir(path.c_str()) != 0) throw FileError(errno, "remove", path);
  after(FileStep::remove, path);
  return true;
}

void Files::empty_folder(Removal& removal, int folder, const std::string& path, int depth) {
  Folder entries = open_entries(folder, path);
  while (const char* name = next_entry(entries.get(), path)) {
    if (removal.left == 0) return;
    remove_entry(removal, folder, path, name, depth);
  }
}

void Files::remove_entry(Removal& removal, int folder, const std::string& path, const char* name,
                         int depth) {
  const std::string inner = path + "/" + name;
  ask(FileStep::remove, "remove", inner);
  int done = unlinkat(folder, name, 0);
  if (done != 0 && errno == EACCES && fchmod(folder, 0700) == 0) done = unlinkat(folder, name, 0);
  if (done == 0) --removal.left;
  if (done == 0 || errno == ENOENT) return;
  if (errno != EISDIR) throw FileError(errno, "remove", inner);
  if (depth == kRemoveDepth) {
    const std::string top_name = std::string(kTemporaryPrefix) + std::to_string(++removal.moved);
    if (renameat(folder, name, removal.top, top_name.c_str()) != 0) {
      throw FileError(errno, "remove", inner);
    }
    return;
  }
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd child(openat(folder, name, kFlags));
  if (!child.valid() && errno == EACCES && fchmodat(folder, name, 0700, 0) == 0) {
    child.reset(openat(folder, name, kFlags));
  }
  if (!child.valid()) throw FileError(errno, "remove", inner);
  empty_folder(removal, child.get(), inner, depth + 1);
  if (removal.left == 0) return;
  --removal.left;
  if (unlinkat(folder, name, AT_REMOVEDIR) != 0) throw FileError(errno, "remove", inner);
}

std::vector<FolderEntry> Files::list(const std::string& path) const {
  ask(FileStep::list, "read", path);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) throw FileError(errno, "read", path);
  Folder entries = open_entries(fd.get(), path);
  std::vector<FolderEntry> result;
  while (const char* name = next_entry(entries.get(), path)) {
    struct stat st;
    if (fstatat(fd.get(), name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;  // gone meanwhile
    const bool is_folder = S_ISDIR(st.st_mode);
    result.push_back({name, is_folder, is_folder ? 0 : static_cast<uint64_t>(st.st_size)});
  }
  std::sort(result.begin(), result.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  return result;
}

bool Files::exists(const std::string& path) const {
  struct stat st;
  return lstat(path.c_str(), &st) == 0;
}

uint64_t Files::free_bytes(const std::string& path) const {
  struct statvfs st;
  if (statvfs(path.c_str(), &st) != 0) throw FileError(errno, "get the free space of", path);
  return uint64_t{st.f_bavail} * st.f_frsize;
}

void Files::sync_folder(const std::string& path) {
  UniqueFd fd = open(path, O_RDONLY | O_DIRECTORY, 0);
  ask(FileStep::sync_folder, "sync", path);
  if (fsync(fd.get()) != 0) throw FileError(errno, "sync", path);
  after(FileStep::sync_folder, path);
}

void Files::remove_leftovers(const std::string& folder) {
  for (const FolderEntry& entry : list(folder)) {
    if (entry.name.starts_with(kTemporaryPrefix)) remove_tree(folder + "/" + entry.name);
  }
}

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = folder + "/lock";
  fd_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd_.valid()) throw FileError(errno, "open", path);
  if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    const int code = errno;
    if (code != EWOULDBLOCK) throw FileError(code, "lock", path);
    char pid[24] = "";
    ssize_t n = pread(fd_.get(), pid, sizeof pid - 1, 0);
    int holder = 0;
    if (n > 0) std::from_chars(pid, pid + n, holder);
    throw FileError(EBUSY, "use the folder", folder,
                    (holder > 0 ? "process " + std::to_string(holder) : "another process") +
                        " is using it: stop that process first, or choose another folder");
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd_.get(), 0) != 0 ||
      pwrite(fd_.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    throw FileError(errno, "write", path);
  }
}

}  // namespace sublet
