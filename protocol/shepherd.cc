#include "protocol/shepherd.h"

#include "protocol/lease.h"

namespace sublet::protocol {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
// Bounds how far a job can exceed its CPU time on each core.
constexpr int64_t kCpuCheckNs = 1'000'000;
// How soon a demoted job is lifted after its handler has run.
constexpr int64_t kHandlerCheckNs = 10'000'000;
constexpr int64_t kFirstKillIntervalNs = 2'000'000;
constexpr int64_t kLastKillIntervalNs = 100'000'000;

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t plus(int64_t instant, int64_t duration) {
  int64_t sum;
  return __builtin_add_overflow(instant, duration, &sum) ? INT64_MAX : sum;
}

// The time at which the monitor detected the owner, or `now` if that is implausible.
int64_t plausible(int64_t detected, int64_t now) {
  return detected <= now && detected > now - 60 * kSecondNs ? detected : now;
}

}  // namespace

ShepherdMachine::ShepherdMachine(const ShepherdTerms& terms, int64_t now)
    : terms_(terms), last_contact_ns_(now) {}

void ShepherdMachine::note_leave(sublet_leave_reason reason, int64_t detected) {
  // The first cause is reported, except that the owner's return takes precedence over
  // all others: that eviction must not be charged.
  bool owner = reason == SUBLET_LEAVE_OWNER || reason == SUBLET_LEAVE_BLIND;
  bool owner_noted = reason_ == SUBLET_LEAVE_OWNER || reason_ == SUBLET_LEAVE_BLIND;
  if (reason_ == SUBLET_LEAVE_NONE || (owner && !owner_noted && phase_ != Phase::killing)) {
    reason_ = reason;
    detected_ns_ = detected;
  }
}

void ShepherdMachine::leave_frozen(int64_t now) {
  if (phase_ != Phase::frozen && phase_ != Phase::suspended) return;
  frozen_total_ns_ += now - frozen_since_ns_;
}

uint32_t ShepherdMachine::end_unstarted(sublet_leave_reason reason, int64_t detected) {
  note_leave(reason, detected);
  phase_ = Phase::killing;  // of the process that has not executed the program yet
  next_check_ns_ = detected;
  kill_interval_ns_ = kFirstKillIntervalNs;
  return kActLift | kActKill;
}

uint32_t ShepherdMachine::kill(sublet_leave_reason reason, int64_t detected, int64_t now) {
  if (phase_ == Phase::ended || phase_ == Phase::killing) return 0;
  if (phase_ == Phase::starting) return end_unstarted(reason, detected);
  note_leave(reason, detected);
  leave_frozen(now);
  phase_ = Phase::killing;
  killed_ = true;
  kill_interval_ns_ = kFirstKillIntervalNs;
  next_check_ns_ = now + kill_interval_ns_;
  // Freezes first: one write stops all processes, killing may take several rounds, and
  // nothing runs at the weight that follows. Lifts, because exiting needs CPU time: at idle
  // priority beside a busy owner a process would keep its memory for seconds.
  return kActFreeze | kActLift | kActKill | kActStatus;
}

uint32_t ShepherdMachine::leave_for_owner(sublet_leave_reason reason, int64_t detected,
                                          int64_t now) {
  if (phase_ == Phase::starting || phase_ == Phase::frozen) return kill(reason, detected, now);
  if (phase_ == Phase::killing || phase_ == Phase::ended || for_owner_) return 0;
  if (terms_.leaving == SUBLET_LEAVING_KILL) return kill(reason, detected, now);
  const bool suspended = phase_ == Phase::suspended;
  // Without its lease it may not run, not even to save.
  if (suspended && now >= terms_.lease_ns) return kill(reason, detected, now);
  leave_frozen(now);
  int64_t deadline = plus(now, terms_.save_deadline_ms * kNsPerMs);
  deadline_ns_ = phase_ == Phase::saving ? least(deadline_ns_, deadline) : deadline;
  note_leave(reason, detected);
  phase_ = Phase::saving;
  for_owner_ = true;
  thaws_ = suspended;
  return kActAssess | kActStatus;
}

uint32_t ShepherdMachine::suspend(int64_t now) {
  phase_ = Phase::suspended;
  frozen_since_ns_ = now;
  deadline_ns_ = plus(now, terms_.suspend_ms * kNsPerMs);
  return kActFreeze | kActStatus;
}

