// Events of an attempt: answered, renewed, started, checkpointed, ended. Only the
// job's current attempt counts, and only from its own machine (rule 3).
#include <algorithm>
#include <limits>

#include "scheduling/matching/machine_choice.h"
#include "scheduling/queries/text.h"
#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {
// Whether an attempt that is no longer live is the newest of its job and ended on
// this machine.
bool newest_of(const Job* job, const AttemptKey& key, MachineId machine) {
  return job != nullptr && job->record.attempts == key.attempt && job->last_machine == machine &&
         job->last_end != EndReason::kNone;
}

// Why an attempt that was told to leave must leave.
LeaveReason reason_to_leave(const Attempt& attempt) {
  if (attempt.job == nullptr) return LeaveReason::kRemoved;
  const JobState state = attempt.job->record.state;
  // A job that was held, and perhaps released since.
  const bool held = state == JobState::kHeld || state == JobState::kWaiting;
  if (!held && attempt.record.preempted_for != 0) return LeaveReason::kPreempt;
  return held ? LeaveReason::kHeld : LeaveReason::kAdministrator;
}

// Whether the attempt was in vain. An owner who returns, a monitor that fails, a disk that fills
// up and processes that vanish are no failures of the job; but a job may be the cause of all of
// them. std::nullopt: it was not the cause, or nobody knows.
std::optional<bool> was_in_vain(const Attempt& attempt, const Pool::State::End& end) {
  constexpr Micros kAtOnce = 2'000'000;
  if (attempt.record.generation > attempt.record.resumed_generation) return false;
  switch (end.ended) {
    case EndReason::kLost:
      return end.started ? std::optional(true) : std::nullopt;
    case EndReason::kSaved:
      return true;
    case EndReason::kOwner:
    case EndReason::kBlind:
    case EndReason::kDrained:
      return end.wall > 0 ? std::optional(end.wall < kAtOnce) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// How long an attempt must run to show that its machine works, however it ends.
constexpr Micros kRunsWell = 60'000'000;

// Whether the end is a failure of the machine (true) or shows that it works (false).
// std::nullopt: neither. A program that ends by itself is the job's affair, however it ends; so is
// one that cannot be started or lacks its inputs, as long as that happens to few batches
// (is_unstarted), and a running one that vanished with its shepherd, which its job may have killed.
std::optional<bool> is_failure_of_machine(const Attempt& attempt, const Pool::State::End& end,
                                          Micros now) {
  const Micros started = attempt.record.started;
  switch (end.ended) {
    case EndReason::kDone:
    case EndReason::kExit:
    case EndReason::kSignal:
    case EndReason::kOutput:
    case EndReason::kLimit:
    case EndReason::kSaved:
      return false;
    case EndReason::kRefused:
      return end.machine_failed ? std::optional(true) : std::nullopt;
    case EndReason::kLost:
      // What waited there for a slot was nowhere but in its client's memory.
      if (attempt.placed_ahead && started == 0 && !end.reported) return std::nullopt;
      return end.started ? std::nullopt : std::optional(true);
    case EndReason::kStart:
    case EndReason::kStaging:
    case EndReason::kSuperseded:
      return std::nullopt;
    default:
      return started != 0 && now - started >= kRunsWell ? std::optional(false) : std::nullopt;
  }
}
bool is_unstarted(EndReason ended) {
  return ended == EndReason::kStart || ended == EndReason::kStaging;
}
}  // namespace

void Pool::State::allocate() {
  const Matcher::Actions actions = {
      [this](Job& job, Machine& machine) { place(job, machine); },
      [this](Job& job, Machine& machine) { promise(job, machine); },
      [this](Job& job, Machine& machine) {
        if (job.record.count > 1) jobs.split(job, 1);
        matcher.keep_licences(job, machine);
      },
  };
  do {
    while (Machine* m = matcher.promises().take_changed()) settle_promise(*m);
    matcher.allocate(changes.now(), actions);
    matcher.end_vain_promises();
    // A job that was placed elsewhere leaves the room that it was promised to others.
  } while (matcher.promises().any_changed() || !licences.released().empty());
}

void Pool::State::promise(Job& job, Machine& m) {
  if (job.record.count > 1) jobs.split(job, 1);
  recall_ahead(m);
  matcher.promises().make(m, job);
  machines.note_promise(m);
}

void Pool::State::settle_promise(Machine& m) {
  Job* job = m.promised_to;
  // Not if its user or its batch has as many places as are allowed by now.
  const bool wanted = job != nullptr && job->line != nullptr && !job->user->at_limit &&
                      (job->batch == nullptr || !is_full(*job->batch));
  if (wanted && keeps_room(m) && matcher.may_start(*job)) return place(*job, m);
  if (job != nullptr && !(wanted && may_make_room(m, *job))) matcher.promises().forget(m);
  machines.note_promise(m);
}

void Pool::State::place(Job& job, Machine& m, Micros ahead_until) {
  if (job.record.count > 1) jobs.split(job, 1);
  Sentence why = ahead_until == 0 ? why_first(job, m) : why_ahead(job, m);
  matcher.promises().forget(job);
  const AttemptRecord& record = attempts.open(job, m, std::move(why), ahead_until).record;
  jobs.note_begin(job.record.batch);
  // In a circle, a turn that he is owed has been counted already.
  const bool is_counted = job.user->turn_owed && policies.job->from();
  if (policies.job->wants_grants() && !is_counted) ledger.grant(*job.user);
  if (policies.job->wants_draws()) ledger.draw(*job.user);
  ledger.note_placed(*job.user, changes.now());
  machines.note_slots(m, false);
  job.record.reason.clear();
  job.last_end = EndReason::kNone;
  jobs.set_state(job, JobState::kPlaced);
  matcher.hosts().served(*job.host);
  changes.decide(StartAttempt{record.key, m.record.id, job.record.generation, changes.now(),
                              job.record.user, job.record.checkpoint_bytes, ahead_until != 0});
}

Sentence Pool::State::why_first(const Job& job, const Machine& m) const {
  const Sentence standing = policies.job->standing(*job.user, job.record, changes.now());
  if (job.promised == &m)
    return [standing, name = m.record.name] {
      return "promised to it while it waited: " + standing.text() + "; machine " + name;
    };
  return
      [standing, name = m.record.name, preference = preference_text(matcher.suitability(), job, m),
       reason = policies.machine->reason(job, m, changes.now())] {
        return "first in the queue: " + standing.text() + "; machine " + name + preference +
               reason.text();
      };
}

Sentence Pool::State::why_ahead(const Job& job, const Machine& m) const {
  return [standing = policies.job->standing(*job.user, job.record, changes.now()),
          name = m.record.name] {
    return "first in the queue: " + standing.text() + "; ahead on machine " + name +
           ", whose jobs end at once";
  };
}

// The slot stays occupied until the attempt has ended or its lease has expired.
void Pool::State::tell_to_leave(Attempt& attempt, LeaveReason reason) {
  advance(attempt, AttemptState::kLeaving);
  changes.decide(TellToLeave{attempt.record.key, attempt.machine->record.id, reason});
}

// Never moves back, except that a suspended attempt may run again; a job whose attempt is running
// is running.
void Pool::State::advance(Attempt& attempt, AttemptState state) {
  AttemptRecord& record = attempt.record;
  if (!may_follow(state, record.state)) return;
  const bool resumes = record.state == AttemptState::kSuspended;
  record.state = state;
  const auto move_job = [&](JobState to) {
    if (attempt.job == nullptr) return;
    const JobState from = attempt.job->record.state;
    if (is_at_work(from) && from != JobState::kDelivering) jobs.set_state(*attempt.job, to);
  };
  if (state == AttemptState::kLeaving || state == AttemptState::kDelivering) {
    record.leaving_since = changes.now();
  }
  if (state == AttemptState::kDelivering) move_job(JobState::kDelivering);
  if (state == AttemptState::kSuspended) move_job(JobState::kSuspended);
  // A suspended job that saves and leaves is not suspended any more.
  if (state == AttemptState::kLeaving && attempt.job != nullptr &&
      attempt.job->record.state == JobState::kSuspended)
    move_job(JobState::kRunning);
  if (state == AttemptState::kRunning) {
    if (record.started == 0) record.started = changes.now();
    record.charged_until = resumes ? changes.now() : record.started;
    move_job(JobState::kRunning);
    if (attempt.job != nullptr) jobs.note_started(*attempt.job);
    attempts.wait_ahead(attempt, 0);
  }
  attempts.touch(attempt);
}

// A delivery is waited for as long as it makes progress, however long it takes.
void Pool::State::note_delivery(Attempt& attempt, uint64_t delivered) {
  if (delivered == attempt.delivered) return;
  attempt.delivered = delivered;
  attempt.record.leaving_since = changes.now();
  attempts.touch(attempt);
}

void Pool::State::on(const OrderAnswered& event) {
  Attempt* attempt = attempts.find(event.key.job);
  if (attempt == nullptr || attempt->record.key != event.key) return;
  using Answer = OrderAnswered::Answer;
  if (event.answer == Answer::kAccepted) {
    advance(*attempt, AttemptState::kStaging);
    // Of one that waits for its place not everything has been looked at.
    if (attempt->job != nullptr && !attempt->ahead) note_acceptance(*attempt->job);
  }
  if (event.answer != Answer::kRefused && event.answer != Answer::kNotDelivered) return;
  // An attempt that has started was not refused. (One whose job was removed or held
  // before the machine answered is leaving, and can still be refused.)
  if (attempt->record.started != 0) return;
  Machine& machine = *attempt->machine;
  // If a job is refused repeatedly, the job is at fault: it backs off (return_job) and
  // the machine is available to others at once.
  const bool backs_off =
      attempt->job != nullptr && attempt->job->record.refusals + 1 >= kRefusalsAtOnce;
  if (!backs_off && !attempt->placed_ahead) machines.pause(machine);
  End end{EndReason::kRefused, event.reason};
  if (event.answer == Answer::kNotDelivered && end.reason.empty()) end.reason = "not delivered";
  end.machine_failed = event.machine_failed && !backs_off;
  end_attempt(*attempt, end);
}

Micros backoff_after(uint32_t refusals) {
  if (refusals < kRefusalsAtOnce) return 0;
  return std::min(1u << std::min(refusals - kRefusalsAtOnce, 6u), 60u) * Micros{1'000'000};
}

Micros Pool::State::note_refusal(Job& job) {
  uint32_t& refusals = job.record.refusals;
  if (refusals < std::numeric_limits<uint32_t>::max()) ++refusals;
  const Micros wait = backoff_after(refusals);
  if (wait > 0) job.record.not_before = changes.now() + wait;
  return wait;
}

void Pool::State::note_acceptance(Job& job) {
  if (job.record.refusals == 0) return;
  job.record.refusals = 0;
  job.record.not_before = 0;
  jobs.touch(job);
}

Verdict Pool::State::renew(const Renewed::Status& status, MachineId machine, bool says_waits) {
  Attempt* attempt = attempts.present(status.key, machine);
  if (attempt == nullptr) {
    const Job* job = jobs.live(status.key.job);
    // Processes of an attempt that was given up must be killed; an attempt whose end
    // the machine reported has none left.
    const bool reported =
        newest_of(job, status.key, machine) && job->last_end != EndReason::kRefused &&
        job->last_end != EndReason::kLost && job->last_end != EndReason::kSuperseded;
    return reported ? Verdict::kKnown : Verdict::kSuperseded;
  }
  if (status.state == AttemptState::kDelivering) {
    advance(*attempt, AttemptState::kDelivering);
    // Nobody waits for the outputs of a removed job.
    if (attempt->job != nullptr) note_delivery(*attempt, status.delivered);
  }
  // Its checkpoint has not arrived in time, or its delivery makes no progress: the lease is no
  // longer renewed, so that it expires and the job can continue elsewhere.
  if (attempts.waited_long_enough(*attempt)) return Verdict::kSuperseded;
  if (says_waits) note_waiting(*attempt, status.waits);
  // Its machine neither starts it nor gives it back: the same.
  if (says_waits && status.waits && attempts.is_overdue(*attempt)) return Verdict::kSuperseded;
  attempts.renew(*attempt);
  if (attempt->record.state == AttemptState::kRunning && policies.job->charges_while_running())
    attempts.charge_running(*attempt, std::max(most_unseen(), parameters.lease));
  const bool leaving = attempt->record.state == AttemptState::kLeaving;
  if (leaving && precedes(status.state, AttemptState::kLeaving)) {
    // The machine has not received the order to leave: send it again.
    tell_to_leave(*attempt, reason_to_leave(*attempt));
  }
  // kEnded in a renewal: the report of the end is still to come.
  const bool ended = status.state == AttemptState::kEnded;
  advance(*attempt, ended ? AttemptState::kLeaving : status.state);
  const AttemptRecord& record = attempt->record;
  if (record.state == AttemptState::kRunning && changes.now() - record.started >= kRunsWell)
    machines.note_success(*attempt->machine, record.decided);
  return Verdict::kCounts;
}

namespace {
// If its machine says now that it has run, or ran, for so long.
Micros when_started(const AttemptRecord& record, Micros ran, Micros now) {
  return std::max(record.decided, now - std::max<Micros>(ran, 0));
}
}  // namespace

void Pool::State::on(const AttemptStarted& event) {
  Attempt* attempt = attempts.present(event.key, event.machine);
  changes.answer().accepted = attempt != nullptr;
  const Verdict verdict = attempt != nullptr ? Verdict::kCounts : Verdict::kSuperseded;
  changes.answer().verdicts.emplace_back(event.key, verdict);
  if (attempt == nullptr) return;
  if (attempt->record.started == 0) {  // even if it is leaving by now
    attempt->record.started = when_started(attempt->record, event.ran, changes.now());
    attempts.wait_ahead(*attempt, 0);
    attempts.touch(*attempt);
  }
  advance(*attempt, AttemptState::kRunning);
  if (attempt->job == nullptr) return;
  note_acceptance(*attempt->job);  // OrderAnswered may be lost
  jobs.note_started(*attempt->job);
}

void Pool::State::on(const CheckpointStored& event) {
  Attempt* attempt = attempts.present(event.key, event.machine);
  // The checkpoint of a removed job is never used.
  changes.answer().accepted = attempt != nullptr && attempt->job != nullptr;
  if (!changes.answer().accepted) return;
  if (event.generation > attempt->record.generation) {
    attempt->record.generation = event.generation;
    attempts.touch(*attempt);
  }
  JobRecord& job = attempt->job->record;
  if (event.generation <= job.generation) return;
  job.generation = event.generation;
  job.checkpoint_bytes = event.bytes;
  jobs.touch(*attempt->job);
}

void Pool::State::on(const CheckpointDamaged& event) {
  Attempt* attempt = attempts.present(event.key, event.machine);
  changes.answer().accepted = attempt != nullptr && attempt->job != nullptr &&
                              attempt->job->record.generation == event.generation &&
                              event.usable < event.generation;
  if (!changes.answer().accepted) return;
  JobRecord& job = attempt->job->record;
  job.generation = event.usable;
  job.checkpoint_bytes = event.bytes;
  attempt->record.resumed_generation = event.usable;
  job.reason = "checkpoint generation " + std::to_string(event.generation) +
               " was damaged in the spool: resuming from ";
  if (event.usable > 0) {
    job.reason += "generation " + std::to_string(event.usable);
  } else {
    // Only here: the CPU time saved in an older generation is not recorded.
    job.reason += "the beginning";
    job.cpu_lost += job.cpu_kept;
    job.cpu_kept = 0;
  }
  attempts.touch(*attempt);
  jobs.touch(*attempt->job);
}

void Pool::State::on(const AttemptEnded& event) {
  Attempt* attempt = attempts.present(event.key, event.machine);
  if (attempt == nullptr || event.ended == EndReason::kNone) {
    const Job* job = jobs.live(event.key.job);
    const bool again = attempt == nullptr && newest_of(job, event.key, event.machine) &&
                       job->last_end == event.ended;
    changes.answer().accepted = false;
    changes.answer().verdicts.emplace_back(event.key,
                                           again ? Verdict::kKnown : Verdict::kSuperseded);
    return;
  }
  changes.answer().verdicts.emplace_back(event.key, Verdict::kCounts);
  // A short one's end may overtake the report of its start.
  AttemptRecord& record = attempt->record;
  if (event.started && record.started == 0)
    record.started = when_started(record, event.wall, changes.now());
  if (event.ended == EndReason::kRefused && !attempt->placed_ahead)
    machines.pause(*attempt->machine);
  End end{event.ended,
          event.reason,
          event.cpu,
          event.cpu_saved,
          event.wall,
          event.left,
          event.started || record.started != 0,
          event.memory_peak,
          event.alike};
  end.staging = event.staging;
  end.reported = true;
  end_attempt(*attempt, end);
}

// The only place where attempts end: writes the records, charges the user, frees the
// slot and returns the job.
void Pool::State::end_attempt(Attempt& attempt, const End& end) {
  const Cost cost = cost_of(end.ended, end.cpu, end.cpu_saved, parameters.charge_all);
  const Micros held = std::max<Micros>(end.wall, 0) * static_cast<Micros>(attempt.reserved.cores);
  Micros charge = policies.job->charge(cost, held);
  // Nobody has reported what it used.
  if (cost.in_full && end.wall <= 0) charge = std::max(charge, attempt.record.charged);
  AttemptRecord& record = attempt.record;
  record.state = AttemptState::kEnded;
  record.ended = end.ended;
  const bool gave_way = end.ended == EndReason::kPreempted && record.preempted_for != 0;
  record.reason = end_text(end.ended, gave_way ? record.reason.text() : end.reason);
  record.finished = changes.now();
  record.cpu = cost.used;
  record.cpu_lost = cost.lost;
  const Micros waited_until = record.started != 0 ? record.started : changes.now();
  changes.add(UseRecord{record.key, attempt.submitter, attempt.machine->record.id, attempt.batch,
                        end.ended, changes.now(), std::max<Micros>(end.wall, 0), cost.used,
                        cost.kept, cost.lost, charge, record.started,
                        record.ready != 0 ? waited_until - record.ready : 0});
  judge_machine(attempt, end);
  Attempt ended = attempts.close(attempt);
  jobs.note_end(ended.batch);
  if (ended.user != nullptr) {
    attempts.settle(ended, charge);
    if (ended.user->attempts == 0) ledger.note_loss(*ended.user);
  }
  note_turn(ended, end);
  machines.note_slots(*ended.machine, true);
  if (ended.job != nullptr) return_job(*ended.job, ended, end, cost);
  note_capacity();
  changes.add(std::move(ended.record));
}

void Pool::State::judge_machine(const Attempt& attempt, const End& end) {
  Machine& machine = *attempt.machine;
  auto failure = is_failure_of_machine(attempt, end, changes.now());
  // By submitter, not by account: each user's job that cannot be started is separate evidence.
  const std::string& submitter = attempt.submitter;
  const bool unstarted = is_unstarted(end.ended) && !submitter.empty();
  if (unstarted && machines.note_unstarted(machine, submitter)) failure = true;
  if (!failure) return;
  const Micros decided = attempt.record.decided;
  if (*failure) {
    machines.note_failure(machine, decided, attempt.record.reason.text());
    settle_ahead(machine);
  } else {
    machines.note_success(machine, decided);
  }
}

void Pool::State::return_job(Job& job, const Attempt& attempt, const End& end, const Cost& cost) {
  JobRecord& record = job.record;
  job.last_end = end.ended;
  job.last_machine = attempt.machine->record.id;
  // All of it ran here.
  if (end.ended == EndReason::kDone && record.cpu_kept == 0 &&
      attempt.record.resumed_generation == 0)
    programs.note_run(record.program, attempt.machine->record, cost.used);
  record.cpu_kept += cost.kept;
  record.cpu_lost += cost.lost;
  jobs.touch(job);
  if (end.started) jobs.note_started(job);
  // Then it has been nowhere: it waits again as if it had not been placed.
  const bool came_back =
      attempt.placed_ahead && attempt.record.started == 0 && !end.started && !is_failure(end.ended);
  const bool refused = end.ended == EndReason::kRefused && !came_back;
  const Micros wait = refused ? note_refusal(job) : 0;
  const bool held = record.state == JobState::kHeld || record.state == JobState::kWaiting;
  if (held && end.ended != EndReason::kDone) {
    // Held meanwhile (and perhaps released): the job keeps that state; only the
    // attempt records how it ended. A job that is done is done.
    note_growth(job, attempt, end);
    if (!came_back && !refused) jobs.note_returned(job);
    if (record.state == JobState::kWaiting) jobs.enqueue(job);
    return;
  }
  record.reason = "attempt " + std::to_string(record.attempts) + " " + attempt.record.reason.text();
  if (wait > 0) record.reason = refusals_text(record.refusals, end.reason) + again_in(wait);
  const bool failed = is_failure(end.ended);
  if (end.ended == EndReason::kDone || (failed && record.retries_left == 0)) {
    jobs.set_state(job, failed ? JobState::kFailed : JobState::kDone, end.ended);
    return count_end(job, end.left);
  }
  note_growth(job, attempt, end);
  if (failed) --record.retries_left;
  if (is_eviction(end.ended) && !came_back) ++record.evictions;
  if (const auto in_vain = was_in_vain(attempt, end)) record.vain = *in_vain ? record.vain + 1 : 0;
  const bool hold = record.vain >= kMostInVain;
  const char* const how = end.ended == EndReason::kSaved ? "ended to be run again"
                                                         : "vanished or were evicted within 2 s";
  if (hold)
    record.reason = "held: " + std::to_string(record.vain) + " attempts in a row " + how +
                    ", and saved nothing; " + record.reason;
  jobs.set_state(job, hold ? JobState::kHeld : JobState::kWaiting, end.ended);
  if (!came_back && !refused) jobs.note_returned(job);
  if (came_back) give_turn_back(job);
  if (!hold) jobs.enqueue(job);
}

void Pool::State::give_turn_back(Job& job) {
  ledger.owe_turn(*job.user);
  matcher.hosts().return_turn(*job.host);
}

// Ends an attempt that was not renewed in time; the reason differs if that was because
// an announced checkpoint, or outputs, did not arrive.
void Pool::State::expire(Attempt& attempt) {
  if (!attempts.waited_long_enough(attempt)) {
    const char* what = attempts.is_overdue(attempt) ? " neither started it nor gave it back"
                                                    : " did not renew its lease";
    return end_attempt(attempt,
                       {EndReason::kLost, "machine " + attempt.machine->record.name + what});
  }
  if (attempt.job == nullptr) {
    return end_attempt(attempt, {EndReason::kSuperseded, "its end was never reported"});
  }
  const bool delivering = attempt.record.state == AttemptState::kDelivering;
  end_attempt(attempt,
              {EndReason::kSuperseded, std::string(delivering ? "its outputs" : "checkpoint") +
                                           " did not arrive: resuming from generation " +
                                           std::to_string(attempt.job->record.generation)});
}

}  // namespace sublet::scheduling
