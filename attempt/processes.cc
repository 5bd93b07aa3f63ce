#include "attempt/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "attempt/disk_priority.h"
#include "base/proc_text.h"

namespace sublet {
namespace {

// Base of user ids without accounts; the process id is added.
constexpr long kHelperUids = 0xe0000000;
// How long to wait for a helper: 20 ms, far more than it needs.
constexpr int kHelperLooks = 200;
constexpr long kHelperLookNs = 100'000;

// pwrite, so that the descriptor can be reused. Files in /proc itself do not support
// pwrite; there a new descriptor is written once.
bool write_word(int fd, const char* word) {
  return fd >= 0 && pwrite(fd, word, strlen(word), 0) > 0;
}
bool write_once(int fd, const char* word) { return write(fd, word, strlen(word)) > 0; }

bool is_readable(int fd) {
  struct pollfd one = {fd, POLLIN, 0};
  return poll(&one, 1, 0) > 0;
}

// The CPU-time clock of a process, constructed as by clock_getcpuclockid.
int64_t process_cpu_ns(pid_t pid) {
  struct timespec used;
  auto clock = static_cast<clockid_t>((~static_cast<unsigned>(pid)) << 3 | 2u);
  if (clock_gettime(clock, &used) != 0) return 0;
  return used.tv_sec * 1000000000ll + used.tv_nsec;
}

int64_t nanoseconds(const struct timeval& time) {
  return time.tv_sec * 1000000000ll + time.tv_usec * 1000ll;
}

int64_t nanoseconds(int64_t ticks) { return ticks * (1000000000 / sysconf(_SC_CLK_TCK)); }

// Of all children that this process has waited for.
int64_t reaped_ns() {
  struct rusage reaped;
  if (getrusage(RUSAGE_CHILDREN, &reaped) != 0) return 0;
  return nanoseconds(reaped.ru_utime) + nanoseconds(reaped.ru_stime);
}

// Reaps one ended helper. Helpers do not send SIGCHLD, so other waits do not see them,
// and this wait sees no other children.
bool helper_ended() { return syscall(SYS_wait4, -1, nullptr, WNOHANG | __WCLONE, nullptr) > 0; }

// A save is not to wait for the owner's reads and writes.
bool send(pid_t pid, int signal) {
  if (signal == SIGTERM) set_disk_priority(pid, DiskPriority::kNormal);
  return ::kill(pid, signal) == 0;
}

}  // namespace

AttemptProcesses::~AttemptProcesses() {
  if (!owns_) return;
  for (int fd : {proc_, files_.kill, files_.freeze, files_.events, files_.members, files_.usage})
    if (fd >= 0) close(fd);
}

bool AttemptProcesses::open(const char* cgroup_unified) {
  const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return false;
  AttemptFiles files;
  const int folder =
      *cgroup_unified ? ::open(cgroup_unified, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  if (folder >= 0) {
    files = {openat(folder, "cgroup.kill", O_WRONLY | O_CLOEXEC),
             openat(folder, "cgroup.freeze", O_WRONLY | O_CLOEXEC),
             openat(folder, "cgroup.events", O_RDONLY | O_CLOEXEC),
             openat(folder, "cgroup.procs", O_RDONLY | O_CLOEXEC),
             openat(folder, "cpu.stat", O_RDONLY | O_CLOEXEC)};
    close(folder);
  }
  use(proc, files);
  owns_ = true;
  return true;
}

void AttemptProcesses::use(int proc, const AttemptFiles& files) {
  reaped_before_ns_ = reaped_ns();
  proc_ = proc;
  files_ = files;
  const int64_t used = cgroup_used_us();
  used_before_us_ = used > 0 ? used : 0;
}

int AttemptProcesses::read_file(const char* name, const char* file, char* to, int size) noexcept {
  int fd = openat(proc_, ProcPath(name, file).text, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t count = read(fd, to, static_cast<size_t>(size - 1));
  close(fd);
  if (count < 0) return -1;
  to[count] = 0;
  return static_cast<int>(count);
}

bool AttemptProcesses::read_stat(const char* name, Found* found) noexcept {
  if (read_file(name, "stat", text_, 1024) <= 0) return false;
  ProcStat stat(text_);
  found->pid = static_cast<pid_t>(atoi(name));
  found->parent = static_cast<pid_t>(stat.field(4));
  found->session = static_cast<pid_t>(stat.field(6));
  found->dead = stat.state == 'Z' || stat.state == 'X';
  found->resident_pages = stat.field(24);
  found->threads = stat.field(20);
  found->waited_ticks = stat.field(16) + stat.field(17);
  return stat.state != 0;
}

bool AttemptProcesses::has_uid(const char* name) noexcept {
  // The folder's owner is the process's user, or root if the process is not dumpable
  // (PR_SET_DUMPABLE); then its status file is read.
  struct stat about;
  if (fstatat(proc_, name, &about, 0) != 0) return false;
  if (about.st_uid != 0) return about.st_uid == identity_.uid;
  if (read_file(name, "status", text_, 2048) <= 0) return false;
  return number_after(text_, "Uid:") == identity_.uid;
}

bool AttemptProcesses::has_status_variable(const char* name) noexcept {
  static const char kName[] = "SUBLET_STATUS=";
  size_t path_size = strlen(identity_.status_path) + 1;
  int fd = openat(proc_, ProcPath(name, "environ").text, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  // Matched byte by byte, because a match may span two reads.
  size_t matched = 0, total = sizeof kName - 1 + path_size;
  bool line_start = true, found = false;
  ssize_t count;
  while (!found && (count = read(fd, text_, 4096)) > 0) {
    for (ssize_t i = 0; i < count && !found; ++i) {
      char c = text_[i];
      char want = matched < sizeof kName - 1 ? kName[matched]
                                             : identity_.status_path[matched - (sizeof kName - 1)];
      matched = (line_start || matched > 0) && c == want ? matched + 1 : 0;
      line_start = c == 0;
      found = matched == total;
    }
  }
  close(fd);
  return found;
}

// Who started a session below a parent that lives has neither the job's session nor the
// shepherd as its parent.
bool AttemptProcesses::descends_from_shepherd(const Found& found) noexcept {
  constexpr int kGenerations = 64;
  Found ancestor = found;
  for (int i = 0; i < kGenerations; ++i) {
    if (ancestor.parent == identity_.shepherd) return true;
    if (ancestor.parent <= 2 || !read_stat(Digits(ancestor.parent).text, &ancestor)) return false;
  }
  return false;
}

bool AttemptProcesses::belongs(const char* name, const Found& found) noexcept {
  if (identity_.session > 0 && found.session == identity_.session) return true;
  if (found.parent == 2 || found.pid == 2) return false;  // kernel threads
  if (identity_.shepherd > 0 && found.parent == identity_.shepherd) return true;
  if (identity_.uid >= 0 && has_uid(name)) return true;
  // With a user id of its own, the job's processes cannot change it.
  if (identity_.uid < 0 && identity_.shepherd > 0 && descends_from_shepherd(found)) return true;
  return identity_.status_path && has_status_variable(name);
}

bool AttemptProcesses::visit_one(const char* name, Visitor visitor, void* context) noexcept {
  Found found;
  if (!read_stat(name, &found) || found.dead) return true;
  if (found.pid == identity_.shepherd || found.pid == getpid()) return true;
  if (identity_.init > 0 && found.pid == identity_.init) return true;
  return !(files_.members >= 0 || belongs(name, found)) || visitor(*this, found, context);
}

bool AttemptProcesses::visit_members(Visitor visitor, void* context) noexcept {
  if (lseek(files_.members, 0, SEEK_SET) != 0) return true;
  int64_t pid = 0;  // a number may span two reads
  for (;;) {
    const ssize_t size = read(files_.members, entries_, sizeof entries_);
    if (size <= 0) return true;
    for (ssize_t at = 0; at < size; ++at) {
      if (entries_[at] != '\n') {
        pid = 10 * pid + (entries_[at] - '0');
        continue;
      }
      if (!visit_one(Digits(pid).text, visitor, context)) return false;
      pid = 0;
    }
  }
}

bool AttemptProcesses::visit(Visitor visitor, void* context) noexcept {
  if (files_.members >= 0) return visit_members(visitor, context);
  if (lseek(proc_, 0, SEEK_SET) != 0) return true;
  for (;;) {
    const ssize_t size = getdents64(proc_, entries_, sizeof entries_);
    if (size <= 0) return true;
    for (ssize_t at = 0; at < size;) {
      auto* entry = reinterpret_cast<dirent64*>(entries_ + at);
      at += entry->d_reclen;
      if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
      if (!visit_one(entry->d_name, visitor, context)) return false;
    }
  }
}

// A pid may be reused between being found and being signalled, so the process is pinned
// by a pidfd and checked again.
void AttemptProcesses::signal_found(int signal) noexcept {
  visit(
      [](AttemptProcesses& self, const Found& found, void* context) {
        int pidfd = static_cast<int>(syscall(SYS_pidfd_open, found.pid, 0));
        if (pidfd < 0) return true;
        Digits name(found.pid);
        Found again;
        if (self.read_stat(name.text, &again) &&
            (self.files_.members >= 0 || self.belongs(name.text, again)))
          syscall(SYS_pidfd_send_signal, pidfd, *static_cast<int*>(context), nullptr, 0);
        close(pidfd);
        return true;
      },
      &signal);
}

// A process with the slot's effective user id may signal all processes of that user and
// no others; the kernel does so atomically, so that no fork escapes. Targets are matched
// by their real and saved ids: those of the helper are unused by others, so that neither
// the job nor another helper can stop it.
bool AttemptProcesses::signal_user(int signal) noexcept {
  if (identity_.uid <= 0 || geteuid() != 0) return false;
  while (helper_ended()) {
  }
  // A raw clone: no fork handlers of the C library, and no SIGCHLD, which another wait
  // could receive.
  long helper = syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr);
  if (helper == 0) {
    auto own = static_cast<uid_t>(kHelperUids + syscall(SYS_getpid));
    auto uid = static_cast<uid_t>(identity_.uid);
    if (syscall(SYS_setresuid, own, uid, own) == 0) syscall(SYS_kill, -1, signal);
    syscall(SYS_exit_group, 0);
  }
  if (helper < 0) return false;
  // This is the only thread that evicts, so the wait must be bounded.
  for (int i = 0; i < kHelperLooks; ++i) {
    if (helper_ended()) return true;
    struct timespec pause = {0, kHelperLookNs};
    nanosleep(&pause, nullptr);
  }
  syscall(SYS_kill, helper, SIGKILL);
  return false;
}

void AttemptProcesses::signal_all(int signal, int rounds) noexcept {
  signal_user(signal);
  // Several rounds, for processes created while the list was read.
  for (int i = 0; i < rounds; ++i) signal_found(signal);
}

void AttemptProcesses::freeze() noexcept {
  if (!write_word(files_.freeze, "1")) signal_all(SIGSTOP, 3);
}

void AttemptProcesses::thaw() noexcept {
  if (!write_word(files_.freeze, "0")) signal_all(SIGCONT, 1);
}

void AttemptProcesses::kill() noexcept {
  if (!write_word(files_.kill, "1")) signal_all(SIGKILL, 1);
}

bool AttemptProcesses::gone() noexcept {
  if (files_.events >= 0) {
    ssize_t count = pread(files_.events, text_, sizeof text_ - 1, 0);
    text_[count > 0 ? count : 0] = 0;
    // A removed folder contains no processes.
    if (count < 0 && errno == ENODEV) return true;
    if (number_after(text_, "populated ") == 0) return true;
    // Who has ended but has not left its core yet populates it, and is no member.
    return files_.members >= 0 && pread(files_.members, text_, 1, 0) == 0;
  }
  return visit([](AttemptProcesses&, const Found&, void*) { return false; }, nullptr);
}

void AttemptProcesses::look_for_new() noexcept {
  for (int i = 0; i < known_count_; ++i) known_[i].seen = false;
  waited_ns_ = 0;
  Found init;
  if (identity_.init > 0 && read_stat(Digits(identity_.init).text, &init))
    waited_ns_ = nanoseconds(init.waited_ticks);
  visit(
      [](AttemptProcesses& self, const Found& found, void*) {
        self.waited_ns_ += nanoseconds(found.waited_ticks);
        int i = 0;
        while (i < self.known_count_ && self.known_[i].pid != found.pid) ++i;
        if (i == kKnown) return true;
        if (i == self.known_count_) self.known_[self.known_count_++] = {found.pid, 0, true};
        self.known_[i].seen = true;
        return true;
      },
      nullptr);
  int kept = 0;
  for (int i = 0; i < known_count_; ++i)
    if (known_[i].seen) known_[kept++] = known_[i];
  known_count_ = kept;
}

// -1: there is none, or it does not count that.
int64_t AttemptProcesses::cgroup_used_us() noexcept {
  const ssize_t count = files_.usage < 0 ? -1 : pread(files_.usage, text_, sizeof text_ - 1, 0);
  text_[count > 0 ? count : 0] = 0;
  return number_after(text_, "usage_usec ");
}

void AttemptProcesses::update_cpu() noexcept {
  if (const int64_t used = cgroup_used_us(); used >= 0) {
    cpu_.kept = cpu_.grown = (used - used_before_us_) * 1000;
    return;
  }
  // Scanning /proc takes longer than the interval at which a shepherd calls this while its
  // job saves, so usually only known processes are examined.
  if (known_age_++ % kKnownAge == 0) look_for_new();
  int64_t sum = waited_ns_;
  for (int i = 0; i < known_count_; ++i) {
    int64_t now = process_cpu_ns(known_[i].pid);
    sum += now;
    if (now <= known_[i].cpu_ns) continue;  // idle or dead
    cpu_.grown += now - known_[i].cpu_ns;
    known_[i].cpu_ns = now;
  }
  if (identity_.shepherd == getpid()) sum += reaped_ns() - reaped_before_ns_;
  // May decrease temporarily: a dead process that has not been waited for is missing.
  if (sum > cpu_.kept) cpu_.kept = sum;
}

int64_t AttemptProcesses::cpu_ns() noexcept {
  update_cpu();
  return cpu_.more_than({});
}

void AttemptProcesses::start_counting() noexcept {
  // Scan now: a process found later would be counted with all the CPU time it ever used.
  known_age_ = 0;
  update_cpu();
  cpu_before_ = cpu_;
}

int64_t AttemptProcesses::counted_ns() noexcept {
  update_cpu();
  return cpu_.more_than(cpu_before_);
}

bool AttemptProcesses::measure(int news, int64_t enough, AttemptUse* found) noexcept {
  struct Context {
    int news;
    int64_t pages;
    int64_t threads;
    int64_t enough;
  } context = {news, 0, 0, enough};
  const bool all = visit(
      [](AttemptProcesses&, const Found& found, void* raw) {
        auto* context = static_cast<Context*>(raw);
        context->pages += found.resident_pages;
        context->threads += found.threads;
        return context->threads <= context->enough && !is_readable(context->news);
      },
      &context);
  const bool known = all || context.threads > enough;
  if (known) *found = {context.pages * sysconf(_SC_PAGESIZE), context.threads};
  return known;
}

int64_t AttemptProcesses::proportional_bytes(int news) noexcept {
  struct Context {
    int news;
    int64_t bytes;
  } context = {news, 0};
  const bool all = visit(
      [](AttemptProcesses& self, const Found& found, void* raw) {
        auto* context = static_cast<Context*>(raw);
        if (is_readable(context->news)) return false;
        const bool told = self.read_file(Digits(found.pid).text, "smaps_rollup", self.text_,
                                         sizeof self.text_) > 0;
        const int64_t kb = told ? number_after(self.text_, "Pss:") : -1;
        context->bytes += kb >= 0 ? kb * 1024 : found.resident_pages * sysconf(_SC_PAGESIZE);
        return true;
      },
      &context);
  return all ? context.bytes : -1;
}

bool AttemptProcesses::handles(pid_t pid, int signal) noexcept {
  if (read_file(Digits(pid).text, "status", text_, sizeof text_) <= 0) return false;
  const char* caught = strstr(text_, "\nSigCgt:");
  return caught && (strtoull(caught + 8, nullptr, 16) >> (signal - 1) & 1);
}

bool AttemptProcesses::anyone_handles(int signal, pid_t first, int news, bool* found) noexcept {
  struct Context {
    int signal;
    int news;
    bool found;
    bool interrupted;
  } context = {signal, news, handles(first, signal), false};
  if (!context.found)
    visit(
        [](AttemptProcesses& self, const Found& one, void* raw) {
          auto* context = static_cast<Context*>(raw);
          context->found = self.handles(one.pid, context->signal);
          context->interrupted = is_readable(context->news);
          return !context->found && !context->interrupted;
        },
        &context);
  if (context.interrupted && !context.found) return false;
  *found = context.found;
  return true;
}

bool AttemptProcesses::signal_who_handles(int signal, pid_t first) noexcept {
  // A program that handles it is responsible for its own children.
  if (handles(first, signal)) return send(first, signal);
  struct Context {
    int signal;
    bool found;
  } context = {signal, false};
  visit(
      [](AttemptProcesses& self, const Found& found, void* raw) {
        auto* context = static_cast<Context*>(raw);
        if (self.handles(found.pid, context->signal))
          context->found |= send(found.pid, context->signal);
        return true;
      },
      &context);
  return context.found;
}

bool AttemptProcesses::has_nice(int autogroup, const Digits& nice) noexcept {
  const ssize_t count = pread(autogroup, text_, 128, 0);
  text_[count > 0 ? count : 0] = 0;
  const char* value = strstr(text_, " nice ");
  return value && strtoll(value + 6, nullptr, 10) == strtoll(nice.text, nullptr, 10);
}

bool AttemptProcesses::set_autogroup_nice(int nice) noexcept {
  struct Context {
    Digits nice;
    pid_t own_session;
    pid_t shepherds_session;
    pid_t last_session;
    bool done;
  } context = {Digits(nice), getsid(0), 0, 0, true};
  Found shepherd = {};
  if (identity_.shepherd > 0 && read_stat(Digits(identity_.shepherd).text, &shepherd))
    context.shepherds_session = shepherd.session;
  visit(
      [](AttemptProcesses& self, const Found& found, void* raw) {
        auto* context = static_cast<Context*>(raw);
        // A child that has not begun its own session yet. This one is the shepherd's, which must be
        // able to end the job beside a busy owner.
        if (found.session == context->own_session || found.session == context->shepherds_session) {
          context->done = false;
          return true;
        }
        // Consecutive processes often share a session, and so its autogroup.
        if (found.session == context->last_session) return true;
        int fd = openat(self.proc_, ProcPath(Digits(found.pid).text, "autogroup").text,
                        O_RDWR | O_CLOEXEC);
        if (fd < 0) return true;
        // Only if it is different: the kernel limits how often it may be set.
        if (self.has_nice(fd, context->nice) || write_once(fd, context->nice.text))
          context->last_session = found.session;
        else
          context->done = false;
        close(fd);
        return true;
      },
      &context);
  return context.done;
}

void AttemptProcesses::set_class_of(pid_t pid, int policy) noexcept {
  constexpr sched_param kNone = {};
  const int threads =
      openat(proc_, ProcPath(Digits(pid).text, "task").text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (threads < 0) return;
  alignas(8) char entries[2048];
  ssize_t size;
  while ((size = getdents64(threads, entries, sizeof entries)) > 0)
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      if (entry->d_name[0] != '.') sched_setscheduler(atoi(entry->d_name), policy, &kNone);
      at += entry->d_reclen;
    }
  close(threads);
}

void AttemptProcesses::set_class(int policy) noexcept {
  visit(
      [](AttemptProcesses& self, const Found& found, void* policy) {
        self.set_class_of(found.pid, *static_cast<int*>(policy));
        return true;
      },
      &policy);
}

int64_t start_time_of(pid_t pid) noexcept {
  char text[1024];
  char path[48] = "/proc/";
  strcat(path, ProcPath(Digits(pid).text, "stat").text);
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t count = read(fd, text, sizeof text - 1);
  close(fd);
  if (count <= 0) return -1;
  text[count] = 0;
  ProcStat stat(text);
  return stat.state ? stat.field(22) : -1;
}

}  // namespace sublet
