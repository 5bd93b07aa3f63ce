#include "base/account.h"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/os_error.h"

namespace sublet {

void become_owner_of(const std::string& folder) {
  if (geteuid() != 0) return;
  struct stat about;
  if (stat(folder.c_str(), &about) != 0) return;  // nor is there anything to be done in it
  const uid_t uid = about.st_uid;
  const gid_t gid = about.st_gid;
  if (uid == 0) return;
  if (setgroups(0, nullptr) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
    throw OsError(errno, "take the rights of the owner of", folder);
}

}  // namespace sublet
