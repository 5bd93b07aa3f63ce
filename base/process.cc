#include "base/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
// glibc 2.36 does not declare these as C functions.
extern "C" {
#include <sys/pidfd.h>
}

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/files.h"

namespace sublet {
namespace {

constexpr uint64_t kLargestProcFile = 1 << 16;

// Owns the two opaque objects of posix_spawn.
struct SpawnPlan {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

void check(int code, const std::string& program) {
  if (code != 0) throw OsError(code, "start", program);
}

// Assigns the descriptors their numbers in the child and closes all others. The sources
// are first copied above all targets, so that no target overwrites a source that is
// still needed.
std::vector<UniqueFd> plan_descriptors(SpawnPlan& plan, const SpawnOptions& options,
                                       const std::string& program) {
  int above = 3;
  for (const auto& [from, to] : options.fds) above = std::max(above, to + 1);
  std::vector<UniqueFd> copies;
  for (const auto& [from, to] : options.fds) {
    copies.emplace_back(fcntl(from, F_DUPFD_CLOEXEC, above));
    if (!copies.back().valid()) throw OsError(errno, "pass a descriptor to", program);
    check(posix_spawn_file_actions_adddup2(&plan.actions, copies.back().get(), to), program);
  }
  for (int fd = 3; fd < above; ++fd) {
    const bool wanted = std::any_of(options.fds.begin(), options.fds.end(),
                                    [fd](const auto& pair) { return pair.second == fd; });
    if (!wanted) check(posix_spawn_file_actions_addclose(&plan.actions, fd), program);
  }
  check(posix_spawn_file_actions_addclosefrom_np(&plan.actions, above), program);
  return copies;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// The fields of /proc/PID/stat from the third on; empty if the process is gone. The
// second, the name, may contain any characters, so parsing starts after its end.
std::vector<std::string> stat_fields(pid_t pid) {
  std::string text;
  try {
    text = system_files().read_file("/proc/" + std::to_string(pid) + "/stat", kLargestProcFile);
  } catch (const FileError& e) {
    if (e.code() == ENOENT || e.code() == ESRCH) return {};
    throw;
  }
  std::vector<std::string> fields;
  size_t i = text.rfind(')');
  while (i < text.size()) {
    const size_t begin = text.find_first_not_of(" \n", i + 1);
    if (begin == std::string::npos) break;
    i = std::min(text.find_first_of(" \n", begin), text.size());
    fields.push_back(text.substr(begin, i - begin));
  }
  return fields;
}

// Field `number`, counted as in proc(5).
uint64_t field(const std::vector<std::string>& fields, size_t number) {
  const std::string& text = fields.at(number - 3);
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

SpawnedProcess spawn(const std::vector<std::string>& argv,
                     const std::vector<std::string>& environment, const SpawnOptions& options) {
  const std::string& program = argv.at(0);
  SpawnPlan plan;
  const std::vector<UniqueFd> copies = plan_descriptors(plan, options, program);
  if (!options.folder.empty()) {
    check(posix_spawn_file_actions_addchdir_np(&plan.actions, options.folder.c_str()), program);
  }
  sigset_t none, all;
  sigemptyset(&none);
  // Not sigfillset: it omits the two signals that the C library uses internally, and
  // posix_spawn would then pass them on as ignored.
  memset(&all, 0xff, sizeof all);
  short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (options.new_session) flags |= POSIX_SPAWN_SETSID;
  check(posix_spawnattr_setsigmask(&plan.attributes, &none), program);
  check(posix_spawnattr_setsigdefault(&plan.attributes, &all), program);
  check(posix_spawnattr_setflags(&plan.attributes, flags), program);

  pid_t pid = 0;
  check(posix_spawn(&pid, program.c_str(), &plan.actions, &plan.attributes, pointers(argv).data(),
                    pointers(environment).data()),
        program);
  SpawnedProcess process;
  process.pidfd.reset(pidfd_open(pid, 0));
  if (!process.pidfd.valid()) {
    // Out of descriptors: a child that cannot be watched must not keep running.
    const int code = errno;
    kill(pid, SIGKILL);
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    throw OsError(code, "watch", program);
  }
  process.id = {pid, process_start_time(pid).value_or(0)};
  return process;
}

std::optional<uint64_t> process_start_time(pid_t pid) {
  const std::vector<std::string> fields = stat_fields(pid);
  if (fields.size() < 20) return std::nullopt;
  return field(fields, 22);
}

bool is_same_process(const ProcessId& id) {
  return process_start_time(id.pid) == std::optional(id.start_time);
}

UniqueFd open_process(const ProcessId& id) {
  // Open first, then compare: the descriptor pins the process.
  UniqueFd fd(pidfd_open(id.pid, 0));
  if (!fd.valid() && errno != ESRCH && errno != EINVAL) {
    throw OsError(errno, "watch", "process " + std::to_string(id.pid));
  }
  if (fd.valid() && !is_same_process(id)) fd.reset();
  return fd;
}

bool kill_process(const ProcessId& id, int signal) {
  const UniqueFd fd = open_process(id);
  if (!fd.valid()) return false;
  if (pidfd_send_signal(fd.get(), signal, nullptr, 0) == 0) return true;
  if (errno == ESRCH) return false;
  throw OsError(errno, "signal", "process " + std::to_string(id.pid));
}

std::optional<ProcessUsage> process_usage(pid_t pid) {
  const std::vector<std::string> fields = stat_fields(pid);
  if (fields.size() < 22) return std::nullopt;
  static const int64_t ticks = sysconf(_SC_CLK_TCK);
  static const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto cpu_ticks = static_cast<int64_t>(field(fields, 14) + field(fields, 15));
  return ProcessUsage{cpu_ticks * 1'000'000 / ticks, field(fields, 24) * page};
}

const std::string& boot_id() {
  static const std::string id = [] {
    const std::string text =
        system_files().read_file("/proc/sys/kernel/random/boot_id", kLargestProcFile);
    return text.substr(0, text.find('\n'));
  }();
  return id;
}

}  // namespace sublet
