#include "client/shepherd/walls/init.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/shepherd/system.h"

namespace sublet::shepherd {
namespace {

// False if there are none left.
bool wait_for_children() {
  for (;;) {
    int status;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return pid == 0;
    if (WIFSTOPPED(status)) let_go(pid, WSTOPSIG(status));
  }
}

sigset_t heard_signals() {
  sigset_t heard;
  sigemptyset(&heard);
  sigaddset(&heard, SIGCHLD);
  sigaddset(&heard, kDismissed);
  return heard;
}

// Returns to the kernel the pages that lie entirely within it.
void give_back(void* memory, size_t size) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t at = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = (at + page - 1) & ~(page - 1), end = (at + size) & ~(page - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

bool is_deserted(int socket) {
  struct pollfd one = {socket, 0, 0};
  return poll(&one, 1, 0) > 0 && (one.revents & POLLHUP) != 0;
}

void become_first(int socket, void* unused, size_t size) {
  prctl(PR_SET_NAME, "sublet-init", 0, 0, 0);
  // In this order: if the shepherd has ended before the first, the second says so.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || is_deserted(socket)) _exit(1);
  // The lock of the attempt's folder is among them.
  const auto kept = static_cast<unsigned>(socket);
  if (kept > 0) syscall(SYS_close_range, 0u, kept - 1, 0);
  syscall(SYS_close_range, kept + 1, ~0u, 0);
  // What the job sends has no effect then.
  reset_handlers();
  give_back(unused, size);
  const sigset_t heard = heard_signals();
  sigprocmask(SIG_BLOCK, &heard, nullptr);
}

void wait_until_alone() {
  const sigset_t heard = heard_signals();
  bool dismissed = false;
  while (wait_for_children() || !dismissed) {
    siginfo_t info;
    // Who is outside has no number here; what is queued could pretend that.
    if (sigwaitinfo(&heard, &info) == kDismissed && info.si_code == SI_USER && info.si_pid == 0)
      dismissed = true;
  }
}

void be_init(int socket, void* unused, size_t size) {
  become_first(socket, unused, size);
  close(socket);
  wait_until_alone();
  _exit(0);
}

bool say(int socket, char answer) { return send(socket, &answer, 1, MSG_NOSIGNAL) == 1; }

}  // namespace sublet::shepherd
