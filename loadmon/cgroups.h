// The processes of a cgroup, and what the kernel accounts for there. Any thread.
#ifndef SUBLET_LOADMON_CGROUPS_H_
#define SUBLET_LOADMON_CGROUPS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace sublet::loadmon {

// The CPU time of all processes that are or were in this folder or below, in microseconds: exact,
// from cpu.stat (v2) or cpuacct.usage (v1). -1: it cannot be read.
int64_t cgroup_usage_us(const std::string& folder);

// Appends the processes that are in the folder.
void append_cgroup_members(const std::string& folder, std::vector<pid_t>* pids);

// Whether a process is in a folder of one of these names, or below one.
bool is_in_cgroup(pid_t pid, const std::unordered_set<std::string>& names);
// The same of the text of its /proc/PID/cgroup.
bool names_cgroup(std::string_view text, const std::unordered_set<std::string>& names);

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_CGROUPS_H_
