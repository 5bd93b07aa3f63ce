// Ctrl-C and its kin. One thread of its own waits for SIGINT, SIGTERM and
// SIGHUP, so that a call to the server in progress delays nothing: it runs
// what the command has left to be done, newest first, and ends the process
// with 128 + signal. A second signal ends it at once.
#ifndef SUBLET_CLI_INTERRUPTS_H_
#define SUBLET_CLI_INTERRUPTS_H_

#include <functional>

namespace sublet::cli {

// Once, before any other thread is started (they inherit the blocked signals).
// Signals that the parent ignores stay ignored.
void watch_interrupts();

// While this lives, `action` is run if a signal comes. It runs in another
// thread at any moment between constructor and destructor, and may not create
// or destroy a WhenInterrupted. Destroy in reverse order of creation.
class WhenInterrupted {
 public:
  explicit WhenInterrupted(std::function<void()> action);
  ~WhenInterrupted();
  WhenInterrupted(const WhenInterrupted&) = delete;
  WhenInterrupted& operator=(const WhenInterrupted&) = delete;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_INTERRUPTS_H_
