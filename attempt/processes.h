// The processes of one attempt: stops, continues and kills them, and checks whether any
// are left. Used by the shepherd and, if that does not answer, by client and monitor
// (attempt/tenant.h). On the eviction path: after open() nothing here allocates, throws,
// logs or waits for a lock, and it is compiled into the shepherd without the C++
// library. Not thread-safe.
//
// With a cgroup v2 folder one write affects all of them, and it lists them. Without one they
// are found in /proc: by a user id that only this attempt has; the job's session; descent from
// the shepherd (a subreaper, so orphans become its children); the variable SUBLET_STATUS.
#ifndef SUBLET_ATTEMPT_PROCESSES_H_
#define SUBLET_ATTEMPT_PROCESSES_H_

#include <stdint.h>
#include <sys/types.h>

namespace sublet {

struct Digits;

struct AttemptIdentity {
  pid_t session = 0;   // 0: none
  int64_t uid = -1;    // used only by this slot; -1: none
  pid_t shepherd = 0;  // its descendants belong to the attempt; 0: none
  // A child of the shepherd that only waits for orphans; it is no process of the job. 0: none, or
  // not told apart.
  pid_t init = 0;
  const char* status_path = nullptr;  // value of SUBLET_STATUS, not copied; null: not used
};

// Descriptors of files of an attempt's v2 folder; -1: there is none.
struct AttemptFiles {
  int kill = -1;     // cgroup.kill
  int freeze = -1;   // cgroup.freeze
  int events = -1;   // cgroup.events
  int members = -1;  // cgroup.procs
  int usage = -1;    // cpu.stat
};

struct AttemptUse {
  int64_t memory_bytes = 0;  // resident; pages that several processes share count for each
  int64_t threads = 0;       // of all processes
};

class AttemptProcesses {
 public:
  AttemptProcesses() = default;
  ~AttemptProcesses();
  AttemptProcesses(const AttemptProcesses&) = delete;
  AttemptProcesses& operator=(const AttemptProcesses&) = delete;

  // False if /proc cannot be opened; errno is set. `cgroup_unified` is the attempt's own
  // v2 folder, or "" if it has none.
  bool open(const char* cgroup_unified);
  // The same with descriptors of /proc and of these files, which the caller closes later.
  void use(int proc, const AttemptFiles& files);
  void set(const AttemptIdentity& identity) { identity_ = identity; }

  void freeze() noexcept;
  void thaw() noexcept;
  // One round: all processes of the cgroup or user id, else those found now. To be
  // repeated until gone().
  void kill() noexcept;
  // Zombies count as gone: they use no memory and no CPU.
  bool gone() noexcept;
  // CPU time since open() or use() of all processes, including dead ones: exact with a cgroup, else
  // a lower bound. Never decreases.
  int64_t cpu_ns() noexcept;
  // That of the cgroup until then, of earlier attempts. 0: there is no cgroup.
  int64_t cpu_before_us() const noexcept { return used_before_us_; }
  // As of the last call of these; does not look.
  int64_t seen_cpu_ns() const noexcept { return cpu_.more_than({}); }
  // The CPU time used since start_counting().
  void start_counting() noexcept;
  int64_t counted_ns() noexcept;
  // With hundreds of processes this takes milliseconds, and so do the next two that have a `news`:
  // they give up when it, a descriptor or -1, becomes readable. Then this is false and *found is
  // not changed. It stops as soon as there are more threads than `enough`, and is true.
  bool measure(int news, int64_t enough, AttemptUse* found) noexcept;
  // The resident memory, but pages that several processes share count once. The kernel visits
  // every page of a process for it: about 10 ms for each GiB that is not in huge pages. -1: it
  // gave up.
  int64_t proportional_bytes(int news) noexcept;
  bool handles(pid_t pid, int signal) noexcept;
  // Whether any process handles `signal`; looks at `first` first. False, without changing
  // *found: it gave up.
  bool anyone_handles(int signal, pid_t first, int news, bool* found) noexcept;
  // Sends `signal` only to processes that handle it: to `first` alone if it does, else
  // to all that do. False if none does. A process that gets SIGTERM has normal disk
  // priority from then on, because it is to save.
  bool signal_who_handles(int signal, pid_t first) noexcept;
  // Sets the weight of every autogroup (session) of the attempt. False if the kernel
  // refused one for now (without root it allows one change per 100 ms), or a process has no session
  // of its own yet: that of the shepherd and of the caller is never changed.
  bool set_autogroup_nice(int nice) noexcept;
  // Sets the scheduling class of every thread, as far as it is permitted.
  void set_class(int policy) noexcept;

 private:
  struct Found {
    pid_t pid;
    pid_t parent;
    pid_t session;
    bool dead;
    int64_t resident_pages;
    int64_t threads;
    int64_t waited_ticks;
  };
  struct Known {
    pid_t pid;
    int64_t cpu_ns;  // without children
    bool seen;       // in the current scan
  };
  // Two lower bounds of the CPU time: `kept` is the sum of living processes and of
  // those waited for; it lacks dead ones that were not waited for. `grown` is the sum
  // of the increases seen for each process; it lacks what a process used after it was
  // last examined.
  struct CpuTimes {
    int64_t kept;
    int64_t grown;
    int64_t more_than(const CpuTimes& before) const {
      int64_t a = kept - before.kept, b = grown - before.grown;
      return a > b ? a : b;
    }
  };
  typedef bool (*Visitor)(AttemptProcesses& self, const Found& found, void* context);

  void look_for_new() noexcept;
  int64_t cgroup_used_us() noexcept;
  void update_cpu() noexcept;
  bool visit(Visitor visitor, void* context) noexcept;
  bool visit_members(Visitor visitor, void* context) noexcept;
  bool visit_one(const char* name, Visitor visitor, void* context) noexcept;
  bool read_stat(const char* name, Found* found) noexcept;
  bool belongs(const char* name, const Found& found) noexcept;
  bool has_uid(const char* name) noexcept;
  bool descends_from_shepherd(const Found& found) noexcept;
  bool has_status_variable(const char* name) noexcept;
  bool has_nice(int autogroup, const Digits& nice) noexcept;
  int read_file(const char* name, const char* file, char* to, int size) noexcept;
  void set_class_of(pid_t pid, int policy) noexcept;
  void signal_found(int signal) noexcept;
  bool signal_user(int signal) noexcept;
  void signal_all(int signal, int rounds) noexcept;

  static constexpr int kKnown = 256;
  static constexpr unsigned kKnownAge = 16;

  AttemptIdentity identity_;
  int proc_ = -1;
  AttemptFiles files_;
  bool owns_ = false;  // these descriptors
  // State of cpu_ns() without a cgroup, as of its last full scan.
  Known known_[kKnown];
  int known_count_ = 0;
  unsigned known_age_ = 0;
  int64_t waited_ns_ = 0;  // of children that the known processes have waited for
  int64_t used_before_us_ = 0;
  int64_t reaped_before_ns_ = 0;  // of this process's children before that: of other attempts
  CpuTimes cpu_ = {};
  CpuTimes cpu_before_ = {};  // at start_counting()
  alignas(8) char entries_[8192];
  char text_[4096 + 512];
};

// Field 22 of /proc/PID/stat, or -1.
int64_t start_time_of(pid_t pid) noexcept;

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_PROCESSES_H_
