#include "client/machine/missing_walls.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "attempt/call_filters.h"
#include "attempt/landlock.h"

namespace sublet::client {
namespace {

// What a new process that enters new namespaces can do there, up to the first error.
struct Trial {
  enum Step : int { kNone, kProcess, kNamespaces, kMounts, kHiding };
  Step failed = kNone;
  int error = 0;
};

int step_that_fails() {
  if (unshare(CLONE_NEWNS | CLONE_NEWIPC) != 0) return Trial::kNamespaces;
  // The kinds of mounts that walls/places.cc makes.
  if (mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
      mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, nullptr) != 0 ||
      mkdir("/tmp/folder", 0700) != 0 || mkdir("/tmp/pts", 0755) != 0 ||
      mount("devpts", "/tmp/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance") != 0 ||
      mount("/tmp/folder", "/tmp/folder", nullptr, MS_BIND, nullptr) != 0 ||
      mount(nullptr, "/tmp/folder", nullptr, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV,
            nullptr) != 0)
    return Trial::kMounts;
  return mount("proc", "/proc", "proc", 0, "hidepid=invisible") == 0 ? Trial::kNone
                                                                     : Trial::kHiding;
}

// Its exit status is the step; the error comes through a pipe.
Trial try_namespaces() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {Trial::kProcess, errno};
  const pid_t child = fork();
  if (child == 0) {
    const int step = step_that_fails();
    const int error = step == Trial::kNone ? 0 : errno;
    _exit(write(ends[1], &error, sizeof error) == sizeof error ? step : Trial::kProcess);
  }
  const int error_of_fork = errno;
  close(ends[1]);
  int status = 0, error = 0;
  if (child < 0) error = error_of_fork;
  const bool told = child > 0 && read(ends[0], &error, sizeof error) == sizeof error;
  close(ends[0]);
  pid_t ended = child;
  while (child > 0 && (ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  if (!told || ended < 0 || !WIFEXITED(status)) return {Trial::kProcess, error};
  return {static_cast<Trial::Step>(WEXITSTATUS(status)), error};
}

// What root's jobs see. The shepherd goes on without walls for the same errors (walls/places.cc).
void add_missing_places(std::vector<std::string>* missing) {
  const auto [failed, error] = try_namespaces();
  const std::string why = std::strerror(error);
  const bool refused = error == EPERM || error == EINVAL || error == ENOSYS;
  if (failed == Trial::kNone) return;
  if (failed == Trial::kNamespaces && refused)
    missing->push_back(
        "Jobs see home folders and all processes and devices, and share /tmp, /var/tmp and "
        "/dev/shm with everybody on this machine: namespaces cannot be made (" +
        why + ").");
  else if (failed == Trial::kHiding && refused)
    missing->push_back("Jobs see the processes of all accounts: they cannot be hidden (" + why +
                       (error == EINVAL ? "; Linux 5.8 can)." : ")."));
  else
    missing->push_back(
        "Jobs cannot start on this machine: what is to separate them from it cannot be made (" +
        why + "). Run the client without root, or outside of this container.");
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
