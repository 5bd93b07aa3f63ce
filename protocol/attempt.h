// The state machine of one attempt in its Executing Client: from the accepted order
// until the server knows the end and the folder can be removed. Events go in, actions
// come out. Pure: no clock, no I/O. Not thread-safe.
//
//   accepted -> staging -> starting -> running -> leaving -> handing_in ->
//   reporting -> forgotten; running <-> suspended -> leaving
//
// At most one slow operation (files, server) is in progress for an attempt: staging,
// starting, a checkpoint, or the hand-in. It always ends with an event, even if it was
// asked to stop, and only then does the next one begin; so no file is removed while
// an operation reads it. Only the clearing of a lost shepherd's attempt (kKillTenant,
// kRecordEnd) does not wait for a checkpoint; what follows waits for both.
//
// The eviction path does not depend on this: the monitor notifies the shepherds
// directly, and this state machine is informed afterwards (leave).
#ifndef SUBLET_PROTOCOL_ATTEMPT_H_
#define SUBLET_PROTOCOL_ATTEMPT_H_

#include <cstdint>
#include <string>

#include "protocol/frame.h"

namespace sublet::protocol {

enum class AttemptState {
  kAccepted,  // in the client's records, nothing done
  kStaging,   // program, inputs and checkpoint are being fetched
  kStarting,  // the shepherd is being started
  kRunning,
  kSuspended,  // frozen in place while the owner is here
  kLeaving,    // asked to leave, or superseded, and not yet ended
  kHandingIn,  // ended; checkpoint and outputs are being sent to the server
  kReporting,  // the end is being reported
  kForgotten   // the folder can be removed
};

// What to do, in the order of the bits.
enum AttemptAction : uint32_t {
  kStopWork = 1u << 0,      // the current work should end as soon as possible
  kSendKill = 1u << 1,      // KILL frame with leave_reason()
  kSendVacate = 1u << 2,    // VACATE frame with leave_reason()
  kSendLease = 1u << 3,     // LEASE frame with the current lease
  kConnect = 1u << 4,       // to the shepherd's control socket
  kKillTenant = 1u << 5,    // kill all processes that the lost shepherd left behind
  kRecordEnd = 1u << 6,     // write end() to disk: there will be no exit record
  kStage = 1u << 7,         // work: ends in staged or staging_failed
  kStart = 1u << 8,         // work: ends in shepherd_started or shepherd_failed
  kCheckpoint = 1u << 9,    // work: ends in checkpoint_done
  kHandIn = 1u << 10,       // work: ends in handed_in
  kTellStarted = 1u << 11,  // to the server
  kReport = 1u << 12,       // report the end to the server
  kRemove = 1u << 13        // remove the folder; always the last action
};

// Why an attempt ended: END_... of idl/types.idl, the same numbers.
enum EndCode : uint32_t {
  kEndNone = 0,
  kEndDone = 1,
  kEndExit = 2,
  kEndSignal = 3,
  kEndStart = 4,
  kEndStaging = 5,
  kEndOutput = 6,
  kEndLimit = 7,
  kEndOwner = 16,
  kEndBlind = 17,
  kEndLease = 18,
  kEndPreempted = 19,
  kEndDrained = 20,
  kEndRefused = 21,
  kEndLost = 22,
  kEndRemoved = 23,
  kEndHeld = 24,
  kEndSuperseded = 25,
  kEndAdministrator = 26,
  kEndSaved = 27
};
// True for the ends that are not a failure of the job, and after which it goes on: 16 and above.
constexpr bool is_eviction(uint32_t end) { return end >= kEndOwner; }
// True for those of them that the machine or its owner wanted, and not the job's user: what
// reports count as evictions.
constexpr bool had_to_leave(uint32_t end) {
  return (end >= kEndOwner && end <= kEndDrained) || end == kEndAdministrator;
}
// "done", "owner came back"; a number that is not known here: the number.
std::string end_name(uint32_t end);
// The end of an attempt that left for this reason.
EndCode end_of_leave(sublet_leave_reason reason);

// The relevant contents of a shepherd's exit record.
struct ExitFacts {
  enum class Outcome { kExited, kSignalled, kFailed, kUnstarted };
  Outcome outcome = Outcome::kExited;
  int64_t code = 0;      // exit status, signal or errno
  bool own_step = true;  // kFailed: the job's fault, not the machine's
  bool over_limit = false;
  sublet_leave_reason reason = SUBLET_LEAVE_NONE;
  bool asked = false;       // to leave, before it ended
  bool left = false;        // the program reports that it saved and left
  bool killed = false;      // by the shepherd
  bool no_handler = false;  // no process of the job handled a SIGTERM asking it to leave
  bool aware = false;       // the program handles a request to leave
  // Its exit status says "saved, go on with me"; only of a job that names checkpoint files.
  bool says_saved = false;
};
// The exit status of a program that saved and left (EX_TEMPFAIL).
inline constexpr int64_t kExitLeft = 75;
// For kEndDone the required outputs must still be checked.
EndCode classify(const ExitFacts& facts);

// What a restarted client found in an attempt's folder.
struct FolderFacts {
  bool end_recorded = false;    // the client recorded the end
  bool exit_recorded = false;   // the shepherd wrote an exit record
  bool shepherd_known = false;  // a record names the shepherd
  bool shepherd_alive = false;
};

// A start is told to the server when the program has run for so long: the end of a shorter one
// says all.
inline constexpr int64_t kStartToldAfterMs = 200;

class AttemptMachine {
 public:
  // checkpoint_interval_ms: between two checkpoints handed in while running.
  // held_generation: the newest one the server has; only newer ones are handed in.
  AttemptMachine(int64_t checkpoint_interval_ms, uint64_t held_generation)
      : checkpoint_interval_ms_(checkpoint_interval_ms), held_generation_(held_generation) {}

