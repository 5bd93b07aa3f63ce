// Which pseudo-terminals belong to jobs: keys that a job types at a terminal of its own are not
// the owner's. Any thread.
#ifndef SUBLET_LOADMON_JOB_TERMINALS_H_
#define SUBLET_LOADMON_JOB_TERMINALS_H_

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <vector>

namespace sublet::loadmon {

struct JobTerminals {
  // The accounts of jobs' processes, without root and this process's own.
  std::set<uid_t> accounts;
  // Numbers N of /dev/pts/N whose master a job's process holds, or that are the terminal of a
  // session that a job's process leads.
  std::set<uint32_t> numbers;

  // Whether /dev/pts/`number`, which belongs to `account`, is a job's.
  bool contain(uint32_t number, uid_t account) const {
    return accounts.contains(account) || numbers.contains(number);
  }
};

// `jobs`: processes of jobs; `daemons`: shepherds and clients, whose descendants are jobs, too,
// but whose own terminal is the owner's. At most 1,024 processes are examined. Numbers of another
// mount namespace are left out: there they may be those of other terminals, and a job must not
// be able to pass off the owner's terminal as its own.
JobTerminals find_job_terminals(const std::vector<pid_t>& jobs, const std::vector<pid_t>& daemons);

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_JOB_TERMINALS_H_
