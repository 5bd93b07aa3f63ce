// Attempts ahead: a machine whose jobs end quickly is given some beyond its places, which it starts
// one after the other without asking anybody. Each takes the place of an attempt that ends before
// it, and what that one had reserved: so it needs no more than any of those there, no licence and
// nothing else by name, and it may start at any hour. The next waiting job is placed ahead or none
// is: so nobody is overtaken. It counts towards its user's limits at once, and its cores do when it
// has its place.
#include <algorithm>
#include <optional>

#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {

bool takes_more(const Machine& m) {
  return m.ahead.held < std::min(m.ahead.most, m.ahead.short_runs) && m.away && !m.silent &&
         !is_gone(m) && !m.record.draining && !rests(m) && m.paused_until == 0 &&
         m.promised_to == nullptr && places_taken(m) >= places_of(m) && is_within_offer(m) &&
         // Its client knows of its slots only: it would start them in those that the pool's limit
         // leaves free.
         places_of(m) == m.record.slots;
}

bool ended_by_itself(EndReason ended) { return ended == EndReason::kDone || is_failure(ended); }

// It kept its slot for a short time only: what another waits for behind it.
bool was_short(const Pool::State::End& end, Micros short_run) {
  const Micros run = std::max<Micros>(end.wall, 0);
  return ended_by_itself(end.ended) && short_run > 0 && run <= short_run &&
         end.staging <= short_run - run;
}

// How many such jobs the machine ends within short_run: nobody is to wait there for longer, neither
// they nor who comes after them.
uint32_t soon_over(const Machine& m, const Pool::State::End& end, Micros short_run) {
  const Micros held = std::max<Micros>(end.wall, 0) + std::max<Micros>(end.staging, 0);
  const Micros turns = short_run / std::max<Micros>(held, 1);
  return static_cast<uint32_t>(std::min<Micros>(turns * m.record.slots, m.ahead.most));
}

}  // namespace

void Pool::State::note_turn(const Attempt& ended, const End& end) {
  Machine& m = *ended.machine;
  if (end.started) {
    m.ahead.last_end = changes.now();
    const bool is_short = was_short(end, parameters.short_run);
    m.ahead.short_runs =
        is_short ? std::min(m.ahead.short_runs + 1, soon_over(m, end, parameters.short_run)) : 0;
  } else if (ended.placed_ahead) {
    m.ahead.short_runs = 0;
  }
  attempts.take_places(m);
  turned.push_back(&m);
}

void Pool::State::place_ahead() {
  for (Machine* machine : turned) place_ahead(*machine);
  turned.clear();
}

void Pool::State::place_ahead(Machine& m) {
  if (jobs.waiting() == 0 || !takes_more(m)) return;
  std::optional<Amounts> room;  // that becomes free, whichever ends
  for (const JobId id : m.running) {
    const Attempt& attempt = *attempts.find(id);
    if (!attempt.named.empty()) return;
    room = room ? least(*room, attempt.reserved) : attempt.reserved;
  }
  while (room && takes_more(m)) {
    Job* job = matcher.next_for(m, *room, changes.now());
    if (job == nullptr) return;
    room = least(*room, amounts_of(job->record.needs));
    place(*job, m, changes.now() + parameters.ahead_wait);
  }
}

void Pool::State::recall(Attempt& attempt) {
  const bool leaves = !precedes(attempt.record.state, AttemptState::kLeaving);
  const Micros until = attempt.machine->ahead.last_end + parameters.ahead_wait;
  if (!leaves && until > changes.now()) return attempts.wait_ahead(attempt, until);
  attempt.machine->ahead.short_runs = 0;
  if (leaves) return attempts.wait_ahead(attempt, 0);
  call_back(attempt);
}

// Its machine may have started it, and what comes before it may have ended, without the server
// knowing yet: then it goes on. So its state is as before, and it is asked again if nothing comes
// of it.
void Pool::State::call_back(Attempt& attempt) {
  attempts.call_back(attempt);
  changes.decide(
      TellToLeave{attempt.record.key, attempt.machine->record.id, LeaveReason::kUnstarted});
}

// One with a slot has begun there, however long it fetches its files before its program starts. One
// without waits to be called back, whatever place the server takes it to have.
void Pool::State::note_waiting(Attempt& attempt, bool waits) {
  const bool leaves = !precedes(attempt.record.state, AttemptState::kLeaving);
  if (!waits) return attempts.wait_ahead(attempt, 0);
  attempt.placed_ahead = true;
  if (attempt.ahead_until == 0 && attempt.record.started == 0 && !leaves)
    attempts.wait_ahead(attempt, changes.now() + parameters.ahead_wait);
}

void Pool::State::settle_ahead(Machine& m) {
  if (m.ahead.held == 0) return;
  attempts.take_places(m);
  if (m.record.draining || rests(m) || places_of(m) != m.record.slots) recall_ahead(m);
}

void Pool::State::recall_ahead(Machine& m) {
  for (const JobId id : m.running) {
    Attempt& attempt = *attempts.find(id);
    const bool leaves = !precedes(attempt.record.state, AttemptState::kLeaving);
    if (attempt.ahead && attempt.record.started == 0 && !leaves) call_back(attempt);
  }
}

}  // namespace sublet::scheduling
