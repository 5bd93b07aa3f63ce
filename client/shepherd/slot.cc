#include "client/shepherd/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <initializer_list>
#include <new>
#include <utility>

#include "attempt/disk_priority.h"
#include "client/shepherd/shepherd.h"

namespace sublet::shepherd {
namespace {

// The first is for the slot, the second for one attempt after the other. Pages take no memory until
// they are used.
struct Shared {
  alignas(Slot) unsigned char slot[sizeof(Slot)];
  alignas(Shepherd) unsigned char attempt[sizeof(Shepherd)];
};
Shared* shared;

bool close_between(int first, unsigned last) {
  return syscall(SYS_close_range, static_cast<unsigned>(first), last, 0) == 0;
}

}  // namespace

Slot* Slot::make() {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  shared = static_cast<Shared*>(memory);
  return new (shared->slot) Slot;
}

const char* Slot::prepare() {
  if (fcntl(kLink, F_SETFD, FD_CLOEXEC) != 0) return "no link to a client";
  // Orphaned processes of a job become our children, so that "no child left" means "no process
  // left".
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return "subreaper";
  // Pages stay in memory once used: an eviction under memory pressure must not wait for
  // the disk. It does no harm if this is not permitted.
  mlockall(MCL_CURRENT | MCL_ONFAULT);
  // Nor for the disk priority of the thread that started us.
  set_disk_priority(0, DiskPriority::kNormal);
  ignore_nothing();
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&handled, signal);
  if (sigprocmask(SIG_BLOCK, &handled, nullptr) != 0 ||
      !place(signalfd(-1, &handled, SFD_NONBLOCK | SFD_CLOEXEC), kSignals) ||
      !place(timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC), kTimer))
    return "signals";
  // Of a file's lease (whole_files.cc) that is broken while it is asked for.
  sigemptyset(&handled);
  sigaddset(&handled, SIGIO);
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  lose_monitor();
  if (!reserve(kListener) || !reserve(kProc) || !room_.reserve() || !cgroups_.reserve())
    return "descriptors";
  const int size = snprintf(kept_, sizeof kept_, "%s/" SUBLET_SLOTS_FOLDER "/%d", state_folder_,
                            static_cast<int>(getpid()));
  errno = ENAMETOOLONG;
  if (size >= static_cast<int>(sizeof kept_)) return state_folder_;
  char* const name = strrchr(kept_, '/');
  *name = 0;
  mkdir(kept_, 0700);
  *name = '/';
  snprintf(kept_control_, sizeof kept_control_, "%s.control", kept_);
  return nullptr;
}

void Slot::lose_monitor() {
  connected_ = false;
  reserve(kMonitor);
}

int64_t Slot::start_time() {
  if (start_time_ < 0) start_time_ = start_time_of(getpid());
  return start_time_;
}

int Slot::proc() {
  has_proc_ = has_proc_ || place(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), kProc);
  return has_proc_ ? kProc : -1;
}

bool Slot::listen() {
  if (listens_ && rename(kept_control_, SUBLET_CONTROL_SOCKET) == 0) return true;
  listens_ = place(listen_for_client(), kListener);
  return listens_;
}

