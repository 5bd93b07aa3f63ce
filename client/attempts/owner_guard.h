// The eviction path of the client (rule 1): when the owner is back, every shepherd is
// notified at once; if one does not acknowledge in time, or is stopped later, the
// client itself freezes, then kills its job. The monitor also notifies shepherds
// directly; this is the second line of defence.
//
// Reactor thread only. evict() and tick() make no remote call, do no disk I/O, take
// no lock, log nothing and allocate nothing: they send on non-blocking sockets, and
// freeze and kill through Tenant.
#ifndef SUBLET_CLIENT_ATTEMPTS_OWNER_GUARD_H_
#define SUBLET_CLIENT_ATTEMPTS_OWNER_GUARD_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "attempt/folder.h"
#include "attempt/tenant.h"
#include "base/unique_fd.h"
#include "client/attempts/seen_eviction.h"
#include "protocol/frame.h"
#include "protocol/leaving.h"

namespace sublet::client {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// An attempt whose processes may exist.
struct Tenancy {
  AttemptName name;
  int64_t save_deadline_ms = 0;
  UniqueFd control;                // the shepherd's socket; invalid: not connected
  std::shared_ptr<Tenant> tenant;  // null until its record has been read
  uint32_t sequence = 0;           // of the last frame sent
  bool can_stay = false;           // by its way to leave it may stay while the owner is here
  bool evicting = false;           // notified that the owner is back
  bool evicting_strictly = false;  // and that no job may stay
  bool must_leave = false;         // what asked it last lets no job stay
  bool stays = false;              // its shepherd answered that the job stays nevertheless
  uint32_t asked = 0;              // the last frame that asked it to leave; 0: none
  bool awaiting = false;           // its ACK

  // Whether nobody knows yet if it leaves: it may stay, and its shepherd has not answered.
  bool is_undecided() const { return can_stay && awaiting && !must_leave && !killed; }

  // As long as tenant is null these remain due; they are enforced once it is set.
  int64_t ack_due_ns = kNever;   // when the job is frozen
  int64_t look_due_ns = kNever;  // when to look whether its shepherd was stopped
  int64_t kill_due_ns = kNever;  // when it is killed, repeatedly until it is gone
  bool frozen = false;           // by this client
  bool killed = false;           // by this client
  SeenEviction seen;             // since it was last asked to leave
};

// Of the owner, as the load monitor's last frame told it.
struct OwnersPresence {
  sublet_presence state = SUBLET_PRESENCE_ACTIVE;
  sublet_presence_reason reason = SUBLET_PRESENCE_NONE;
  int64_t instant = 0;  // when the monitor saw it; CLOCK_BOOTTIME, ns; 0: it is not known
  // Whether no job may stay, in whichever mode.
  bool is_strict() const { return state == SUBLET_PRESENCE_BURDENED || !sublet_may_stay(reason); }
};

class OwnerGuard {
 public:
  // The result stays valid until removed.
  Tenancy* add(const AttemptName& name, int64_t save_deadline_ms);
  void remove(Tenancy* tenancy);

  // The owner is back (or must be assumed to be): all attempts leave, unless their shepherds say
  // that they stay. `reason` is SUBLET_LEAVE_OWNER or _BLIND, `presence` what the monitor said.
  // Each attempt is notified only once, but again if it stays and may not any longer.
  void evict(sublet_leave_reason reason, const OwnersPresence& presence, int64_t now);
  // The owner has gone: attempts that stayed, or still may, go on.
  void owner_away();
  // Its shepherd has asked an attempt that stayed to leave.
  void leaves(Tenancy& tenancy, int64_t now);
  // One attempt leaves: VACATE or KILL. If the owner is back or the frame is KILL, a
  // shepherd that does not acknowledge in time is considered hung and its job is
  // frozen; otherwise the job has until the end of its time to save.
  void urge(Tenancy& tenancy, sublet_frame_kind kind, sublet_leave_reason reason, int64_t now,
            const OwnersPresence& presence = {});
  // False if the shepherd is not connected or the socket is full.
  bool send(Tenancy& tenancy, sublet_frame_kind kind, uint32_t reason, int64_t instant,
            const OwnersPresence& presence = {});
  // The shepherd has sent an ACK: if it answers the last frame that asked, its job is thawed, and
  // stays if the state says so.
  void acknowledged(Tenancy& tenancy, const sublet_frame& ack);
  // Freezes and kills what is due. True if an attempt was frozen or killed for the
  // first time; the caller logs it later.
  bool tick(int64_t now);
  int64_t next_due() const;
  bool empty() const { return tenancies_.empty(); }

 private:
  bool stopped_since(Tenancy& tenancy, int64_t now);
  bool enforce(Tenancy& tenancy, int64_t now);

  std::vector<std::unique_ptr<Tenancy>> tenancies_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_OWNER_GUARD_H_
