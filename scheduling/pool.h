// The brain: the pool's state and every policy. Deterministic, without I/O,
// threads or a clock: the same events at the same instants give the same outcomes.
//
// Not thread-safe: one caller at a time (the server's committer).
#ifndef SUBLET_SCHEDULING_POOL_H_
#define SUBLET_SCHEDULING_POOL_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rules/named_amounts.h"
#include "scheduling/accounts.h"
#include "scheduling/events/events.h"
#include "scheduling/records.h"

namespace sublet::scheduling {

// A user's position in the queue, for reports and for `why`.
struct Standing {
  std::string user;  // or an account: "@lab-f"
  double shares = 1;
  bool by_administrator = false;  // who set the shares; else the settings
  double usage = 0;
  double charges = 0;
  uint64_t active = 0;       // queued or running
  uint64_t queued = 0;       // waiting: the `active` of formula 3.4, as the source defines it
  double best_priority = 0;  // JobPolicy::shown at `now`; 0: no job queued
  // Rank among the users with queued jobs, in the order in which a machine that
  // fits all of them would serve them: 1 is next; 0: no job queued.
  uint64_t place = 0;
  // The users whose best jobs are directly before and after this user's best job (or,
  // if none is queued, a job submitted now). "": no user.
  std::string behind;
  std::string ahead_of;
};

// The data that a forecast of a waiting job's start is based on.
struct Outlook {
  std::vector<MachineId> machines;  // that fit it, not drained or promised to others, ascending
  uint64_t ahead = 0;               // waiting jobs that come before it on one of them
  bool ahead_is_all = true;         // false: `ahead` is a lower bound
  Micros at_work_since = 0;         // earliest start of the jobs running on them; 0: none run
  uint64_t lent = 0;                // of the machines: their owner is away, or jobs run there
  // A place on one of the machines, which is the only one then, is promised to it.
  bool promised = false;
};

// Of one name that the pool has licences of.
struct LicenceView {
  std::string name;
  uint64_t offered = 0;
  uint64_t held = 0;  // by live attempts; may be more, if there were more
};

struct MachineView {
  MachineRecord record;
  bool away = false;
  Micros last_contact = 0;
  uint64_t memory_free = 0;
  uint64_t disk_free = 0;
  uint64_t places = 1;    // jobs that it takes at a time
  Amounts used = {};      // by its jobs, of the memory and disk that they have reserved
  Amounts reserved = {};  // by the live attempts on it
  JobId promised = 0;     // a waiting job for which it keeps room besides; 0: none
  rules::NamedAmounts named_reserved = {};  // the same, licences of the pool included
  bool requesting = false;                  // jobs that were submitted from it are waiting
  std::vector<AttemptKey> running;
  std::vector<AttemptKey> ahead;  // those of them that have no place yet, and reserve nothing
  uint64_t places_taken() const { return running.size() - ahead.size(); }
};

struct UnclearDependence {
  Dependence dependence;
  std::vector<JobRange> gone = {};  // not live; ascending
};

class Pool {
 public:
  explicit Pool(const Parameters& parameters);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Loads stored state; only before the first apply, which must then be
  // ServerStarted. A row that contradicts the rest is ignored and reported in one
  // of the returned sentences.
  std::vector<std::string> restore(Snapshot snapshot);

  // The only way to change the state. `now` is positive and monotonic (a smaller one
  // is raised to the last). Never fails: an event that does not apply (an unknown job,
  // an old attempt) changes nothing, and the answer says so.
  Outcome apply(const Event& event, Micros now);

  // What a restored brain cannot know from its records.
  Anchored anchor() const;

  // When TimePassed must be applied next; none: there is no deadline.
  std::optional<Micros> next_deadline() const;

  // Queries: live jobs, machines and users only. Null, none: not live.
  std::optional<JobRecord> job(JobId id) const;
  const AttemptRecord* attempt(JobId id) const;  // the job's current one
  std::optional<MachineView> machine(MachineId id) const;
  std::vector<MachineView> machines() const;
  std::optional<MachineId> machine_named(std::string_view name) const;
  std::optional<MachineId> promised(JobId id) const;  // where a place is promised to the job
  std::vector<Standing> standings(Micros now) const;
  std::vector<LicenceView> licences() const;
  std::vector<std::string> requesting() const;  // hosts, head first
  std::vector<MachineId> idle() const;          // head first
  uint64_t waiting() const;
  const Accounts& accounts() const;
  // Of the user, or of all users of his account: how many unfinished batches have
  // Submitted::at_most, and which hours their live jobs name.
  uint64_t limited_batches(const std::string& user) const;
  std::set<std::string> hours_of(const std::string& user) const;
  // Dependences on jobs before `first`, the first one of a gated batch, of which the brain does not
  // know whether they are lost: they are of jobs that RelationsBegun{jobs, false, most} would have
  // begin to wait, and some of what they are on is not live.
  std::vector<UnclearDependence> unclear(JobId first, const JobRange& jobs, uint64_t most) const;
  size_t groups() const;  // of live jobs, by the kinds of machine that suit them
  const PoolRecord& counters() const;
  const PolicyRecord& policy() const;
  // One sentence about a live job: why it has no machine, who holds it, or how long
  // it has been on its machine and why it was chosen. `memory_asked`: what its description says,
  // if the caller knows it; what its record needs beyond that was observed (events/growth.cc), and
  // the sentence says so if that excludes machines.
  std::string why(JobId id, Micros now, std::optional<uint64_t> memory_asked = std::nullopt) const;
  // Why no machine that the pool has ever known, be it silent or gone, could run such a job:
  // "no machine has 64 GiB of memory (largest: 16 GiB on curly)". "": one could, or none is known.
  std::string unsuitable(const Requirements& needs) const;
  // None: the job is not in the queue (it is not waiting, waits for others, is backing off, may not
  // start yet, its user is throttled, he or its batch is at the limit, the pool has no licence left
  // for it, or an old attempt has not ended), or no machine fits it.
  std::optional<Outlook> outlook(JobId id, Micros now) const;

  struct State;  // scheduling/state.h, private to the brain

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POOL_H_
