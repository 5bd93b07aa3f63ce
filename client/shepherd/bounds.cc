#include "client/shepherd/bounds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc_text.h"
#include "client/shepherd/system.h"

namespace sublet::shepherd {
namespace {

// The number after `key` at the beginning of a line, or, if `key` is "", the first of the file; 0
// if there is none.
int64_t number_in(const char* folder, const char* name, const char* key) {
  char path[4200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[512] = {'\n'};
  const ssize_t count = read(fd, text + 1, sizeof text - 2);
  close(fd);
  text[count > 0 ? count + 1 : 1] = 0;
  char wanted[32];
  snprintf(wanted, sizeof wanted, "\n%s", key);
  const char* found = strstr(text, wanted);
  return found ? atoll(found + strlen(wanted)) : 0;
}

}  // namespace

bool limit_memory(const char* folder, int64_t bytes) {
  const Digits text(bytes);
  if (write_kernel_file(folder, "memory.max", text.text)) {
    write_kernel_file(folder, "memory.swap.max", "0");
    // Who goes over it ends as a whole.
    write_kernel_file(folder, "memory.oom.group", "1");
    return true;
  }
  if (!write_kernel_file(folder, "memory.limit_in_bytes", text.text)) return false;
  write_kernel_file(folder, "memory.swappiness", "0");
  // Fails if the kernel does not count swap.
  write_kernel_file(folder, "memory.memsw.limit_in_bytes", text.text);
  return true;
}

// The kernel counts kills of any cause in oom_kill, but in v2's "oom" only those times when this
// limit could not be kept. v1 has no such count (failcnt stays 0 where a limit of swap is set):
// there the limit was at least reached.
bool memory_ran_out(const char* folder) {
  if (number_in(folder, "memory.events", "oom_kill ") > 0)
    return number_in(folder, "memory.events", "oom ") > 0;
  constexpr int64_t kChargedAtOnce = 64 * 4096;
  return number_in(folder, "memory.oom_control", "oom_kill ") > 0 &&
         number_in(folder, "memory.max_usage_in_bytes", "") + kChargedAtOnce >=
             number_in(folder, "memory.limit_in_bytes", "");
}

}  // namespace sublet::shepherd
