#include "client/shepherd/removal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt/disk_priority.h"
#include "client/shepherd/weight.h"

namespace sublet::shepherd {
namespace {

// Static, because zero pages take no memory until they are used.
sublet_order order;

// Its weight is like that of a job with this order.
[[noreturn]] void become_rm(const Weight& weight, const char* folder) {
  set_disk_priority(0, DiskPriority::kIdle);
  if (const char* failed = weight.join()) perror(failed);
  const char* const arguments[] = {"rm", "-rf", "--", folder, nullptr};
  const char* const environment[] = {nullptr};
  execve("/bin/rm", const_cast<char* const*>(arguments), const_cast<char* const*>(environment));
  perror("/bin/rm");
  _exit(1);
}

}  // namespace

int remove_demoted(const char* folder, const char* cgroup_unified, const char* cgroup_cpu) {
  order.cgroup_memory = order.cgroup_processes = "";
  order.cgroup_unified = cgroup_unified;
  order.cgroup_cpu = cgroup_cpu;
  Weight weight;
  if (const char* failed = weight.make(order)) {
    perror(failed);
    return 1;
  }
  const pid_t pid = weight.fork();
  if (pid == 0) become_rm(weight, folder);
  int status = 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  weight.remove();
  return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace sublet::shepherd
