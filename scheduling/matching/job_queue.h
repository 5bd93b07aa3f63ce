// The waiting jobs: grouped by requirements, one line per user and group, and the
// queue REQUESTING of the hosts that they were submitted from. The best job for a
// machine is found by comparing the heads of the lines.
//
// Private to the brain; owned by the matcher; one caller at a time.
#ifndef SUBLET_SCHEDULING_MATCHING_JOB_QUEUE_H_
#define SUBLET_SCHEDULING_MATCHING_JOB_QUEUE_H_

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduling/indexed_heap.h"
#include "scheduling/matching/job_line.h"
#include "scheduling/policies/job_policy.h"
#include "scheduling/records.h"

namespace sublet::scheduling {

struct Bucket;
struct Job;
struct Machine;
struct MachineClass;
struct User;

// A host that jobs are submitted from.
struct Host {
  std::string name;
  uint32_t index = 0;  // never reused
  uint64_t jobs = 0;   // live ones submitted from it, an array counts once
  uint64_t waiting = 0;
  uint64_t turn = 0;  // position in REQUESTING: smaller is nearer to the head; 0: not in it
};

// The group that a job with these needs belongs to: memory and disk are rounded up to
// the next power of two, at least kLeastStep, so that there are few groups. The exact
// needs are compared where a machine has room for only some jobs of a group.
inline constexpr uint64_t kLeastStep = uint64_t{64} << 20;
Requirements group_needs(const Requirements& needs);

// Jobs with the same group_needs.
struct Group {
  Requirements needs;         // rounded up: a machine with room for this fits every job
  uint64_t least_memory = 0;  // no job of it needs less
  uint64_t least_disk = 0;
  uint64_t jobs = 0;          // live ones, an array counts once
  std::vector<Bucket*> open;  // buckets with jobs
  std::unordered_map<uint64_t, std::unique_ptr<Bucket>> buckets;
  std::unordered_map<MachineClass*, size_t> places;  // index in MachineClass::groups
  // A job was added that may fit an idle machine, and IDLE has not been searched
  // since. After the search no idle machine fits until a machine changes.
  bool newly_queued = false;
  // One of the queued jobs: unless newly_queued is set, a job that needs at least as
  // much fits no idle machine.
  const Job* least_demanding = nullptr;
};

// What decides between the best jobs of two users: smaller is served earlier.
struct Rank {
  UserKey key;
  uint64_t turn = 0;  // of the host
  JobId id = 0;
  auto operator<=>(const Rank&) const = default;
};
Rank rank_of(const JobPolicy& policy, const Job& best);

// One user's waiting jobs of one group (and of one host, with JobPolicy::turns_by_host);
// deleted when it becomes empty.
struct Bucket {
  User* user = nullptr;
  Group* group = nullptr;
  uint64_t key = 0;  // in group->buckets
  uint32_t host = 0;
  size_t place = kNowhere;  // in group->open
  JobLine line;
};

class JobQueue {
 public:
  explicit JobQueue(const Policies& policies) : policies_(policies) {}

  // The host of one more live job, made if necessary; leave_host forgets a host without jobs.
  Host* enter_host(const std::string& name);
  void leave_host(Host* host);
  // The group of jobs with these needs, made if necessary. If `made`, the caller must add it
  // to the machine classes (MachineQueue::learn).
  Group* group(const Requirements& needs, bool* made);
  // Forgets a group without live jobs.
  void forget(Group* group);
  const std::map<Requirements, std::unique_ptr<Group>>& groups() const { return groups_; }

  // Adds a waiting job to its line, or removes it.
  void add(Job& job, double order);
  void take(Job& job);

  // `count` jobs of this host began or ceased to wait.
  void began_to_wait(Host& host, uint64_t count);
  void ceased_to_wait(Host& host, uint64_t count);
  // The host was served: moves to the tail if it has more waiting jobs.
  void served(Host& host);
  const std::map<uint64_t, Host*>& requesting() const { return requesting_; }
  // Reorders REQUESTING.
  void requeue_hosts(const std::vector<Host*>& order);
  const Host* known_host(const std::string& name) const;
  // Null: no job of this host waits.
  Host* waiting_host(const std::string& name);

  // The job that gets this machine; null: no waiting job fits.
  Job* best_for(const Machine& machine);

  // Groups with newly queued jobs that idle machines have not been searched for yet.
  std::vector<Group*>& newly_queued() { return newly_queued_; }

 private:
  // Of the hosts with a job that fits the machine, the one nearest to the head.
  const Host* turn_of(const Machine& machine) const;
  void find_best_of_users(const Machine& machine);

  const Policies& policies_;
  std::map<Requirements, std::unique_ptr<Group>> groups_;
  std::unordered_map<std::string, Host> hosts_;
  std::map<uint64_t, Host*> requesting_;
  uint32_t last_host_ = 0;
  uint64_t last_turn_ = 0;
  uint64_t search_ = 0;
  std::vector<User*> seen_;  // in the current search; kept to save allocations
  std::vector<Group*> newly_queued_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_JOB_QUEUE_H_
