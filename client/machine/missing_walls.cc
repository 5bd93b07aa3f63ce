#include "client/machine/missing_walls.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "attempt/call_filters.h"

namespace sublet::client {
namespace {

// 0, or the error of a new process that enters new namespaces.
int error_of_namespaces() {
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    const bool made = unshare(CLONE_NEWNS | CLONE_NEWIPC) == 0 &&
                      mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
    _exit(made ? 0 : errno);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

}  // namespace

std::vector<std::string> missing_walls() {
  std::vector<std::string> missing;
  const int error = geteuid() == 0 ? error_of_namespaces() : 0;
  if (error != 0)
    missing.push_back(
        std::string("Jobs see home folders and share /tmp, /var/tmp and /dev/shm with everybody on "
                    "this machine: namespaces cannot be made (") +
        std::strerror(error) + ").");
  if (!kernel_filters_calls())
    missing.push_back(
        "Jobs may use every system call, also for keys and namespaces: this kernel "
        "cannot filter them (CONFIG_SECCOMP_FILTER).");
  return missing;
}

}  // namespace sublet::client
