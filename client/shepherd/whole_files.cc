#include "client/shepherd/whole_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/shepherd/system.h"

namespace sublet::shepherd {
namespace {

// The stack is locked memory, of which an ordinary user has little.
constexpr int kDeepest = 8;
constexpr size_t kEntriesBytes = 1024;
constexpr size_t kMostNumbers = 64;  // octets of what precedes a name

class Opened {
 public:
  explicit Opened(int fd) : fd_(fd) {}
  ~Opened() {
    if (fd_ >= 0) close(fd_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

int open_folder(int at, const char* name) {
  return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// The kernel gives a read lease only on a file that nobody has open, or mapped, for writing. It is
// given back at once: nobody is to wait for it. A file system without leases: false.
bool is_whole(int file) {
  if (fcntl(file, F_SETLEASE, F_RDLCK) != 0) return false;
  fcntl(file, F_SETLEASE, F_UNLCK);
  return true;
}

bool is_ascii(const char* text, size_t length) {
  for (size_t i = 0; i < length; ++i)
    if (static_cast<unsigned char>(text[i]) >= 0x80) return false;
  return true;
}

// Whether a name may match a component of a pattern. Characters beyond ASCII are several bytes,
// which fnmatch() without a locale takes for as many characters: then it may.
bool may_match(const char* pattern, size_t length, const char* name) {
  char component[NAME_MAX + 1];
  if (length == 0 || length > NAME_MAX) return true;
  if (!is_ascii(pattern, length) || !is_ascii(name, strlen(name))) return true;
  memcpy(component, pattern, length);
  component[length] = '\0';
  return fnmatch(component, name, FNM_PERIOD) == 0;
}

}  // namespace

// The path of the folder being looked at, below the working folder, with a slash at its end.
struct WholeFiles::Name {
  char text[SUBLET_PATH_MAX_BYTES + 1];
  size_t length;
  int depth;
};

// Before each file: opening one may take as long as the disk does.
bool WholeFiles::is_late() {
  if (boot_now() >= until_) incomplete_ = true;
  return incomplete_;
}

void WholeFiles::look_at(int folder, const char* entry, const Name& name) {
  const size_t length = strlen(entry);
  const size_t needed = kMostNumbers + name.length + length + 1;
  if (is_late()) return;
  if (name.length + length >= sizeof name.text || needed > size_ - used_) {
    incomplete_ = true;
    return;
  }
  const Opened file(
      openat(folder, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info;
  if (file.fd() < 0 || fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  if (!is_whole(file.fd())) return;
  used_ += static_cast<size_t>(
      snprintf(names_ + used_, kMostNumbers, "%lld %lld %ld ", static_cast<long long>(info.st_size),
               static_cast<long long>(info.st_ctim.tv_sec), info.st_ctim.tv_nsec));
  memcpy(names_ + used_, name.text, name.length);
  memcpy(names_ + used_ + name.length, entry, length + 1);
  used_ += name.length + length + 1;
}

// `pattern`: what follows the component that `entry` is taken for: "", or from the slash on.
void WholeFiles::find(int folder, const char* pattern, const char* entry, size_t length,
                      Name& name) {
  char component[NAME_MAX + 1];
  if (length > NAME_MAX || is_late()) return;
  memcpy(component, entry, length);
  component[length] = '\0';
  if (*pattern == '\0') return look_at(folder, component, name);
  if (name.depth == kDeepest || name.length + length + 1 >= sizeof name.text) {
    incomplete_ = true;
    return;
  }
  const Opened inner(open_folder(folder, component));
  if (inner.fd() < 0) return;
  const size_t before = name.length;
  memcpy(name.text + before, component, length);
  name.text[before + length] = '/';
  name.length = before + length + 1;
  ++name.depth;
  visit(inner.fd(), pattern + 1, name);
  --name.depth;
  name.length = before;
}

// Names that are no patterns are opened. For patterns entries are looked at that may match: the
// client knows better. `pattern` "": all that is in the folder.
void WholeFiles::visit(int folder, const char* pattern, Name& name) {
  const char* const end = strchrnul(pattern, '/');
  const auto length = static_cast<size_t>(end - pattern);
  if (length > 0 && strcspn(pattern, "*?[\\") >= length)
    return find(folder, end, pattern, length, name);
  alignas(dirent64) char entries[kEntriesBytes];
  for (;;) {
    const ssize_t read = getdents64(folder, entries, sizeof entries);
    if (read <= 0) return;
    for (ssize_t at = 0; at < read;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
      if (is_late()) return;
      if (!may_match(pattern, length, entry->d_name)) continue;
      // Below a folder that is named whole, a folder is one, too.
      const bool below = length == 0 && entry->d_type == DT_DIR;
      find(folder, below ? "/" : end, entry->d_name, strlen(entry->d_name), name);
    }
  }
}

void WholeFiles::look(int folder, const sublet_order& order, int64_t until) {
  used_ = 0;
  until_ = until;
  incomplete_ = false;
  const Opened work(open_folder(folder, order.work));
  if (work.fd() < 0) return;
  Name name;
  for (size_t i = 0; i < order.own_file_count; ++i) {
    name.length = 0;
    name.depth = 0;
    visit(work.fd(), order.own_files[i], name);
    lseek(work.fd(), 0, SEEK_SET);  // for the next pattern
  }
}

bool WholeFiles::write(int folder) {
  constexpr char kAll[] = "all";
  if (all_) return write_atomically(folder, SUBLET_WHOLE_FILE, kAll, sizeof kAll - 1);
  if (incomplete_ && used_ < size_) names_[used_++] = '\0';
  return write_atomically(folder, SUBLET_WHOLE_FILE, names_, used_);
}

}  // namespace sublet::shepherd
