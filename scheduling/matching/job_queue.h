// The waiting jobs: one line for each user and group. It finds the best job for a machine.
//
// Private to the brain; owned by the matcher; one caller at a time.
#ifndef SUBLET_SCHEDULING_MATCHING_JOB_QUEUE_H_
#define SUBLET_SCHEDULING_MATCHING_JOB_QUEUE_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduling/matching/suitability.h"
#include "scheduling/matching/user_queue.h"
#include "scheduling/policies/policies.h"

namespace sublet::scheduling {

struct Job;
struct Machine;

// What decides between the best jobs of two users: smaller is served earlier.
struct Rank {
  bool next_lap = false;  // JobPolicy::from
  UserKey key;
  uint64_t turn = 0;  // of the host, if users are served by their jobs
  uint64_t last = 0;  // the user's number, or else the job's id
  auto operator<=>(const Rank&) const = default;
};
// Of a job with this order and id, submitted from a host with this turn.
Rank rank_of(const JobPolicy& policy, const User& user, double order, uint64_t turn, JobId id);
Rank rank_of(const JobPolicy& policy, const Job& best);

// For a machine.
struct JobSearch {
  const Space& space;  // that a job gets there
  Among among = Among::kAll;
  // Jobs without a promised place that have waited since `since` or for longer are looked for
  // in this space, too, be the licences that they need left or not.
  const Space* most = nullptr;
  Micros since = 0;

  // As Sought::may_be; licences, hours and named amounts apart.
  bool may_be(const Amounts& least, Micros waiting_since) const {
    return least.within(space.room) ||
           (most != nullptr && waiting_since <= since && least.within(most->room));
  }
};

// In one group, or in any of several. None: what its jobs ask by name is not there.
struct SoughtInGroup {
  Sought licensed;  // of the jobs that licences are kept for,
  Sought others;    // and of the others
  bool is_any() const { return licensed.is_any() || others.is_any(); }
  const Sought& in(const UserLine& line) const { return line.licensed ? licensed : others; }
  bool may_be(const UserBound& bound) const {
    return others.may_be(bound.least, bound.since) ||
           (bound.licensed && licensed.may_be(bound.least, bound.since));
  }
};

class JobQueue {
 public:
  JobQueue(const Policies& policies, const LicenceBook& licences, const HoursBook& hours)
      : policies_(policies), licences_(licences), hours_(hours) {}

  // Adds a waiting job to its line, or removes it.
  void add(Job& job, double order);
  void take(Job& job);
  // Licences are kept for the job, or not any more. Does nothing if it is not queued.
  void requeue(Job& job);
  // The user's key may have changed, or whether he is passed over, or a batch of his
  // is full: then none of these jobs is found.
  void rekey(User& user);
  // The keys of all of these users, whose jobs are all that wait, may have changed. O(users log
  // users).
  void rekey_all(std::map<std::string, User>& users);
  // Moves the jobs whose demands are in other groups now. O(jobs).
  void sort_out(const std::map<std::string, User>& users);

  // If users are served by key: calls `visit` with those who may be served in their order, until it
  // returns false.
  template <typename Visit>
  void walk(Visit visit) const {
    users_.walk(policies_.job->from(), visit);
  }

  bool is_open(const Group& group) const { return group.hours == nullptr || group.hours->open; }
  // Whether the pool lets jobs of the group, which has some, start now: their hours are open, and
  // licences are left, or have been kept for one.
  bool may_start(const Group& group) const;
  // The first of the jobs that are looked for, by the policy; null: there is none.
  Job* best_for(const Machine& machine, const JobSearch& search);
  // The same of one user's; `host`: of this one only.
  Job* best_of(const User& user, const Machine& machine, const JobSearch& search,
               std::optional<uint32_t> host = std::nullopt) const;

  // The group has jobs that may fit an idle machine, none of which needs less than this.
  void note_new(Group& group, const Amounts& needs);
  // Groups with newly queued jobs that idle machines have not been searched for yet.
  std::vector<Group*>& newly_queued() { return newly_queued_; }
  const std::vector<Group*>& newly_queued() const { return newly_queued_; }

 private:
  UserLine& line_for(Job& job);
  // The line's jobs, or whether it may stand, have changed.
  void settle(UserLine& line);
  void enter(UserLine& line, const UserKey& key);
  void leave(UserLine& line);
  Sought sought_in(const Group& group, const JobSearch& search, bool licensed) const;
  SoughtInGroup sought_in(const Group& group, const JobSearch& search) const;
  // By key: the user who is first of those with a job that fits, and of his jobs that fit, the
  // best.
  Job* best_by_key(const Machine& machine, const JobSearch& search);
  // The same, found by looking at users in their order, or at all lines that may have a job that
  // fits; std::nullopt: not found after so many looks at lines.
  std::optional<Job*> best_among_users(const Machine& machine, const JobSearch& search,
                                       const std::function<bool(const UsersBound&)>& may,
                                       size_t looks);
  std::optional<Job*> best_among_lines(const Machine& machine, const JobSearch& search,
                                       size_t looks) const;
  Job* best_by_job(const Machine& machine, const JobSearch& search);
  // Of the hosts with such a job, the one nearest to the head.
  std::optional<uint32_t> host_in_turn(const Machine& machine, const JobSearch& search) const;

  const Policies& policies_;
  const LicenceBook& licences_;
  const HoursBook& hours_;
  UserQueue users_;
  uint64_t search_ = 0;
  std::vector<Group*> newly_queued_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_JOB_QUEUE_H_
