#include "attempt/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "attempt/cpu_weight.h"
#include "attempt/traffic.h"
#include "base/unique_fd.h"

namespace sublet {
namespace {

// Of a unit, in which systemd starts its processes: DelegateSubgroup= of ours.
constexpr std::string_view kSubgroup = "/daemons";

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Empty, or the kernel's error.
std::string write_to(const std::string& path, const std::string& text) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.valid() && write(fd.get(), text.data(), text.size()) > 0) return {};
  return path + ": " + strerror(errno);
}

// The kernel refuses to remove one that contains processes.
bool remove_unless_locked(const std::string& path) {
  const UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.valid() && flock(folder.get(), LOCK_EX | LOCK_NB) == 0 && rmdir(path.c_str()) == 0;
}

// A temporary folder for testing which features work.
class Probe {
 public:
  Probe(const std::string& hierarchy, const std::string& tag)
      : path_(hierarchy + "/sublet-" + tag + "-probe") {
    if (mkdir(path_.c_str(), 0755) != 0 && errno != EEXIST) error_ = path_ + ": " + strerror(errno);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() { rmdir(path_.c_str()); }

  // Empty, or the error.
  std::string try_write(const std::string& file, const std::string& text) const {
    return error_.empty() ? write_to(path_ + "/" + file, text) : error_;
  }
  std::string try_traffic() const {
    if (!error_.empty()) return error_;
    const TrafficTerms all = {.bandwidth = 1, .only_server = true, .server = "[::1]:1"};
    return watch_traffic(path_.c_str(), all).valid() ? std::string()
                                                     : path_ + ": " + strerror(errno);
  }

 private:
  std::string path_;
  std::string error_;
};

struct Hierarchies {
  std::string unified, cpu, memory, processes;
};

// "": nothing has been delegated.
std::string delegated(const std::string& unified, const std::string& own) {
  if (unified.empty() || own.empty()) return {};
  std::string path = unified + own;
  if (path.ends_with(kSubgroup)) path.resize(path.size() - kSubgroup.size());
  return access((path + "/cgroup.procs").c_str(), W_OK) == 0 ? path : std::string();
}

// Of version 2.
std::string own_cgroup() {
  std::ifstream file("/proc/self/cgroup");
  constexpr std::string_view kUnified = "0::";
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kUnified)) return line.substr(kUnified.size());
  return {};
}

Hierarchies find_machines(const std::string& root) {
  if (exists(root + "/cgroup.controllers")) return {root, root, root, root};
  Hierarchies found;
  if (exists(root + "/unified/cgroup.controllers")) found.unified = root + "/unified";
  for (const char* name : {"/cpu", "/cpu,cpuacct"})
    if (found.cpu.empty() && exists(root + name + "/cgroup.procs")) found.cpu = root + name;
  if (exists(root + "/memory/cgroup.procs")) found.memory = root + "/memory";
  if (exists(root + "/pids/cgroup.procs")) found.processes = root + "/pids";
  return found;
}

Hierarchies find(const std::string& root, const std::string& own) {
  Hierarchies found = find_machines(root);
  const std::string mine = delegated(found.unified, own);
  if (mine.empty()) return found;
  // A weight would only count within the unit. With processes of its own, a folder that has
  // controllers enabled takes no others below it.
  if (found.unified == found.cpu)
    return own.ends_with(kSubgroup) ? Hierarchies{mine, {}, mine, mine}
                                    : Hierarchies{mine, {}, {}, {}};
  found.unified = mine;
  return found;
}

// The hierarchy, if writing `text` to `file` in a folder of it succeeds; else empty.
std::string works(const std::string& hierarchy, const std::string& tag, const std::string& file,
                  const std::string& text, std::string* why) {
  *why = "there is no such control group for it";
  if (hierarchy.empty()) return {};
  *why = Probe(hierarchy, tag).try_write(file, text);
  return why->empty() ? hierarchy : std::string();
}

}  // namespace

AttemptCgroups AttemptCgroups::of_machine(const std::string& tag, bool walls) {
  return detect("/sys/fs/cgroup", tag, geteuid() == 0 || !walls ? "" : own_cgroup());
}

