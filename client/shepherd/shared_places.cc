#include "client/shepherd/shared_places.h"

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

// The client's state may lie there, for example in a test.
bool attempt_is_in_shared_memory() {
  char here[SUBLET_PATH_MAX_BYTES + 1];
  return !getcwd(here, sizeof here) || strncmp(here, "/dev/shm/", 9) == 0;
}

void sweep(const char* path, uid_t uid) {
  DIR* entries = opendir(path);
  if (!entries) return;
  int folder = dirfd(entries);
  for (int i = 0; i < kMostNames; ++i) {
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
  // What is mounted outside from now on is still seen here, but nothing of ours outside.
  if (mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return "mounts";
  // The kernel's own bound is half of the memory.
  char options[64] = "mode=1777";
  if (order.limit_memory > 0)
    snprintf(options, sizeof options, "mode=1777,size=%lld",
             static_cast<long long>(order.limit_memory));
  bool good = mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, options) == 0;
  return good || errno == ENOENT ? nullptr : "mounts";
}

void sweep_temporary_folders(int64_t uid) {
  sweep("/tmp", static_cast<uid_t>(uid));
  sweep("/var/tmp", static_cast<uid_t>(uid));
}

}  // namespace sublet::shepherd
