#include "client/shepherd/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attempt/disk_priority.h"
#include "attempt/landlock.h"
#include "attempt/loopback.h"
#include "attempt/namespaces.h"
#include "base/real_time.h"
#include "client/shepherd/system.h"
#include "client/shepherd/walls/call_filter.h"
#include "client/shepherd/walls/domain.h"
#include "client/shepherd/walls/init.h"
#include "client/shepherd/walls/places.h"

namespace sublet::shepherd {
namespace {

constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC
// Used if the order sets no limit, like SUBLET_DEFAULT_PROCESSES.
constexpr int64_t kDefaultOpenFiles = 4096;

bool limit(__rlimit_resource_t what, int64_t value) {
  if (value <= 0) return true;
  auto bound = static_cast<rlim_t>(value);
  struct rlimit both = {bound, bound};
  struct rlimit old;
  // Without root a hard limit can only be lowered: keep a lower one.
  if (getrlimit(what, &old) == 0 && old.rlim_max < bound && geteuid() != 0)
    both.rlim_cur = both.rlim_max = old.rlim_max;
  return setrlimit(what, &both) == 0;
}

// 0: none, because a cgroup bounds them, or because the kernel counts all processes of a user id
// and this is not the slot's own: then the shepherd counts them.
int64_t processes_of(const sublet_order& order) {
  const bool own = order.uid >= 0 && order.uid != geteuid();
  return own && !*order.cgroup_processes ? sublet_process_limit(&order) : 0;
}

// The kernel pipes a core into a program of the owner's (core_pattern) even if the limit is 0, but
// not if it is 1, which is too little for a file, too. Where it is 0 already and may not be raised,
// it stays so.
bool forbid_cores() {
  constexpr struct rlimit kOne = {1, 1}, kNone = {0, 0};
  return setrlimit(RLIMIT_CORE, &kOne) == 0 || setrlimit(RLIMIT_CORE, &kNone) == 0;
}

// A process that may lower its nice value can leave the idle class, and so can one that may become
// real-time.
bool stay_idle() {
  constexpr struct rlimit kNone = {};
  return setrlimit(RLIMIT_NICE, &kNone) == 0 && setrlimit(RLIMIT_RTPRIO, &kNone) == 0;
}

bool set_limits(const sublet_order& order) {
  lift_real_time_bound();
  bool good =
      forbid_cores() && stay_idle() && limit(RLIMIT_FSIZE, order.limit_file) &&
      limit(RLIMIT_NPROC, processes_of(order)) &&
      limit(RLIMIT_NOFILE, order.limit_open_files > 0 ? order.limit_open_files : kDefaultOpenFiles);
  if (!*order.cgroup_memory) good = good && limit(RLIMIT_DATA, order.limit_memory);
  if (order.limit_cpu_s > 0) {
    // First SIGXCPU, which identifies the cause, a little later SIGKILL.
    auto seconds = static_cast<rlim_t>(order.limit_cpu_s);
    struct rlimit cpu = {seconds, seconds + 2};
    good = good && setrlimit(RLIMIT_CPU, &cpu) == 0;
  }
  return good;
}

// A new one, and empty: the client may have been started from somebody's login, in whose session
// keyring may be secrets. False with errno; a kernel without keyrings counts as success.
bool leave_keyring() {
  const char* const unnamed = nullptr;
  return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, unnamed) >= 0 || errno == ENOSYS ||
         errno == EPERM;  // a container forbids it, and so does not let the job use it either
}

// By system call: the C library takes a lock for these. If the child of a fork server were killed
// meanwhile, the lock would stay locked in the server's memory.
bool become(const sublet_order& order) {
  if (order.gid >= 0) {
    auto gid = static_cast<gid_t>(order.gid);
    if (syscall(SYS_setgroups, 0L, nullptr) != 0 || syscall(SYS_setresgid, gid, gid, gid) != 0)
      return false;
  }
  if (order.uid >= 0) {
    auto uid = static_cast<uid_t>(order.uid);
    if (syscall(SYS_setresuid, uid, uid, uid) != 0) return false;
  }
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

// Opens a file in the working folder. A symbolic link on the way is refused: what was staged
// there contains none.
int open_in_work(const char* name) {
  int folder = AT_FDCWD;
  while (true) {
    const size_t length = strcspn(name, "/");
    const bool last = name[length] == 0;
    char part[NAME_MAX + 1] = {};
    errno = ENAMETOOLONG;
    if (length >= sizeof part) return -1;
    memcpy(part, name, length);
    const int kind = last ? O_RDONLY | O_NOCTTY : O_PATH | O_DIRECTORY;
    const int next = openat(folder, part, kind | O_NOFOLLOW | O_CLOEXEC);
    if (folder != AT_FDCWD) close(folder);
    if (last || next < 0) return next;
    folder = next;
    name += length + 1;
  }
}

// After the change of account and folder: the job must be able to read it itself.
bool read_from(const char* input) {
  if (!*input) return true;
  const int file = open_in_work(input);
  return file >= 0 && dup2(file, 0) == 0;
}

bool set_streams(int output, int errors) {
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return null >= 0 && dup2(null, 0) == 0 && dup2(output, 1) == 1 && dup2(errors, 2) == 2 &&
         syscall(SYS_close_range, 3u, ~0u, kCloseOnExec) == 0;
}

// What is the same for all jobs.
const char* become_tenant() {
  // When memory runs out, the kernel must kill a tenant before any of the owner's programs.
  if (!write_kernel_file("/proc/self", "oom_score_adj", "1000")) return "oom_score_adj";
  // A kernel without such priorities treats all alike.
  set_disk_priority(0, DiskPriority::kIdle);
  return nullptr;
}

// Whether the kernel lets processes of the same account trace one that was root's. A child that has
// become the job's still shares the server's memory.
bool lets_others_trace() {
  char text[8] = {};
  const int file = open_kernel_file("/proc/sys/fs", "suid_dumpable", O_RDONLY);
  const bool known = file >= 0 && read(file, text, sizeof text - 1) > 0;
  if (file >= 0) close(file);
  return !known || *text == '1';
}

// In the fork server, for all jobs of a room. The core limit and the keyring come before the
// filter, which keeps both as they are. The jobs share the keyring; the filter lets none of them
// write to it.
bool prepare_for_all(const void* room, const CallSecret& secret) {
  return !lets_others_trace() && !become_tenant() && forbid_cores() &&
         static_cast<const Room*>(room)->enter_for_all() && leave_keyring() &&
         prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && enter_domain(landlock_version()) &&
         refuse_calls_without(secret);
}

// What the job will see: namespaces of its own, or its room.
struct Inside {
  Walls* walls;
  Room* room;

  // By prepare_for_all().
  bool is_prepared() const { return room && room->is_prepared(); }
  const char* enter() { return room ? room->enter() : walls->admit(); }
  const char* hide_cgroups(const sublet_order& order, const Cgroups& cgroups) {
    return room ? room->hide_cgroups(order, cgroups.are_new()) : walls->hide_cgroups(order);
  }
  const char* place() const { return room ? "" : walls->place(); }
};

// Returns null, or the step that failed.
const char* prepare(const sublet_order& order, const Cgroups& cgroups, const Weight& weight,
                    int output, int errors, Inside& inside) {
  const bool prepared = inside.is_prepared();
  if (setsid() < 0) return "session";
  if (!prepared)
    if (const char* failed = become_tenant()) return failed;
  if (!set_streams(output, errors)) return "streams";
  if (!set_limits(order)) return SUBLET_STEP_LIMITS;
  umask(0);
  if (order.walls)
    if (const char* failed = inside.enter()) return failed;
  if (order.no_network && !order.walls) errno = ENOTSUP;
  if (order.no_network && !(order.walls && start_loopback())) return "network";
  umask(static_cast<mode_t>(order.umask));
  // As late as possible: from here on this process gets almost no CPU time.
  if (const char* failed = cgroups.join()) return failed;
  // Not before: a process with almost no weight should not hold the kernel's lock for all cgroups.
  if (!weight.demote_self()) return "cgroup weight";
  if (order.walls)
    if (const char* failed = inside.hide_cgroups(order, cgroups)) return failed;
  if (!prepared && !leave_keyring()) return "keyring";
  if (!become(order)) return "account";
  if (chdir(order.work) != 0) return SUBLET_STEP_CHDIR;
  if (!read_from(order.standard_input)) return "standard input";
  // After the change of account, which would clear it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return "parent";
  // Its memory is still the server's, and suid_dumpable may have been changed since.
  if (prepared) return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? nullptr : "account";
  if (!enter_domain(landlock_version())) return "domain";
  return refuse_calls() ? nullptr : "call filter";
}

// The value of PATH in the order's environment; "" if it is not set.
const char* search_path(const sublet_order& order) {
  static const char kPath[] = "PATH=";
  for (char* const* variable = order.environment; *variable; ++variable)
    if (strncmp(*variable, kPath, sizeof kPath - 1) == 0) return *variable + sizeof kPath - 1;
  return "";
}

// Like the shell, looks up a name without a slash in PATH. Done here, under the job's
// account: a lookup by root would reveal whether files exist that the job may not see.
// Relative folders in PATH are skipped, because they would be the job's own. Returns
// only if nothing can be executed.
void execute(const sublet_order& order) {
  if (strchr(order.program, '/')) {
    // A program that was just staged is busy as long as a process that the client forked
    // meanwhile has not executed its own program: it still has the file open for writing.
    constexpr int kBusyTries = 200;
    for (int tries = 0; tries < kBusyTries; ++tries) {
      execve(order.program, order.arguments, order.environment);
      if (errno != ETXTBSY) return;
      const struct timespec pause = {0, 5'000'000};
      nanosleep(&pause, nullptr);
    }
    errno = ETXTBSY;
    return;
  }
  int error = ENOENT;
  const char* next = nullptr;
  for (const char* folder = search_path(order); folder; folder = next) {
    size_t length = strcspn(folder, ":");
    next = folder[length] ? folder + length + 1 : nullptr;
    char candidate[PATH_MAX];
    if (*folder != '/' || length + strlen(order.program) + 2 > sizeof candidate) continue;
    snprintf(candidate, sizeof candidate, "%.*s/%s", static_cast<int>(length), folder,
             order.program);
    execve(candidate, order.arguments, order.environment);
    // A file without permission is skipped, but reported if no other is found.
    if (errno == EACCES) error = EACCES;
    bool go_on = errno == EACCES || errno == ENOENT || errno == ENOTDIR;
    if (!go_on) return;
  }
  errno = error;
}

template <size_t kSize>
void copy_place(const char* from, char (&place)[kSize]) {
  strncpy(place, from, kSize - 1);
}

[[noreturn]] void be_the_child(const sublet_order& order, const Cgroups& cgroups,
                               const Weight& weight, Inside inside, int output, int errors,
                               int socket) {
  LaunchFailure failure = {};
  const char* step = prepare(order, cgroups, weight, output, errors, inside);
  failure.error = errno;
  if (step && strcmp(step, "walls") == 0) copy_place(inside.place(), failure.place);
  if (!step) {
    char go;
    // If the shepherd ended before the parent-death signal was asked for.
    if (read(socket, &go, 1) != 1 || is_deserted(socket)) _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execute(order);
    failure.error = errno;
    step = SUBLET_STEP_EXEC;
  }
  strncpy(failure.step, step, sizeof failure.step - 1);
  if (send(socket, &failure, sizeof failure, MSG_NOSIGNAL) < 0) _exit(126);
  _exit(127);
}

}  // namespace

namespace {

Started refused(const char* step, pid_t init = 0) {
  Started started = {};
  started.error = errno;
  started.failed = step;
  started.init = init;
  return started;
}

}  // namespace

// In the starter, whose children become those of the shepherd.
Started Launch::start(const sublet_order& order, Cgroups& cgroups, const Weight& weight, int output,
                      int errors, int socket, int told) {
  Started started = {};
  Walls walls;
  if (order.walls && !enter_new_namespaces(order.no_network)) return refused("namespaces");
  umask(0);
  if (const char* failed = order.walls ? walls.prepare(order) : nullptr) {
    started = refused(failed);
    copy_place(walls.place(), started.place);
    return started;
  }
  // Without root the job has the same account: it must not trace it, from its first moment on.
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (order.walls) started.init = fork_sibling();
  if (started.init < 0) return refused("fork");
  if (order.walls && started.init == 0) be_init(socket, &walls, sizeof walls);
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  started.pid = cgroups.fork_sibling();
  if (started.pid < 0) return refused("fork", started.init);
  if (started.pid > 0) return started;
  close(told);
  be_the_child(order, cgroups, weight, {&walls, nullptr}, output, errors, socket);
}

// Only the children of whoever makes a namespace of processes are in it. So that the shepherd may
// have such children and stay outside itself, the starter makes it.
const char* Launch::fork_apart(const sublet_order& order, Cgroups& cgroups, const Weight& weight,
                               int output, int errors, int socket) {
  int told[2];
  if (pipe2(told, O_CLOEXEC) != 0) return "fork";
  const pid_t starter = ::fork();
  Started started = {};
  if (starter == 0) {
    close(socket_);  // the shepherd's end
    started = start(order, cgroups, weight, output, errors, socket, told[1]);
    _exit(write(told[1], &started, sizeof started) == sizeof started ? 0 : 1);
  }
  if (starter < 0) return "fork";
  close(told[1]);
  errno = EIO;
  if (read(told[0], &started, sizeof started) != sizeof started) started = refused("fork");
  close(told[0]);
  while (waitpid(starter, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = started.pid;
  init_ = started.init;
  memcpy(place_, started.place, sizeof place_);
  errno = started.error;
  return started.failed;
}

const char* Launch::fork(const sublet_order& order, Cgroups& cgroups, const Weight& weight,
                         Room* room, int output, int errors) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return "fork";
  socket_ = ends[0];
  room_ = room;
  if (!room) {
    const char* const failed = fork_apart(order, cgroups, weight, output, errors, ends[1]);
    const int error = errno;
    close(ends[1]);
    errno = error;
    return failed;
  }
  init_ = room->init();
  attempt_ = {&order, &cgroups, &weight, output, errors, ends[1]};
  const char* failed = room->note_folder() ? nullptr : "walls";
  if (!failed) {
    pid_ = room->fork(order, cgroups, {prepare_for_all, be_in_room, this});
    failed = pid_ > 0 ? nullptr : "fork";
  }
  const int error = errno;
  close(ends[1]);
  errno = error;
  return failed;
}

void Launch::be_in_room(void* launch) {
  const auto& self = *static_cast<const Launch*>(launch);
  close(self.socket_);  // the shepherd's end
  const Attempt& attempt = self.attempt_;
  be_the_child(*attempt.order, *attempt.cgroups, *attempt.weight, {nullptr, self.room_},
               attempt.output, attempt.errors, attempt.socket);
}

void Launch::dismiss_init(bool program_ended) {
  if (!room_)
    signal_init(kDismissed);
  else if (program_ended)
    room_->ask();
}

void Launch::go() {
  // A child that failed already has reported it; read_failure() reads that.
  if (send(socket_, "g", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) errno = 0;
}

bool Launch::read_failure(LaunchFailure* failure) {
  if (socket_ < 0) return false;
  ssize_t count = recv(socket_, failure, sizeof *failure, MSG_DONTWAIT);
  // If the child exited without reading the byte of go(), the kernel returns this error
  // once before it delivers the child's report.
  if (count < 0 && errno == ECONNRESET)
    count = recv(socket_, failure, sizeof *failure, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  close(socket_);
  socket_ = -1;
  failure->step[sizeof failure->step - 1] = 0;
  failure->place[sizeof failure->place - 1] = 0;
  return count == static_cast<ssize_t>(sizeof *failure);
}

}  // namespace sublet::shepherd
