// Where the server's orders arrive: decides whether this machine takes an
// attempt, and writes the promise to disk before it is given. Called from the
// ORB's upcall threads; makes no remote call (rule 5) and waits only for the
// disk and for its own mutex, which is held for its tables alone. Also manages
// the slots: workers give a slot back when its attempt's folder has been sealed.
#ifndef SUBLET_CLIENT_ATTEMPTS_ORDER_DESK_H_
#define SUBLET_CLIENT_ATTEMPTS_ORDER_DESK_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/files.h"
#include "client/attempts/assignment.h"
#include "client/link/server_calls.h"
#include "protocol/frame.h"
#include "protocol/lease.h"

namespace sublet::client {

// RUN_... of the IDL, the same numbers.
inline constexpr uint32_t kRunAccepted = 0;
inline constexpr uint32_t kRunOwner = 1;
inline constexpr uint32_t kRunFull = 2;
inline constexpr uint32_t kRunLacks = 3;
inline constexpr uint32_t kRunDraining = 4;
inline constexpr uint32_t kRunOld = 5;
inline constexpr uint32_t kRunError = 6;
inline constexpr uint32_t kRunStale = 7;

struct RunAnswer {
  AttemptName name;
  uint32_t answer = kRunAccepted;
  std::string reason;
};

struct RunOrder {
  Assignment what;         // slot, uid, nonce, accepted_us, first_lease_ns: filled in by the desk
  int64_t lease_ms = 0;    // D
  int64_t decided_us = 0;  // by the server's clock
  std::string not_served;  // a sentence, if it asks for what this client does not serve
};

struct VacateOrder {
  AttemptName name;
  sublet_leave_reason reason = SUBLET_LEAVE_NONE;
};

// What the reactor's thread publishes for everyone else. Each member stands
// alone; do not infer one from another.
struct PublicPresence {
  std::atomic<bool> away{false};
  std::atomic<uint32_t> reason{SUBLET_PRESENCE_BLIND};
  std::atomic<int64_t> owner_cpu_milli{0};
  std::atomic<int64_t> input_idle_ms{-1};
};

struct DeskSettings {
  std::string state_folder;
  MachineFacts facts;
  std::vector<int64_t> slot_uids;  // one a slot; -1: the client's own account
  uint64_t outbox_limit = 1000;    // ended attempts not yet acknowledged
  uint64_t disk_reserve = 64 << 20;
};

class OrderDesk {
 public:
  // accepted: told of each promise kept on disk; vacate: of each order to
  // leave. Both are called from upcall threads and must not block.
  OrderDesk(const DeskSettings& settings, Files& files, const PublicPresence& presence,
            std::function<void(std::shared_ptr<const Assignment>)> accepted,
            std::function<void(std::vector<VacateOrder>)> vacate);

  // The registration that orders count under from now on, "": none. What comes
  // under another is refused as stale; what was accepted before is named by
  // being_accepted() from here on at the latest (protocol/lease.h, W4). Any thread.
  // term: of the server that opened it.
  void set_session(const std::string& key, uint64_t term = 1);
  // Remembers the largest term of this session. False: this one is smaller, and the
  // server that named it has been replaced. Any thread.
  bool accept_term(uint64_t term);
  bool is_session(const std::string& key) const;
  bool has_session() const;

  // Orders that came under the registration with this key.
  std::vector<RunAnswer> run(const std::string& session, std::vector<RunOrder> orders);
  RunAnswer may_run(const Requirements& needs);

  // The orders of which note was taken and that taken_over() was not called for: on
  // their way to disk, or to those who start them. Any thread.
  std::vector<AttemptName> being_accepted() const;
  // From now on somebody else names this attempt to the server.
  void taken_over(const AttemptName& name);

  void vacate(std::vector<VacateOrder> orders) { vacate_(std::move(orders)); }
  std::vector<std::pair<std::string, std::string>> state();
  const std::string& state_folder() const { return settings_.state_folder; }

