// The jobs on this machine as the load monitor sees them, prepared in advance so that it
// can kill them itself if their shepherd does not. One thread.
//
// An attempt stays `unasked` until the owner is back. Transitions:
//   unasked -> asked      the shepherd has been notified
//   asked   -> leaving    it has acknowledged: the job saves and leaves
//   asked   -> staying    it has acknowledged: the job is suspended, or lingers
//   staying -> leaving    it says so later
//   staying -> asked      the job may not stay any longer
//   asked   -> asked      likewise, before it has acknowledged
//   staying -> unasked    the owner has gone
//   staying -> killed     its shepherd was stopped, or does not answer any more
//   asked   -> killed     no acknowledgement in time, or no shepherd
//   leaving -> killed     still there after its deadline, or its shepherd was stopped
//   any     -> killed     the shepherd died before its job
// An attempt that was asked to leave has to leave even if the owner goes away again.
#ifndef SUBLET_LOADMON_ATTEMPTS_H_
#define SUBLET_LOADMON_ATTEMPTS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "protocol/frame.h"

namespace sublet::loadmon {

// Controls all processes of one attempt. Nothing here allocates, waits or logs.
class JobHold {
 public:
  virtual ~JobHold() = default;
  virtual void freeze() noexcept = 0;
  virtual void kill() noexcept = 0;
  // True if no process is left.
  virtual bool gone() noexcept = 0;
  // Whether its shepherd was stopped by a signal and therefore enforces nothing.
  virtual bool shepherd_stopped() noexcept = 0;
};

struct Attempt {
  enum class Stage { unasked, asked, staying, leaving, killed };
  // Why the monitor killed it.
  enum class Kill { none, silent, stopped, late, shepherd_lost, unattended };

  uint64_t job = 0;
  uint32_t attempt = 0;
  std::unique_ptr<JobHold> hold;  // null: its folder has not been read or cannot be
  int64_t save_ms = 0;            // its save deadline
  std::vector<pid_t> roots;       // shepherd, then program, for the jobs' CPU use
  std::string cgroup;             // contains all its processes; empty: none
  std::string cpu_cgroup;         // likewise, and accounts for their CPU time; empty: none
  int64_t cpu_before_us = 0;      // which of that is of earlier attempts
  std::string memory_cgroup;      // and their memory
  int64_t found_at = 0;           // ns
  bool attended = false;          // its shepherd is connected
  bool ended = false;             // its exit record has been written
  Stage stage = Stage::unasked;
  Kill kill = Kill::none;
  bool can_stay = true;   // by the way to leave of its order; not read yet: believed
  uint32_t sequence = 0;  // of the frame that asked it to leave
  bool may_stay = false;  // so that frame said
  bool lingers = false;   // staying: it runs
  int unanswered = 0;     // frames since it last said that it stays
  int64_t asked_at = 0;
  int64_t due = 0;        // when to take the next step, unless something happens before
  int64_t deadline = 0;   // when it must be gone; set once `leaving`
  bool reported = false;  // `kill` has been logged
  bool noted = false;     // the missing shepherd has been logged
};

class Attempts {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  Attempt* find(uint64_t job, uint32_t attempt) const noexcept;
  // Adds an attempt, unasked and without a hold, which may be set later.
  Attempt* add(uint64_t job, uint32_t attempt, int64_t now);

  // It has ended, and its shepherd has said so: it is forgotten, with its hold, since what descends
  // from the shepherd is soon another attempt's.
  void ended(Attempt* attempt);
  // The same of what that shepherd ran before this monitor knew it.
  void ended_before(pid_t shepherd, const Attempt* present);

  // Sets its save deadline; effective even if it is leaving already.
  void set_save_deadline(Attempt* attempt, int64_t ms) noexcept;

  // The eviction path, all times in ns: the functions up to due() neither allocate nor
  // log.
  // The shepherd was notified by this frame and must acknowledge it by `due`, or by what was due
  // before if it has not acknowledged an earlier one.
  void ask(Attempt* attempt, const sublet_frame& frame, int64_t now, int64_t due) noexcept;
  // Does this for all attempts without a shepherd, which may still connect by `due`.
  void ask_unattended(const sublet_frame& frame, int64_t now, int64_t due) noexcept;
  // Ignores acknowledgements of older frames.
  void acknowledged(Attempt* attempt, const sublet_frame& ack, int64_t now) noexcept;
  // Its shepherd is sent a heartbeat that it must acknowledge.
  void reminded(Attempt* attempt) noexcept;
  // The owner has gone: what stayed goes on.
  void owner_away() noexcept;
  // Whether a job is here that waits, or runs on, while the owner is here.
  bool anyone_stays() const noexcept;
  // Whether one of them runs on.
  bool anyone_lingers() const noexcept;
  // Its shepherd is gone, and no exit record has been written.
  void shepherd_lost(Attempt* attempt, int64_t now) noexcept;
  // Freezes and kills what is due.
  void enforce(int64_t now) noexcept;
  // When to call enforce() next.
  int64_t due() const noexcept;

  // After eviction: logs what was done and drops attempts that are gone.
  void tidy(int64_t now);
  const std::vector<std::unique_ptr<Attempt>>& all() const { return attempts_; }

 private:
  void end(Attempt* attempt, Attempt::Kill why, int64_t now) noexcept;
  void check_leaving(Attempt* attempt, int64_t now) noexcept;
  void check_staying(Attempt* attempt, int64_t now) noexcept;
  // Logs, once, that it was killed.
  static void report(Attempt& attempt);

  std::vector<std::unique_ptr<Attempt>> attempts_;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_ATTEMPTS_H_
