#include "client/shepherd/weight.h"

namespace sublet::shepherd {

const char* Weight::open(const sublet_order& order, AttemptProcesses& processes,
                         const WeightFiles* kept) {
  const bool opened = kept && *order.cgroup_cpu ? cpu_.use(*kept) : cpu_.open(order.cgroup_cpu);
  if (!opened) return "cgroup weight";
  // The kernel may refuse the child's change of its autogroup (one per 100 ms is
  // allowed), and the child does not wait.
  pending_ = cpu_.by_sessions();
  // A kept cgroup has that of the attempt before. With almost none a child could hold the kernel's
  // locks for long before it is the job.
  if (cpu_.by_cgroup()) cpu_.lift(processes);
  return nullptr;
}

// By sessions it is not fatal if refused for now: refresh() retries.
bool Weight::demote_self() const { return cpu_.demote_self() || cpu_.by_sessions(); }

bool Weight::lift(AttemptProcesses& processes) {
  lifted_ = true;
  refresh(processes);
  const bool lifted = !pending_;
  if (cpu_.by_cgroup()) pending_ = true;  // repeat once, see refresh()
  return lifted;
}

bool Weight::hasten(AttemptProcesses& processes) {
  lifted_ = true;
  pending_ = !cpu_.hasten(processes);
  return !pending_;
}

void Weight::demote(AttemptProcesses& processes) {
  lifted_ = false;
  pending_ = !cpu_.demote(processes);
}

void Weight::refresh(AttemptProcesses& processes) {
  if (lifted_)
    pending_ = !cpu_.lift(processes);
  else if (!cpu_.by_cgroup())
    pending_ = !cpu_.demote(processes);
  else
    pending_ = false;
}

}  // namespace sublet::shepherd
