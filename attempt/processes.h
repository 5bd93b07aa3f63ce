// The processes of one attempt: stop, continue and kill them, see
// whether any is left. Used by the shepherd and, when that does not answer, by
// client and monitor (attempt/tenant.h). It is on the eviction path: after open()
// nothing here allocates, throws, logs or waits for a lock, and it is compiled
// into the shepherd without the C++ library. Not copied; one thread at a time.
//
// With a cgroup v2 folder all of them are found and hit by one write. Without
// one they are found by what the kernel says of them: a user id that only this
// attempt has; the job's session; children of the shepherd (a subreaper: what
// loses its parent becomes its child); the variable SUBLET_STATUS.
#ifndef SUBLET_ATTEMPT_PROCESSES_H_
#define SUBLET_ATTEMPT_PROCESSES_H_

#include <stdint.h>
#include <sys/types.h>

namespace sublet {

struct AttemptIdentity {
  pid_t session = 0;                  // 0: none
  int64_t uid = -1;                   // of the slot alone; -1: none
  pid_t shepherd = 0;                 // its children belong to the attempt; 0: none
  const char* status_path = nullptr;  // value of SUBLET_STATUS, must stay; null: not looked for
};

class AttemptProcesses {
 public:
  AttemptProcesses() = default;
  ~AttemptProcesses();
  AttemptProcesses(const AttemptProcesses&) = delete;
  AttemptProcesses& operator=(const AttemptProcesses&) = delete;

  // False when /proc cannot be opened; errno says why. `cgroup_unified` is the
  // attempt's own v2 folder, or "" when it has none.
  bool open(const char* cgroup_unified);
  void set(const AttemptIdentity& identity) { identity_ = identity; }

  void freeze() noexcept;
  void thaw() noexcept;
  // One round: all processes of a cgroup or user id, else those found now. To be
  // repeated until gone().
  void kill() noexcept;
  // Zombies count as gone: they hold no memory and use no CPU.
  bool gone() noexcept;
  // CPU time of all processes, the dead ones too: exact with a cgroup, else what
  // can be seen of it. Does not fall.
  int64_t cpu_ns() noexcept;
  // Of this, what was used since start_counting().
  void start_counting() noexcept;
  int64_t counted_ns() noexcept;
  int64_t resident_bytes() noexcept;
  // Sends to those that handle `signal`: to `first` alone if it does, else to
  // those of the session that do. False when none does.
  bool signal_who_handles(int signal, pid_t first) noexcept;
  // The weight of every autogroup (session) of the attempt. False when the
  // kernel refused one for now (it allows one change in 100 ms without root).
  bool set_autogroup_nice(int nice) noexcept;

 private:
  struct Found {
    pid_t pid;
    pid_t parent;
    pid_t session;
    bool dead;
    int64_t resident_pages;
    int64_t waited_ticks;
  };
  struct Known {
    pid_t pid;
    int64_t cpu_ns;  // of its own
    bool seen;       // at the present look
  };
  // Two ways to count, each of which misses something and neither of which counts
  // anything twice: `kept` adds up those that live and what was waited for; it
  // misses those that nobody waited for. `grown` adds up what each was seen to
  // grow by; it misses what happened after the last look at one.
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
  void update_cpu() noexcept;
  bool visit(Visitor visitor, void* context) noexcept;
  bool visit_one(const char* name, Visitor visitor, void* context) noexcept;
  bool read_stat(const char* name, Found* found) noexcept;
  bool belongs(const char* name, const Found& found) noexcept;
  bool has_uid(const char* name) noexcept;
  bool has_status_variable(const char* name) noexcept;
  bool handles(pid_t pid, int signal) noexcept;
  int read_file(const char* name, const char* file, char* to, int size) noexcept;
  void signal_found(int signal) noexcept;
  bool signal_user(int signal) noexcept;
  void signal_all(int signal, int rounds) noexcept;

  static constexpr int kKnown = 256;
  static constexpr unsigned kKnownAge = 16;

  AttemptIdentity identity_;
  int proc_ = -1;
  int kill_ = -1;    // cgroup.kill
  int freeze_ = -1;  // cgroup.freeze
  int events_ = -1;  // cgroup.events
  int usage_ = -1;   // cpu.stat
  // What cpu_ns() knows without a cgroup, as of its last full look.
  Known known_[kKnown];
  int known_count_ = 0;
  unsigned known_age_ = 0;
  int64_t waited_ns_ = 0;  // of children that the known ones have waited for
  CpuTimes cpu_ = {};
  CpuTimes cpu_before_ = {};  // at start_counting()
  alignas(8) char entries_[8192];
  char text_[4096 + 512];
};

// Field 22 of /proc/PID/stat, or -1.
int64_t start_time_of(pid_t pid) noexcept;

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_PROCESSES_H_
