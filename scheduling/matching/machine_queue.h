// The classes of machines and the queue IDLE. Machines of one class (same system, same slot
// size) fit the same groups apart from memory and disk, which vary; so each class
// keeps its compatible groups and its part of the queue.
//
// Private to the brain; owned by the matcher; one caller at a time.
#ifndef SUBLET_SCHEDULING_MATCHING_MACHINE_QUEUE_H_
#define SUBLET_SCHEDULING_MATCHING_MACHINE_QUEUE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scheduling/records.h"

namespace sublet::scheduling {

struct Group;
struct Machine;
class JobQueue;

struct MachineClass {
  std::string os;
  std::string architecture;
  uint32_t slot_cores = 1;
  std::vector<Group*> groups;         // whose requirements of system and cores it meets
  std::map<uint64_t, Machine*> idle;  // by position in IDLE
};

// The requirements decided by the class: operating system, architecture, cores of a
// slot.
bool suits(const MachineClass& kind, const Requirements& needs);

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
