#include "loadmon/facts/machine_state.h"

#include <dirent.h>
#include <sys/statvfs.h>
#include <utmpx.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "loadmon/process_tree.h"

namespace sublet::loadmon {
namespace {

constexpr double kMiB = 1 << 20;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), closedir);
  if (!open) return names;
  while (const dirent* entry = readdir(open.get()))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  return names;
}

std::optional<double> number_after(const std::string& text, const std::string& word) {
  const size_t at = text.find(word);
  if (at == std::string::npos) return std::nullopt;
  char* end = nullptr;
  const char* begin = text.c_str() + at + word.size();
  const double number = strtod(begin, &end);
  if (end == begin) return std::nullopt;
  return number;
}

std::optional<double> least(std::optional<double> a, std::optional<double> b) {
  return !a ? b : !b ? a : std::min(*a, *b);
}

struct Process {
  pid_t parent = 0;
  std::string name;
};

// "123 (name) S 1 ..."; std::nullopt also if it has ended.
std::optional<Process> process_from(const std::string& stat) {
  const size_t open = stat.find('('), close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  Process process;
  process.name = stat.substr(open + 1, close - open - 1);
  char state = 0;
  if (sscanf(stat.c_str() + close + 1, " %c %d", &state, &process.parent) != 2 || state == 'Z')
    return std::nullopt;
  return process;
}

}  // namespace

MachineStateFiles::MachineStateFiles(std::string root, std::string folder)
    : root_(std::move(root)), folder_(std::move(folder)) {}

std::string MachineStateFiles::text_of(const std::string& path) const {
  return read_proc(root_ + path);
}

std::optional<double> MachineStateFiles::pressure(const std::string& of) const {
  return number_after(text_of("/proc/pressure/" + of), "some avg10=");
}

// The device that worked most since the last time.
std::optional<double> MachineStateFiles::disk_busy(double seconds) {
  std::istringstream lines(text_of("/proc/diskstats"));
  std::map<std::string, double> ms;
  std::optional<double> most;
  for (std::string line; std::getline(lines, line);) {
    char name[64];
    double busy = 0;
    if (sscanf(line.c_str(), "%*d %*d %63s %*f %*f %*f %*f %*f %*f %*f %*f %*f %lf", name, &busy) !=
        2)
      continue;
    const std::string device = name;
    if (device.starts_with("loop") || device.starts_with("ram")) continue;
    ms[device] = busy;
    const auto before = disk_ms_.find(device);
    if (before == disk_ms_.end() || seconds <= 0) continue;
    const double part = std::clamp((busy - before->second) / 1000 / seconds, 0.0, 1.0);
    most = std::max(most.value_or(0), part);
  }
  disk_ms_ = std::move(ms);
  return most;
}

std::optional<double> MachineStateFiles::network(double seconds) {
  std::istringstream lines(text_of("/proc/net/dev"));
  double bytes = 0;
  bool any = false;
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    double in = 0, out = 0;
    if (sscanf(line.c_str() + colon + 1, "%lf %*f %*f %*f %*f %*f %*f %*f %lf", &in, &out) != 2)
      continue;
    any = true;
    const size_t begin = line.find_first_not_of(' ');
    if (line.substr(begin, colon - begin) != "lo") bytes += in + out;
  }
  if (!any) return std::nullopt;
  const std::optional<double> before = network_bytes_;
  network_bytes_ = bytes;
  if (!before || seconds <= 0) return std::nullopt;
  return std::max(0.0, bytes - *before) / kMiB / seconds;
}

void MachineStateFiles::read_power(MachineState* state) const {
  const std::string folder = "/sys/class/power_supply";
  bool mains = false, online = false, discharging = false;
  for (const std::string& name : names_in(root_ + folder)) {
    const std::string supply = folder + "/" + name;
    // A mouse has a battery of its own.
    if (text_of(supply + "/scope").starts_with("Device")) continue;
    if (text_of(supply + "/type").starts_with("Battery")) {
      state->battery = least(state->battery, number_after(text_of(supply + "/capacity"), ""));
      discharging = discharging || text_of(supply + "/status").starts_with("Discharging");
    } else {
      mains = true;
      online = online || text_of(supply + "/online").starts_with("1");
    }
  }
  state->on_battery = !online && (discharging || (mains && state->battery));
}

std::optional<double> MachineStateFiles::temperature() const {
  std::optional<double> most;
  const std::string folder = "/sys/class/thermal";
  for (const std::string& name : names_in(root_ + folder)) {
    if (!name.starts_with("thermal_zone")) continue;
    const auto thousandths = number_after(text_of(folder + "/" + name + "/temp"), "");
    if (thousandths) most = std::max(most.value_or(-1000), *thousandths / 1000);
  }
  return most;
}

std::vector<std::string> MachineStateFiles::users() const {
  std::set<std::string> names;
  std::ifstream file(root_ + "/run/utmp", std::ios::binary);
  for (utmpx entry; file.read(reinterpret_cast<char*>(&entry), sizeof entry);)
    if (entry.ut_type == USER_PROCESS)
      names.insert(std::string(entry.ut_user, strnlen(entry.ut_user, sizeof entry.ut_user)));
  return {names.begin(), names.end()};
}

std::vector<std::string> MachineStateFiles::programs(const std::vector<pid_t>& jobs) const {
  std::map<pid_t, Process> all;
  for (const std::string& name : names_in(root_ + "/proc")) {
    const pid_t pid = atoi(name.c_str());
    if (pid <= 0) continue;
    if (auto process = process_from(text_of("/proc/" + name + "/stat"))) all[pid] = *process;
  }
  const auto is_jobs = [&](pid_t pid) {
    for (int depth = 0; pid > 1 && depth < 1000; ++depth) {
      if (std::find(jobs.begin(), jobs.end(), pid) != jobs.end()) return true;
      const auto process = all.find(pid);
      if (process == all.end()) return false;
      pid = process->second.parent;
    }
    return false;
  };
  std::set<std::string> names;
  for (const auto& [pid, process] : all)
    if (!is_jobs(pid)) names.insert(process.name);
  return {names.begin(), names.end()};
}

MachineState MachineStateFiles::read(int64_t now, const std::vector<pid_t>& jobs) {
  const double seconds = last_ == 0 ? 0 : static_cast<double>(now - last_) * 1e-9;
  last_ = now;
  MachineState state;
  state.at = now;
  const auto kilobytes = number_after(text_of("/proc/meminfo"), "MemAvailable:");
  if (kilobytes) state.memory_available = *kilobytes / 1024;
  state.memory_pressure = pressure("memory");
  state.disk_pressure = pressure("io");
  state.disk_busy = disk_busy(seconds);
  state.network = network(seconds);
  struct statvfs space {};
  if (statvfs(folder_.c_str(), &space) == 0)
    state.disk_free =
        static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize) / kMiB;
  read_power(&state);
  state.temperature = temperature();
  state.users = users();
  state.programs = programs(jobs);
  return state;
}

}  // namespace sublet::loadmon
