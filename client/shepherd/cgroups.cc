#include "client/shepherd/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "attempt/traffic.h"
#include "base/proc_text.h"
#include "client/shepherd/bounds.h"
#include "client/shepherd/system.h"

namespace sublet::shepherd {
namespace {

constexpr int kTries = 100;
constexpr long kPauseNs = 1'000'000;
// The dead leave their cores soon: for so long, because new folders cost more.
constexpr int kLooks = 20;
constexpr long kLookNs = 50'000;

void pause_for(long ns) {
  const struct timespec pause = {0, ns};
  nanosleep(&pause, nullptr);
}

// Who removes left ones takes the lock, too: who has it and finds the folder still there keeps it.
// One left by an attempt of this name that was never started can be used.
int make_locked(const char* path) {
  for (int i = 0; i < kTries; ++i) {
    if (mkdir(path, 0755) != 0 && errno != EEXIST) return -1;
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool locked = folder >= 0 && flock(folder, LOCK_EX | LOCK_NB) == 0;
    if (locked && mkdir(path, 0755) != 0 && errno == EEXIST) return folder;
    if (folder >= 0) close(folder);
    if (!locked) pause_for(kPauseNs);
  }
  errno = EWOULDBLOCK;
  return -1;
}

void remove_folder(const char* path) {
  // A process that was just reaped may still be leaving the cgroup.
  for (int i = 0; i < kTries && rmdir(path) != 0 && errno == EBUSY; ++i) pause_for(kPauseNs);
}

bool is_in_same_folder(const char* one, const char* other) {
  const char* const end = strrchr(one, '/');
  const char* const end_of_other = strrchr(other, '/');
  if (!end || !end_of_other) return end == end_of_other;
  const ptrdiff_t size = end - one;
  return size == end_of_other - other && strncmp(one, other, static_cast<size_t>(size)) == 0;
}

bool has_no_folder(int folder) {
  struct stat about;
  return fstat(folder, &about) == 0 && about.st_nlink == 2;
}

bool is_empty_and_thawed(int events) {
  char text[256];
  const ssize_t count = events < 0 ? -1 : pread(events, text, sizeof text - 1, 0);
  text[count > 0 ? count : 0] = 0;
  return number_after(text, "populated ") == 0 && number_after(text, "frozen ") == 0;
}

}  // namespace

Cgroups::Cgroups(int first_descriptor) : first_(first_descriptor) {
  static_assert(kAll + 1 == kDescriptors);
  for (int& one : held_) one = kNotOpened;
}

bool Cgroups::reserve() const {
  for (int i = 0; i < kDescriptors; ++i)
    if (!shepherd::reserve(first_ + i)) return false;
  return true;
}

bool Cgroups::hold(int number, int descriptor) {
  if (first_ < 0)
    held_[number] = descriptor;
  else if (place(descriptor, first_ + number))
    held_[number] = first_ + number;
  return held_[number] >= 0;
}

void Cgroups::release(int number) {
  const int held = held_[number];
  held_[number] = kNotOpened;
  if (held < 0) return;
  if (first_ < 0)
    close(held);
  else
    dup3(first_ + kNothing, held, O_CLOEXEC);
}

void Cgroups::note_terms(const sublet_order& order) {
  size_t length = 0;
  for (const char* text : {order.cgroup_unified, order.cgroup_memory, order.cgroup_processes,
                           order.cgroup_cpu, order.server})
    length += strlen(text) + 1;
  has_texts_ = length <= sizeof text_;
  char* at = text_;
  const auto note = [&](const char* text) {
    if (!has_texts_) return text;
    const char* const noted = at;
    at = stpcpy(at, text) + 1;
    return noted;
  };
  terms_.folders[kUnified] = note(order.cgroup_unified);
  terms_.folders[kMemory] = note(order.cgroup_memory);
  terms_.folders[kProcesses] = note(order.cgroup_processes);
  terms_.folders[kCpu] = note(order.cgroup_cpu);
  terms_.server = note(order.server);
  terms_.memory = sublet_memory_limit(&order);
  terms_.processes = sublet_process_limit(&order);
  terms_.bandwidth = order.bandwidth;
  terms_.no_network = order.no_network != 0;
  terms_.only_server = order.only_server != 0;
}

void Cgroups::name(sublet_order* order) {
  order->cgroup_unified = terms_.folders[kUnified];
  order->cgroup_memory = terms_.folders[kMemory];
  order->cgroup_processes = terms_.folders[kProcesses];
  order->cgroup_cpu = terms_.folders[kCpu];
}

const char* Cgroups::make(int folder, const char* path) {
  if (!hold(folder, make_locked(path))) return "cgroup";
  // Moving the only thread of a process ("tasks") avoids the stall described at fork().
  int members = open_kernel_file(path, folder == kUnified ? "cgroup.procs" : "tasks", O_WRONLY);
  if (members < 0 && errno == ENOENT)  // it is in the unified hierarchy, too
    members = open_kernel_file(path, "cgroup.procs", O_WRONLY);
  return hold(kMembers + folder, members) ? nullptr : "cgroup";
}

const char* Cgroups::prepare(sublet_order* order) {
  new_ = !(kept_ && fits(*order) && are_empty());
  kept_ = false;
  if (new_) {
    remove();
    note_terms(*order);
    for (int i = 0; i < kFolders; ++i) {
      const char* const path = terms_.folders[i];
      where_[i] = i;
      for (int j = i - 1; j >= 0; --j)
        if (strcmp(path, terms_.folders[j]) == 0) where_[i] = j;
      const bool made = *path == 0 || where_[i] != i;
      const char* const failed = made ? nullptr : make(i, path);
      if (failed) return failed;
    }
  }
  name(order);
  return nullptr;
}

bool Cgroups::fits(const sublet_order& order) const {
  return is_in_same_folder(terms_.folders[kUnified], order.cgroup_unified) &&
         is_in_same_folder(terms_.folders[kMemory], order.cgroup_memory) &&
         is_in_same_folder(terms_.folders[kProcesses], order.cgroup_processes) &&
         is_in_same_folder(terms_.folders[kCpu], order.cgroup_cpu) &&
         strcmp(terms_.server, order.server) == 0 && terms_.memory == sublet_memory_limit(&order) &&
         terms_.processes == sublet_process_limit(&order) && terms_.bandwidth == order.bandwidth &&
         terms_.no_network == (order.no_network != 0) &&
         terms_.only_server == (order.only_server != 0);
}

// Opens it the first time. `older`: its name in version 1. -1: there is none.
int Cgroups::file(int number, int folder, int flags, const char* name, const char* older) {
  int& held = held_[number];
  if (held != kNotOpened) return held;
  const int at = held_[where_[folder]];
  held = kAbsent;
  if (at < 0) return held;
  int opened = openat(at, name, flags | O_CLOEXEC);
  if (opened < 0 && errno == ENOENT && older) opened = openat(at, older, flags | O_CLOEXEC);
  all_seen_ &= opened >= 0 || errno == ENOENT;
  if (opened >= 0 && !hold(number, opened)) all_seen_ = false;
  return held;
}

AttemptFiles Cgroups::processes_files() {
  return {file(kKill, kUnified, O_WRONLY, "cgroup.kill"),
          file(kFreeze, kUnified, O_WRONLY, "cgroup.freeze"),
          file(kEvents, kUnified, O_RDONLY, "cgroup.events"),
          file(kList, kUnified, O_RDONLY, "cgroup.procs"),
          file(kUsage, kUnified, O_RDONLY, "cpu.stat")};
}

WeightFiles Cgroups::weight_files() {
  const int idle = file(kIdle, kCpu, O_WRONLY, "cpu.idle");
  const int weight = file(kWeight, kCpu, O_WRONLY, "cpu.weight");
  return {idle, weight, weight >= 0 ? kAbsent : file(kShares, kCpu, O_WRONLY, "cpu.shares")};
}

BoundFiles Cgroups::bound_files() {
  BoundFiles files = {};
  files.memory_peak = file(kMemoryPeak, kMemory, O_RDONLY, "memory.max_usage_in_bytes");
  files.older = files.memory_peak >= 0;
  files.memory_limit = file(kMemoryLimit, kMemory, O_RDONLY, "memory.max", "memory.limit_in_bytes");
  files.memory_used =
      file(kMemoryUsed, kMemory, O_RDONLY, "memory.current", "memory.usage_in_bytes");
  files.memory_events =
      file(kMemoryEvents, kMemory, O_RDONLY, "memory.events", "memory.oom_control");
  files.processes_limit = file(kProcessLimit, kProcesses, O_RDONLY, "pids.max");
  files.processes_peak = file(kProcessPeak, kProcesses, O_RDONLY, "pids.peak");
  files.processes_events = file(kProcessEvents, kProcesses, O_RDONLY, "pids.events");
  return files;
}

bool Cgroups::are_untouched() {
  const BoundFiles files = bound_files();
  return held_[kUnified] >= 0 && (held_[kCounts] < 0 || traffic() == 0) && all_seen_ &&
         Bounds::are_untouched(files, *terms_.folders[kMemory] ? terms_.memory : -1,
                               *terms_.folders[kProcesses] ? terms_.processes : -1);
}

bool Cgroups::are_empty() const {
  for (int i = 0; i < kFolders; ++i)
    if (held_[i] >= 0 && !has_no_folder(held_[i])) return false;
  // Who has ended but has not left its core yet is no member.
  const auto has_members = [this] {
    char one;
    return pread(held_[kList], &one, 1, 0) != 0;
  };
  bool empty = is_empty_and_thawed(held_[kEvents]);
  for (int i = 0; i < kLooks && !empty && !has_members(); ++i) {
    pause_for(kLookNs);
    empty = is_empty_and_thawed(held_[kEvents]);
  }
  return empty;
}

bool Cgroups::watch_traffic(const sublet_order& order) {
  const TrafficTerms terms = {static_cast<uint64_t>(order.bandwidth), order.only_server != 0,
                              order.server};
  errno = ENOTSUP;
  return held_[kUnified] >= 0 &&
         hold(kCounts, sublet::watch_traffic(terms_.folders[kUnified], terms).release());
}

int64_t Cgroups::traffic() const { return held_[kCounts] < 0 ? -1 : traffic_in(held_[kCounts]); }

pid_t Cgroups::fork_sibling() { return create(CLONE_PARENT); }

pid_t Cgroups::create(uint64_t flags) {
  const auto elsewhere = [=] { return flags == 0 ? ::fork() : shepherd::fork_sibling(); };
  if (held_[kUnified] < 0) return elsewhere();
  struct clone_args how = {};
  how.flags = CLONE_INTO_CGROUP | flags;
  how.exit_signal = flags == 0 ? SIGCHLD : 0;  // else that of this process
  how.cgroup = static_cast<uint64_t>(held_[kUnified]);
  born_there_ = true;
  const auto pid = static_cast<pid_t>(syscall(SYS_clone3, &how, sizeof how));
  if (pid >= 0) return pid;
  // An old kernel, or a container that forbids the call.
  born_there_ = false;
  return elsewhere();
}

pid_t Cgroups::fork_borrowing(void (*run)(void*), void* argument, pid_t* told,
                              const CallSecret& secret) {
  struct clone_args how = {};
  how.flags = CLONE_INTO_CGROUP | CLONE_PARENT | CLONE_PARENT_SETTID | CLONE_VM | CLONE_VFORK;
  how.parent_tid = reinterpret_cast<uintptr_t>(told);
  how.cgroup = static_cast<uint64_t>(held_[kUnified]);
  born_there_ = true;
  return clone_and_run(how, secret.words, run, argument);
}

const char* Cgroups::join() const {
  for (int i = 0; i < kFolders; ++i) {
    const int members = held_[kMembers + i];
    const bool is_in = members < 0 || (i == kUnified && born_there_);
    if (!is_in && write(members, "0", 1) != 1) return "cgroup";
  }
  return nullptr;
}

// Who has ended may not have left its core yet, and would wait there behind the owner's programs.
bool Cgroups::leave(bool kept) {
  if (held_[kIdle] >= 0 && pwrite(held_[kIdle], "0", 1, 0) < 0) errno = 0;
  kept_ = kept && has_texts_ && are_untouched();
  if (!kept_) remove();
  return kept_;
}

void Cgroups::remove() {
  kept_ = false;
  all_seen_ = true;
  for (int i = 0; i < kFolders; ++i)
    if (held_[i] >= 0) remove_folder(terms_.folders[i]);
  for (int i = 0; i < kAll; ++i) release(i);
}

}  // namespace sublet::shepherd
