// Turns a new process into the job: namespaces, session, cgroups, limits, account, environment;
// it then waits for go() and executes the program. With walls another process comes before it, the
// first of the job's namespace (walls/init.h).
#ifndef SUBLET_CLIENT_SHEPHERD_LAUNCH_H_
#define SUBLET_CLIENT_SHEPHERD_LAUNCH_H_

#include <signal.h>
#include <sys/types.h>

#include "attempt/format.h"
#include "client/shepherd/cgroups.h"
#include "client/shepherd/walls/init.h"
#include "client/shepherd/walls/room.h"
#include "client/shepherd/weight.h"

namespace sublet::shepherd {

// What the child reports if it cannot become the job.
struct LaunchFailure {
  int error;        // errno
  char step[28];    // "chdir", "exec", ...
  char place[256];  // a folder or device, "": none
};

// What the process that starts the others tells.
struct Started {
  pid_t pid;
  pid_t init;          // 0: none
  const char* failed;  // a step, null: none; a text of the program, which both processes are
  int error;           // errno
  char place[256];     // as in LaunchFailure
};

class Launch {
 public:
  // Creates the process, which prepares itself and waits for go(). `output` and
  // `errors` become its stdout and stderr, in these cgroups. `room`: its namespaces, prepared for
  // this order; null: it gets its own, as far as the order wants walls. Null, or the step that
  // failed, with errno.
  const char* fork(const sublet_order& order, Cgroups& cgroups, const Weight& weight, Room* room,
                   int output, int errors);
  // Where fork() failed: a folder or device, "": none.
  const char* place() const { return place_; }
  // Lets it execute the program.
  void go();
  pid_t pid() const { return pid_; }
  bool is_in_room() const { return room_ != nullptr; }
  // 0: there is none. Like the job a child of this process.
  pid_t init() const { return init_; }
  // It is to end when no other process of its namespace is left. That of a room is to say so then,
  // once the program has ended, which is no child of it.
  void dismiss_init(bool program_ended);
  // And so all processes of its namespace.
  void kill_init() const { signal_init(SIGKILL); }
  // Somebody may have stopped it with the others.
  void continue_init() const { signal_init(SIGCONT); }
  // It has ended, and its number may be reused.
  void forget_init() { init_ = 0; }
  // True if the start failed; fills *failure. To be asked when the process has ended: each failure
  // ends it, and nobody need be woken when the program runs.
  bool read_failure(LaunchFailure* failure);

 private:
  Started start(const sublet_order& order, Cgroups& cgroups, const Weight& weight, int output,
                int errors, int socket, int told);
  [[noreturn]] static void be_in_room(void* launch);
  const char* fork_apart(const sublet_order& order, Cgroups& cgroups, const Weight& weight,
                         int output, int errors, int socket);
  void signal_init(int signal) const {
    if (init_ > 0) kill(init_, signal);
  }

  // For the child of a room's fork server: lies in memory that it shares.
  struct Attempt {
    const sublet_order* order;
    const Cgroups* cgroups;
    const Weight* weight;
    int output, errors, socket;
  };

  pid_t pid_ = 0;
  pid_t init_ = 0;
  Room* room_ = nullptr;
  Attempt attempt_;
  int socket_ = -1;
  char place_[256] = {};
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_LAUNCH_H_
