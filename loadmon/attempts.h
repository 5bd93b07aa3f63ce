// The jobs on this machine as the Load Monitor sees them: prepared beforehand,
// so that it can end them itself when their shepherd does not. One thread.
//
// An attempt rests until the owner is back, and then goes one way only:
//   resting -> asked      the shepherd has been told
//   asked   -> leaving    it has acknowledged: the job saves and leaves
//   asked   -> killed     no acknowledgement in time, or no shepherd
//   leaving -> killed     still there after its deadline
//   any     -> killed     the shepherd died before its job
// An attempt that was asked to leave has to go even if the owner leaves again.
#ifndef SUBLET_LOADMON_ATTEMPTS_H_
#define SUBLET_LOADMON_ATTEMPTS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sublet::loadmon {

// A grip on all processes of one attempt. Nothing here allocates, waits or logs.
class JobHold {
 public:
  virtual ~JobHold() = default;
  virtual void freeze() noexcept = 0;
  virtual void kill() noexcept = 0;
  // No process is left.
  virtual bool gone() noexcept = 0;
};

struct Attempt {
  enum class Stage { unasked, asked, leaving, killed };
  // Why the monitor killed it.
  enum class Kill { none, silent, late, shepherd_lost, unattended };

  uint64_t job = 0;
  uint32_t attempt = 0;
  std::unique_ptr<JobHold> hold;  // empty: its folder could not be read
  int64_t save_ms = 0;            // its save deadline
  std::vector<pid_t> roots;       // shepherd and program, for the jobs' CPU use
  std::string cgroup;             // where all its processes are; empty: none
  int64_t found_at = 0;           // ns
  bool attended = false;          // its shepherd is connected
  bool ended = false;             // in good order: its exit is on record
  Stage stage = Stage::unasked;
  Kill kill = Kill::none;
  uint32_t sequence = 0;  // of the frame that asked it to leave
  int64_t asked_at = 0;
  int64_t due = 0;        // when the next step is taken, unless something happens
  bool reported = false;  // `kill` is in the log
  bool noted = false;     // that it has no shepherd is in the log
};

class Attempts {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  Attempt* find(uint64_t job, uint32_t attempt) const noexcept;
  // A new one, at rest and without a hold, which may be set later.
  Attempt* add(uint64_t job, uint32_t attempt, int64_t now);

  // Its save deadline has been read; it counts also if it is leaving already.
  void set_save_deadline(Attempt* attempt, int64_t ms) noexcept;

  // The eviction path, all instants in ns: nothing below allocates or logs.
  // The shepherd has been told by frame `sequence` and acknowledges until `due`.
  void ask(Attempt* attempt, uint32_t sequence, int64_t now, int64_t due) noexcept;
  // All those without a shepherd: it may still come and speak for them until `due`.
  void ask_unattended(uint32_t sequence, int64_t now, int64_t due) noexcept;
  // An acknowledgement of an older frame says nothing.
  void acknowledged(Attempt* attempt, uint32_t sequence) noexcept;
  // Its shepherd is gone and the job has not ended in good order.
  void shepherd_lost(Attempt* attempt, int64_t now) noexcept;
  // Freezes and kills what is due.
  void enforce(int64_t now) noexcept;
  // When enforce() has to be called next.
  int64_t due() const noexcept;

  // After it: logs what was done and found, forgets what is gone.
  void tidy(int64_t now);
  const std::vector<std::unique_ptr<Attempt>>& all() const { return attempts_; }

 private:
  void end(Attempt* attempt, Attempt::Kill why, int64_t now) noexcept;

  std::vector<std::unique_ptr<Attempt>> attempts_;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_ATTEMPTS_H_
