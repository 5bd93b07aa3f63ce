#include "client/shepherd/walls/places.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "client/shepherd/system.h"

namespace sublet::shepherd {
namespace {

constexpr int kMostNames = 4096;
constexpr unsigned long kTame = MS_NOSUID | MS_NODEV;

constexpr const char* kFolders[] = {"/tmp", "/var/tmp"};
constexpr time_t kJustNow = 2;  // seconds

bool unchanged(int folder, const timespec& since) {
  struct stat about;
  return since.tv_sec != 0 && fstat(folder, &about) == 0 && about.st_mtim.tv_sec == since.tv_sec &&
         about.st_mtim.tv_nsec == since.tv_nsec;
}

void remove_own(int folder, const char* name, uid_t uid) {
  struct stat about;
  if (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0 || about.st_uid != uid) return;
  unlinkat(folder, name, S_ISDIR(about.st_mode) ? AT_REMOVEDIR : 0);
}

void sweep_one(const char* path, uid_t uid, const timespec& noted) {
  const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(dirent64) char entries[2048];
  for (int names = unchanged(folder, noted) ? kMostNames : 0; names < kMostNames;) {
    const ssize_t read = getdents64(folder, entries, sizeof entries);
    if (read <= 0) break;
    for (ssize_t at = 0; at < read; ++names) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      remove_own(folder, entry->d_name, uid);
      at += entry->d_reclen;
    }
  }
  close(folder);
}

// Whether `path` is `folder` or lies in it; both are canonical.
bool lies_in(const char* path, const char* folder) {
  const size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

// Opens a path from the root on, no symbolic link on the way, so that whoever can write to one of
// its folders cannot lead elsewhere. `make`: creates what is missing, folders, and a file at its
// end if `file`. -1 with errno. New folders cannot be listed, but for those of devices: programs
// look there for what there is.
int walk(const char* path, bool make, bool file) {
  const mode_t mode = lies_in(path, "/dev") ? 0755 : 0711;
  int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (!path[1]) return at;
  while (at >= 0 && *path) {
    const size_t length = strcspn(++path, "/");
    char part[NAME_MAX + 1] = {};
    errno = ENAMETOOLONG;
    if (length >= sizeof part) return -1;
    memcpy(part, path, length);
    path += length;
    const bool last = !*path;
    if (make && last && file) {
      const int created = openat(at, part, O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
      if (created >= 0) close(created);
    } else if (make && mkdirat(at, part, mode) != 0 && errno != EEXIST) {
      return -1;
    }
    const int next = openat(at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC | (last ? 0 : O_DIRECTORY));
    close(at);
    at = next;
  }
  return at;
}

// The name of an open file, for mount().
struct NameOf {
  explicit NameOf(int fd) { snprintf(text, sizeof text, "/proc/self/fd/%d", fd); }
  char text[32];
};

// Shows the folder above this process's, which is that of this path, where it is covered.
bool show_above(const char* path) {
  char above[PATH_MAX];
  strcpy(above, path);
  if (char* slash = strrchr(above, '/')) *slash = 0;
  constexpr unsigned kBoth = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
  const int tree = open_tree(AT_FDCWD, "..", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  const int point = walk(above, true, false);
  const bool shown = tree >= 0 && point >= 0 && move_mount(tree, "", point, "", kBoth) == 0;
  for (const int opened : {tree, point})
    if (opened >= 0) close(opened);
  return shown;
}

bool note_fresh(const char* path, FreshPlaces* fresh) {
  const int number = fresh->count;
  if (number == FreshPlaces::kMost || strlen(path) >= sizeof fresh->path[0]) return false;
  strcpy(fresh->path[number], path);
  fresh->names[number] = count_names(AT_FDCWD, path);
  ++fresh->count;
  return fresh->names[number] >= 0;
}

constexpr const char* kDevices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                    "/dev/random", "/dev/urandom", "/dev/tty"};

struct Link {
  const char* path;
  const char* target;
};
constexpr Link kDeviceLinks[] = {{"/dev/fd", "/proc/self/fd"},
                                 {"/dev/stdin", "/proc/self/fd/0"},
                                 {"/dev/stdout", "/proc/self/fd/1"},
                                 {"/dev/stderr", "/proc/self/fd/2"},
                                 {"/dev/ptmx", "pts/ptmx"}};

constexpr char kCgroups[] = "/sys/fs/cgroup";
constexpr char kEmpty[] = "mode=0711,size=1m,nr_inodes=4096";
constexpr char kFewDevices[] = "mode=0755,size=1m,nr_inodes=1024";
constexpr char kSmall[] = "mode=1777,size=1m,nr_inodes=4096";

}  // namespace

// If an older client wrote no such file, or somebody has removed it: what is hidden at least.
void Walls::hide_least() {
  static char places[][16] = {"/home", "/root", "/run/user", "/run/dbus"};
  for (char* place : places) places_.hidden[places_.hidden_count++] = place;
  // The client's state, two folders above.
  strcpy(text_, here_);
  for (int i = 0; i < 2; ++i)
    if (char* slash = strrchr(text_, '/')) *slash = 0;
  if (*text_) places_.hidden[places_.hidden_count++] = text_;
}

const char* Walls::load() {
  constexpr char kPlaces[] = "../../" SUBLET_PLACES_FILE;
  const int64_t size = read_whole(AT_FDCWD, kPlaces, text_, SUBLET_RECORD_MAX_BYTES);
  if (size < 0 && errno != ENOENT) return "places";
  if (size < 0) {
    hide_least();
    return nullptr;
  }
  unsigned line = 0;
  const char* wrong =
      sublet_format_parse(&sublet_places_format, text_, static_cast<size_t>(size), &places_, &line);
  errno = EINVAL;
  return wrong ? "places" : nullptr;
}

int Walls::walk_to(const char* path) { return walk(path, false, false); }

bool Walls::keep(const char* path, int fd) {
  place_ = path;
  struct stat about;
  if (fd < 0 || fstat(fd, &about) != 0) return false;
  errno = ELOOP;
  if (S_ISLNK(about.st_mode)) return false;
  kept_[kept_count_++] = {path, fd};
  return true;
}

// Of the attempt's folder, in which this process is: its path may be covered already. Without root
// the job could change all of it, as the record by which others find its processes.
bool Walls::keep_own() {
  constexpr int kLook = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  if (geteuid() == 0) return keep(here_, open(".", kLook));
  constexpr const char* kOwn[kMostOwn] = {SUBLET_WORK_FOLDER, SUBLET_CHECKPOINT_FOLDER,
                                          SUBLET_STATUS_FILE};
  for (size_t i = 0; i < kMostOwn; ++i) {
    const int size = snprintf(own_[i], sizeof own_[i], "%s/%s", here_, kOwn[i]);
    errno = ENAMETOOLONG;
    if (size >= static_cast<int>(sizeof own_[i]) || !keep(own_[i], open(kOwn[i], kLook)))
      return false;
  }
  return true;
}

bool Walls::keep_grants() {
  for (size_t i = 0; i < places_.grant_count; ++i)
    if (!keep(places_.grants[i])) return false;
  return true;
}

bool Walls::is_granted(const char* path) const {
  for (size_t i = 0; i < places_.grant_count; ++i)
    if (lies_in(path, places_.grants[i])) return true;
  return false;
}

bool Walls::is_covered(const char* path) const {
  for (size_t i = 0; i < cover_count_; ++i)
    if (lies_in(path, covers_[i])) return true;
  return false;
}

bool Walls::note_cover(const char* path, bool* failed) {
  place_ = path;
  char* const real = covers_[cover_count_];
  struct stat about;
  if (!realpath(path, real) || lstat(real, &about) != 0) {
    *failed = errno != ENOENT && errno != ENOTDIR;
    return false;
  }
  if (!S_ISDIR(about.st_mode) || is_granted(real)) return false;
  ++cover_count_;
  return true;
}

// `source`: the name of a new folder in the attempt's. Closed to all but root until
// finish_covers().
bool Walls::cover_with_folder(const char* path, const char* source) {
  bool failed = false;
  if (!note_cover(path, &failed)) return !failed;
  const char* const cover = covers_[cover_count_ - 1];
  struct statvfs about;
  if (mkdir(source, 0700) != 0 || statvfs(source, &about) != 0 ||
      mount(source, cover, nullptr, MS_BIND, nullptr) != 0)
    return false;
  // The disk's own restriction stays: in a container it may not be lifted, elsewhere it should not.
  const unsigned long own = about.f_flag & ST_NOEXEC ? MS_NOEXEC : 0;
  return mount(nullptr, cover, nullptr, MS_REMOUNT | MS_BIND | kTame | own, nullptr) == 0;
}

bool Walls::cover_with(const char* type, const char* path, const char* options) {
  bool failed = false;
  if (!note_cover(path, &failed)) return !failed;
  return mount(type, covers_[cover_count_ - 1], type, kTame, options) == 0;
}

bool Walls::keep_devices() {
  static_assert(sizeof kDevices / sizeof *kDevices == kMostDevices);
  for (const char* device : kDevices)
    if (!keep(device) && errno != ENOENT) return false;
  return true;
}

bool Walls::cover_proc() { return cover_with("proc", "/proc", nullptr); }

bool Walls::cover_devices() {
  const bool queues = access("/dev/mqueue", F_OK) == 0;
  devices_ = cover_count_;
  if (!cover_with("tmpfs", "/dev", kFewDevices)) return false;
  if (cover_count_ == devices_) return true;  // it is granted whole
  for (const char* folder : {"/dev/pts", "/dev/shm", "/dev/mqueue"})
    if ((queues || strcmp(folder, "/dev/mqueue") != 0) && mkdir(folder, 0755) != 0) return false;
  for (const auto& [path, target] : kDeviceLinks)
    if (symlink(target, path) != 0) return false;
  return mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
               "newinstance,ptmxmode=0666,mode=0600") == 0;
}

bool Walls::cover_shared(const sublet_order& order) {
  // The kernel's default limit is half of the memory.
  char shared[64] = "mode=1777";
  if (const int64_t limit = sublet_memory_limit(&order); limit > 0)
    snprintf(shared, sizeof shared, "mode=1777,size=%lld", static_cast<long long>(limit));
  return (mkdir(SUBLET_PRIVATE_FOLDER, 0700) == 0 || errno == EEXIST) &&
         cover_with_folder("/tmp", SUBLET_PRIVATE_FOLDER "/tmp") &&
         cover_with_folder("/var/tmp", SUBLET_PRIVATE_FOLDER "/var-tmp") &&
         cover_with("tmpfs", "/dev/shm", shared) && cover_with("tmpfs", "/run/lock", kSmall) &&
         cover_with("mqueue", "/dev/mqueue", nullptr);
}

bool Walls::cover_all(const sublet_order& order) {
  if (!cover_devices()) return false;
  first_fresh_ = cover_count_;
  if (!cover_shared(order)) return false;
  first_hidden_ = cover_count_;
  for (size_t i = 0; i < places_.hidden_count; ++i)
    if (!cover_with("tmpfs", places_.hidden[i], kEmpty)) return false;
  return true;
}

bool Walls::is_shown_with_another(size_t kept) const {
  for (size_t i = 0; i < kept_count_; ++i)
    if (i != kept && lies_in(kept_[kept].path, kept_[i].path) &&
        (i < kept || strcmp(kept_[kept].path, kept_[i].path) != 0))
      return true;
  return false;
}

bool Walls::show(size_t kept) {
  const auto& [path, fd] = kept_[kept];
  place_ = path;
  if (!is_covered(path) || is_shown_with_another(kept)) return true;
  struct stat about;
  if (fstat(fd, &about) != 0) return false;
  const int point = walk(path, true, !S_ISDIR(about.st_mode));
  if (point < 0) return false;
  const bool shown =
      mount(NameOf(fd).text, NameOf(point).text, nullptr, MS_BIND | MS_REC, nullptr) == 0;
  close(point);
  return shown;
}

bool Walls::close_cover(size_t cover) {
  place_ = covers_[cover];
  return mount(nullptr, covers_[cover], nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | kTame,
               nullptr) == 0;
}

bool Walls::open_temporary_folders() {
  for (const char* name : {SUBLET_PRIVATE_FOLDER "/tmp", SUBLET_PRIVATE_FOLDER "/var-tmp"})
    if (chmod(name, 01777) != 0 && errno != ENOENT) return false;
  return true;
}

// The mount points are made: opens the temporary folders, and closes /dev and what is hidden.
bool Walls::finish_covers() {
  if (!open_temporary_folders()) return false;
  if (strcmp(covers_[devices_], "/dev") == 0 && !close_cover(devices_)) return false;
  for (size_t i = first_hidden_; i < cover_count_; ++i)
    if (!close_cover(i)) return false;
  return true;
}

bool Walls::show_from(size_t first) {
  for (size_t i = first; i < kept_count_; ++i)
    if (!show(i)) return false;
  return true;
}

const char* Walls::prepare(const sublet_order& order) {
  if (!getcwd(here_, sizeof here_)) return "walls";
  if (const char* failed = load()) return failed;
  if (!keep_grants()) return "grant";
  return keep_devices() && cover_all(order) && show_from(0) ? nullptr : "walls";
}

const char* Walls::admit() {
  const size_t own = kept_count_;
  if (!keep_own() || !show_from(own) || !finish_covers()) return "walls";
  // /proc is that of the namespace of whoever mounts it. It is not among the covers that
  // finish_covers() closes.
  if (!cover_proc()) return "walls";
  // Until now the working folder is the one that is covered, and `..` would lead out of it.
  return chdir(here_) == 0 ? nullptr : "walls";
}

const char* Walls::hide_cgroups(const sublet_order& order) {
  place_ = kCgroups;
  const bool hidden =
      unshare(CLONE_NEWCGROUP) == 0 && (!covers_cgroups() || cover_cgroups(shows_cgroups(order)));
  return hidden ? nullptr : "walls";
}

bool Walls::covers_cgroups() const { return access(kCgroups, F_OK) == 0 && !is_granted(kCgroups); }

// A place with too long a name cannot be looked at later.
bool Walls::settle(FreshPlaces* fresh) {
  if (is_covered(here_) && !is_granted(here_) && !show_above(here_)) return false;
  if (!finish_covers()) return false;
  if (strcmp(covers_[devices_], "/dev") == 0 && !note_fresh("/dev/pts", fresh)) return false;
  for (size_t i = first_fresh_; i < first_hidden_; ++i)
    if (!note_fresh(covers_[i], fresh)) return false;
  return true;
}

namespace {

// From where it is read next; ends when there are more than `most`. -1 with errno.
int count_names(int folder, int most) {
  alignas(dirent64) char entries[512];
  int names = 0;
  ssize_t count;
  while (names <= most && (count = getdents64(folder, entries, sizeof entries)) != 0) {
    if (count < 0) return -1;
    for (ssize_t i = 0; i < count;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + i);
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) ++names;
      i += entry->d_reclen;
    }
  }
  return names;
}

}  // namespace

