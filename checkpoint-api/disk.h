/* A save changes the disk only through these functions, so that a test can kill the
 * process between any two of them or make any of them fail. Names are relative to an
 * open folder, because the program may change its working directory.
 * Each returns -1 with errno on failure. */
#ifndef SUBLET_CHECKPOINT_API_DISK_H_
#define SUBLET_CHECKPOINT_API_DISK_H_

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sublet_disk {
  int (*create)(int folder, const char* name); /* empty, for writing; never follows a link */
  ssize_t (*write)(int fd, const void* bytes, size_t size, off_t offset);
  int (*sync)(int fd); /* a file or a folder */
  int (*close)(int fd);
  int (*link)(int folder, const char* from, const char* to);
  int (*rename)(int folder, const char* from, const char* to);
  int (*remove)(int folder, const char* name);
};

extern const struct sublet_disk sublet_system_disk;

#ifdef __cplusplus
}
#endif

#endif /* SUBLET_CHECKPOINT_API_DISK_H_ */
