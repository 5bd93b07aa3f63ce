// The state machine of a shepherd: frames, deadlines and exits of one attempt go in,
// actions come out. Pure: it reads no clock and touches no process. It is compiled
// into the static shepherd, so it does not allocate and does not need the C++ library
// (-fno-exceptions -fno-rtti). Not thread-safe.
//
// Instants are nanoseconds of CLOCK_BOOTTIME and must not run backwards. Every
// input returns a set of ShepherdAction, to be carried out in the order of
// their bits before the next input.
//
// How an attempt ends (docs/shepherd.md):
//   the owner is back, or the monitor is lost or silent (from any state): it depends on
//     how the job answers SIGTERM (TermAnswer). Not at all: frozen and killed at once. By a
//     handler: SIGTERM, still demoted, killed at the save deadline; but if its description names
//     checkpoint files, lifted as long as it keeps to a ration (save_ration_ns). With a status
//     page: SIGTERM at normal weight for kUnseenNs of CPU time; once its handler has reported the
//     request, for the CPU allowance, and when that is used up it is killed. A frozen job is
//     killed.
//     By the mode of leaving (protocol/leaving.h) it may instead be killed at once; be frozen, and
//     go on if the owner goes in time, else leave as above; or run on until it is a burden.
//   VACATE for another reason: SIGTERM, still demoted, with the full deadline.
//   REMOVED or REPLACED, KILL, a limit: killed.
//   the lease: asked to save, frozen when it ends, thawed by a longer one, killed
//     when the patience ends.
//   the program exits: its remaining processes are killed.
#ifndef SUBLET_PROTOCOL_SHEPHERD_H_
#define SUBLET_PROTOCOL_SHEPHERD_H_

#include <stdint.h>

#include "protocol/frame.h"
#include "protocol/leaving.h"

namespace sublet::protocol {

enum ShepherdAction : uint32_t {
  kActFreeze = 1u << 0,     // no process of the attempt uses CPU from now on
  kActAssess = 1u << 1,     // call assessed(), and carry out what it returns first
  kActLift = 1u << 2,       // normal weight, and start counting CPU (cpu_used)
  kActTerminate = 1u << 3,  // SIGTERM: save and leave
  kActDemote = 1u << 4,     // almost no weight
  kActThaw = 1u << 5,
  kActSave = 1u << 6,       // SIGUSR1, if the program understands it
  kActKill = 1u << 7,       // every process; repeated until all_gone
  kActAck = 1u << 8,        // acknowledge the received frame
  kActStart = 1u << 9,      // let the program run; of a short job the client hears the end only
  kActStatus = 1u << 10,    // send the state to the client
  kActWriteExit = 1u << 11  // the last action: exit record, then ENDED
};

// How a job answers SIGTERM.
enum class TermAnswer {
  kNone,       // no process handles it: there is nothing to wait for
  kHandler,    // a process handles it, but does not tell what it does
  kStatusPage  // the program reports its saves (checkpoint-api/sublet_status.h)
};

// CPU time at normal weight in which the handler of a program with a status page must have
// reported the request: enough to run a handler, and too little to notice.
constexpr int64_t kUnseenNs = 2'000'000;

// CPU time that a job which saves files of its own may have used at normal weight so long after it
// was asked to: a start, and a fifth of a core until its deadline.
constexpr int64_t save_ration_ns(int64_t elapsed_ns) { return 4'000'000 + elapsed_ns / 5; }

struct ShepherdTerms {
  int64_t save_deadline_ms = 2000;
  int64_t cpu_allowance_ms = 50;  // 0: never lifted to save
  int64_t lease_ns = 0;
  int64_t patience_ms = 3600 * 1000;
  int64_t limit_wall_s = 0;  // without the time spent frozen; 0: none
  sublet_leaving leaving = SUBLET_LEAVING_SAVE;
  int64_t suspend_ms = 0;    // how long it may stay suspended
  bool saves_files = false;  // its description names checkpoint files
};

class ShepherdMachine {
 public:
  ShepherdMachine(const ShepherdTerms& terms, int64_t now);

