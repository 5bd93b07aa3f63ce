// A process of this machine that has connected to the monitor, known by the kernel's word, and
// whether it may belong to a job: a job must never speak for the owner.
#ifndef SUBLET_LOADMON_VISITOR_H_
#define SUBLET_LOADMON_VISITOR_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>

#include "loadmon/jobs_here.h"

namespace sublet::loadmon {

struct Visitor {
  pid_t pid = 0;                    // 0: in no namespace that can be seen from here
  std::optional<uint64_t> started;  // when it connected; the pid may be another's later
  uid_t uid = 0;
};

// Who is at the other end. Throws OsError.
Visitor visitor_at(int socket);

// Whether it descends from a job, a shepherd or a client, or has the account of a job.
// Also true if it cannot be told: it has ended, or its pid is not known here. Reads /proc.
bool may_belong_to_job(const Visitor& visitor, const JobsHere& jobs);

// Whether it is the client: connected to the monitor as such, and no job's process. Reads /proc.
bool is_client(const Visitor& visitor, const JobsHere& jobs);

// Whether it is one of a job's processes. False if it has ended.
bool is_process_of_job(pid_t pid, const JobsHere& jobs);

// The parent of a process; 0: in no namespace that can be seen from here; nullopt: there is no
// such process, or it cannot be read.
using ParentOf = std::function<std::optional<pid_t>(pid_t)>;
// Whether a process is one of these or descends from them, or it is not certain that it does
// not: a job may end an ancestor on purpose, before the way from its child leads to it.
bool may_descend(pid_t pid, const std::set<pid_t>& from, const ParentOf& parent_of);

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_VISITOR_H_
