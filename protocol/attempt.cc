#include "protocol/attempt.h"

#include <algorithm>
#include <csignal>
#include <limits>

namespace sublet::protocol {
namespace {

bool kills(sublet_leave_reason reason) {
  return reason == SUBLET_LEAVE_REMOVED || reason == SUBLET_LEAVE_REPLACED;
}

// Asked to leave, but ended on its own with status 0, which neither a signal nor a kill
// produces, and not in answer to the request.
bool was_done(const ExitFacts& facts) {
  const bool succeeded = facts.outcome == ExitFacts::Outcome::kExited && facts.code == 0;
  const bool answered = facts.aware ? facts.left : !facts.no_handler;
  return succeeded && !answered && !kills(facts.reason);
}

// How an aware program ended that was asked to leave and was not done.
EndCode classify_aware_leave(const ExitFacts& facts) {
  if (facts.killed) return end_of_leave(facts.reason);
  if (facts.outcome == ExitFacts::Outcome::kExited) {
    const bool answered = facts.left || facts.code == kExitLeft || facts.code == 0;
    return answered ? end_of_leave(facts.reason) : kEndExit;
  }
  bool ours = facts.code == SIGTERM || facts.code == SIGKILL || facts.code == SIGXCPU;
  return ours ? end_of_leave(facts.reason) : kEndSignal;
}

}  // namespace

std::string end_name(uint32_t end) {
  static constexpr const char* kFailures[] = {
      "",        "done",           "exit status",    "killed by a signal", "could not start",
      "staging", "output missing", "over its limits"};
  static constexpr const char* kEvictions[] = {"owner came back",
                                               "load monitor failed",
                                               "out of touch",
                                               "pre-empted",
                                               "client stopped",
                                               "refused",
                                               "machine lost",
                                               "removed",
                                               "held",
                                               "superseded",
                                               "evicted by an administrator",
                                               "saved to go on"};
  if (end < 8) return kFailures[end];
  if (end >= 16 && end < 28) return kEvictions[end - 16];
  return std::to_string(end);
}

EndCode end_of_leave(sublet_leave_reason reason) {
  switch (reason) {
    case SUBLET_LEAVE_OWNER:
      return kEndOwner;
    case SUBLET_LEAVE_BLIND:
      return kEndBlind;
    case SUBLET_LEAVE_LEASE:
      return kEndLease;
    case SUBLET_LEAVE_PREEMPT:
      return kEndPreempted;
    case SUBLET_LEAVE_REMOVED:
      return kEndRemoved;
    case SUBLET_LEAVE_DRAIN:
      return kEndDrained;
    case SUBLET_LEAVE_LIMIT:
      return kEndLimit;
    case SUBLET_LEAVE_REPLACED:
      return kEndSuperseded;
    case SUBLET_LEAVE_HELD:
      return kEndHeld;
    case SUBLET_LEAVE_ADMINISTRATOR:
      return kEndAdministrator;
    case SUBLET_LEAVE_NONE:
      break;
  }
  return kEndLost;
}

EndCode classify(const ExitFacts& facts) {
  // A fault of the machine does not count against the job: it is run elsewhere.
  if (facts.outcome == ExitFacts::Outcome::kFailed) return facts.own_step ? kEndStart : kEndLost;
  if (facts.outcome == ExitFacts::Outcome::kUnstarted) return end_of_leave(facts.reason);
  // A job that exceeded a limit only after it was asked to leave was evicted.
  bool limit_first =
      facts.reason == SUBLET_LEAVE_LIMIT || facts.reason == SUBLET_LEAVE_NONE || !facts.asked;
  if (facts.over_limit && limit_first) return kEndLimit;
  if (facts.asked) {
    if (was_done(facts)) return kEndDone;
    return facts.aware ? classify_aware_leave(facts) : end_of_leave(facts.reason);
  }
  if (facts.killed && facts.reason != SUBLET_LEAVE_NONE) return end_of_leave(facts.reason);
  if (facts.outcome == ExitFacts::Outcome::kSignalled) return kEndSignal;
  if (facts.says_saved) return kEndSaved;
  return facts.code == 0 ? kEndDone : kEndExit;
}

uint32_t AttemptMachine::begin(bool to_fetch) {
  if (state_ != AttemptState::kAccepted) return 0;
  if (!to_fetch) {
    state_ = AttemptState::kStarting;
    work_ = Work::kStart;
    return kStart;
  }
  state_ = AttemptState::kStaging;
  work_ = Work::kStage;
  return kStage;
}

uint32_t AttemptMachine::restored(const FolderFacts& facts) {
  if (state_ != AttemptState::kAccepted) return 0;
  if (facts.end_recorded || facts.exit_recorded) return begin_hand_in(0);
  if (!facts.shepherd_known) return begin();
  if (facts.shepherd_alive) {
    state_ = AttemptState::kRunning;
    return kConnect | kTellStarted;
  }
  state_ = AttemptState::kRunning;
  return vanished();
}

uint32_t AttemptMachine::staged() {
  if (work_ != Work::kStage) return 0;
  work_ = Work::kNone;
  if (state_ == AttemptState::kLeaving) return end_without_shepherd(end_of_leave(leave_reason_));
  state_ = AttemptState::kStarting;
  work_ = Work::kStart;
  return kStart;
}

uint32_t AttemptMachine::staging_failed(EndCode end) {
  if (work_ != Work::kStage) return 0;
  work_ = Work::kNone;
  return end_without_shepherd(state_ == AttemptState::kLeaving ? end_of_leave(leave_reason_) : end);
}

uint32_t AttemptMachine::shepherd_started() {
  if (work_ != Work::kStart) return 0;
  work_ = Work::kNone;
  if (state_ == AttemptState::kLeaving) return kConnect | urge();
  state_ = AttemptState::kRunning;
  return kConnect | kTellStarted;
}

uint32_t AttemptMachine::shepherd_failed(EndCode end) {
  if (work_ != Work::kStart) return 0;
  work_ = Work::kNone;
  return end_without_shepherd(state_ == AttemptState::kLeaving ? end_of_leave(leave_reason_) : end);
}

int64_t AttemptMachine::checkpoint_due_ms() const {
  int64_t due = std::numeric_limits<int64_t>::max();
  if (state_ != AttemptState::kRunning || work_ != Work::kNone) return due;
  if (newest_generation_ > held_generation_)
    due = handed_in_before_ ? last_hand_in_ms_ + checkpoint_interval_ms_ : last_hand_in_ms_;
  if (copy_every_ms_ > 0) due = std::min(due, copies_ ? last_hand_in_ms_ + copy_every_ms_ : 0);
  return due;
}

uint32_t AttemptMachine::generation(uint64_t newest, int64_t now_ms) {
  if (newest > newest_generation_) newest_generation_ = newest;
  if (!handed_in_before_) last_hand_in_ms_ = now_ms;
  return tick(now_ms);
}

uint32_t AttemptMachine::tick(int64_t now_ms) {
  if (checkpoint_due_ms() > now_ms) return 0;
  if (copy_every_ms_ > 0 && !copies_) {
    copies_ = true;
    last_hand_in_ms_ = now_ms;
    if (newest_generation_ <= held_generation_) return 0;
  }
  work_ = Work::kCheckpoint;
  handed_in_before_ = true;
  last_hand_in_ms_ = now_ms;
  return kCheckpoint;
}

uint32_t AttemptMachine::checkpoint_done(uint64_t handed_in, int64_t now_ms) {
  if (work_ != Work::kCheckpoint) return 0;
  work_ = Work::kNone;
  last_hand_in_ms_ = now_ms;
  if (handed_in > held_generation_) held_generation_ = handed_in;
  return after_checkpoint();
}

uint32_t AttemptMachine::leave(sublet_leave_reason reason) {
  if (reason == SUBLET_LEAVE_REPLACED) return superseded();
  bool kill_now = kills(reason) && !kill_;
  switch (state_) {
    case AttemptState::kAccepted:
      leave_reason_ = reason;
      return end_without_shepherd(end_of_leave(reason));
    case AttemptState::kStaging:
    case AttemptState::kStarting: {
      leave_reason_ = reason;
      kill_ = kills(reason);
      bool stop = state_ == AttemptState::kStaging;
      state_ = AttemptState::kLeaving;
      return stop ? kStopWork : 0u;
    }
    case AttemptState::kRunning:
    case AttemptState::kSuspended:
      leave_reason_ = reason;
      kill_ = kills(reason);
      state_ = AttemptState::kLeaving;
      return urge();
    case AttemptState::kLeaving:
      // Keeps the first reason unless the new one leaves no time to save: the owner's
      // return and a removal must reach the shepherd.
      if (kill_ || !(kill_now || reason == SUBLET_LEAVE_OWNER || reason == SUBLET_LEAVE_BLIND))
        return 0;
      leave_reason_ = reason;
      kill_ = kills(reason);
      return work_ == Work::kStage || work_ == Work::kStart ? 0u : urge();
    default:
      return 0;
  }
}

uint32_t AttemptMachine::stays(bool suspended) {
  const bool asked = state_ == AttemptState::kLeaving && leave_reason_ == SUBLET_LEAVE_OWNER &&
                     !kill_ && has_shepherd();
  if (!asked && state_ != AttemptState::kRunning) return 0;
  leave_reason_ = SUBLET_LEAVE_NONE;
  state_ = suspended ? AttemptState::kSuspended : AttemptState::kRunning;
  lingers_ = !suspended;
  return 0;
}

uint32_t AttemptMachine::resumed() {
  lingers_ = false;
  if (state_ == AttemptState::kSuspended) state_ = AttemptState::kRunning;
  return 0;
}

uint32_t AttemptMachine::leaves_by_itself(sublet_leave_reason reason) {
  const bool stayed = state_ == AttemptState::kRunning || state_ == AttemptState::kSuspended;
  return stayed ? leave(reason) & ~uint32_t{kSendVacate} : 0u;
}

bool AttemptMachine::has_shepherd() const {
  if (work_ == Work::kStage || work_ == Work::kStart) return false;
  return state_ == AttemptState::kRunning || state_ == AttemptState::kSuspended ||
         state_ == AttemptState::kLeaving;
}

uint32_t AttemptMachine::ended() {
  if (!has_shepherd()) return 0;
  if (superseded_) return forget();
  return begin_hand_in(0);
}

uint32_t AttemptMachine::vanished() {
  if (!has_shepherd()) return 0;
  clearing_ = work_ == Work::kCheckpoint;
  if (superseded_) return kKillTenant | forget();
  // If it was asked to leave and its hung shepherd was killed, it has left; likewise if it stayed
  // while the owner is here.
  const bool stayed = state_ == AttemptState::kSuspended || lingers_;
  if (stayed && leave_reason_ == SUBLET_LEAVE_NONE) leave_reason_ = SUBLET_LEAVE_OWNER;
  end_ = end_of_leave(leave_reason_);
  return begin_hand_in(kKillTenant | kRecordEnd);
}

uint32_t AttemptMachine::cleared() {
  if (!clearing_) return 0;
  clearing_ = false;
  return after_checkpoint();
}

uint32_t AttemptMachine::handed_in() {
  if (work_ != Work::kHandIn) return 0;
  work_ = Work::kNone;
  if (superseded_) return forget();
  state_ = AttemptState::kReporting;
  return kReport;
}

uint32_t AttemptMachine::lease_renewed() {
  return has_shepherd() && !superseded_ ? kSendLease : 0u;
}

uint32_t AttemptMachine::superseded() {
  if (superseded_ && state_ != AttemptState::kReporting) return 0;
  superseded_ = true;
  kill_ = true;
  leave_reason_ = SUBLET_LEAVE_REPLACED;
  switch (state_) {
    case AttemptState::kAccepted:
    case AttemptState::kReporting:
      return forget();
    case AttemptState::kStaging:
      state_ = AttemptState::kLeaving;
      return kStopWork;
    case AttemptState::kStarting:
      state_ = AttemptState::kLeaving;
      return 0;
    case AttemptState::kRunning:
    case AttemptState::kSuspended:
      state_ = AttemptState::kLeaving;
      return urge();
    case AttemptState::kLeaving:
      if (work_ == Work::kStage) return kStopWork;
      return work_ == Work::kStart ? 0u : urge();
    case AttemptState::kHandingIn:
      return kStopWork;
    case AttemptState::kForgotten:
      return 0;
  }
  return 0;
}

uint32_t AttemptMachine::report_later() {
  return state_ == AttemptState::kReporting ? begin_hand_in(0) : 0u;
}

uint32_t AttemptMachine::begin_hand_in(uint32_t actions) {
  state_ = AttemptState::kHandingIn;
  if (work_ == Work::kCheckpoint) return actions | kStopWork;  // see after_checkpoint
  work_ = Work::kHandIn;
  return actions | kHandIn;
}

// Continues with an attempt that ended while a checkpoint was handed in.
uint32_t AttemptMachine::after_checkpoint() {
  if (state_ != AttemptState::kHandingIn || work_ != Work::kNone || clearing_) return 0;
  return superseded_ ? forget() : begin_hand_in(0);
}

uint32_t AttemptMachine::end_without_shepherd(EndCode end) {
  if (superseded_) return forget();
  end_ = end;
  state_ = AttemptState::kReporting;
  return kRecordEnd | kReport;
}

uint32_t AttemptMachine::forget() {
  if (work_ == Work::kCheckpoint) {  // after_checkpoint calls this again
    state_ = AttemptState::kHandingIn;
    return kStopWork;
  }
  state_ = AttemptState::kForgotten;
  return kRemove;
}

uint32_t AttemptMachine::urge() {
  uint32_t stop = work_ == Work::kCheckpoint ? kStopWork : 0u;
  // A newer checkpoint is about to be made, so the old one need not be handed in.
  return stop | (kill_ ? kSendKill : kSendVacate);
}

}  // namespace sublet::protocol