  // The server's time, as it stood in an answer to a call made at asked_ns
  // (CLOCK_BOOTTIME): by it the age of orders is known. Any thread.
  void set_server_clock(int64_t server_time_us, int64_t asked_ns);

  // No more orders are accepted.
  void drain() { draining_ = true; }

  // The machine itself failed an attempt (its disk, its shepherd): no order is
  // taken for a second, after each failure in a row for twice as long, up to a
  // minute, so that a broken machine does not wear out the queue. A program that
  // could be started ends the row. Any thread.
  void machine_failed(const std::string& why);
  void machine_worked();

  // What may be removed so that an order finds room on the disk: how many bytes of
  // it there are, and what is called with how many are missing, if that is enough.
  // Before the first order.
  void give_way(std::function<uint64_t()> removable,
                std::function<void(uint64_t bytes)> make_room) {
    removable_ = std::move(removable);
    make_room_ = std::move(make_room);
  }

  // The disk is nearly full: no order is taken until it is not. Any thread.
  void set_disk_low(bool low) { disk_low_ = low; }
  bool disk_low() const { return disk_low_; }
  // An attempt of this job had to leave for it, whose folder had so many bytes:
  // where less than twice as much is free the job is not taken again.
  void note_disk_use(uint64_t job, uint64_t bytes);

  // An attempt found on disk at the start keeps its slot (slot -1: it has
  // ended and waits in the outbox only).
  void adopt(const Assignment& assignment, bool holds_slot);
  // Its processes are gone and nobody else can reach its folder any more.
  void release_slot(const AttemptName& name);
  // Its folder is gone.
  void forget(const AttemptName& name);
  uint32_t slots_free();

 private:
  struct Known {
    int64_t slot = -1;
    bool being_accepted = false;
  };
  // "" or why not, with the answer's code in *code. Called with the mutex held.
  std::string refusal(const Requirements& needs, const AttemptName& name, uint32_t* code) const;
  std::string refusal_for_want_of_room(uint32_t* code) const;
  std::string lacking(const Requirements& needs) const;
  // Puts this platform's program in; "" or why there is none.
  std::string choose_program(JobDescription& job) const;
  bool is_old(const AttemptName& name) const;
  uint64_t disk_wanted(const RunOrder& order);
  void find_room(uint64_t wanted);  // throws std::exception: there is none
  RunAnswer take(const std::string& session, RunOrder order);
  // The promise, on disk. Throws std::exception.
  void keep_promise(RunOrder& order);
  void undo(const AttemptName& name);

  const DeskSettings settings_;
  Files& files_;
  const PublicPresence& presence_;
  const std::function<void(std::shared_ptr<const Assignment>)> accepted_;
  const std::function<void(std::vector<VacateOrder>)> vacate_;
  std::function<uint64_t()> removable_ = [] { return 0; };
  std::function<void(uint64_t)> make_room_;
  std::atomic<bool> draining_{false};
  std::atomic<bool> disk_low_{false};

  mutable std::mutex mutex_;
  std::string session_;
  uint64_t term_ = 0;  // the largest of this session
  std::map<AttemptName, Known> known_;
  std::vector<bool> slot_taken_;
  protocol::ServerClock server_clock_;
  std::string trouble_;  // the machine's own, the last
  int64_t trouble_pause_ms_ = 0;
  int64_t trouble_until_ns_ = 0;            // CLOCK_BOOTTIME
  std::map<uint64_t, uint64_t> disk_used_;  // by job
  std::deque<AttemptName> forgotten_;       // the last ones, so that a late repeat starts nothing
};

// Everything that this client must name to the server: what the attempts' book says
// (`of_attempts`), and the orders that are still being accepted. These are asked for
// first, so that one that passes from the desk to that book meanwhile is in one of them.
std::vector<HeldAttempt> all_held(const OrderDesk& desk,
                                  const std::function<std::vector<HeldAttempt>()>& of_attempts);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_ORDER_DESK_H_
