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
  sqlite::open_to_write(old, path);
  sqlite::finish_log(old);
}

// An administrator may replace the database of a server that runs as another user.
void keep_owner(const std::string& path, const std::string& copy) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0 || chown(copy.c_str(), about.st_uid, about.st_gid) != 0 ||
      chmod(copy.c_str(), about.st_mode & 07777) != 0)
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
