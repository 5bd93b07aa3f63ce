#include "loadmon/attempts.h"

#include <algorithm>

#include "base/log.h"
#include "protocol/leaving.h"

namespace sublet::loadmon {
namespace {
// After its save deadline a job has this long to be gone.
constexpr int64_t kGrace = 1'000'000'000;
// How often a leaving job's shepherd is checked.
constexpr int64_t kLookAgain = 300'000'000;
// A killed job that still exists (a process was just being created) is killed again.
constexpr int64_t kAgain = 100'000'000;
// Heartbeats that the shepherd of a job that stays may leave unanswered: 2 s.
constexpr int kMostUnanswered = 8;

const char* words(Attempt::Kill why) {
  switch (why) {
    case Attempt::Kill::silent:
      return "its shepherd did not answer";
    case Attempt::Kill::stopped:
      return "its shepherd was stopped";
    case Attempt::Kill::late:
      return "it was still running after its save deadline";
    case Attempt::Kill::shepherd_lost:
      return "its shepherd is gone";
    case Attempt::Kill::unattended:
      return "it has no shepherd";
    case Attempt::Kill::none:
      break;
  }
  return "";
}
}  // namespace

Attempt* Attempts::find(uint64_t job, uint32_t attempt) const noexcept {
  for (const auto& known : attempts_) {
    if (known->job == job && known->attempt == attempt) return known.get();
  }
  return nullptr;
}

Attempt* Attempts::add(uint64_t job, uint32_t attempt, int64_t now) {
  auto added = std::make_unique<Attempt>();
  added->job = job;
  added->attempt = attempt;
  added->found_at = now;
  attempts_.push_back(std::move(added));
  return attempts_.back().get();
}

void Attempts::ended(Attempt* attempt) {
  report(*attempt);
  std::erase_if(attempts_, [&](const auto& known) { return known.get() == attempt; });
}

void Attempts::ended_before(pid_t shepherd, const Attempt* present) {
  std::erase_if(attempts_, [&](const auto& known) {
    return known.get() != present && !known->attended && !known->roots.empty() &&
           known->roots.front() == shepherd;
  });
}

void Attempts::ask(Attempt* attempt, const sublet_frame& frame, int64_t now, int64_t due) noexcept {
  const bool may_stay = frame.state == SUBLET_PRESENCE_ACTIVE &&
                        sublet_may_stay(static_cast<sublet_presence_reason>(frame.reason));
  const bool again = attempt->stage == Attempt::Stage::asked;
  const bool stricter = again && attempt->may_stay && !may_stay;
  if (!stricter && attempt->stage != Attempt::Stage::unasked &&
      attempt->stage != Attempt::Stage::staying)
    return;
  attempt->stage = Attempt::Stage::asked;
  attempt->sequence = frame.sequence;
  attempt->may_stay = may_stay;
  if (again) return;
  attempt->asked_at = now;
  attempt->due = due;
}

void Attempts::ask_unattended(const sublet_frame& frame, int64_t now, int64_t due) noexcept {
  for (const auto& attempt : attempts_) {
    if (!attempt->attended) ask(attempt.get(), frame, now, due);
  }
}

void Attempts::acknowledged(Attempt* attempt, const sublet_frame& ack, int64_t now) noexcept {
  const bool stayed = attempt->stage == Attempt::Stage::staying;
  if (attempt->stage != Attempt::Stage::asked && !stayed) return;
  if (static_cast<int32_t>(ack.sequence - attempt->sequence) < 0) return;
  const bool stays =
      ack.state == SUBLET_SHEPHERD_SUSPENDED || ack.state == SUBLET_SHEPHERD_LINGERING;
  if (stays && attempt->may_stay && attempt->can_stay) {
    attempt->unanswered = 0;
    attempt->lingers = ack.state == SUBLET_SHEPHERD_LINGERING;
    if (!stayed) attempt->due = now + kLookAgain;
    attempt->stage = Attempt::Stage::staying;
    return;
  }
  if (stayed) attempt->asked_at = now;
  attempt->stage = Attempt::Stage::leaving;
  set_save_deadline(attempt, attempt->save_ms);
}

void Attempts::reminded(Attempt* attempt) noexcept {
  if (attempt->stage == Attempt::Stage::staying) ++attempt->unanswered;
}

void Attempts::owner_away() noexcept {
  for (const auto& attempt : attempts_)
    if (attempt->stage == Attempt::Stage::staying) attempt->stage = Attempt::Stage::unasked;
}

bool Attempts::anyone_stays() const noexcept {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const auto& attempt) { return attempt->stage == Attempt::Stage::staying; });
}

