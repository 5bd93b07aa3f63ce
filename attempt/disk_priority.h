// The priority of a thread's reads and synchronous writes. Who is idle gets the disk when nobody
// else wants it, as far as the disk's scheduler knows priorities (bfq and mq-deadline do). Threads
// and processes that it starts inherit it. Needs only the C library; any thread.
#ifndef SUBLET_ATTEMPT_DISK_PRIORITY_H_
#define SUBLET_ATTEMPT_DISK_PRIORITY_H_

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace sublet {

enum class DiskPriority {
  kNormal = 0,     // by the nice value
  kIdle = 3 << 13  // IOPRIO_CLASS_IDLE
};

// thread: its id, or 0: the calling one. False with errno.
inline bool set_disk_priority(pid_t thread, DiskPriority priority) noexcept {
  constexpr int kProcess = 1;  // IOPRIO_WHO_PROCESS, which is one thread
  return syscall(SYS_ioprio_set, kProcess, thread, static_cast<int>(priority)) == 0;
}

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_DISK_PRIORITY_H_
