// The memory of an attempt, by its cgroup. Any thread; allocates nothing.
#ifndef SUBLET_CLIENT_SHEPHERD_BOUNDS_H_
#define SUBLET_CLIENT_SHEPHERD_BOUNDS_H_

#include <stdint.h>

namespace sublet::shepherd {

// Limits what the processes in the cgroup `folder` (v1 or v2) use together, in bytes, and keeps
// them from swapping. False with errno.
bool limit_memory(const char* folder, int64_t bytes);
// True if the kernel killed a process because that limit was reached. A kill because the whole
// machine ran out of memory does not count: the job is its first victim whatever it uses.
bool memory_ran_out(const char* folder);

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_BOUNDS_H_