uint32_t ShepherdMachine::resume(int64_t now) {
  // Its lease ran out in this moment: it stays frozen until there is a longer one.
  if (now >= terms_.lease_ns) {
    phase_ = Phase::frozen;
    note_leave(SUBLET_LEAVE_LEASE, now);
    return kActStatus;
  }
  leave_frozen(now);
  phase_ = Phase::running;
  return kActThaw | kActStatus;
}

uint32_t ShepherdMachine::tick_suspended(int64_t now) {
  // Nor may it wait until it has no lease in which to save.
  const bool lease_ends = now >= lease_save_at(terms_.save_deadline_ms, terms_.lease_ns);
  return now >= deadline_ns_ || lease_ends ? leave_for_owner(SUBLET_LEAVE_OWNER, now, now) : 0;
}

uint32_t ShepherdMachine::owner_here(sublet_presence_reason cause, bool burdened, int64_t detected,
                                     int64_t now) {
  if (cause == SUBLET_PRESENCE_BLIND) return leave_for_owner(SUBLET_LEAVE_BLIND, detected, now);
  if (sublet_may_stay(cause) && !burdened && terms_.leaving == SUBLET_LEAVING_SUSPEND) {
    if (phase_ == Phase::suspended) return 0;
    if (phase_ == Phase::running) return suspend(now);
  }
  if (sublet_may_stay(cause) && terms_.leaving == SUBLET_LEAVING_LINGER && !burdened &&
      phase_ == Phase::running) {
    const bool told = lingers_;
    lingers_ = true;
    return told ? 0u : uint32_t{kActStatus};
  }
  return leave_for_owner(SUBLET_LEAVE_OWNER, detected, now);
}

uint32_t ShepherdMachine::owner_away(sublet_presence_reason cause, int64_t now) {
  const bool lingered = lingers_;
  lingers_ = false;
  if (phase_ == Phase::suspended) return resume(now);
  if (phase_ == Phase::running && lingered) return kActStatus;
  if (phase_ != Phase::starting || now >= terms_.lease_ns) return 0;
  if (cause == SUBLET_PRESENCE_SETTLING) return kill(SUBLET_LEAVE_OWNER, now, now);
  phase_ = Phase::running;
  started_ns_ = now;
  return kActStart;
}

uint32_t ShepherdMachine::assessed(TermAnswer answer, int64_t now) {
  if (!leaving_for_owner()) return 0;
  if (answer == TermAnswer::kNone) return kill(reason_, detected_ns_, now);
  // A job that is already saving got a SIGTERM; a second one could interrupt the save.
  const uint32_t ask = terminated_ ? 0u : uint32_t{kActTerminate};
  terminated_ = true;
  reports_ = answer == TermAnswer::kStatusPage && terms_.cpu_allowance_ms > 0;
  // It runs again only with the request before it.
  const uint32_t thaw = thaws_ ? uint32_t{kActThaw} : 0u;
  thaws_ = false;
  rationed_ = answer == TermAnswer::kHandler && terms_.saves_files && terms_.cpu_allowance_ms > 0;
  asked_ns_ = now;
  return ask | thaw | (reports_ || rationed_ ? lift(now) : kActDemote);
}

uint32_t ShepherdMachine::lift(int64_t now) {
  lifted_ = true;
  next_check_ns_ = now + kCpuCheckNs;
  return kActLift;
}

uint32_t ShepherdMachine::handler_ran(int64_t now) {
  if (!awaiting_handler()) return 0;
  handler_ran_ = true;
  return lifted_ ? 0 : lift(now);
}

uint32_t ShepherdMachine::monitor_frame(const sublet_frame& frame, int64_t now) {
  last_contact_ns_ = now;
  if (frame.kind != SUBLET_FRAME_PRESENCE) return 0;
  const auto cause = static_cast<sublet_presence_reason>(frame.reason);
  if (frame.state == SUBLET_PRESENCE_AWAY) return owner_away(cause, now);
  const bool burdened = frame.state == SUBLET_PRESENCE_BURDENED;
  return owner_here(cause, burdened, plausible(frame.instant, now), now) | kActAck;
}

uint32_t ShepherdMachine::monitor_lost(int64_t now) {
  return leave_for_owner(SUBLET_LEAVE_BLIND, now, now);
}

