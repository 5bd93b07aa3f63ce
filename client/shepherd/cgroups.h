// The cgroup folders of a slot's attempts, with the kernel's programs that count their traffic.
// They are kept from attempt to attempt, since making and removing them costs more than a short
// job, and bear the name of the attempt for which they were made. The next one gets them only if
// - it is on the same terms: places, bounds of memory and processes, network;
// - the one before ended by itself, and nobody had asked it to leave. Client and monitor hold an
//   attempt by its folders and may still be about to freeze or kill one that was to leave: that
//   must not meet the next one;
// - nothing in them counts for another: no process, not even one that has not left its core yet, no
//   folder below, not frozen, no bound reached, little memory, never more than one process (the
//   highest number cannot be reset), no traffic (the rest of which the kernel may send later).
// Else they are made anew, under another name: who holds the old ones holds nothing. CPU time goes
// on counting; AttemptProcesses and the attempt's record begin at what there was.
// A lock on each folder says that somebody may need it (AttemptCgroups::remove_left_over).
// Nothing here allocates. One thread.
#ifndef SUBLET_CLIENT_SHEPHERD_CGROUPS_H_
#define SUBLET_CLIENT_SHEPHERD_CGROUPS_H_

#include <stdint.h>
#include <sys/types.h>

#include "attempt/cpu_weight.h"
#include "attempt/format.h"
#include "attempt/processes.h"
#include "client/shepherd/bounds.h"
#include "client/shepherd/walls/call_filter.h"

namespace sublet::shepherd {

class Cgroups {
 public:
  // Uses the descriptors from this number on; -1: any.
  explicit Cgroups(int first_descriptor);
  static constexpr int kDescriptors = 25;
  // Takes their numbers. False with errno.
  bool reserve() const;

  // Those for an attempt: the kept ones if they fit, else the order's, which are made. From then on
  // the order names them. Null, or the step that failed, with errno.
  const char* prepare(sublet_order* order);
  // They were made for this attempt.
  bool are_new() const { return new_; }
  // Files of theirs, open as long as these are kept: opening one by its path costs several times as
  // much as reading it.
  AttemptFiles processes_files();
  WeightFiles weight_files();
  BoundFiles bound_files();
  // Whether the kernel says which processes are in them.
  bool can_list_processes() const { return held_[kList] >= 0; }
  // Counts the traffic of the attempt's processes, and keeps it to the order's terms. They are new,
  // and contain no process yet. False with errno.
  bool watch_traffic(const sublet_order& order);
  // Bytes in both directions. -1: not known.
  int64_t traffic() const;

  // Like fork(), but creates the child in the unified hierarchy's folder if the kernel
  // supports it. Moving a process there, or a whole process within the v1 hierarchies,
  // stalls every fork and exit on the machine until all cores have passed through the
  // scheduler (measured: median 6 ms, at times 14 ms).
  pid_t fork() { return create(0); }
  // The same, but the child is a sibling, as by fork_sibling() of system.h.
  pid_t fork_sibling();
  // The same, but the child borrows this process's memory, which waits until the child executes a
  // program or ends. The child does `run`, which must not return; before that *told is its number.
  // -1 with errno, also if the kernel cannot create it in the folder.
  // `secret`: of the filter of calls under which this process is.
  pid_t fork_borrowing(void (*run)(void*), void* argument, pid_t* told, const CallSecret& secret);
  // In the child, before it drops privileges: joins the remaining folders; that with the CPU weight
  // is the last. Null, or the step that failed.
  const char* join() const;

  // The attempt is over. `kept`: until the next one, if nothing in them counts for that; whether
  // all processes have left is looked at when it comes. False: they have been removed.
  bool leave(bool kept);
  void remove();

 private:
  static constexpr int kNotOpened = -2;
  static constexpr int kAbsent = -1;
  // Folders, some of which may be the same.
  enum { kUnified, kMemory, kProcesses, kCpu, kFolders };
  // Descriptors, from first_ on: the folders, the files to write to for joining them, the counts,
  // and what is read and written for each attempt.
  enum {
    kMembers = kFolders,
    kCounts = kMembers + kFolders,
    kKill,
    kFreeze,
    kEvents,
    kList,
    kUsage,
    kIdle,
    kWeight,
    kShares,
    kMemoryLimit,
    kMemoryUsed,
    kMemoryEvents,
    kMemoryPeak,
    kProcessLimit,
    kProcessPeak,
    kProcessEvents,
    kAll,
    kNothing = kAll  // for the numbers of what is not open
  };

  void name(sublet_order* order);
  void note_terms(const sublet_order& order);
  const char* make(int folder, const char* path);
  bool hold(int number, int descriptor);
  void release(int number);
  int file(int number, int folder, int flags, const char* name, const char* older = nullptr);
  bool fits(const sublet_order& order) const;
  bool are_untouched();
  bool are_empty() const;
  pid_t create(uint64_t flags);

  const int first_;
  int held_[kAll];
  int where_[kFolders] = {};  // the first folder that is the same
  bool all_seen_ = true;      // no file could not be opened that is there
  bool new_ = false;
  bool kept_ = false;
  bool born_there_ = false;  // the last child, in the unified folder
  // Of the attempt for which they were made: the texts of its order are in text_, or, if they are
  // too long to be kept, in that. An absent folder is "".
  struct Terms {
    const char* folders[kFolders];
    const char* server;
    int64_t memory, processes, bandwidth;
    bool no_network, only_server;
  };
  Terms terms_ = {};
  bool has_texts_ = false;
  char text_[1536];  // what is here is locked in memory in every slot
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_CGROUPS_H_
