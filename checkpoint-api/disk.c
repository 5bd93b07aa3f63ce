#define _GNU_SOURCE
#include "checkpoint-api/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int create_file(int folder, const char* name) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const int fd = openat(folder, name, flags, 0600);
  if (fd >= 0 || errno != EEXIST) return fd;
  /* A leftover of a crash is replaced, not reused: it might be a link or a pipe. */
  if (unlinkat(folder, name, 0) != 0) return -1;
  return openat(folder, name, flags, 0600);
}

enum { kDirtyBytes = 1 << 18 };

/* Lets the disk begin with what has been written, so that a save does not leave all of it to the
 * sync at its end: one of 1 MB takes a fifth less time than if the disk began at 8 MB. Only a
 * hint: an error is of no interest. */
static void begin_writing(int fd, off_t from, off_t to) {
  const off_t begin = from / kDirtyBytes * kDirtyBytes, end = to / kDirtyBytes * kDirtyBytes;
  if (end > begin) sync_file_range(fd, begin, end - begin, SYNC_FILE_RANGE_WRITE);
}

/* Beyond a file size limit the kernel sends SIGXFSZ, which would kill the program; a save
 * must only fail. The signal is sent to this thread: block it and consume it. */
static ssize_t write_file(int fd, const void* bytes, size_t size, off_t offset) {
  sigset_t limit, before;
  sigemptyset(&limit);
  sigaddset(&limit, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &limit, &before);
  const ssize_t written = pwrite(fd, bytes, size, offset);
  const int error = errno;
  if (written < 0 && error == EFBIG) {
    const struct timespec now = {0, 0};
    while (sigtimedwait(&limit, NULL, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (written > 0) begin_writing(fd, offset, offset + written);
  errno = error;
  return written;
}

static int link_file(int folder, const char* from, const char* to) {
  return linkat(folder, from, folder, to, 0);
}

static int rename_file(int folder, const char* from, const char* to) {
  return renameat(folder, from, folder, to);
}

static int remove_file(int folder, const char* name) { return unlinkat(folder, name, 0); }

const struct sublet_disk sublet_system_disk = {
    .create = create_file,
    .write = write_file,
    .sync = fsync,
    .close = close,
    .link = link_file,
    .rename = rename_file,
    .remove = remove_file,
};