uint32_t ShepherdMachine::vacate(const sublet_frame& frame, int64_t now) {
  auto reason = static_cast<sublet_leave_reason>(frame.reason);
  if (reason == SUBLET_LEAVE_BLIND)
    return leave_for_owner(reason, plausible(frame.instant, now), now);
  if (reason == SUBLET_LEAVE_OWNER)
    return owner_here(static_cast<sublet_presence_reason>(frame.arg[1]),
                      frame.state == SUBLET_PRESENCE_BURDENED, plausible(frame.instant, now), now);
  // Nothing that the job could save would be used.
  if (reason == SUBLET_LEAVE_REMOVED || reason == SUBLET_LEAVE_REPLACED)
    return kill(reason, now, now);
  // A frozen job has lost its lease: it may not run, not even to save.
  if (phase_ == Phase::starting || phase_ == Phase::frozen) return kill(reason, now, now);
  // The owner is here, too.
  if (phase_ == Phase::suspended || lingers_) return leave_for_owner(reason, now, now);
  if (phase_ != Phase::running) return 0;
  note_leave(reason, now);
  phase_ = Phase::saving;
  terminated_ = true;
  int64_t deadline_ms = frame.arg[0] > 0 ? frame.arg[0] : terms_.save_deadline_ms;
  deadline_ns_ = plus(now, least(deadline_ms, INT64_MAX / kNsPerMs) * kNsPerMs);
  return kActTerminate | kActStatus;
}

uint32_t ShepherdMachine::lease(int64_t until, int64_t now) {
  if (until <= terms_.lease_ns) return 0;
  terms_.lease_ns = until;
  save_asked_ = false;
  if (phase_ != Phase::frozen || now >= until) return 0;
  leave_frozen(now);
  phase_ = Phase::running;
  reason_ = SUBLET_LEAVE_NONE;
  detected_ns_ = 0;
  return kActThaw | kActStatus;
}

uint32_t ShepherdMachine::control_frame(const sublet_frame& frame, int64_t now) {
  switch (frame.kind) {
    case SUBLET_FRAME_LEASE:
      return lease(frame.instant, now) | kActAck;
    case SUBLET_FRAME_VACATE:
      return vacate(frame, now) | kActAck;
    case SUBLET_FRAME_KILL:
      return kill(static_cast<sublet_leave_reason>(frame.reason), now, now) | kActAck;
    case SUBLET_FRAME_QUERY:
      return kActStatus;
    default:
      return 0;
  }
}

uint32_t ShepherdMachine::lease_expired(int64_t now) {
  if (phase_ == Phase::starting || phase_ == Phase::saving)
    return kill(SUBLET_LEAVE_LEASE, now, now);
  if (phase_ != Phase::running) return 0;
  phase_ = Phase::frozen;
  frozen_since_ns_ = now;
  note_leave(SUBLET_LEAVE_LEASE, now);
  return kActFreeze | kActStatus;
}

uint32_t ShepherdMachine::tick(int64_t now) {
  if (phase_ == Phase::ended) return 0;
  if (phase_ == Phase::killing) {
    if (now < next_check_ns_) return 0;
    kill_interval_ns_ = least(2 * kill_interval_ns_, kLastKillIntervalNs);
    next_check_ns_ = now + kill_interval_ns_;
    return kActKill;
  }
  if (phase_ == Phase::saving && now >= deadline_ns_) return kill(reason_, detected_ns_, now);
  if (phase_ == Phase::saving && now >= next_check_ns_)
    next_check_ns_ = now + (lifted_ ? kCpuCheckNs : kHandlerCheckNs);
  if (now - last_contact_ns_ >= SUBLET_MONITOR_SILENCE_NS && !for_owner_) return monitor_lost(now);
  if (phase_ == Phase::suspended) return tick_suspended(now);
  if (now >= terms_.lease_ns && phase_ != Phase::frozen) return lease_expired(now);
  if (phase_ == Phase::frozen && now >= lease_give_up_at(terms_.patience_ms, terms_.lease_ns))
    return kill(SUBLET_LEAVE_LEASE, now, now);
  if (phase_ != Phase::running) return 0;
  if (terms_.limit_wall_s > 0 &&
      now - started_ns_ - frozen_total_ns_ >= terms_.limit_wall_s * kSecondNs)
    return kill(SUBLET_LEAVE_LIMIT, now, now);
  if (now < lease_save_at(terms_.save_deadline_ms, terms_.lease_ns)) return 0;
  // Beside the owner it may not wait, frozen, for a longer lease.
  if (lingers_) return leave_for_owner(SUBLET_LEAVE_OWNER, now, now);
  if (save_asked_) return 0;
  save_asked_ = true;
  return kActSave;
}

