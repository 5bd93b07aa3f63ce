#include "loadmon/cgroups.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/proc_text.h"
#include "loadmon/process_tree.h"

namespace sublet::loadmon {

int64_t cgroup_usage_us(const std::string& folder) {
  // The v1 controller `cpu` has a cpu.stat, too, without this number.
  const int64_t usage = number_after(read_proc(folder + "/cpu.stat").c_str(), "usage_usec ");
  if (usage >= 0) return usage;
  const std::string ns = read_proc(folder + "/cpuacct.usage");
  char* end;
  const unsigned long long value = strtoull(ns.c_str(), &end, 10);
  return end == ns.c_str() ? -1 : static_cast<int64_t>(value / 1000);
}

void append_cgroup_members(const std::string& folder, std::vector<pid_t>* pids) {
  std::ifstream members(folder + "/cgroup.procs");
  for (pid_t pid; members >> pid;) pids->push_back(pid);
}

bool is_in_cgroup(pid_t pid, const std::unordered_set<std::string>& names) {
  return !names.empty() &&
         names_cgroup(read_proc("/proc/" + std::to_string(pid) + "/cgroup"), names);
}

bool names_cgroup(std::string_view text, const std::unordered_set<std::string>& names) {
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("/\n"), text.size());
    if (names.contains(std::string(text.substr(0, end)))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

}  // namespace sublet::loadmon
