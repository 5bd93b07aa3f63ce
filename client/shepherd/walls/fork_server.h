// A process that starts the jobs of a room (room.h) after the first one. What is the same for all
// of them is done in it once: namespaces, an idle disk priority, the Landlock domain, the
// filter of system calls. Its children are the shepherd's, as without it, and borrow its memory
// until they execute the program, as with vfork(): that costs less than a copy.
//
// It is a copy of the shepherd and has the same table of open files. This object, and what its
// children read, must lie in memory that both processes share. It runs as root, outside the jobs'
// namespace of processes, and ends with the shepherd. One thread.
#ifndef SUBLET_CLIENT_SHEPHERD_WALLS_FORK_SERVER_H_
#define SUBLET_CLIENT_SHEPHERD_WALLS_FORK_SERVER_H_

#include <stdint.h>
#include <sys/types.h>

#include "client/shepherd/cgroups.h"
#include "client/shepherd/walls/call_filter.h"

namespace sublet::shepherd {

class ForkServer {
 public:
  // Becomes the server; false if it cannot. `where`: of start(). `secret`: of the filter under
  // which it puts itself.
  using Prepare = bool (*)(const void* where, const CallSecret& secret);
  // In a child; does not return.
  using Run = void (*)(void* argument);

  bool runs() const { return pid_ > 0; }
  const CallSecret& secret() const { return secret_; }
  // Notices if it has ended.
  void look() { has_ended(); }
  // False if it cannot be made, or does not answer.
  bool start(Prepare prepare, const void* where);
  // A child, in the cgroups, that does `run`, whose argument lies in shared memory. -1: the server
  // has ended.
  pid_t fork(Cgroups& cgroups, Run run, void* argument);
  // This child was waited for. Whether it was the server.
  bool forget(pid_t ended);
  void end();

 private:
  [[noreturn]] void serve(Prepare prepare, const void* where, pid_t shepherd);
  void answer(pid_t answer);
  pid_t await_answer();
  bool has_ended();

  pid_t pid_ = 0;
  CallSecret secret_ = {};
  // Both processes use these.
  uint32_t asked_ = 0;
  pid_t answer_ = 0;  // 0: none yet; the child, or, negative: it failed
  Cgroups* cgroups_ = nullptr;
  Run run_ = nullptr;
  void* argument_ = nullptr;
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WALLS_FORK_SERVER_H_
