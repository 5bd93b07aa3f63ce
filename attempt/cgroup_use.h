// What the kernel says of the processes in a cgroup (v1 or v2). Allocates nothing and needs only
// the C library. Any thread.
#ifndef SUBLET_ATTEMPT_CGROUP_USE_H_
#define SUBLET_ATTEMPT_CGROUP_USE_H_

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace sublet {

// The number after `key` at the beginning of a line of that file, or, if `key` is "", the first
// of the file; 0 if there is none.
inline int64_t cgroup_number(const char* folder, const char* name, const char* key) noexcept {
  char path[4200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[2048] = {'\n'};
  const ssize_t count = read(fd, text + 1, sizeof text - 2);
  close(fd);
  text[count > 0 ? count + 1 : 1] = 0;
  char wanted[32];
  snprintf(wanted, sizeof wanted, "\n%s", key);
  const char* found = strstr(text, wanted);
  return found ? atoll(found + strlen(wanted)) : 0;
}

// The bytes that belong to programs: without the kernel's copies of files, which it gives back
// when others need the room. 0: not known.
inline int64_t cgroup_memory_used(const char* folder) noexcept {
  const int64_t anonymous = cgroup_number(folder, "memory.stat", "anon ");
  return (anonymous > 0 ? anonymous : cgroup_number(folder, "memory.stat", "rss ")) +
         cgroup_number(folder, "memory.stat", "shmem ");
}

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_CGROUP_USE_H_
