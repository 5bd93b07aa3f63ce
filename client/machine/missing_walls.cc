#include "client/machine/missing_walls.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "attempt/call_filters.h"
#include "attempt/landlock.h"

namespace sublet::client {
namespace {

// 0, or the error of a new process that enters new namespaces, and hides others' processes there.
int error_of_namespaces(bool hides) {
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    const bool made = unshare(CLONE_NEWNS | CLONE_NEWIPC) == 0 &&
                      mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 &&
                      (!hides || mount("proc", "/proc", "proc", 0, "hidepid=invisible") == 0);
    _exit(made ? 0 : errno);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

// What root's jobs see.
void add_missing_places(std::vector<std::string>* missing) {
  const int error = error_of_namespaces(false);
  if (error != 0)
    missing->push_back(
        std::string("Jobs see home folders and all processes and devices, and share /tmp, /var/tmp "
                    "and /dev/shm with everybody on this machine: namespaces cannot be made (") +
        std::strerror(error) + ").");
  const int unseen = error == 0 ? error_of_namespaces(true) : 0;
  if (unseen != 0)
    missing->push_back(
        std::string("Jobs see the processes of all accounts: this kernel cannot hide them (before "
                    "Linux 5.8; ") +
        std::strerror(unseen) + ").");
}

// What Landlock keeps jobs from. Other accounts' processes are protected by that.
void add_missing_domain(bool root, int version, std::vector<std::string>* missing) {
  if (!root && version < kFirstLandlock)
    missing->push_back(
        "Jobs can read and change the memory of this account's other processes: this kernel has no "
        "Landlock (from Linux 5.19 on, if it is switched on).");
  if (version >= kScopingLandlock) return;
  missing->push_back(
      root ? "Jobs can connect to abstract sockets of the sessions on this machine: this kernel's "
             "Landlock cannot prevent it (before Linux 6.12)."
           : "Jobs can signal this account's other processes, the client's too, and connect to its "
             "abstract sockets: this kernel's Landlock cannot prevent it (before Linux 6.12).");
}

}  // namespace

std::vector<std::string> missing_walls() {
  std::vector<std::string> missing;
  const bool root = geteuid() == 0;
  if (root) add_missing_places(&missing);
  add_missing_domain(root, landlock_version(), &missing);
  if (!kernel_filters_calls())
    missing.push_back(
        "Jobs may use every system call, also for keys and namespaces: this kernel "
        "cannot filter them (CONFIG_SECCOMP_FILTER).");
  return missing;
}

}  // namespace sublet::client
