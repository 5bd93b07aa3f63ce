// What the processes of an attempt may use together, and what they use, by its cgroups (v1 or
// v2). Allocates nothing. One thread.
#ifndef SUBLET_CLIENT_SHEPHERD_BOUNDS_H_
#define SUBLET_CLIENT_SHEPHERD_BOUNDS_H_

#include <stdint.h>

#include "attempt/format.h"

namespace sublet::shepherd {

struct MachineMemory {
  int64_t total = 0;
  int64_t unused = 0;
};

// Descriptors of files in the cgroups of a slot's attempts; -1: there is none.
struct BoundFiles {
  bool older;            // memory is bounded by v1, whose names come second
  int memory_limit;      // memory.max, memory.limit_in_bytes
  int memory_used;       // memory.current, memory.usage_in_bytes
  int memory_events;     // memory.events, memory.oom_control
  int memory_peak;       // v1: memory.max_usage_in_bytes
  int processes_limit;   // pids.max
  int processes_peak;    // pids.peak
  int processes_events;  // pids.events
};

class Bounds {
 public:
  // Sets the order's bounds in its cgroups (Cgroups::prepare); if these are not `new_ones`, they
  // have them already. `files`, if given, are open until the attempt is over. The order must
  // outlive this. Null, or the step that failed, with errno.
  const char* set(const sublet_order& order, bool new_ones, const BoundFiles* files = nullptr);
  // Whether there still are these bounds (0 for memory: none; negative: no cgroup), and nothing
  // that was used or refused would count for another attempt with the same.
  static bool are_untouched(const BoundFiles& files, int64_t most_memory, int64_t most_processes);
  // The kernel's copies of the files that a job reads and writes may fill its bound as long as the
  // machine has unused memory, but must not evict those of the owner's programs. With v1 the
  // kernel takes them from jobs first when the machine runs short. With v2 an attempt gives copies
  // back when it has more than its room (memory.high), which this adapts to what it has and what
  // is unused. The room is never made smaller than what the attempt has: the kernel would free the
  // rest in this call. To be called repeatedly, and soon again if it returns true: the attempt
  // grows fast, and is slowed when its room is used up.
  bool give_room(const MachineMemory& machine);
  // POLLPRI says that since the last call of give_room() the room was used up; -1: none.
  int used_up() const { return events_; }
  // It saves or leaves: nothing slows it any more. Waits for nothing; may be repeated.
  void open_up();

  bool counts_memory() const { return *memory_ != 0; }
  bool counts_processes() const { return *processes_ != 0; }
  // True if the kernel killed a process because the limit of memory was reached. A kill because
  // the whole machine ran out of memory does not count: the job is its first victim whatever it
  // uses.
  bool memory_ran_out() const;
  // True if a process or thread could not be created because there were as many as it may have.
  bool processes_ran_out() const;
  // Bytes, without the kernel's copies of files. 0: not known.
  int64_t memory_used() const;
  // The most processes and threads at once until now. 0: not known.
  int64_t most_processes() const;
  // Never more than one process or thread, as the kernel counts them. False if that is not known.
  bool had_one_process() const;

 private:
  void limit_copies(int64_t memory);
  void set_room(int64_t bytes);

  static constexpr int64_t kCopiesPart = 8;  // of its bound: one in so many bytes, but at least
  static constexpr int64_t kCopiesLeast = 64 << 20;
  static constexpr int64_t kGrowsMeanwhile = 4 << 20;  // until its room has been written
  // Is left unused: more than the kernel keeps free by evicting copies (about 100 MB).
  static constexpr int64_t kUnusedPart = 32;  // of the machine's memory, but at least
  static constexpr int64_t kUnusedLeast = 256 << 20;

  const char* memory_ = "";  // folders; "": none
  const char* processes_ = "";
  bool older_ = false;       // known to be v1
  int processes_peak_ = -1;  // a descriptor; -1: not open
  int high_ = -1;            // memory.high; -1: v1, or nothing slows it any more
  int events_ = -1;          // memory.events
  int64_t copies_ = 0;       // bytes for copies of files, whatever others need
  int64_t room_ = 0;         // bytes, as it was set
  int64_t had_ = 0;          // bytes without copies, when it was last adapted
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_BOUNDS_H_
