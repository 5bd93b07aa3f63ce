#include "loadmon/job_terminals.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/proc_text.h"
#include "loadmon/process_tree.h"

namespace sublet::loadmon {
namespace {
// The rest of a larger tree is not examined: its terminals count as the owner's.
constexpr size_t kMostProcesses = 1024;
constexpr int kMostDescriptors = 4096;  // of one process
// Major numbers of pseudo-terminals (Documentation/admin-guide/devices.txt), each with 256
// minor ones; the kernel goes on with minor numbers beyond.
constexpr unsigned kFirstMajor = 136, kLastMajor = 143;

struct Process {
  pid_t session = 0;
  dev_t terminal = 0;
};

std::optional<Process> examine(pid_t pid) {
  const std::string text = read_proc("/proc/" + std::to_string(pid) + "/stat");
  if (text.empty()) return std::nullopt;
  const ProcStat stat(text.c_str());
  constexpr int kSession = 6, kTerminal = 7;  // proc(5)
  return Process{static_cast<pid_t>(stat.field(kSession)),
                 static_cast<dev_t>(stat.field(kTerminal))};
}

std::optional<uint32_t> pseudo_number(dev_t terminal) {
  // tty_nr has the kernel's form of a device number: minor 7..0 and 31..20, major 19..8.
  const auto raw = static_cast<uint32_t>(terminal);
  const uint32_t major = (raw >> 8) & 0xfff, minor = (raw & 0xff) | ((raw >> 12) & 0xfff00);
  if (major < kFirstMajor || major > kLastMajor) return std::nullopt;
  return (major - kFirstMajor) * 256 + minor;
}

ino_t mount_namespace(const std::string& process) {
  struct stat about;
  return stat((process + "/ns/mnt").c_str(), &about) == 0 ? about.st_ino : 0;
}

// The numbers of the terminals whose masters the process holds.
void add_masters(const std::string& process, std::set<uint32_t>* numbers) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir((process + "/fd").c_str()), closedir);
  if (!folder) return;
  for (int n = 0; n < kMostDescriptors; ++n) {
    const dirent* entry = readdir(folder.get());
    if (entry == nullptr) return;
    char to[PATH_MAX];
    const ssize_t length = readlinkat(dirfd(folder.get()), entry->d_name, to, sizeof to);
    if (length < 0 || !std::string_view(to, static_cast<size_t>(length)).ends_with("ptmx"))
      continue;
    const std::string about = read_proc(process + "/fdinfo/" + entry->d_name);
    const int64_t number = number_after(about.c_str(), "tty-index:");
    if (number >= 0) numbers->insert(static_cast<uint32_t>(number));
  }
}

std::unordered_map<pid_t, Process> descendants(std::initializer_list<std::vector<pid_t>> roots) {
  std::unordered_map<pid_t, Process> tree;
  std::vector<pid_t> open;
  for (const std::vector<pid_t>& some : roots) open.insert(open.end(), some.begin(), some.end());
  for (size_t i = 0; i < open.size() && tree.size() < kMostProcesses; ++i) {
    if (tree.contains(open[i])) continue;
    const std::optional<Process> process = examine(open[i]);
    if (!process) continue;
    tree[open[i]] = *process;
    append_children(open[i], &open);
  }
  return tree;
}
}  // namespace

JobTerminals find_job_terminals(const std::vector<pid_t>& jobs, const std::vector<pid_t>& daemons) {
  const std::unordered_map<pid_t, Process> tree = descendants({jobs, daemons});
  const auto is_daemon = [&](pid_t pid) {
    return pid == getpid() || std::find(daemons.begin(), daemons.end(), pid) != daemons.end();
  };
  const ino_t here = mount_namespace("/proc/self");
  JobTerminals found;
  for (const auto& [pid, process] : tree) {
    const std::string path = "/proc/" + std::to_string(pid);
    struct stat about;
    if (is_daemon(pid) || stat(path.c_str(), &about) != 0) continue;
    if (about.st_uid != 0 && about.st_uid != geteuid()) found.accounts.insert(about.st_uid);
    if (mount_namespace(path) != here) continue;
    add_masters(path, &found.numbers);
    const std::optional<uint32_t> number = pseudo_number(process.terminal);
    if (number && tree.contains(process.session) && !is_daemon(process.session))
      found.numbers.insert(*number);
  }
  return found;
}

}  // namespace sublet::loadmon
