// Access to the processes of one attempt when its shepherd does not answer, for
// client and monitor. open() may allocate and opens what the rest
// needs; after that nothing allocates, throws, logs or takes a lock. One thread
// at a time.
#ifndef SUBLET_ATTEMPT_TENANT_H_
#define SUBLET_ATTEMPT_TENANT_H_

#include <memory>
#include <string>

#include "attempt/processes.h"
#include "base/unique_fd.h"

namespace sublet {

class Tenant {
 public:
  // Null when the folder's record cannot be used: there is none yet, it is
  // damaged, or it is of another boot; *error says which.
  static std::unique_ptr<Tenant> open(const std::string& folder, std::string* error);

  // None of the attempt's processes uses CPU once this returns (a cgroup: within
  // the kernel's next ticks).
  void freeze() noexcept;
  void thaw() noexcept;
  // One round; repeat until gone(). A shepherd that is stopped, or in whose hands
  // processes outlive many rounds, is killed too: it could continue them. One that
  // runs while no process is left writes the exit record; leave it alone.
  void kill() noexcept;
  // No process of the attempt is left; the shepherd does not count.
  bool gone() noexcept;
  bool shepherd_gone() noexcept;

 private:
  Tenant() = default;
  bool shepherd_stopped() noexcept;
  // Ids of dead processes may be reused by others.
  void forget_the_dead() noexcept;

  static constexpr int kPatientRounds = 10;

  std::string status_path_;
  AttemptIdentity identity_;
  AttemptProcesses processes_;
  int64_t program_start_ = -1;
  int rounds_ = 0;
  UniqueFd shepherd_fd_;    // pidfd; invalid: gone when opened
  UniqueFd shepherd_stat_;  // its /proc/PID/stat, of that process alone
};

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_TENANT_H_
