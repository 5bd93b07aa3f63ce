#include "client/shepherd/walls/init.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sublet::shepherd {

bool is_deserted(int socket) {
  struct pollfd one = {socket, 0, 0};
  return poll(&one, 1, 0) > 0 && (one.revents & POLLHUP) != 0;
}

void be_init(int socket) {
  prctl(PR_SET_NAME, "sublet-init", 0, 0, 0);
  // Without root the job has the same account.
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  // In this order: if the shepherd has ended before the first, the second says so.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || is_deserted(socket)) _exit(1);
  // The lock of the attempt's folder is among them.
  syscall(SYS_close_range, 0u, ~0u, 0);
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  for (;;) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    int signal;
    sigwait(&ends, &signal);
  }
}

}  // namespace sublet::shepherd