AttemptCgroups AttemptCgroups::detect(const std::string& root, const std::string& tag,
                                      const std::string& own) {
  AttemptCgroups found;
  found.tag_ = tag;
  Hierarchies at = find(root, own);
  bool v2_alone = !at.unified.empty() && (at.unified == at.cpu || at.unified == at.memory);
  if (v2_alone) found.held_ = at.unified;
  found.hold_controllers();
  std::string why;
  found.unified_ = works(at.unified, tag, "cgroup.kill", "1", &why);
  found.no_traffic_ = why.empty() ? Probe(at.unified, tag).try_traffic() : why;
  if (!why.empty())
    found.missing_.push_back("A job's processes are killed one by one, not all at once (" + why +
                             ").");
  found.cpu_ = works(at.cpu, tag, "cpu.idle", "1", &why);
  if (!why.empty())
    found.missing_.push_back(
        autogroups_count()
            ? "Jobs are demoted by autogroup nice 19 instead of cpu.idle (" + why + ")."
            : "Jobs are demoted by the idle class instead of cpu.idle (" + why +
                  "): beside busy programs they hardly get to save, and programs in other control "
                  "groups than this client's share the CPU with them.");
  found.memory_ =
      works(at.memory, tag, v2_alone ? "memory.max" : "memory.limit_in_bytes", "1073741824", &why);
  if (!why.empty())
    found.missing_.push_back(
        "A job's memory limit is enforced per process and checked once a second (" + why + ").");
  found.processes_ = works(at.processes, tag, "pids.max", "100", &why);
  if (!why.empty())
    found.missing_.push_back(
        "A job's processes are limited per account, or counted once a second (" + why + ").");
  if (!found.can_watch_traffic())
    found.missing_.push_back(
        "Jobs' network traffic is not counted, and can be neither bounded nor limited to the "
        "server (" +
        found.no_traffic_ + ").");
  return found;
}

std::string AttemptCgroups::holder() const { return held_ + "/sublet-" + tag_ + "-hold"; }

// Each controller alone: one that is not available must not cost the others. The probes of
// detect() find out which are.
void AttemptCgroups::hold_controllers() const {
  if (held_.empty() || exists(holder() + "/cpu.idle")) return;
  const auto enable = [](const std::string& folder) {
    for (const char* controller : {"+cpu", "+memory", "+pids"})
      write_to(folder + "/cgroup.subtree_control", controller);
  };
  enable(held_);
  if (mkdir(holder().c_str(), 0755) == 0 || errno == EEXIST) enable(holder());
}

void AttemptCgroups::release_controllers() const {
  if (!held_.empty()) rmdir(holder().c_str());
}

std::string AttemptCgroups::folder(const std::string& hierarchy, const AttemptName& name) const {
  if (hierarchy.empty()) return {};
  return hierarchy + "/sublet-" + tag_ + "-" + std::to_string(name.job) + "." +
         std::to_string(name.attempt);
}

void AttemptCgroups::set_folders(const AttemptName& name, AttemptOrder* order) const {
  order->cgroup_unified = folder(unified_, name);
  order->cgroup_cpu = folder(cpu_, name);
  order->cgroup_memory = folder(memory_, name);
  order->cgroup_processes = folder(processes_, name);
}

void AttemptCgroups::set_helper_folders(AttemptOrder* order) const {
  static std::atomic<uint64_t> number{0};
  // What an earlier client has started may still be running.
  const std::string name =
      "/sublet-" + tag_ + "-helper-" + std::to_string(getpid()) + "." + std::to_string(++number);
  order->cgroup_unified = unified_.empty() ? "" : unified_ + name;
  order->cgroup_cpu = cpu_.empty() ? "" : cpu_ + name;
}

int AttemptCgroups::remove_left_over() const {
  int removed = 0;
  std::vector<std::string> hierarchies = {unified_, cpu_, memory_, processes_};
  std::ranges::sort(hierarchies);
  hierarchies.erase(std::unique(hierarchies.begin(), hierarchies.end()), hierarchies.end());
  for (const std::string& hierarchy : hierarchies) {
    DIR* entries = hierarchy.empty() ? nullptr : opendir(hierarchy.c_str());
    if (!entries) continue;
    while (dirent* entry = readdir(entries)) {
      const std::string path = hierarchy + "/" + entry->d_name;
      const bool ours =
          std::string(entry->d_name).starts_with("sublet-" + tag_ + "-") && path != holder();
      if (ours && remove_unless_locked(path)) ++removed;
    }
    closedir(entries);
  }
  return removed;
}

}  // namespace sublet