  // Any frame from the monitor; PRESENCE frames are acted on.
  uint32_t monitor_frame(const sublet_frame& frame, int64_t now);
  uint32_t monitor_lost(int64_t now);
  // A frame from the client that is for this attempt (checked by the caller).
  uint32_t control_frame(const sublet_frame& frame, int64_t now);
  // Due at next_instant(); harmless earlier.
  uint32_t tick(int64_t now);
  // How the job answers SIGTERM, as kActAssess asks.
  uint32_t assessed(TermAnswer answer, int64_t now);
  // The program's handler has reported the request to leave. To be asked while
  // awaiting_handler().
  uint32_t handler_ran(int64_t now);
  // CPU time of all processes since kActLift, since the first one if rationed(). To be called while
  // counting_cpu().
  uint32_t cpu_used(int64_t used_ns, int64_t now);
  // The job has exceeded one of its limits.
  uint32_t over_limit(int64_t now);
  // The program could not be executed. Its process has exited or will; all_gone() may precede.
  uint32_t start_failed(int64_t now);
  // killed_by_others: by a SIGKILL that is neither ours nor its memory limit's.
  uint32_t main_exited(bool killed_by_others, int64_t now);
  // No process of the attempt is left. Only after main_exited, or before kActStart.
  uint32_t all_gone(int64_t now);

  // When tick() is due, INT64_MAX for never.
  int64_t next_instant() const;
  bool leaving_for_owner() const { return phase_ == Phase::saving && for_owner_; }
  bool counting_cpu() const { return leaving_for_owner() && (lifted_ || rationed_); }
  // Then what it has used counts from its first lift on, and not from the last.
  bool rationed() const { return rationed_; }
  bool awaiting_handler() const { return leaving_for_owner() && reports_ && !handler_ran_; }
  // Runs, whether or not the owner is here, and was not asked to leave.
  bool runs() const { return phase_ == Phase::running; }
  // True from kActStart on.
  bool started() const { return started_ns_ != 0; }
  bool killed() const { return killed_; }
  sublet_shepherd_state state() const;
  sublet_leave_reason reason() const { return reason_; }
  // When the cause of leaving was detected; 0: it was not asked to leave.
  int64_t leave_detected_ns() const { return detected_ns_; }
  int64_t frozen_ns() const { return frozen_total_ns_; }
  int64_t started_ns() const { return started_ns_; }

 private:
  enum class Phase { starting, running, suspended, saving, frozen, killing, ended };

  uint32_t owner_here(sublet_presence_reason cause, bool burdened, int64_t detected, int64_t now);
  uint32_t owner_away(sublet_presence_reason cause, int64_t now);
  uint32_t suspend(int64_t now);
  uint32_t resume(int64_t now);
  uint32_t tick_suspended(int64_t now);
  uint32_t leave_for_owner(sublet_leave_reason reason, int64_t detected, int64_t now);
  uint32_t vacate(const sublet_frame& frame, int64_t now);
  uint32_t lease(int64_t until, int64_t now);
  uint32_t lease_expired(int64_t now);
  uint32_t kill(sublet_leave_reason reason, int64_t detected, int64_t now);
  uint32_t lift(int64_t now);
  uint32_t keep_to_ration(int64_t used_ns, int64_t now);
  uint32_t end_unstarted(sublet_leave_reason reason, int64_t detected);
  void note_leave(sublet_leave_reason reason, int64_t detected);
  void leave_frozen(int64_t now);

  ShepherdTerms terms_;
  Phase phase_ = Phase::starting;
  sublet_leave_reason reason_ = SUBLET_LEAVE_NONE;
  bool for_owner_ = false;
  bool lingers_ = false;     // running although the owner is here
  bool thaws_ = false;       // when asked to leave: it was suspended
  bool terminated_ = false;  // SIGTERM has been sent
  bool reports_ = false;     // has a status page and may be lifted
  bool lifted_ = false;      // to save
  bool rationed_ = false;    // to be lifted and demoted by what it uses
  bool handler_ran_ = false;
  bool save_asked_ = false;
  bool main_exited_ = false;
  bool killed_ = false;
  int64_t last_contact_ns_;  // with the monitor
  int64_t detected_ns_ = 0;
  int64_t asked_ns_ = 0;
  int64_t deadline_ns_ = 0;    // of the save, or of the suspension
  int64_t next_check_ns_ = 0;  // of CPU use while saving; of the next kill
  int64_t kill_interval_ns_ = 0;
  int64_t started_ns_ = 0;
  int64_t frozen_since_ns_ = 0;
  int64_t frozen_total_ns_ = 0;
};

}  // namespace sublet::protocol

#endif  // SUBLET_PROTOCOL_SHEPHERD_H_
