// Starting, knowing and ending processes. A pid alone says nothing, since the
// kernel uses it again; a pid with its start time names one process of this
// boot. Any thread.
#ifndef SUBLET_BASE_PROCESS_H_
#define SUBLET_BASE_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/os_error.h"
#include "base/unique_fd.h"

namespace sublet {

struct ProcessId {
  pid_t pid = 0;
  uint64_t start_time = 0;  // clock ticks after boot, as in /proc/PID/stat
  bool operator==(const ProcessId&) const = default;
};

struct SpawnOptions {
  // Parent's descriptor -> number in the child. 0, 1 and 2 are inherited
  // unless named here; every other descriptor is closed in the child.
  std::vector<std::pair<int, int>> fds = {};
  std::string folder = {};  // to start in; empty: the parent's
  bool new_session = false;
};

struct SpawnedProcess {
  ProcessId id;
  UniqueFd pidfd;  // readable when the process has ended
};

// Starts argv[0] (a path, not searched for) with exactly `environment`
// ("NAME=value"), default signal dispositions and an empty signal mask. The
// caller reaps it. Throws OsError, also when the program cannot be executed.
SpawnedProcess spawn(const std::vector<std::string>& argv,
                     const std::vector<std::string>& environment, const SpawnOptions& options = {});

// Nothing when there is no such process (a zombie counts as one).
std::optional<uint64_t> process_start_time(pid_t pid);
bool is_same_process(const ProcessId& id);
// False when that process is gone, whoever may have its pid now. Throws
// OsError (EPERM).
bool kill_process(const ProcessId& id, int signal);
// A descriptor that becomes readable when the process ends; invalid when gone.
UniqueFd open_process(const ProcessId& id);

struct ProcessUsage {
  int64_t cpu_us = 0;  // user and system, all threads; without children
  uint64_t resident_bytes = 0;
};
std::optional<ProcessUsage> process_usage(pid_t pid);

// The kernel's id of this boot, 36 characters.
const std::string& boot_id();

}  // namespace sublet

#endif  // SUBLET_BASE_PROCESS_H_
