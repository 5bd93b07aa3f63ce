#include "client/attempts/owner_guard.h"

#include <sys/socket.h>

#include <algorithm>

namespace sublet::client {
namespace {

constexpr int64_t kMs = 1'000'000;
// Beyond the save deadline, which the shepherd enforces.
constexpr int64_t kKillSlackNs = 200 * kMs;
constexpr int64_t kKillAgainNs = 20 * kMs;
constexpr int64_t kCheckAgainNs = 500 * kMs;

bool is_owner(sublet_leave_reason reason) {
  return reason == SUBLET_LEAVE_OWNER || reason == SUBLET_LEAVE_BLIND;
}

// An attempt is asked to leave. The first cause counts, but the owner replaces any other.
void note_cause(sublet_leave_reason reason, const OwnersPresence& presence, int64_t now,
                Tenancy* tenancy) {
  constexpr int64_t kOldest = 60'000 * kMs;  // an older instant is of an earlier return
  SeenEviction& seen = tenancy->seen;
  if (tenancy->kill_due_ns == kNever && seen.gone == 0) seen = {.sensed = now};
  if (!is_owner(reason) || seen.reason != SUBLET_PRESENCE_NONE) return;
  const bool recent =
      presence.instant != 0 && presence.instant <= now && presence.instant > now - kOldest;
  seen.sensed = recent ? presence.instant : now;
  seen.reason = presence.reason;
}

}  // namespace

Tenancy* OwnerGuard::add(const AttemptName& name, int64_t save_deadline_ms) {
  tenancies_.push_back(std::make_unique<Tenancy>());
  tenancies_.back()->name = name;
  tenancies_.back()->save_deadline_ms = save_deadline_ms;
  return tenancies_.back().get();
}

void OwnerGuard::remove(Tenancy* tenancy) {
  std::erase_if(tenancies_, [&](const auto& one) { return one.get() == tenancy; });
}

bool OwnerGuard::send(Tenancy& tenancy, sublet_frame_kind kind, uint32_t reason, int64_t instant,
                      const OwnersPresence& presence) {
  if (!tenancy.control.valid()) return false;
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = static_cast<uint16_t>(kind);
  frame.job = tenancy.name.job;
  frame.attempt = tenancy.name.attempt;
  frame.sequence = ++tenancy.sequence;
  frame.reason = reason;
  frame.state = presence.state;
  frame.arg[0] = kind == SUBLET_FRAME_QUERY ? 1 : 0;  // takes MESSAGE
  frame.arg[1] = presence.reason;
  frame.instant = instant;
  return ::send(tenancy.control.get(), &frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof frame);
}

void OwnerGuard::urge(Tenancy& tenancy, sublet_frame_kind kind, sublet_leave_reason reason,
                      int64_t now, const OwnersPresence& presence) {
  // The deadlines are set even if sending fails: the job of a shepherd that cannot be
  // reached is frozen and killed, too.
  send(tenancy, kind, reason, now, presence);
  note_cause(reason, presence, now, &tenancy);
  int64_t save_ns = kind == SUBLET_FRAME_KILL ? 0 : tenancy.save_deadline_ms * kMs;
  tenancy.asked = tenancy.sequence;
  tenancy.awaiting = true;
  tenancy.must_leave =
      !(reason == SUBLET_LEAVE_OWNER && kind == SUBLET_FRAME_VACATE) || presence.is_strict();
  if (kind == SUBLET_FRAME_KILL || is_owner(reason)) {
    tenancy.ack_due_ns = std::min<int64_t>(tenancy.ack_due_ns, now + SUBLET_SHEPHERD_ACK_NS);
    tenancy.look_due_ns = now + SUBLET_SHEPHERD_ACK_NS;
  }
  tenancy.kill_due_ns = std::min(
      tenancy.kill_due_ns, now + std::max<int64_t>(save_ns, SUBLET_SHEPHERD_ACK_NS) + kKillSlackNs);
}

void OwnerGuard::evict(sublet_leave_reason reason, const OwnersPresence& presence, int64_t now) {
  for (const auto& tenancy : tenancies_) {
    const bool strict = presence.is_strict();
    if (tenancy->evicting && (tenancy->evicting_strictly || !strict)) continue;
    tenancy->evicting = true;
    tenancy->evicting_strictly = strict;
    tenancy->stays = false;
    urge(*tenancy, SUBLET_FRAME_VACATE, reason, now, presence);
  }
}

// Who has not answered is still awaited, and killed if no answer comes.
void OwnerGuard::owner_away() {
  for (const auto& tenancy : tenancies_) {
    if (!tenancy->stays && !tenancy->is_undecided()) continue;
    tenancy->evicting = tenancy->stays = false;
    if (!tenancy->awaiting) tenancy->look_due_ns = kNever;
  }
}

void OwnerGuard::leaves(Tenancy& tenancy, int64_t now) {
  tenancy.stays = false;
  note_cause(SUBLET_LEAVE_NONE, {}, now, &tenancy);
  tenancy.look_due_ns = now + SUBLET_SHEPHERD_ACK_NS;
  tenancy.kill_due_ns =
      std::min(tenancy.kill_due_ns, now + tenancy.save_deadline_ms * kMs + kKillSlackNs);
}

void OwnerGuard::acknowledged(Tenancy& tenancy, const sublet_frame& ack) {
  if (tenancy.asked == 0 || ack.sequence < tenancy.asked) return;
  tenancy.awaiting = false;
  tenancy.ack_due_ns = kNever;
  const bool stays =
      ack.state == SUBLET_SHEPHERD_SUSPENDED || ack.state == SUBLET_SHEPHERD_LINGERING;
  if (stays && !tenancy.must_leave && !tenancy.killed) {
    tenancy.stays = tenancy.evicting;
    tenancy.kill_due_ns = kNever;
    tenancy.seen = {};
    if (!tenancy.evicting) tenancy.look_due_ns = kNever;
  }
  if (!tenancy.frozen || tenancy.killed || !tenancy.tenant) return;
  if (ack.state != SUBLET_SHEPHERD_SUSPENDED) tenancy.tenant->thaw();
  tenancy.frozen = false;
  tenancy.seen.frozen = 0;
}

// A shepherd that is stopped after its acknowledgement enforces neither the CPU
// allowance nor the deadline.
bool OwnerGuard::stopped_since(Tenancy& tenancy, int64_t now) {
  if (now < tenancy.look_due_ns) return false;
  tenancy.look_due_ns = now + SUBLET_SHEPHERD_ACK_NS;
  if (tenancy.frozen || !tenancy.tenant->shepherd_stopped()) return false;
  // When it continues, its acknowledgement of this frame thaws the job.
  send(tenancy, SUBLET_FRAME_VACATE, SUBLET_LEAVE_OWNER, now);
  tenancy.asked = tenancy.sequence;
  tenancy.awaiting = tenancy.must_leave = true;
  return true;
}

bool OwnerGuard::enforce(Tenancy& tenancy, int64_t now) {
  if (!tenancy.tenant) return false;
  bool first = false;
  if (now >= tenancy.ack_due_ns || stopped_since(tenancy, now)) {
    tenancy.ack_due_ns = kNever;
    tenancy.tenant->freeze();
    first = !tenancy.frozen;
    tenancy.frozen = true;
    if (tenancy.seen.frozen == 0) tenancy.seen.frozen = now;
  }
  if (now < tenancy.kill_due_ns) {
    // The monitor may have killed it. The look takes time, and must not delay another's freeze.
    if (!first && tenancy.frozen && tenancy.seen.gone == 0 && tenancy.tenant->gone())
      tenancy.seen.gone = now;
    return first;
  }
  tenancy.look_due_ns = kNever;
  if (tenancy.tenant->gone()) {
    if (tenancy.seen.gone == 0) tenancy.seen.gone = now;
    // The job has ended, and its shepherd may still be writing the exit record:
    // killing it would throw away a finished job. kill() spares a shepherd unless it
    // is stopped and would never write the record.
    tenancy.kill_due_ns = tenancy.tenant->shepherd_gone() ? kNever : now + kCheckAgainNs;
    tenancy.tenant->kill();
    return first;
  }
  tenancy.kill_due_ns = now + kKillAgainNs;
  tenancy.tenant->kill();
  first = first || !tenancy.killed;
  tenancy.killed = true;
  return first;
}

bool OwnerGuard::tick(int64_t now) {
  bool first = false;
  for (const auto& tenancy : tenancies_) first = enforce(*tenancy, now) || first;
  return first;
}

int64_t OwnerGuard::next_due() const {
  int64_t due = kNever;
  for (const auto& tenancy : tenancies_)
    if (tenancy->tenant)
      due = std::min({due, tenancy->ack_due_ns, tenancy->look_due_ns, tenancy->kill_due_ns});
  return due;
}

}  // namespace sublet::client
