#include "client/shepherd/walls/places.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sublet::shepherd {
namespace {

constexpr int kMostNames = 4096;

// The client's state folder may be there, for example in a test.
bool attempt_is_in_shared_memory() {
  char here[SUBLET_PATH_MAX_BYTES + 1];
  return !getcwd(here, sizeof here) || strncmp(here, "/dev/shm/", 9) == 0;
}

constexpr const char* kFolders[] = {"/tmp", "/var/tmp"};
constexpr time_t kJustNow = 2;  // seconds

bool unchanged(int folder, const timespec& since) {
  struct stat about;
  return since.tv_sec != 0 && fstat(folder, &about) == 0 && about.st_mtim.tv_sec == since.tv_sec &&
         about.st_mtim.tv_nsec == since.tv_nsec;
}

void sweep_one(const char* path, uid_t uid, const timespec& noted) {
  DIR* entries = opendir(path);
  if (!entries) return;
  int folder = dirfd(entries);
  for (int i = unchanged(folder, noted) ? kMostNames : 0; i < kMostNames; ++i) {
    dirent* entry = readdir(entries);
    if (!entry) break;
    struct stat about;
    if (fstatat(folder, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || about.st_uid != uid)
      continue;
    unlinkat(folder, entry->d_name, S_ISDIR(about.st_mode) ? AT_REMOVEDIR : 0);
  }
  closedir(entries);
}

}  // namespace

const char* keep_shared_memory_apart(const sublet_order& order) {
  if (geteuid() != 0 || unshare(CLONE_NEWIPC) != 0) return nullptr;
  if (attempt_is_in_shared_memory() || unshare(CLONE_NEWNS) != 0) return nullptr;
  // Later mounts outside are still visible here, but not the reverse.
  if (mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return "mounts";
  // The kernel's default limit is half of the memory.
  char options[64] = "mode=1777";
  if (order.limit_memory > 0)
    snprintf(options, sizeof options, "mode=1777,size=%lld",
             static_cast<long long>(order.limit_memory));
  bool good = mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, options) == 0;
  return good || errno == ENOENT ? nullptr : "mounts";
}

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
