#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint-api/internal.h"

struct sublet_status* sublet_status_map(const char* path) {
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return NULL;
  struct stat status;
  void* page = MAP_FAILED;
  if (fstat(fd, &status) != 0) {
  } else if (!S_ISREG(status.st_mode) || status.st_size < SUBLET_STATUS_BYTES) {
    errno = EINVAL; /* an access beyond the file's end would kill the program */
  } else {
    page = mmap(NULL, SUBLET_STATUS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  const int error = errno;
  close(fd);
  errno = error;
  return page == MAP_FAILED ? NULL : page;
}

void sublet_status_unmap(struct sublet_status* page) { munmap(page, SUBLET_STATUS_BYTES); }