int count_names(int at, const char* path) {
  const int folder = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return -1;
  const int names = count_names(folder, INT_MAX);
  close(folder);
  return names;
}

bool has_names(int folder, int names) {
  // One that many files were in stays large, and takes long to read, on some file systems.
  constexpr off_t kLargest = 64 << 10;
  struct stat about;
  return fstat(folder, &about) == 0 && about.st_size <= kLargest &&
         lseek(folder, 0, SEEK_SET) == 0 && count_names(folder, names) == names;
}

bool shows_cgroups(const sublet_order& order) {
  return *order.cgroup_unified && strcmp(order.cgroup_unified, order.cgroup_memory) == 0;
}

bool cover_cgroups(bool shows) {
  // A container may forbid the first.
  const bool shown = shows && mount("cgroup2", kCgroups, "cgroup2", kTame, nullptr) == 0;
  if (!shown && mount("tmpfs", kCgroups, "tmpfs", kTame, kEmpty) != 0) return false;
  return mount(nullptr, kCgroups, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | kTame, nullptr) == 0;
}

bool uncover_cgroups() { return umount2(kCgroups, MNT_DETACH) == 0; }

void TemporaryFolders::note() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  for (int i = 0; i < 2; ++i) {
    struct stat about;
    bool settled = stat(kFolders[i], &about) == 0 && about.st_mtim.tv_sec < now.tv_sec - kJustNow;
    changed_[i] = settled ? about.st_mtim : timespec{};
  }
}

void TemporaryFolders::sweep(int64_t uid) const {
  for (int i = 0; i < 2; ++i) sweep_one(kFolders[i], static_cast<uid_t>(uid), changed_[i]);
}

}  // namespace sublet::shepherd
