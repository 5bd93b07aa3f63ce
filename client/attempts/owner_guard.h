// The eviction path of the client (rule 1): when the owner is back every
// shepherd is told at once, and one that does not answer in time has its job
// frozen, then killed, from here. The shepherds also hear the monitor directly; this
// is the second line of defence.
//
// The reactor's thread only. evict() and tick() call no server, touch no disk,
// take no lock, log nothing and allocate nothing: they send on non-blocking
// sockets, and freeze and kill through Tenant.
#ifndef SUBLET_CLIENT_ATTEMPTS_OWNER_GUARD_H_
#define SUBLET_CLIENT_ATTEMPTS_OWNER_GUARD_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "attempt/folder.h"
#include "attempt/tenant.h"
#include "base/unique_fd.h"
#include "protocol/frame.h"

namespace sublet::client {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// One attempt whose processes may be there.
struct Tenancy {
  AttemptName name;
  int64_t save_deadline_ms = 0;
  UniqueFd control;                // the shepherd's socket; invalid: not connected
  std::shared_ptr<Tenant> tenant;  // null until its record has been read
  uint32_t sequence = 0;           // of the last frame sent
  bool evicting = false;           // told that the owner is back
  uint32_t asked = 0;              // the frame whose ACK is awaited
  // With no tenant yet these stay due: they are acted on as soon as it is there.
  int64_t ack_due_ns = kNever;   // then it is frozen
  int64_t kill_due_ns = kNever;  // then it is killed, and again until it is gone
  bool frozen = false;           // by this client
  bool killed = false;           // by this client
};

class OwnerGuard {
 public:
  // Stays at its address until removed.
  Tenancy* add(const AttemptName& name, int64_t save_deadline_ms);
  void remove(Tenancy* tenancy);

  // The owner is back (or must be assumed to be): everybody leaves. `reason` is
  // SUBLET_LEAVE_OWNER or _BLIND. Those already told are not told again.
  void evict(sublet_leave_reason reason, int64_t now);
  // One attempt leaves: VACATE or KILL. Only for the owner's sake, or to kill, is a
  // shepherd that does not acknowledge in time taken for hung and its job frozen;
  // otherwise it has until the end of its time to save.
  void urge(Tenancy& tenancy, sublet_frame_kind kind, sublet_leave_reason reason, int64_t now);
  // False when nobody is connected or the socket is full.
  bool send(Tenancy& tenancy, sublet_frame_kind kind, uint32_t reason, int64_t instant);
  // An ACK came: the shepherd is in charge again, so its job is thawed.
  void acknowledged(Tenancy& tenancy, uint32_t sequence);
  // Freezes and kills what is due. True when an attempt was frozen or killed
  // for the first time: worth a line in the log, later.
  bool tick(int64_t now);
  int64_t next_due() const;
  bool empty() const { return tenancies_.empty(); }

 private:
  static bool enforce(Tenancy& tenancy, int64_t now);

  std::vector<std::unique_ptr<Tenancy>> tenancies_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_OWNER_GUARD_H_