  // It saves files of its own, of which a checkpoint is to be made so often while it runs: from the
  // last one, or from its start.
  void copy_every(int64_t ms) { copy_every_ms_ = ms; }

  // Each returns a set of AttemptAction. An event that is not valid in the current
  // state changes nothing.
  // Accepted: start staging, or, if there is nothing to fetch, the shepherd.
  uint32_t begin(bool to_fetch = true);
  uint32_t restored(const FolderFacts& facts);  // instead of begin, once
  uint32_t staged();
  uint32_t staging_failed(EndCode end);  // kEndStaging, kEndLost
  uint32_t shepherd_started();
  uint32_t shepherd_failed(EndCode end);  // kEndStart, kEndLost
  // The shepherd reported its newest checkpoint.
  uint32_t generation(uint64_t newest, int64_t now_ms);
  uint32_t checkpoint_done(uint64_t handed_in, int64_t now_ms);  // 0: not handed in
  uint32_t tick(int64_t now_ms);                                 // due at checkpoint_due_ms()
  uint32_t leave(sublet_leave_reason reason);
  // The shepherd says that the job stays although the owner is back: suspended, or running.
  // If it vanishes then, it has left for the owner.
  uint32_t stays(bool suspended);
  // The shepherd says that it runs, and the owner has gone.
  uint32_t resumed();
  // The shepherd says that it has asked a job that stayed to leave.
  uint32_t leaves_by_itself(sublet_leave_reason reason);
  uint32_t ended();     // the exit record is on disk
  uint32_t vanished();  // the shepherd is gone without an exit record
  uint32_t cleared();   // kKillTenant and kRecordEnd, as far as they were wanted, are done
  uint32_t handed_in();
  uint32_t lease_renewed();
  uint32_t superseded();    // also if the server already knows the end
  uint32_t report_later();  // the server lacks a file: hand in again

  AttemptState state() const { return state_; }
  sublet_leave_reason leave_reason() const { return leave_reason_; }
  // What to write for kRecordEnd.
  EndCode end() const { return end_; }
  bool is_superseded() const { return superseded_; }
  // Its processes may still exist, so it occupies its slot.
  bool holds_slot() const { return state_ < AttemptState::kHandingIn; }
  // INT64_MAX: no checkpoint to hand in.
  int64_t checkpoint_due_ms() const;
  uint64_t held_generation() const { return held_generation_; }

 private:
  enum class Work { kNone, kStage, kStart, kCheckpoint, kHandIn };

  bool has_shepherd() const;
  uint32_t begin_hand_in(uint32_t actions);
  uint32_t after_checkpoint();
  uint32_t end_without_shepherd(EndCode end);
  uint32_t forget();
  uint32_t urge();

  AttemptState state_ = AttemptState::kAccepted;
  Work work_ = Work::kNone;
  sublet_leave_reason leave_reason_ = SUBLET_LEAVE_NONE;
  EndCode end_ = kEndNone;
  bool superseded_ = false;
  bool kill_ = false;      // leave by KILL instead of VACATE
  bool lingers_ = false;   // running although the owner is here
  bool clearing_ = false;  // beside the last checkpoint; `cleared` follows
  int64_t checkpoint_interval_ms_;
  int64_t copy_every_ms_ = 0;  // 0: never
  bool copies_ = false;        // the first interval has begun
  uint64_t held_generation_;
  uint64_t newest_generation_ = 0;
  bool handed_in_before_ = false;
  int64_t last_hand_in_ms_ = 0;
};

}  // namespace sublet::protocol

#endif  // SUBLET_PROTOCOL_ATTEMPT_H_
