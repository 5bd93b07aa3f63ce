// Turns a new process into the job: session, cgroups, limits, account, environment;
// it then waits for go() and executes the program.
#ifndef SUBLET_CLIENT_SHEPHERD_LAUNCH_H_
#define SUBLET_CLIENT_SHEPHERD_LAUNCH_H_

#include <sys/types.h>

#include "attempt/format.h"
#include "client/shepherd/weight.h"

namespace sublet::shepherd {

// What the child reports if it cannot become the job.
struct LaunchFailure {
  int error;      // errno
  char step[28];  // "chdir", "exec", ...
};

class Launch {
 public:
  // Creates the process, which prepares itself and waits for go(). `output` and
  // `errors` become its stdout and stderr. False with errno.
  bool fork(const sublet_order& order, Weight& weight, int output, int errors);
  // Lets it execute the program.
  void go();
  pid_t pid() const { return pid_; }
  // Readable when the program runs (then read_failure() returns false) or failed to start.
  int poll_fd() const { return socket_; }
  // True if the start failed; fills *failure. Afterwards poll_fd() is -1.
  bool read_failure(LaunchFailure* failure);

 private:
  pid_t pid_ = 0;
  int socket_ = -1;
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_LAUNCH_H_
