// The waiting jobs: grouped by what they require, one heap per user and group,
// and the queue REQUESTING of the hosts that they were submitted from. Finding
// the best job for a machine looks at heap tops only, never at the queue.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_JOB_QUEUE_H_
#define SUBLET_SCHEDULING_JOB_QUEUE_H_

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduling/indexed_heap.h"
#include "scheduling/records.h"

namespace sublet::scheduling {

struct Job;
struct Bucket;
struct Machine;
struct MachineClass;

struct User {
  UserRecord record;
  uint32_t index = 0;    // never reused
  uint64_t waiting = 0;  // jobs in state waiting: the `active` of formula 3.4
  uint64_t active = 0;   // waiting, placed or running
  bool touched = false;
  // The user's best job in the search numbered `search`.
  uint64_t search = 0;
  const struct QueueEntry* best = nullptr;
};

// A host that jobs are submitted from.
struct Host {
  std::string name;
  uint32_t index = 0;
  uint64_t waiting = 0;
  uint64_t turn = 0;  // place in REQUESTING: smaller is nearer to the head; 0: not in it
};

struct QueueEntry {
  double order = 0;  // Drift::order
  JobId id = 0;
  Job* job = nullptr;
  int32_t priority = 0;  // the user's own
};
// Among one user's jobs: the user's own priority (higher first), then the share
// priority (smaller first), then the id.
struct QueueOrder {
  static bool before(const QueueEntry& a, const QueueEntry& b);
  static void moved(QueueEntry& entry, size_t position);
};

// Jobs with equal requirements.
struct Group {
  Requirements needs;
  uint64_t jobs = 0;          // live ones
  std::vector<Bucket*> open;  // buckets with jobs
  std::unordered_map<uint64_t, std::unique_ptr<Bucket>> buckets;
  // Its first job began to wait, and IDLE has not been searched for it since.
  // Once that is done no idle machine fits, until a machine changes.
  bool fresh = false;
};

// One user's waiting jobs of one group (and of one host, where turns go by
// machine).
struct Bucket {
  User* user = nullptr;
  Group* group = nullptr;
  uint32_t host = 0;
  size_t place = kNowhere;  // in group->open
  IndexedHeap<QueueEntry, QueueOrder> heap;
};

struct Job {
  JobRecord record;
  User* user = nullptr;
  Host* host = nullptr;
  Group* group = nullptr;
  Bucket* bucket = nullptr;  // where it is queued; null: not to be placed now
  size_t position = kNowhere;
  MachineId last_machine = 0;             // of the newest attempt, once ended,
  EndReason last_end = EndReason::kNone;  // and how it ended
  bool touched = false;
};

class JobQueue {
 public:
  explicit JobQueue(bool turns_by_machine) : turns_by_machine_(turns_by_machine) {}

  Host* host(const std::string& name);
  // The group of these requirements, made when it is new; then the classes must
  // learn of it (`made`).
  Group* group(const Requirements& needs, bool* made);
  // Forgets a group without live jobs.
  void forget(Group* group);
  const std::map<Requirements, std::unique_ptr<Group>>& groups() const { return groups_; }

  // Puts a waiting job in line, or takes it out.
  void add(Job& job, double order);
  void take(Job& job);

  // A job of this host began or ceased to wait.
  void began_to_wait(Host& host);
  void ceased_to_wait(Host& host);
  // The host was served: it goes to the tail while it has jobs.
  void served(Host& host);
  const std::map<uint64_t, Host*>& requesting() const { return requesting_; }
  // Puts REQUESTING in this order.
  void requeue_hosts(const std::vector<Host*>& order);
  const Host* known_host(const std::string& name) const;

  // The job that gets this machine; null: no waiting job fits.
  Job* best_for(const Machine& machine);

  // Groups that idle machines have not been searched for yet.
  std::vector<Group*>& fresh() { return fresh_; }

 private:
  // Of the hosts with a job that fits the machine, the nearest to the head.
  const Host* turn_of(const Machine& machine) const;

  bool turns_by_machine_;
  std::map<Requirements, std::unique_ptr<Group>> groups_;
  std::unordered_map<std::string, Host> hosts_;
  std::map<uint64_t, Host*> requesting_;
  uint64_t last_turn_ = 0;
  uint64_t search_ = 0;
  std::vector<User*> seen_;  // in the present search; kept to save allocations
  std::vector<Group*> fresh_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_JOB_QUEUE_H_
