// Starts, identifies and ends processes. A pid alone does not identify a process, because
// the kernel reuses it; a pid with its start time does, within one boot. Any thread.
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
  // unless listed here; all other descriptors are closed in the child.
  std::vector<std::pair<int, int>> fds = {};
  std::string folder = {};  // working folder; empty: the parent's
  bool new_session = false;
};

struct SpawnedProcess {
  ProcessId id;
  UniqueFd pidfd;  // readable when the process has ended
};

// Starts argv[0] (a path, not searched for) with exactly `environment`
// ("NAME=value"), default signal dispositions and an empty signal mask. The
// caller must reap it. Throws OsError, also if the program cannot be executed.
SpawnedProcess spawn(const std::vector<std::string>& argv,
                     const std::vector<std::string>& environment, const SpawnOptions& options = {});

// None if there is no such process (a zombie counts as one).
std::optional<uint64_t> process_start_time(pid_t pid);
bool is_same_process(const ProcessId& id);
// False if that process has ended, even if its pid was reused. Throws OsError (EPERM).
bool kill_process(const ProcessId& id, int signal);
// A descriptor that becomes readable when the process ends; invalid if it has ended.
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
