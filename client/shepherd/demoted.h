// Runs a program of the daemons that works for a job, removing what it left or moving its files,
// with as little weight as a job has.
#ifndef SUBLET_CLIENT_SHEPHERD_DEMOTED_H_
#define SUBLET_CLIENT_SHEPHERD_DEMOTED_H_

namespace sublet::shepherd {

// The cgroup folders are made for it and removed afterwards; "": none. The program inherits the
// open files and has no environment. SIGTERM kills it at once: it is given normal weight to die.
// Returns its exit status, or 1.
int run_demoted(const char* cgroup_unified, const char* cgroup_cpu, char* const* command);

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_DEMOTED_H_
