#include "server/store/replacement.h"

#include <soci/soci.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "server/store/sqlite.h"

namespace sublet::server {
namespace {

void finish_log_of(const std::string& path) {
  soci::session old;
  sqlite::open_damaged(old, path);
  sqlite::finish_log(old);
}

// The server may run in a group of its own.
void keep_owner(const std::string& path, const std::string& copy) {
  struct stat old, made;
  const bool known = stat(path.c_str(), &old) == 0 && stat(copy.c_str(), &made) == 0;
  const bool same = known && old.st_uid == made.st_uid && old.st_gid == made.st_gid;
  if (!known || (!same && chown(copy.c_str(), old.st_uid, old.st_gid) != 0) ||
      chmod(copy.c_str(), old.st_mode & 07777) != 0)
    throw OsError(errno, "give the database's owner to", copy);
}

void remove_copy(Files& files, const std::string& copy) {
  for (const char* suffix : {"", "-journal"}) files.remove_file(copy + suffix);
}

}  // namespace

void replace_database(Files& files, const std::string& path, const std::string& kept,
                      const std::function<void(const std::string& copy)>& make) {
  const std::string copy = path + ".new";
  try {
    remove_copy(files, copy);
    finish_log_of(path);
    make(copy);
    keep_owner(path, copy);
    files.sync_file(copy);
    files.remove_file(kept);
    files.link(path, kept);
    files.sync_folder(folder_of(path));
    files.rename(copy, path);
    files.sync_folder(folder_of(path));
  } catch (const std::exception&) {
    try {
      remove_copy(files, copy);  // it takes room that the next start may need
    } catch (const FileError&) {
      // The first error says what is wrong.
    }
    throw;
  }
}

}  // namespace sublet::server
