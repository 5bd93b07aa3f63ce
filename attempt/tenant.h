// Controls the processes of one attempt if its shepherd does not answer, for client and
// monitor. open() may allocate and opens all required descriptors; after that nothing
// allocates, throws, logs or takes a lock. Not thread-safe.
#ifndef SUBLET_ATTEMPT_TENANT_H_
#define SUBLET_ATTEMPT_TENANT_H_

#include <memory>
#include <string>

#include "attempt/cpu_weight.h"
#include "attempt/processes.h"
#include "base/unique_fd.h"

namespace sublet {

class Tenant {
 public:
  // Null if the folder's record is missing, damaged or of another boot; *error states
  // which.
  static std::unique_ptr<Tenant> open(const std::string& folder, std::string* error);

  // No process of the attempt uses CPU after this returns (with a cgroup: after a few
  // ticks of the kernel).
  void freeze() noexcept;
  void thaw() noexcept;
  // One round: frozen, then lifted so that it dies fast, then killed; repeat until gone().
  // The shepherd is killed, too, if it is stopped or if processes survive many rounds,
  // because it could continue them. A running shepherd without processes is writing the exit
  // record and is not killed.
  void kill() noexcept;
  // Whether no process of the attempt is left, apart from the shepherd.
  bool gone() noexcept;
  bool shepherd_gone() noexcept;
  // Whether a signal has stopped it (SIGSTOP, a debugger): it enforces nothing until it
  // continues.
  bool shepherd_stopped() noexcept;

 private:
  Tenant() = default;
  // Drops ids of dead processes, which may be reused.
  void forget_the_dead() noexcept;

  static constexpr int kPatientRounds = 10;

  std::string status_path_;
  AttemptIdentity identity_;
  AttemptProcesses processes_;
  CpuWeight weight_;
  bool frozen_ = false;
  int64_t program_start_ = -1;
  int rounds_ = 0;
  UniqueFd shepherd_fd_;    // pidfd; invalid: it had ended before open()
  UniqueFd shepherd_stat_;  // its /proc/PID/stat; never refers to another process
};

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_TENANT_H_
