#include "client/shepherd/walls/fork_server.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/real_time.h"

namespace sublet::shepherd {
namespace {

constexpr pid_t kReady = 1;  // what start() is answered
constexpr pid_t kFailed = -1;
// The shepherd hears nothing of the owner meanwhile. It looks again after such a time, and at most
// so often: on a busy machine the child has been created, but cannot say so yet.
constexpr long kLookNs = 500'000;
constexpr int kLooks = 100;

// Until *word is another value, or for so long.
template <typename Word>
void wait_while(Word* word, Word value, const timespec* most) {
  syscall(SYS_futex, word, FUTEX_WAIT, value, most, nullptr, 0);
}

template <typename Word>
void wake(Word* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

template <typename Word>
Word load(const Word* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

}  // namespace

bool ForkServer::start(Prepare prepare, const void* where) {
  answer_ = 0;
  if (getrandom(&secret_, sizeof secret_, 0) != sizeof secret_) return false;
  const pid_t shepherd = getpid();
  const auto child =
      static_cast<pid_t>(syscall(SYS_clone, CLONE_FILES | SIGCHLD, nullptr, nullptr, nullptr, 0L));
  if (child == 0) serve(prepare, where, shepherd);
  if (child < 0) return false;
  pid_ = child;
  if (await_answer() == kReady) return true;
  end();
  return false;
}

void ForkServer::serve(Prepare prepare, const void* where, pid_t shepherd) {
  prctl(PR_SET_NAME, "sublet-forks", 0, 0, 0);
  // In this order: if the shepherd has ended before the first, the second says so.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != shepherd) _exit(1);
  // The shepherd waits for it, and must not have to wait for the owner's programs.
  become_real_time(0);
  uint32_t served = load(&asked_);
  if (!prepare(where, secret_)) _exit(1);
  answer(kReady);
  for (;;) {
    while (load(&asked_) == served) wait_while(&asked_, served, nullptr);
    served = load(&asked_);
    const auto run = [](void* server) {
      auto& self = *static_cast<ForkServer*>(server);
      wake(&self.answer_);  // the kernel has written it
      self.run_(self.argument_);
    };
    if (cgroups_->fork_borrowing(run, this, &answer_, secret_) < 0) answer(kFailed);
  }
}

void ForkServer::answer(pid_t answer) {
  __atomic_store_n(&answer_, answer, __ATOMIC_RELEASE);
  wake(&answer_);
}

// A child may have been killed before it could wake this process.
pid_t ForkServer::await_answer() {
  const timespec look = {0, kLookNs};
  for (int i = 0; i < kLooks && load(&answer_) == 0; ++i) {
    wait_while(&answer_, 0, &look);
    if (load(&answer_) == 0 && has_ended()) break;
  }
  return load(&answer_);
}

bool ForkServer::has_ended() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = 0;
  return pid_ <= 0;
}

pid_t ForkServer::fork(Cgroups& cgroups, Run run, void* argument) {
  cgroups_ = &cgroups;
  run_ = run;
  argument_ = argument;
  __atomic_store_n(&answer_, 0, __ATOMIC_RELAXED);
  __atomic_add_fetch(&asked_, 1, __ATOMIC_RELEASE);
  wake(&asked_);
  pid_t child = await_answer();
  if (child > 0) return child;
  end();  // afterwards it is known whether there is a child
  child = load(&answer_);
  return child > 0 ? child : -1;
}

bool ForkServer::forget(pid_t ended) {
  const bool was_it = pid_ > 0 && ended == pid_;
  if (was_it) pid_ = 0;
  return was_it;
}

void ForkServer::end() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

}  // namespace sublet::shepherd
