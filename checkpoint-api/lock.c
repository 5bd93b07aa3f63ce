/* One process at a time uses a checkpoint: two would put each other's unfinished files in place.
 * In a pool the folder is locked, elsewhere a file beside the checkpoint. Programs in Python take
 * the same locks. A file system without locks, or one that is read only, is used without. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint-api/internal.h"

static int is_taken(int fd) {
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return errno == EWOULDBLOCK;
  }
  return 0;
}

/* Not if its owner has removed it since it was opened. */
static int is_lock_file(const struct sublet_checkpoint* c, int fd) {
  struct stat opened, named;
  return fstat(fd, &opened) == 0 && fstatat(c->folder, c->lock_name, &named, 0) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

int sublet_lock(struct sublet_checkpoint* c) {
  if (c->in_pool) return is_taken(c->folder) ? EWOULDBLOCK : 0;
  for (;;) {
    const int fd = openat(c->folder, c->lock_name,
                          O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) return 0;
    const int taken = is_taken(fd);
    if (!taken && is_lock_file(c, fd)) {
      c->lock_file = fd;
      return 0;
    }
    close(fd);
    if (taken) return EWOULDBLOCK;
  }
}

void sublet_unname_lock(struct sublet_checkpoint* c) {
  if (c->lock_file >= 0) unlinkat(c->folder, c->lock_name, 0);
}

void sublet_unlock(struct sublet_checkpoint* c) {
  if (c->in_pool && c->folder >= 0) flock(c->folder, LOCK_UN);
  if (c->lock_file < 0) return;
  sublet_unname_lock(c);
  close(c->lock_file);
  c->lock_file = -1;
}