// Who has connected too late learns that the attempt is over.
void Slot::stop_listening() {
  if (!listens_) return;
  for (int late; (late = accept4(kListener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) close(late);
  listens_ = rename(SUBLET_CONTROL_SOCKET, kept_control_) == 0;
  if (!listens_) unlink(SUBLET_CONTROL_SOCKET);
}

bool Slot::meet_monitor(const char* path, const sublet_frame& hello) {
  if (connected_) {
    sublet_frame old;
    Received received;
    do received = receive_frame(kMonitor, &old);
    while (received == Received::frame);
    const bool is_there = received == Received::nothing;
    if (is_there && send_frame(kMonitor, hello)) {
      owed_ = false;
      return true;
    }
    lose_monitor();  // it was restarted
    // Else it may hold the attempt before, whose cgroups this one has, for one without a shepherd.
    if (is_there && owed_) return false;
  }
  if (!place(connect_monitor(path), kMonitor)) return false;
  connected_ = true;
  return send_frame(kMonitor, hello);
}

void Slot::take_order() {
  if (has_next() || link_lost_) return;
  link_lost_ = receive_order(kLink, &next_, &next_connection_) == Received::lost;
}

void Slot::drop_order() {
  if (has_next() && is_taken_back(next_, next_connection_))
    close(std::exchange(next_connection_, -1));
}

bool Slot::tell_end(const sublet_frame& ended, bool may_wait) {
  take_order();
  end_ = ended;
  owes_end_ = may_wait && connected_ && !stopped_ && has_next();
  return owes_end_ || say_end(ended);
}

void Slot::say_owed_end() {
  if (std::exchange(owes_end_, false)) say_end(end_);
}

bool Slot::say_end(const sublet_frame& ended) {
  const bool said = connected_ && send_frame(kMonitor, ended);
  if (!said) lose_monitor();
  return said;
}

int Slot::run_attempt(const char* folder, const sublet_frame& order, int connection) {
  if (chdir(folder) != 0) {
    if (errno == ENOENT) return Shepherd::kDone;  // the client has taken it back
    perror(folder);
    return Shepherd::kBadOrder;
  }
  auto* const shepherd = new (shared->attempt) Shepherd(*this);
  const int status = shepherd->run(order, connection);
  shepherd->~Shepherd();
  return status;
}

bool Slot::close_attempts() const {
  if (!has_next()) return close_between(kFirstOfAttempt, ~0u);
  const bool are_closed =
      next_connection_ == kFirstOfAttempt ||
      close_between(kFirstOfAttempt, static_cast<unsigned>(next_connection_) - 1);
  return are_closed && close_between(next_connection_ + 1, ~0u);
}

int Slot::run_next() {
  take_order();
  if (link_lost_ && !has_next()) stop();
  const sublet_frame order = next_;
  const int connection = std::exchange(next_connection_, -1);
  owed_ = std::exchange(owes_end_, false);
  const sublet_frame before = end_;
  int status = Shepherd::kDone;
  if (connection >= 0) {
    char folder[SUBLET_PATH_MAX_BYTES + 1];
    snprintf(folder, sizeof folder, "%s/attempts/%llu.%u", state_folder_,
             static_cast<unsigned long long>(order.job), order.attempt);
    // Client and monitor may be about to freeze or kill what that attempt has left, by the account:
    // this one would be hit. When they have seen the end another shepherd gets it.
    if (is_behind(order) && had_to_leave_ && !is_hung_up(connection)) {
      stop();
      close(kLink);  // before the connection: who sees that closed is to find no shepherd here
    } else {
      status = run_attempt(folder, order, connection);
    }
  }
  if (owed_) say_end(before);  // this one was passed over
  if (!close_attempts() || chdir("/") != 0) status = Shepherd::kBadOrder;
  if (status != Shepherd::kDone) stop();
  return status;
}

void Slot::wait() {
  if (stopped_) return;
  pollfd fds[] = {{link(), POLLIN, 0}, {kSignals, POLLIN, 0}};
  while (poll(fds, 2, link() < 0 ? 0 : -1) < 0 && errno == EINTR) {
  }
  struct signalfd_siginfo info;
  while (read(kSignals, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    if (info.ssi_signo != SIGCHLD) stop();
  room_.look();
}

int Slot::run(const char* state_folder) {
  state_folder_ = state_folder;
  if (const char* failed = prepare()) {
    perror(failed);
    return Shepherd::kUsage;
  }
  int status = Shepherd::kDone;
  for (wait(); !stopped_; wait()) status = run_next();
  say_owed_end();
  room_.remove(kept_);
  cgroups_.remove();
  if (listens_) unlink(kept_control_);
  return status;
}

}  // namespace sublet::shepherd
