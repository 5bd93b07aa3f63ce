// The matcher: which waiting job gets which idle machine. It owns the waiting jobs
// (matching/job_queue.h), the machines' queue IDLE (matching/machine_queue.h), the hosts' queue
// REQUESTING (matching/host_queue.h), the promised places (matching/promises.h), and who suits whom
// (matching/suitability.h). It decides; whoever calls it carries the decision out.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_MATCHING_MATCHER_H_
#define SUBLET_SCHEDULING_MATCHING_MATCHER_H_

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "scheduling/matching/host_queue.h"
#include "scheduling/matching/job_queue.h"
#include "scheduling/matching/machine_queue.h"
#include "scheduling/matching/promises.h"
#include "scheduling/matching/suitability.h"
#include "scheduling/policies/policies.h"

namespace sublet::scheduling {

class Ledger;

class Matcher {
 public:
  Matcher(const Policies& policies, Ledger& ledger, LicenceBook& licences, HoursBook& hours)
      : policies_(policies),
        ledger_(ledger),
        licences_(licences),
        hours_(hours),
        suitability_(licences, hours),
        queue_(policies, licences, hours) {}

  JobQueue& queue() { return queue_; }
  const JobQueue& queue() const { return queue_; }
  MachineQueue& idle() { return idle_; }
  HostQueue& hosts() { return hosts_; }
  Promises& promises() { return promises_; }
  const HostQueue& hosts() const { return hosts_; }
  const Suitability& suitability() const { return suitability_; }

  // The machine's record says what kind it is of; it is not in IDLE.
  void set_kind(Machine& machine);
  // The demand of a job with these needs, which share its strings from then on; the job is counted
  // in it until leave_demand.
  Demand* enter_demand(Requirements& needs) { return suitability_.enter_demand(needs); }
  void leave_demand(Demand* demand) { suitability_.leave_demand(demand); }
  // The pool has these licences from now on; no job is queued.
  void set_licences(const std::string& licences);
  // Forgets demands without jobs: after the allocation, which may still look at them.
  void forget_spare() { suitability_.forget_spare(); }

  // What carries the decisions out.
  struct Actions {
    // Puts the job on the machine: takes the job out of the queue, and the machine out of IDLE if
    // that is full.
    std::function<void(Job&, Machine&)> place;
    // Promises the machine to the job; or, if it lacks licences, keeps them for it
    // (keep_licences).
    std::function<void(Job&, Machine&)> promise;
    std::function<void(Job&, Machine&)> keep_licences;
  };
  // Gives idle machines to waiting jobs until no waiting job fits an idle machine, or promises
  // them to jobs that have waited for long.
  void allocate(Micros now, const Actions& actions);
  // The next of the waiting jobs that this machine could have, if it needs no more than `room`, no
  // named amounts, and nothing that the pool has to let it; null: the next one does, or there is
  // none.
  Job* next_for(const Machine& machine, const Amounts& room, Micros now);
  // Whether the pool lets the job start now: its hours are open, and the licences that it asks for
  // are left.
  bool may_start(const Job& job) const;
  bool has_licences(const Job& job) const;
  // Keeps the licences that the job needs, as they come back, for it: others get what it leaves. It
  // waits, is one alone, and the pool has as many; it would start on this machine, if others left
  // it.
  void keep_licences(Job& job, Machine& machine);
  // They are kept no longer. Do nothing if none are.
  void give_up_licences(Job& job);
  void give_up_all_licences();
  // The jobs that licences are kept for.
  const std::map<JobId, Job*>& licensed() const { return licensed_; }
  // Ends the promises to jobs that may not start now, or that the machine does not suit any more;
  // and gives up licences for whose job there is no machine any more, or that is not to start.
  void end_vain_promises();
  // No waiting job fits an idle machine or what it is promised, as the caller knows: none need be
  // looked at.
  void note_allocated() {
    idle_.changed().clear();
    promises_.clear_changed();
    licences_.note_searched();
    hours_.note_searched();
  }

 private:
  // Jobs that ask for licences that were released, or whose hours have opened, are as good as new
  // ones.
  void note_startable();
  // Moves the users whose keys have changed.
  void rekey();
  void serve(Machine& machine, Micros now, const Actions& actions);
  // The first of the jobs that fit the machine now, or have waited for long and would fit if all
  // others left it; null: there is none.
  Job* first_for(const Machine& machine, Micros now);
  bool may_start(const Job& job, const Machine& machine) const;
  // What such a job gets where others have left.
  void wait_for(Job& job, Machine& machine, const Actions& actions);
  // For the next idle machine of this kind with room for the least that the new jobs of one group
  // need.
  struct Search {
    const MachineKind* kind = nullptr;
    std::vector<Ask> asks;    // of their groups, less those that ask for as much as another
    uint64_t placed = 0;      // Matcher::placed_, as of which they are
    Machine* next = nullptr;  // null: there is none any more
    uint64_t place = 0;       // of `next`, when it was found
  };
  std::vector<Search> searches_for_new_jobs() const;
  std::vector<Ask> least_of_new(const MachineKind& kind) const;
  void advance(Search& search, uint64_t after) const;
  Machine* next_to_serve(uint64_t after, std::vector<Search>& searches);

  const Policies& policies_;
  Ledger& ledger_;
  LicenceBook& licences_;
  HoursBook& hours_;
  Suitability suitability_;
  JobQueue queue_;
  MachineQueue idle_;
  HostQueue hosts_;
  Promises promises_;
  std::map<JobId, Job*> licensed_;
  uint64_t placed_ = 0;  // counts the jobs that were placed by searches
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_MATCHER_H_
