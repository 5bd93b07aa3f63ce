// Handling of Ctrl-C and similar signals. A separate thread waits for SIGINT, SIGTERM and
// SIGHUP, so that a call to the server in progress does not delay it. It runs the registered
// actions, newest first, and ends the process with 128 + signal. A second signal ends it at
// once.
#ifndef SUBLET_CLI_INTERRUPTS_H_
#define SUBLET_CLI_INTERRUPTS_H_

#include <functional>

namespace sublet::cli {

// Call once, before any other thread is started (threads inherit the blocked signals).
// Signals that the parent ignores stay ignored.
void watch_interrupts();

// While this object exists, `action` runs if a signal arrives: in another thread, at any
// time between constructor and destructor. It must not create or destroy a
// WhenInterrupted. Destroy in reverse order of creation.
class WhenInterrupted {
 public:
  explicit WhenInterrupted(std::function<void()> action);
  ~WhenInterrupted();
  WhenInterrupted(const WhenInterrupted&) = delete;
  WhenInterrupted& operator=(const WhenInterrupted&) = delete;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_INTERRUPTS_H_