uint32_t ShepherdMachine::cpu_used(int64_t used_ns, int64_t now) {
  if (!counting_cpu()) return 0;
  if (rationed_) return keep_to_ration(used_ns, now);
  const int64_t allowance = terms_.cpu_allowance_ms * kNsPerMs;
  if (handler_ran_) return used_ns < allowance ? 0 : kill(reason_, detected_ns_, now);
  if (used_ns < least(kUnseenNs, allowance)) return 0;
  lifted_ = false;
  next_check_ns_ = now + kHandlerCheckNs;
  return kActDemote;
}

uint32_t ShepherdMachine::keep_to_ration(int64_t used_ns, int64_t now) {
  const int64_t ration = save_ration_ns(now - asked_ns_);
  // Each lift is to be worth it.
  if (!lifted_) return used_ns + kUnseenNs <= ration ? lift(now) : 0;
  if (used_ns < ration) return 0;
  lifted_ = false;
  next_check_ns_ = now + kHandlerCheckNs;
  return kActDemote;
}

uint32_t ShepherdMachine::over_limit(int64_t now) { return kill(SUBLET_LEAVE_LIMIT, now, now); }

uint32_t ShepherdMachine::start_failed(int64_t now) {
  if (phase_ == Phase::ended) return 0;
  if (phase_ != Phase::killing) end_unstarted(SUBLET_LEAVE_NONE, now);
  return kActKill;
}

uint32_t ShepherdMachine::main_exited(bool killed_by_others, int64_t now) {
  if (main_exited_ || phase_ == Phase::ended) return 0;
  main_exited_ = true;
  if (phase_ == Phase::killing) return kActKill;
  // Somebody killed it for the owner, who is here. A frozen program does not end by itself.
  if (phase_ == Phase::suspended || (lingers_ && killed_by_others)) {
    note_leave(SUBLET_LEAVE_OWNER, now);
    killed_ = true;
  }
  leave_frozen(now);
  phase_ = Phase::killing;
  kill_interval_ns_ = kFirstKillIntervalNs;
  next_check_ns_ = now + kill_interval_ns_;
  return kActFreeze | kActLift | kActKill;
}

uint32_t ShepherdMachine::all_gone(int64_t) {
  if (phase_ == Phase::ended) return 0;
  phase_ = Phase::ended;
  return kActWriteExit;
}

int64_t ShepherdMachine::next_instant() const {
  if (phase_ == Phase::ended) return INT64_MAX;
  if (phase_ == Phase::killing) return next_check_ns_;
  int64_t next = for_owner_ ? INT64_MAX : plus(last_contact_ns_, SUBLET_MONITOR_SILENCE_NS);
  if (phase_ == Phase::frozen)
    return least(next, lease_give_up_at(terms_.patience_ms, terms_.lease_ns));
  if (phase_ == Phase::suspended)
    return least(least(next, deadline_ns_),
                 lease_save_at(terms_.save_deadline_ms, terms_.lease_ns));
  next = least(next, terms_.lease_ns);
  if (phase_ == Phase::saving) {
    next = least(next, deadline_ns_);
    return counting_cpu() || awaiting_handler() ? least(next, next_check_ns_) : next;
  }
  if (phase_ != Phase::running) return next;
  if (terms_.limit_wall_s > 0)
    next = least(next, plus(started_ns_ + frozen_total_ns_, terms_.limit_wall_s * kSecondNs));
  if (!save_asked_ || lingers_)
    next = least(next, lease_save_at(terms_.save_deadline_ms, terms_.lease_ns));
  return next;
}

sublet_shepherd_state ShepherdMachine::state() const {
  switch (phase_) {
    case Phase::starting:
      return SUBLET_SHEPHERD_STARTING;
    case Phase::running:
      return lingers_ ? SUBLET_SHEPHERD_LINGERING : SUBLET_SHEPHERD_RUNNING;
    case Phase::suspended:
      return SUBLET_SHEPHERD_SUSPENDED;
    case Phase::saving:
      return SUBLET_SHEPHERD_SAVING;
    case Phase::frozen:
    case Phase::killing:
      return SUBLET_SHEPHERD_FROZEN;
    case Phase::ended:
      break;
  }
  return SUBLET_SHEPHERD_ENDED;
}

}  // namespace sublet::protocol
