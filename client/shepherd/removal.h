// Removes what a job has left, however much, with as little weight as the job had.
#ifndef SUBLET_CLIENT_SHEPHERD_REMOVAL_H_
#define SUBLET_CLIENT_SHEPHERD_REMOVAL_H_

namespace sublet::shepherd {

// The cgroup folders are made for it and removed afterwards; "": none. Returns the exit status of
// rm, or 1.
int remove_demoted(const char* folder, const char* cgroup_unified, const char* cgroup_cpu);

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_REMOVAL_H_
