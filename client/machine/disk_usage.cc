#include "client/machine/disk_usage.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/unique_fd.h"
#include "client/machine/folder_names.h"

namespace sublet::client {
namespace {

constexpr uint64_t kBlock = 512;  // unit of st_blocks on every file system

struct Scan {
  size_t left;  // entries that may still be examined
  DiskUse use = {};

  void into(const UniqueFd& folder, int depth) {
    if (!folder.valid()) return;
    FolderNames names_here(folder.get());
    while (const dirent64* entry = names_here.next()) {
      if (left == 0) {
        use.is_all = false;
        return;
      }
      --left;
      struct stat info;
      if (fstatat(folder.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
      const uint64_t names = S_ISDIR(info.st_mode) ? 1 : std::max<uint64_t>(info.st_nlink, 1);
      use.bytes += static_cast<uint64_t>(info.st_blocks) * kBlock / names;
      if (S_ISDIR(info.st_mode) && depth < kDeepestLooked)
        into(open_folder(folder.get(), entry->d_name), depth + 1);
    }
  }

  static UniqueFd open_folder(int above, const char* name) {
    return UniqueFd(openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
};

}  // namespace

DiskUse disk_use(const std::string& folder, size_t most) {
  Scan scan{most};
  scan.into(Scan::open_folder(AT_FDCWD, folder.c_str()), 1);
  return scan.use;
}

uint64_t disk_usage(const std::string& folder, size_t most) { return disk_use(folder, most).bytes; }

}  // namespace sublet::client
