// One attempt as its Executing Client sees it: from the order it accepted until
// the server has heard of the end and the folder may go. Pure: what happened
// goes in, what is to be done comes out. No clock, no I/O. One caller at a time.
//
//   accepted -> staging -> starting -> running -> leaving -> handing_in ->
//   reporting -> forgotten
//
// At most one piece of slow work (files, server) is under way for an attempt:
// stage, start, a checkpoint, or the hand-in. It always ends with an event, also
// when it was told to stop, and only then does the next begin; so nothing is
// removed under the feet of work that reads it.
//
// The eviction path does not pass here: presence goes from the monitor to the
// shepherds first, and this machine is told afterwards (leave).
#ifndef SUBLET_PROTOCOL_ATTEMPT_H_
#define SUBLET_PROTOCOL_ATTEMPT_H_

#include <cstdint>
#include <string>

#include "protocol/frame.h"

namespace sublet::protocol {

enum class AttemptState {
  kAccepted,  // in the client's records, nothing done
  kStaging,   // program, inputs, checkpoint on their way
  kStarting,  // the shepherd is being started
  kRunning,
  kLeaving,    // told to leave, or superseded, and not yet ended
  kHandingIn,  // ended; checkpoint and outputs on their way to the server
  kReporting,  // the end is being told
  kForgotten   // the folder may go
};

// What to do, in the order of the bits.
enum AttemptAction : uint32_t {
  kStopWork = 1u << 0,      // the work under way ends as soon as it can
  kSendKill = 1u << 1,      // KILL frame with leave_reason()
  kSendVacate = 1u << 2,    // VACATE frame with leave_reason()
  kSendLease = 1u << 3,     // LEASE frame with the lease as it stands
  kConnect = 1u << 4,       // to the shepherd's control socket
  kKillTenant = 1u << 5,    // end whatever the lost shepherd left behind
  kRecordEnd = 1u << 6,     // write end() to disk: no exit record will say it
  kStage = 1u << 7,         // work: ends in staged or staging_failed
  kStart = 1u << 8,         // work: ends in shepherd_started or shepherd_failed
  kCheckpoint = 1u << 9,    // work: ends in checkpoint_done
  kHandIn = 1u << 10,       // work: ends in handed_in
  kTellStarted = 1u << 11,  // to the server
  kReport = 1u << 12,       // the end, to the server
  kRemove = 1u << 13        // the folder; nothing follows
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
  kEndLost = 22,
  kEndRemoved = 23,
  kEndHeld = 24,
  kEndSuperseded = 25
};
// True for the ends that are no failure of the job: 16 and above.
constexpr bool is_eviction(uint32_t end) { return end >= kEndOwner; }
// The end of an attempt that left for this reason.
EndCode end_of_leave(sublet_leave_reason reason);

// What a shepherd's exit record says, as far as it matters here.
struct ExitFacts {
  enum class Outcome { kExited, kSignalled, kFailed, kUnstarted };
  Outcome outcome = Outcome::kExited;
  int64_t code = 0;      // exit status, signal or errno
  bool own_step = true;  // kFailed: what failed was the job's own, not the machine's
  bool over_limit = false;
  sublet_leave_reason reason = SUBLET_LEAVE_NONE;
  bool asked = false;   // to leave, before it ended
  bool left = false;    // the program says that it saved and left
  bool killed = false;  // by the shepherd
  bool aware = false;   // the program understands being asked
};
// The exit status of a program that saved and left (EX_TEMPFAIL).
inline constexpr int64_t kExitLeft = 75;
// kEndDone still depends on the required outputs.
EndCode classify(const ExitFacts& facts);

// What a restarted client finds in an attempt's folder.
struct FolderFacts {
  bool end_recorded = false;    // this client wrote how it ended
  bool exit_recorded = false;   // the shepherd did
  bool shepherd_known = false;  // there is a record that names one
  bool shepherd_alive = false;
};

class AttemptMachine {
 public:
  // checkpoint_interval_ms: between two checkpoints handed in while running.
  // held_generation: what the server has; older ones are not handed in.
  AttemptMachine(int64_t checkpoint_interval_ms, uint64_t held_generation)
      : checkpoint_interval_ms_(checkpoint_interval_ms), held_generation_(held_generation) {}

  // Each returns a set of AttemptAction. An event that cannot happen in the
  // present state changes nothing.
  uint32_t begin();                             // accepted: start staging
  uint32_t restored(const FolderFacts& facts);  // instead of begin, once
  uint32_t staged();
  uint32_t staging_failed(EndCode end);  // kEndStaging, kEndLost
  uint32_t shepherd_started();
  uint32_t shepherd_failed(EndCode end);  // kEndStart, kEndLost
  // The shepherd says which checkpoint is the newest.
  uint32_t generation(uint64_t newest, int64_t now_ms);
  uint32_t checkpoint_done(uint64_t handed_in, int64_t now_ms);  // 0: it was not
  uint32_t tick(int64_t now_ms);                                 // due at checkpoint_due_ms()
  uint32_t leave(sublet_leave_reason reason);
  uint32_t ended();     // the exit record is on disk
  uint32_t vanished();  // the shepherd is gone without one
  uint32_t handed_in();
  uint32_t lease_renewed();
  uint32_t superseded();    // also: the server knows the end already
  uint32_t report_later();  // the server misses something: hand in again

  AttemptState state() const { return state_; }
  sublet_leave_reason leave_reason() const { return leave_reason_; }
  // With kRecordEnd: what to write.
  EndCode end() const { return end_; }
  bool is_superseded() const { return superseded_; }
  // Its processes may still be there: it holds its slot.
  bool holds_slot() const { return state_ < AttemptState::kHandingIn; }
  // INT64_MAX: no checkpoint waits to be handed in.
  int64_t checkpoint_due_ms() const;
  uint64_t held_generation() const { return held_generation_; }

 private:
  enum class Work { kNone, kStage, kStart, kCheckpoint, kHandIn };

  bool has_shepherd() const;
  uint32_t begin_hand_in(uint32_t actions);
  uint32_t end_without_shepherd(EndCode end);
  uint32_t forget();
  uint32_t urge();

  AttemptState state_ = AttemptState::kAccepted;
  Work work_ = Work::kNone;
  sublet_leave_reason leave_reason_ = SUBLET_LEAVE_NONE;
  EndCode end_ = kEndNone;
  bool superseded_ = false;
  bool kill_ = false;  // the way out is KILL, not VACATE
  int64_t checkpoint_interval_ms_;
  uint64_t held_generation_;
  uint64_t newest_generation_ = 0;
  bool handed_in_before_ = false;
  int64_t last_hand_in_ms_ = 0;
};

}  // namespace sublet::protocol

#endif  // SUBLET_PROTOCOL_ATTEMPT_H_
