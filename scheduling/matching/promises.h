// Promised places: a machine keeps room for one waiting job, which starts there as soon as it fits,
// or elsewhere if it fits there before. Others get of the machine only what that job leaves. A
// place is promised to a job that has waited for long beside machines that are large enough
// (PolicyChoice::wide_wait), and to one for which another had to give way. Licences of the pool
// are kept apart (Matcher::keep_licences): a promise ends when its job lacks one, or when its hours
// close.
//
// A promise is not recorded: it ends when the server stops.
//
// Private to the brain; owned by the matcher; one caller at a time.
#ifndef SUBLET_SCHEDULING_MATCHING_PROMISES_H_
#define SUBLET_SCHEDULING_MATCHING_PROMISES_H_

#include <map>

#include "scheduling/types.h"

namespace sublet::scheduling {

struct Job;
struct Machine;

class Promises {
 public:
  // The job waits, is one alone, and has no promise; nor is the machine promised.
  void make(Machine& machine, Job& job);
  // Do nothing without a promise.
  void forget(Machine& machine);
  void forget(Job& job);

  // Something of the machine has changed: what it is promised for may fit, or be in vain.
  void note(Machine& machine);
  // Of the machines whose promises have been noted or forgotten, the next one: each is returned
  // once. Null: there is none.
  Machine* take_changed();
  // No machine is promised.
  bool none() const { return made_ == 0; }
  bool any_changed() const { return !changed_.empty(); }
  void clear_changed() { changed_.clear(); }
  // The promised machines whose jobs ask for named amounts or have hours.
  const std::map<MachineId, Machine*>& of_restricted() const { return of_restricted_; }

 private:
  std::map<MachineId, Machine*> changed_;
  size_t made_ = 0;
  std::map<MachineId, Machine*> of_restricted_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_PROMISES_H_
