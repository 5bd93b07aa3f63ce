// The machines and the queue IDLE. Machines of one class (same system, same slot
// size) fit the same groups apart from memory and disk, which vary; so each class
// keeps its compatible groups and its part of the queue.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_MATCHING_MACHINE_QUEUE_H_
#define SUBLET_SCHEDULING_MATCHING_MACHINE_QUEUE_H_

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "scheduling/matching/indexed_heap.h"
#include "scheduling/records.h"

namespace sublet::scheduling {

struct Group;
struct Machine;
class JobQueue;

// Something with a deadline: an attempt (its lease), a machine (silence, end of
// a pause) or a job (end of its back-off; in a separate heap).
struct Timed {
  enum class Kind : uint32_t { kAttempt, kMachine, kJob };
  Micros due = 0;
  size_t due_position = kNowhere;
  Kind due_kind = Kind::kAttempt;
  uint64_t due_id = 0;  // breaks ties, so that the order is deterministic
};
struct DueOrder {
  static bool before(const Timed* a, const Timed* b) {
    return std::tie(a->due, a->due_kind, a->due_id) < std::tie(b->due, b->due_kind, b->due_id);
  }
  static void moved(Timed* timed, size_t position) { timed->due_position = position; }
};
using DueHeap = IndexedHeap<Timed*, DueOrder>;
// Sets, moves or (with `due` 0) removes a deadline.
void set_due(DueHeap& heap, Timed& timed, Micros due);

struct MachineClass {
  std::string os;
  std::string architecture;
  uint32_t slot_cores = 1;
  std::vector<Group*> groups;         // whose requirements of system and cores it meets
  std::map<uint64_t, Machine*> idle;  // by position in IDLE
};

struct Machine : Timed {
  MachineRecord record;
  MachineClass* kind = nullptr;
  bool away = false;  // whether the owner is away, from the last report
  bool silent = false;
  uint64_t memory_free = 0;  // 0: not known
  uint64_t disk_free = 0;
  Micros last_contact = 0;
  Micros paused_until = 0;     // after a refusal; 0: not paused
  uint32_t registration = 0;   // counts the joins
  std::vector<JobId> running;  // ascending
  uint64_t place = 0;          // position in IDLE: smaller is nearer to the head; 0: not in it
  Micros idle_since = 0;
  bool touched = false;
  bool rewritten = false;  // its record must be stored even if its state is unchanged
};

// The requirements decided by the class: operating system, architecture, cores of a
// slot.
bool suits(const MachineClass& kind, const Requirements& needs);
// The requirements that vary: free memory as reported (if not reported: the total
// divided by the slots), free disk as reported.
bool has_room(const Machine& machine, const Requirements& needs);
uint64_t memory_offered(const Machine& machine);
// The state that follows from the machine's other fields.
MachineState state_of(const Machine& machine);

class MachineQueue {
 public:
  // The class of a machine's system and slots; created with its groups if new.
  MachineClass* class_of(const MachineRecord& record, const JobQueue& queue);
  void learn(Group* group);
  void forget(Group* group);
  const std::vector<std::unique_ptr<MachineClass>>& classes() const { return classes_; }

  // Adds the machine to IDLE or removes it, depending on its state. A new one goes to
  // the tail; one already in IDLE keeps its position unless `to_tail`. The next
  // allocation considers it again.
  void update(Machine& machine, bool to_tail, Micros now);
  void remove(Machine& machine);

  // Machines in IDLE that have changed since the last allocation.
  std::map<uint64_t, Machine*>& changed() { return changed_; }

 private:
  static void learn(MachineClass& kind, Group* group);

  std::vector<std::unique_ptr<MachineClass>> classes_;
  std::map<uint64_t, Machine*> changed_;
  uint64_t last_place_ = 0;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_MACHINE_QUEUE_H_
