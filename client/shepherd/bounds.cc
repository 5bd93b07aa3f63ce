#include "client/shepherd/bounds.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "attempt/cgroup_use.h"
#include "base/proc_text.h"
#include "client/shepherd/system.h"

namespace sublet::shepherd {
namespace {

bool limit_memory(const char* folder, int64_t bytes) {
  const Digits text(bytes);
  if (write_kernel_file(folder, "memory.max", text.text)) {
    write_kernel_file(folder, "memory.swap.max", "0");
    // Who goes over it ends as a whole.
    write_kernel_file(folder, "memory.oom.group", "1");
    return true;
  }
  if (!write_kernel_file(folder, "memory.limit_in_bytes", text.text)) return false;
  write_kernel_file(folder, "memory.swappiness", "0");
  // When the machine runs short, copies of files are taken first from who exceeds this.
  write_kernel_file(folder, "memory.soft_limit_in_bytes", "0");
  // Fails if the kernel does not count swap.
  write_kernel_file(folder, "memory.memsw.limit_in_bytes", text.text);
  return true;
}

// The kernel charges, and gives back, so much at a time for each processor.
constexpr int64_t kChargedAtOnce = 64 * 4096;

// What may be left of another attempt's: besides that, some copies of files and of the kernel's own
// records, which it frees when they are in the way.
constexpr int64_t kLeftBytes = 4 << 20;
constexpr int64_t kLeftPart = 32;  // of the bound: one in so many bytes

// The kernel rounds it down to pages.
bool is_bound(int64_t found, int64_t bound) { return found <= bound && found > bound - 65536; }

bool is_memory_untouched(const BoundFiles& files, int64_t bound) {
  const int64_t used = cgroup_number(files.memory_used, "");
  if (used > (bound > 0 ? std::min(kLeftBytes, bound / kLeftPart) : kLeftBytes)) return false;
  if (cgroup_number(files.memory_events, "oom_kill ") > 0) return false;
  if (bound == 0) return true;
  if (!is_bound(cgroup_number(files.memory_limit, ""), bound)) return false;
  return files.older ? cgroup_number(files.memory_peak, "") + kChargedAtOnce < bound
                     : cgroup_number(files.memory_events, "oom ") == 0;
}

bool are_processes_untouched(const BoundFiles& files, int64_t bound) {
  return cgroup_number(files.processes_limit, "") == bound &&
         cgroup_number(files.processes_peak, "") <= 1 &&
         cgroup_number(files.processes_events, "max ") == 0;
}

}  // namespace

const char* Bounds::set(const sublet_order& order, bool new_ones, const BoundFiles* files) {
  memory_ = order.cgroup_memory;
  processes_ = order.cgroup_processes;
  older_ = files && files->older;
  processes_peak_ = files ? files->processes_peak : -1;
  const int64_t memory = sublet_memory_limit(&order);
  const bool limited = counts_memory() && memory > 0;
  if (new_ones && limited && !limit_memory(memory_, memory)) return "cgroup memory";
  if (limited && !older_) limit_copies(memory);
  const Digits processes(sublet_process_limit(&order));
  if (new_ones && counts_processes() && !write_kernel_file(processes_, "pids.max", processes.text))
    return "cgroup processes";
  return nullptr;
}

bool Bounds::are_untouched(const BoundFiles& files, int64_t most_memory, int64_t most_processes) {
  return (most_memory < 0 || is_memory_untouched(files, most_memory)) &&
         (most_processes < 0 || are_processes_untouched(files, most_processes));
}

void Bounds::limit_copies(int64_t memory) {
  open_up();
  high_ = open_kernel_file(memory_, "memory.high", O_WRONLY | O_NONBLOCK);
  if (high_ < 0) return;  // v1
  events_ = open_kernel_file(memory_, "memory.events", O_RDONLY);
  copies_ = std::max(memory / kCopiesPart, kCopiesLeast);
  set_room(copies_);
}

void Bounds::set_room(int64_t bytes) {
  const Digits text(bytes);
  if (pwrite(high_, text.text, strlen(text.text), 0) > 0) room_ = bytes;
}

bool Bounds::give_room(const MachineMemory& machine) {
  if (high_ < 0) return false;
  char seen[512];
  [[maybe_unused]] const ssize_t count = pread(events_, seen, sizeof seen, 0);
  const int64_t all = cgroup_number(memory_, "memory.current", "");
  const int64_t copies = cgroup_number(memory_, "memory.stat", "inactive_file ") +
                         cgroup_number(memory_, "memory.stat", "active_file ");
  const int64_t had = had_;
  had_ = std::max(int64_t{0}, all - copies);
  // Others may take it, too.
  const int64_t unused = machine.unused - std::max(machine.total / kUnusedPart, kUnusedLeast);
  const int64_t least = all + kGrowsMeanwhile;
  const int64_t room =
      std::max(unused > 0 ? all + unused / 2 : std::min(least, room_), had_ + copies_);
  if (room > room_ || (room < room_ && room >= least)) set_room(room);
  return had_ > had + copies_ / 8;
}

void Bounds::open_up() {
  if (high_ < 0) return;
  // If it fails, the job stays slowed.
  [[maybe_unused]] const ssize_t written = pwrite(high_, "max", 3, 0);
  close(high_);
  if (events_ >= 0) close(events_);
  high_ = events_ = -1;
}

// The kernel counts kills of any cause in oom_kill, but in v2's "oom" only those times when this
// limit could not be kept. v1 has no such count (failcnt stays 0 where a limit of swap is set):
// there the limit was at least reached.
bool Bounds::memory_ran_out() const {
  if (!counts_memory()) return false;
  if (cgroup_number(memory_, "memory.events", "oom_kill ") > 0)
    return cgroup_number(memory_, "memory.events", "oom ") > 0;
  return cgroup_number(memory_, "memory.oom_control", "oom_kill ") > 0 &&
         cgroup_number(memory_, "memory.max_usage_in_bytes", "") + kChargedAtOnce >=
             cgroup_number(memory_, "memory.limit_in_bytes", "");
}

bool Bounds::processes_ran_out() const {
  if (!counts_processes() || cgroup_number(processes_, "pids.events", "max ") == 0) return false;
  // Before Linux 6.11 it also counts when a cgroup above this one had as many as it may.
  const int64_t peak = cgroup_number(processes_, "pids.peak", "");
  return peak == 0 || peak >= cgroup_number(processes_, "pids.max", "");
}

int64_t Bounds::memory_used() const {
  if (!counts_memory()) return 0;
  return cgroup_memory_used(memory_);
}

// Older kernels have no pids.peak.
int64_t Bounds::most_processes() const {
  if (!counts_processes()) return 0;
  const int64_t peak = processes_peak_ < 0 ? cgroup_number(processes_, "pids.peak", "")
                                           : cgroup_number(processes_peak_, "");
  return peak > 0 ? peak : cgroup_number(processes_, "pids.current", "");
}

bool Bounds::had_one_process() const {
  return processes_peak_ >= 0 && cgroup_number(processes_peak_, "") == 1;
}

}  // namespace sublet::shepherd
