#include "attempt/walls_trial.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "attempt/loopback.h"
#include "attempt/namespaces.h"

namespace sublet {
namespace {

constexpr char kLoopbackName[] = "loopback";

enum Step : int { kNone, kProcess, kNamespaces, kLoopback, kMounts };

// The kinds that walls/places.cc makes.
bool make_mounts() {
  const bool queues = access("/dev/mqueue", F_OK) == 0;
  return mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, nullptr) == 0 &&
         mkdir("/tmp/folder", 0700) == 0 && mkdir("/tmp/pts", 0755) == 0 &&
         mount("devpts", "/tmp/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance") == 0 &&
         mount("/tmp/folder", "/tmp/folder", nullptr, MS_BIND, nullptr) == 0 &&
         mount(nullptr, "/tmp/folder", nullptr, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV,
               nullptr) == 0 &&
         mount(nullptr, "/tmp/folder", nullptr,
               MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) == 0 &&
         mknod("/tmp/null", S_IFREG | 0600, 0) == 0 &&
         mount("/dev/null", "/tmp/null", nullptr, MS_BIND | MS_REC, nullptr) == 0 &&
         (!queues ||
          mount("mqueue", "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV, nullptr) == 0) &&
         unshare(CLONE_NEWCGROUP) == 0 &&
         mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
}

[[noreturn]] void tell(int to, Step step) {
  const int error = step == kNone ? 0 : errno;
  _exit(write(to, &error, sizeof error) == sizeof error ? step : kProcess);
}

int status_of(pid_t child) {
  int status = 0;
  pid_t ended = -1;
  while (child > 0 && (ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  return ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : kProcess;
}

// The processes of a namespace see theirs in /proc, the one that has made it does not.
[[noreturn]] void try_all(bool network, int to) {
  if (!enter_new_namespaces(network)) tell(to, kNamespaces);
  if (network && !start_loopback()) tell(to, kLoopback);
  const pid_t first = fork();
  if (first < 0) tell(to, kProcess);
  if (first == 0) tell(to, make_mounts() ? kNone : kMounts);
  _exit(status_of(first));
}

WallsTrial try_once(bool network) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {"a process", errno};
  const pid_t child = fork();
  if (child == 0) try_all(network, ends[1]);
  int error = errno;
  close(ends[1]);
  if (child > 0 && read(ends[0], &error, sizeof error) != sizeof error) error = EIO;
  close(ends[0]);
  switch (status_of(child)) {
    case kNone:
      return {};
    case kNamespaces:
      return {"namespaces", error};
    case kLoopback:
      return {kLoopbackName, error};
    case kMounts:
      return {"mounts", error};
    default:
      return {"a process", error};
  }
}

}  // namespace

WallsTrial try_walls() {
  const WallsTrial all = try_once(true);
  if (all.possible()) return all;
  WallsTrial without_network = try_once(false);
  if (!without_network.possible()) return without_network;
  const bool loopback = strcmp(all.failed, kLoopbackName) == 0;
  without_network.network_failed = loopback ? kLoopbackName : "network namespaces";
  without_network.network_error = all.error;
  return without_network;
}

}  // namespace sublet
