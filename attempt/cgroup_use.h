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
// of the file; 0 if there is none, or no file (-1).
inline int64_t cgroup_number(int file, const char* key) noexcept {
  char text[2048] = {'\n'};
  const ssize_t count = file < 0 ? 0 : pread(file, text + 1, sizeof text - 2, 0);
  text[count > 0 ? count + 1 : 1] = 0;
  char wanted[32] = "\n";
  strncat(wanted, key, sizeof wanted - 2);
  const char* found = strstr(text, wanted);
  return found ? atoll(found + strlen(wanted)) : 0;
}

// The same of a file in `folder`.
inline int64_t cgroup_number(const char* folder, const char* name, const char* key) noexcept {
  char path[4200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const int64_t number = cgroup_number(fd, key);
  close(fd);
  return number;
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