void Attempts::set_save_deadline(Attempt* attempt, int64_t ms) noexcept {
  attempt->save_ms = ms;
  if (attempt->stage != Attempt::Stage::leaving) return;
  attempt->deadline = attempt->asked_at + ms * 1'000'000 + kGrace;
  attempt->due = std::min(attempt->due, attempt->deadline);
}

bool Attempts::anyone_lingers() const noexcept {
  return std::any_of(attempts_.begin(), attempts_.end(), [](const auto& attempt) {
    return attempt->stage == Attempt::Stage::staying && attempt->lingers;
  });
}

void Attempts::end(Attempt* attempt, Attempt::Kill why, int64_t now) noexcept {
  attempt->stage = Attempt::Stage::killed;
  attempt->due = now + kAgain;
  if (attempt->kill == Attempt::Kill::none) attempt->kill = why;
  if (!attempt->hold) return;
  // Freeze it first, so that it stops using the machine at once.
  attempt->hold->freeze();
  attempt->hold->kill();
}

void Attempts::shepherd_lost(Attempt* attempt, int64_t now) noexcept {
  attempt->attended = false;
  if (attempt->hold && !attempt->hold->gone()) end(attempt, Attempt::Kill::shepherd_lost, now);
}

// A shepherd that is stopped after its acknowledgement enforces neither the CPU allowance
// nor the deadline.
void Attempts::check_leaving(Attempt* attempt, int64_t now) noexcept {
  if (now >= attempt->deadline) return end(attempt, Attempt::Kill::late, now);
  if (attempt->hold && attempt->hold->shepherd_stopped())
    return end(attempt, Attempt::Kill::stopped, now);
  attempt->due = std::min(now + kLookAgain, attempt->deadline);
}

// A suspended job is frozen, and one that lingers has little weight: it does no harm at once if
// its shepherd cannot answer.
void Attempts::check_staying(Attempt* attempt, int64_t now) noexcept {
  if (attempt->hold && attempt->hold->shepherd_stopped())
    return end(attempt, Attempt::Kill::stopped, now);
  if (attempt->unanswered > kMostUnanswered) return end(attempt, Attempt::Kill::silent, now);
  attempt->due = now + kLookAgain;
}

void Attempts::enforce(int64_t now) noexcept {
  for (const auto& attempt : attempts_) {
    if (attempt->stage == Attempt::Stage::unasked || now < attempt->due) continue;
    if (attempt->hold && attempt->hold->gone()) {
      attempt->due = kNever;
    } else if (attempt->stage == Attempt::Stage::killed) {
      end(attempt.get(), attempt->kill, now);
    } else if (attempt->stage == Attempt::Stage::leaving) {
      check_leaving(attempt.get(), now);
    } else if (attempt->stage == Attempt::Stage::staying) {
      check_staying(attempt.get(), now);
    } else {
      end(attempt.get(), attempt->attended ? Attempt::Kill::silent : Attempt::Kill::unattended,
          now);
    }
  }
}

int64_t Attempts::due() const noexcept {
  int64_t due = kNever;
  for (const auto& attempt : attempts_) {
    if (attempt->stage != Attempt::Stage::unasked) due = std::min(due, attempt->due);
  }
  return due;
}

void Attempts::report(Attempt& attempt) {
  if (attempt.kill == Attempt::Kill::none || attempt.reported) return;
  attempt.reported = true;
  log(attempt.hold ? Severity::warning : Severity::error)
      << "attempt " << attempt.job << "." << attempt.attempt
      << (attempt.hold ? " killed: " : " must be killed, but its folder cannot be read: ")
      << words(attempt.kill);
}

void Attempts::tidy(int64_t now) {
  for (const auto& attempt : attempts_) report(*attempt);
  std::erase_if(attempts_, [](const auto& attempt) {
    return !attempt->attended && (attempt->ended || !attempt->hold || attempt->hold->gone());
  });
  for (const auto& attempt : attempts_) {
    if (attempt->attended || attempt->noted || now - attempt->found_at < kGrace) continue;
    attempt->noted = true;
    log(Severity::warning) << "attempt " << attempt->job << "." << attempt->attempt
                           << " runs without a shepherd";
  }
}

}  // namespace sublet::loadmon
