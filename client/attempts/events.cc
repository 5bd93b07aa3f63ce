// The part of Attempts that handles the results of tasks.
#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "client/attempts/attempts.h"

namespace sublet::client {

using namespace protocol;

TaskEvents Attempts::events() {
  TaskEvents e;
  auto to_loop = [this](void (Attempts::*handler)(const WorkPtr&)) {
    return [this, handler](const WorkPtr& work) {
      loop_.post([this, handler, work] { (this->*handler)(work); });
    };
  };
  e.staged = to_loop(&Attempts::on_staged);
  e.staging_failed = [this](const WorkPtr& work, EndCode end, const std::string& reason) {
    loop_.post([=, this] { on_staging_failed(work, end, reason); });
  };
  e.shepherd_started = [this](const WorkPtr& work, const GivenAttempt& given) {
    loop_.post([=, this] { on_started(work, given); });
  };
  e.shepherd_failed = [this](const WorkPtr& work, EndCode end, const std::string& reason) {
    loop_.post([=, this] { on_start_failed(work, end, reason); });
  };
  e.cleared = to_loop(&Attempts::on_cleared);
  e.checkpoint_done = [this](const WorkPtr& work, uint64_t generation) {
    loop_.post([=, this] { on_checkpoint_done(work, generation); });
  };
  e.handed_in = to_loop(&Attempts::on_handed_in);
  e.ended = to_loop(&Attempts::on_ended);
  e.vanished = to_loop(&Attempts::on_vanished);
  e.still_alive = to_loop(&Attempts::on_still_alive);
  e.removed = to_loop(&Attempts::on_removed);
  return e;
}

void Attempts::on_staged(const WorkPtr& work) {
  Entry* entry = find(work);
  if (entry == nullptr) return;
  apply(*entry, entry->machine.staged(), why_left(*entry));
}

void Attempts::on_staging_failed(const WorkPtr& work, EndCode end, const std::string& reason) {
  Entry* entry = find(work);
  if (entry == nullptr) return;
  bool left = entry->machine.state() == AttemptState::kLeaving;
  apply(*entry, entry->machine.staging_failed(end == kEndNone ? kEndStaging : end),
        left ? why_left(*entry) : reason);
}

void Attempts::on_started(const WorkPtr& work, const GivenAttempt& given) {
  if (Entry* entry = find(work)) {
    // It may have ended since, and been reaped.
    const bool is_child =
        given.is_new || std::ranges::find(children_, given.shepherd) != children_.end();
    entry->shepherd = is_child ? given.shepherd : 0;
    const int restarts = work->restarts;
    if (restarts != entry->restarts) entry->checking = entry->check_again = false;
    entry->restarts = restarts;
    apply(*entry, entry->machine.shepherd_started());
    if (entry->tenancy) connected(*entry, std::move(*given.control), system_clock().boot_ns());
  }
  if (given.is_new) child_started(given.shepherd);
}

void Attempts::on_start_failed(const WorkPtr& work, EndCode end, const std::string& reason) {
  Entry* entry = find(work);
  if (entry == nullptr) return;
  bool left = entry->machine.state() == AttemptState::kLeaving;
  apply(*entry, entry->machine.shepherd_failed(end), left ? why_left(*entry) : reason);
}

void Attempts::on_cleared(const WorkPtr& work) {
  Entry* entry = find(work);
  if (entry == nullptr) return;
  entry->killing = false;
  apply(*entry, entry->machine.cleared());
}

void Attempts::on_checkpoint_done(const WorkPtr& work, uint64_t generation) {
  if (Entry* entry = find(work)) {
    plan_copies(*entry);
    apply(*entry, entry->machine.checkpoint_done(generation, system_clock().boot_ns() / 1'000'000));
  }
  if (generation != 0) changed_();
}

void Attempts::on_handed_in(const WorkPtr& work) {
  if (work->end.end == kEndBlind && evicting_ == SUBLET_LEAVE_NONE) blind_();
  if (Entry* entry = find(work)) apply(*entry, entry->machine.handed_in());
}

// Before the task that finds the end: from then on it is the task's.
void Attempts::keep_seen(Entry& entry) {
  if (entry.tenancy && entry.machine.holds_slot()) entry.work->seen = entry.tenancy->seen;
}

void Attempts::on_ended(const WorkPtr& work) {
  Entry* entry = find(work);
  if (entry == nullptr) return;
  entry->checking = false;
  keep_seen(*entry);
  apply(*entry, entry->machine.ended());
}

void Attempts::on_vanished(const WorkPtr& work) {
  Entry* entry = find(work);
  if (entry == nullptr) return;
  entry->checking = false;
  std::string reason = "Its shepherd vanished without an exit record.";
  if (entry->machine.leave_reason() != SUBLET_LEAVE_NONE) reason = why_left(*entry) + " " + reason;
  keep_seen(*entry);
  apply(*entry, entry->machine.vanished(), reason);
}

void Attempts::on_removed(const WorkPtr& work) {
  Entry* entry = find(work);
  if (entry == nullptr) return;
  drop_tenant(*entry);
  const AttemptEnd& end = work->end;
  // The reason of an eviction says all that its name says.
  const bool named = end.end != kEndNone && (end.reason.empty() || !is_eviction(end.end));
  log(Severity::info) << work->label() << " is over" << (named ? ": " + end_name(end.end) : "")
                      << (end.reason.empty() ? "" : ". " + end.reason);
  delivered_by_forgotten_ += work->delivered;
  entries_.erase(work->assignment->name);
  changed_();
}

}  // namespace sublet::client
