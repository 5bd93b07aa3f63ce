// The part of Attempts that talks to shepherds: connecting, frames, ends.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint-api/sublet_status.h"
#include "client/attempts/attempts.h"

namespace sublet::client {
namespace {

using namespace protocol;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kLastConnectNs = 50 * kMs;
// After this many failed connects the folder is checked again.
constexpr int kConnectsBeforeLook = 5;
constexpr int64_t kTenantAgainNs = 200 * kMs;
constexpr int64_t kTenantSoonNs = 20 * kMs;  // while the owner is waiting

int64_t now_ns() { return system_clock().boot_ns(); }

}  // namespace

void Attempts::try_connect(Entry& entry, int64_t now) {
  try {
    connected(entry, connect_control(entry.work->folder), now);
  } catch (const OsError&) {
    entry.connect_due_ns = now + entry.connect_pause_ns;
    entry.connect_pause_ns = std::min(entry.connect_pause_ns * 2, kLastConnectNs);
    if (++entry.connects >= kConnectsBeforeLook) {
      entry.connect_due_ns = kNever;
      check_end(entry);
    }
  }
}

void Attempts::connected(Entry& entry, UniqueFd socket, int64_t now) {
  disconnect(entry);  // from a shepherd that has ended
  entry.tenancy->control = std::move(socket);
  entry.connect_due_ns = kNever;
  AttemptName name = entry.work->assignment->name;
  loop_.watch(entry.tenancy->control.get(), [this, name] { read_control(name); });
  if (evicting_ != SUBLET_LEAVE_NONE || entry.machine.state() == AttemptState::kLeaving) {
    sublet_leave_reason reason =
        evicting_ != SUBLET_LEAVE_NONE ? evicting_ : entry.machine.leave_reason();
    bool kill = reason == SUBLET_LEAVE_REMOVED || reason == SUBLET_LEAVE_REPLACED ||
                entry.machine.is_superseded();
    guard_.urge(*entry.tenancy, kill ? SUBLET_FRAME_KILL : SUBLET_FRAME_VACATE, reason, now,
                presence_);
    entry.tenancy->evicting = evicting_ != SUBLET_LEAVE_NONE;
    entry.tenancy->evicting_strictly = entry.tenancy->evicting && presence_.is_strict();
    if (evicting_ != SUBLET_LEAVE_NONE && entry.machine.state() == AttemptState::kRunning)
      leave(entry, evicting_);
    return;
  }
  if (entry.shepherd != 0) {  // just started: it reports its state, and has the lease of its order
    const AttemptWork& work = *entry.work;
    if (work.lease_ns != work.assignment->first_lease_ns)
      guard_.send(*entry.tenancy, SUBLET_FRAME_LEASE, 0, work.lease_ns);
    return;
  }
  guard_.send(*entry.tenancy, SUBLET_FRAME_LEASE, 0, entry.work->lease_ns);
  guard_.send(*entry.tenancy, SUBLET_FRAME_QUERY, 0, 0);
}

void Attempts::read_control(const AttemptName& name) {
  for (;;) {
    Entry* entry = find(name);
    if (entry == nullptr || entry->tenancy == nullptr) return;
    struct {
      sublet_frame frame;
      char text[SUBLET_MESSAGE_BYTES];
    } received;
    ssize_t n = recv(entry->tenancy->control.get(), &received, sizeof received, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    const sublet_frame& frame = received.frame;
    constexpr auto kBare = static_cast<ssize_t>(sizeof frame);
    bool good = n >= kBare && (n == kBare || frame.kind == SUBLET_FRAME_MESSAGE) &&
                frame.magic == SUBLET_FRAME_MAGIC && frame.job == name.job &&
                frame.attempt == name.attempt;
    if (!good) {
      disconnect(*entry);
      return check_end(*entry);
    }
    if (frame.kind == SUBLET_FRAME_MESSAGE)
      entry->reported.message.assign(received.text, static_cast<size_t>(n - kBare));
    else
      on_frame(*entry, frame);
  }
}

void Attempts::on_frame(Entry& entry, const sublet_frame& frame) {
  if (frame.kind == SUBLET_FRAME_ACK) {
    guard_.acknowledged(*entry.tenancy, frame);
    return note_shepherds_state(entry, frame);
  }
  if (frame.kind == SUBLET_FRAME_ENDED) return on_ended(entry.work);
  if (frame.kind != SUBLET_FRAME_STATUS) return;
  note_shepherds_state(entry, frame);
  HeldAttempt& reported = entry.reported;
  bool news = static_cast<uint64_t>(frame.arg[2]) > reported.generation;
  reported.cpu_ms = std::max(reported.cpu_ms, frame.arg[0] / 1000);
  reported.memory = static_cast<uint64_t>(std::max<int64_t>(0, frame.arg[1]));
  reported.generation = std::max(reported.generation, static_cast<uint64_t>(frame.arg[2]));
  reported.progress_ppm = static_cast<int32_t>(frame.arg[3]);
  if (frame.state == SUBLET_SHEPHERD_RUNNING && !entry.seen_running) {
    entry.seen_running = true;
    log(Severity::info) << entry.work->label() << " runs";
  }
  if (news) {
    entry.work->reported_generation = reported.generation;
    entry.work->reported_cpu_us = frame.arg[0];
    apply(entry, entry.machine.generation(reported.generation, now_ns() / kMs));
  }
}

// What the shepherd of a job that stays, or has stayed, decided by itself.
void Attempts::note_shepherds_state(Entry& entry, const sublet_frame& frame) {
  const AttemptState before = entry.machine.state();
  uint32_t actions = 0;
  switch (frame.state) {
    case SUBLET_SHEPHERD_SUSPENDED:
    case SUBLET_SHEPHERD_LINGERING:
      actions = entry.machine.stays(frame.state == SUBLET_SHEPHERD_SUSPENDED);
      break;
    case SUBLET_SHEPHERD_RUNNING:
      actions = entry.machine.resumed();
      break;
    case SUBLET_SHEPHERD_SAVING:
      actions = entry.machine.leaves_by_itself(static_cast<sublet_leave_reason>(frame.reason));
      break;
    default:
      return;
  }
  const AttemptState after = entry.machine.state();
  if (after == before) return;
  entry.work->leave_reason = entry.machine.leave_reason();
  apply(entry, actions, why_left(entry));
  if (after == AttemptState::kLeaving && entry.tenancy) guard_.leaves(*entry.tenancy, now_ns());
  if (after == AttemptState::kSuspended)
    log(Severity::info) << entry.work->label() << " is suspended: the owner is here";
  if (before == AttemptState::kSuspended && after == AttemptState::kRunning)
    log(Severity::info) << entry.work->label() << " goes on: the owner has gone";
  if (before == AttemptState::kSuspended || after == AttemptState::kSuspended) changed_();
}

void Attempts::disconnect(Entry& entry) {
  if (entry.tenancy == nullptr || !entry.tenancy->control.valid()) return;
  loop_.unwatch(entry.tenancy->control.get());
  entry.tenancy->control.reset();
}

void Attempts::check_end(Entry& entry) {
  if (entry.checking || entry.restarts != entry.work->restarts) return;
  entry.checking = true;
  tasks_->check_end(entry.work);
}

void Attempts::on_still_alive(const WorkPtr& work) {
  Entry* entry = find(work);
  if (entry == nullptr) return;
  entry->checking = false;
  if (std::exchange(entry->check_again, false)) return check_end(*entry);
  entry->connects = 0;
  if (entry->tenancy && !entry->tenancy->control.valid())
    entry->connect_due_ns = now_ns() + kLastConnectNs;
}

void Attempts::open_tenant(Entry& entry) {
  entry.tenant_due_ns = kNever;
  local_.post([this, work = entry.work] {
    std::string error;
    auto tenant = std::shared_ptr<Tenant>(Tenant::open(work->folder, &error));
    loop_.post([this, work, tenant] { tenant_opened(work, tenant); });
  });
}

void Attempts::tenant_opened(const WorkPtr& work, const std::shared_ptr<Tenant>& tenant) {
  Entry* entry = find(work);
  if (entry == nullptr || entry->tenancy == nullptr || entry->tenancy->tenant) return;
  if (tenant) {
    entry->tenancy->tenant = tenant;
    tick(now_ns());  // a freeze or kill may be overdue
  } else {
    entry->tenant_due_ns = now_ns() + (entry->tenancy->evicting ? kTenantSoonNs : kTenantAgainNs);
  }
}

}  // namespace sublet::client
