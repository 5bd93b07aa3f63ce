#include "attempt/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

namespace sublet {
namespace {

bool write_text(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const auto size = static_cast<ssize_t>(strlen(text));
  const bool written = write(file, text, strlen(text)) == size;
  close(file);
  return written;
}

bool map_itself(const char* path, unsigned id) {
  char line[64];
  snprintf(line, sizeof line, "%u %u 1", id, id);
  return write_text(path, line);
}

// Whose group is mapped without privileges must not be able to leave groups: a file may be closed
// to one of them.
bool keep_account(uid_t uid, gid_t gid) {
  return write_text("/proc/self/setgroups", "deny") && map_itself("/proc/self/uid_map", uid) &&
         map_itself("/proc/self/gid_map", gid);
}

}  // namespace

bool enter_new_namespaces(bool network) {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  const int kinds = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | (network ? CLONE_NEWNET : 0) |
                    (uid == 0 ? 0 : CLONE_NEWUSER);
  return unshare(kinds) == 0 && (uid == 0 || keep_account(uid, gid)) &&
         mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
}

}  // namespace sublet
