// Handles the server's orders: decides whether this machine accepts an attempt, and
// writes the assignment to disk before answering. Called from the ORB's upcall
// threads; makes no remote call (rule 5) and waits only for the disk and for its
// mutex, which protects only its tables. Also manages the slots: workers release a
// slot once its attempt's folder has been sealed. Orders taken ahead of time wait here for a slot
// (orders_ahead.cc): they are not on disk before they have one, or one is handed to the shepherd
// of a slot in which an attempt runs, to be the next there.
#ifndef SUBLET_CLIENT_ATTEMPTS_ORDER_DESK_H_
#define SUBLET_CLIENT_ATTEMPTS_ORDER_DESK_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "client/attempts/assignment.h"
#include "client/link/server_calls.h"
#include "client/machine/network_rules.h"
#include "client/staging/spare_folders.h"
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
  Assignment what;         // the desk fills in slot, uid, nonce, accepted_us, first_lease_ns
  int64_t lease_ms = 0;    // D
  int64_t decided_us = 0;  // by the server's clock
  std::string not_served;  // if not empty: why this client cannot serve the order
  bool ahead = false;      // if no slot is free it waits for one
};

struct VacateOrder {
  AttemptName name;
  sublet_leave_reason reason = SUBLET_LEAVE_NONE;
  bool unstarted = false;  // only if it still waits for a slot
};

// Published by the reactor thread for all others. Members change independently; do
// not infer one from another.
struct PublicPresence {
  std::atomic<bool> away{false};
  std::atomic<uint32_t> reason{SUBLET_PRESENCE_BLIND};
  std::atomic<int64_t> owner_cpu_milli{0};
  std::atomic<int64_t> input_idle_ms{-1};
};

struct DeskSettings {
  std::string state_folder;
  MachineFacts facts;
  std::vector<int64_t> slot_uids;  // one per slot; -1: the client's own account
  uint64_t outbox_limit = 1000;    // ended attempts not yet acknowledged
  uint32_t ahead = 0;              // orders taken ahead of time
  uint64_t disk_reserve = 64 << 20;
  uint64_t memory_least = 0;  // bytes that must be available
  NetworkRules network;
  // So long an order may be behind an attempt that runs while others end: then it waits for any
  // slot.
  int64_t behind_ms = 50;
};

// What NextAttempts keeps of an attempt that a slot's shepherd is to run after the one that it runs
// now.
struct HandedAttempt {
  virtual ~HandedAttempt() = default;
};

// Hands orders to the shepherds of slots in which an attempt runs, so that the slot does not wait
// for this client in between. Called from any thread without the desk's mutex, but for renew().
class NextAttempts {
 public:
  virtual ~NextAttempts() = default;
  // Its folder is made. Throws std::exception: it could not be handed over.
  virtual std::shared_ptr<HandedAttempt> hand_over(std::shared_ptr<const Assignment> what) = 0;
  // True: its program is not started any more, once `handed` has ended. False: its shepherd has
  // begun with it.
  virtual bool take_back(HandedAttempt& handed) = 0;
  // It has another lease. Does not wait.
  virtual void renew(HandedAttempt& handed, int64_t lease_ns) = 0;
  // The attempt before has ended, and the slot is its own. The last call for it.
  virtual void begin(HandedAttempt& handed) = 0;
};

class OrderDesk {
 public:
  // accepted: called for each assignment written to disk, with whether start_ahead() does so; else
  // it is called from upcall threads and must not block, like vacate, which is called for each
  // order to leave.
  OrderDesk(const DeskSettings& settings, Files& files, const PublicPresence& presence,
            std::function<void(std::shared_ptr<const Assignment>, bool from_ahead)> accepted,
            std::function<void(std::vector<VacateOrder>)> vacate);

  // Sets the registration whose orders are accepted from now on; "": none. Orders under
  // another one are refused as stale; those accepted before this call are in
  // being_accepted() until taken over (protocol/lease.h, W4). Any thread.
  // term: of the server that opened the session.
  void set_session(const std::string& key, uint64_t term = 1);
  // Remembers the largest term of this session. False: `term` is smaller, so the
  // server that sent it has been replaced. Any thread.
  bool accept_term(uint64_t term);
  bool is_session(const std::string& key) const;
  bool has_session() const;

  // session: the key under which the orders were sent.
  std::vector<RunAnswer> run(const std::string& session, std::vector<RunOrder> orders);
  RunAnswer may_run(const Requirements& needs);

  // Accepted orders for which taken_over() has not been called yet: still waiting for a slot, being
  // written to disk, or passed to Attempts. Any thread.
  std::vector<AttemptName> being_accepted() const;
  // Those of them that were taken ahead and have no slot yet. Any thread.
  std::vector<AttemptName> waiting() const;
  // From now on Attempts names this attempt to the server.
  void taken_over(const AttemptName& name);

  void vacate(std::vector<VacateOrder> orders);
  // What the server says of orders taken ahead, in the answer to a renewal sent at that instant
  // (CLOCK_BOOTTIME). Any thread.
  void renewed(int64_t sent_ns, int64_t lease_ms, const std::vector<AttemptVerdict>& verdicts);
  // None of those taken ahead starts any more. Any thread.
  void give_back_ahead(const std::string& why);
  // The server knows that this one does not start here, if it was given back. Any thread.
  void returned(const AttemptName& name);
  // Orders wait for a slot, as far as that can be seen without waiting: the reactor thread asks.
  // Any thread.
  bool has_ahead() const;
  // Some were given back that it does not know of yet. Any thread.
  bool is_returning() const;
  std::vector<std::pair<std::string, std::string>> state();
  const std::string& state_folder() const { return settings_.state_folder; }

  // The server's time, from the answer to a call made at asked_ns (CLOCK_BOOTTIME).
  // Used to determine the age of orders. Any thread.
  void set_server_clock(int64_t server_time_us, int64_t asked_ns);

  // No more orders are accepted.
  void drain() { draining_ = true; }

  // An attempt failed because of the machine (its disk, its shepherd): no order is
  // accepted for a second, doubling with each consecutive failure up to a minute, so
  // that a broken machine does not drain the queue. machine_worked(), called when a
  // program could be started, resets this. Any thread.
  void machine_failed(const std::string& why);
  void machine_worked();

  // removable: bytes that can be freed for an order; make_room: called with the number
  // of bytes missing, if removable() covers it. To be called before the first order.
  void give_way(std::function<uint64_t()> removable,
                std::function<void(uint64_t bytes)> make_room) {
    removable_ = std::move(removable);
    make_room_ = std::move(make_room);
  }

  // slot_freed: called when a slot is free and orders wait for one, by the thread that freed it, or
  // when one could be handed over; it is to have start_ahead() called soon, by a thread that no
  // owner waits for. To be called before
  // the first order.
  void on_slot_freed(std::function<void()> slot_freed) { slot_freed_ = std::move(slot_freed); }
  // Starts orders that were taken ahead, as far as slots are free, and hands one to each shepherd
  // that has none to run next. Waits for the disk.
  void start_ahead();
  // To be called before the first order; without it none is handed over.
  void on_next(NextAttempts& next) { next_attempts_ = &next; }
  // Its shepherd runs it, so that it can take the next one of its slot. Any thread.
  void runs(const AttemptName& name);
  // given_back: called with an order taken ahead that does not start here, and the reason; from any
  // thread. To be called before the first order.
  void on_given_back(
      std::function<void(std::shared_ptr<const Assignment>, const std::string&)> given_back) {
    given_back_ = std::move(given_back);
  }

  // While the disk is nearly full, no order is accepted. Any thread.
  void set_disk_low(bool low) {
    if (!disk_low_.exchange(low) && low) refuse_next();
  }
  bool disk_low() const { return disk_low_; }
  // The same for memory. Any thread.
  void set_memory_low(bool low) {
    if (!memory_low_.exchange(low) && low) refuse_next();
  }
  // Whether no order is accepted for want of memory, if so many bytes are available.
  bool lacks_memory(uint64_t available) const {
    return memory_low_ || available < settings_.memory_least;
  }
  // An attempt of this job used so many bytes of memory: as long as no more is available, it is
  // not accepted here. Any thread.
  void note_memory_use(uint64_t job, uint64_t bytes);
  // An attempt of this job had to leave because of the disk, using `bytes`: the job is
  // accepted again only if twice as much is free. Any thread.
  void note_disk_use(uint64_t job, uint64_t bytes);
  // What each attempt uses of the disk, in bytes, as far as it is known. Any thread.
  void set_disk_in_use(std::map<AttemptName, uint64_t> in_use);
  std::map<AttemptName, uint64_t> disk_in_use() const;

  // An attempt of this job was given CPU time to save, and saved nothing: here it is not
  // lifted again. Any thread.
  void note_unsaved(uint64_t job);
  bool may_be_lifted(uint64_t job) const;

  // An attempt found on disk at the start. holds_slot: false if it has ended and only
  // waits in the outbox.
  void adopt(const Assignment& assignment, bool holds_slot);
  // Its processes are gone and its folder is closed to the slot's account.
  void release_slot(const AttemptName& name);
  // The same; true: start_ahead() is left to the caller, because orders wait.
  bool free_slot(const AttemptName& name);
  // SpareFolders::untouched(), when an attempt has ended, and take(), when it is over.
  std::optional<uint64_t> untouched_folder(const Assignment& what, const std::string& folder) const;
  bool reuse_folder(const Assignment& what, const std::string& folder, bool is_untouched);
  // Its folder has been removed.
  void forget(const AttemptName& name);
  uint32_t slots_free();

 private:
  struct Known {
    int64_t slot = -1;
    bool being_accepted = false;
    bool returning = false;  // given back
    // It was told to leave while it was being accepted.
    sublet_leave_reason leaves = SUBLET_LEAVE_NONE;
    std::vector<std::string> gpus = {};  // as long as it has the slot
  };
  // "" or the reason, with the answer's code in *code. Called with the mutex held. The second one:
  // for one that is known; kRunFull only if nothing else is in the way.
  std::string refusal(const Requirements& needs, const AttemptName& name, uint32_t* code);
  std::string refusal_now(const Requirements& needs, uint64_t job, uint32_t* code);
  std::string refusal_for_want_of_room(uint32_t* code) const;
  std::string lacking(const Requirements& needs) const;
  std::string lacking_memory(uint64_t job);
  // Those that no attempt has. Called with the mutex held.
  std::vector<std::string> free_gpus() const;
  std::string refusal_for_want_of_gpus(const Requirements& needs) const;
  // Sets job.program to this platform's; "" or why there is none.
  std::string choose_program(JobDescription& job) const;
  bool is_old(const AttemptName& name) const;
  uint64_t disk_wanted(const RunOrder& order);
  void find_room(uint64_t wanted);  // throws std::exception if there is none
  RunAnswer take(const std::string& session, RunOrder order);
  // What the shepherd of a slot is to run next. While it is `in_hand` one thread hands it over or
  // takes it back, and no other touches `handed`.
  struct Next {
    AttemptName name;
    RunOrder order = {};  // complete once it is handed over
    std::shared_ptr<HandedAttempt> handed = nullptr;
    int64_t lease_ns = 0;
    int64_t since_ns = 0;  // CLOCK_BOOTTIME
    bool in_hand = true;
    bool has_slot = false;      // the attempt before has ended
    std::string unwanted = {};  // why it is to be taken back
  };
  struct Slot {
    bool taken = false;
    bool runs = false;     // a shepherd of this client runs who has it, and takes a next one
    bool is_long = false;  // one was taken back from behind it
    std::optional<Next> next = std::nullopt;
  };
  // A shepherd that runs an attempt, and is to have another one.
  static bool has_no_next(const Slot& slot) { return slot.runs && !slot.is_long && !slot.next; }
  // Called with the mutex held.
  bool has_free_slot() const;
  // Gives it a slot. Called with the mutex held.
  void claim_slot(Assignment& what);
  // It has its slot. False: it is not accepted after all.
  bool accept(RunOrder& order, RunAnswer* answer, bool was_ahead);
  // The next one that was taken ahead, if a slot is free: with it, or why it does not start.
  std::optional<std::pair<RunOrder, std::string>> take_next();
  void give_back(const Assignment& what, const std::string& why);
  void leave_if_told(const AttemptName& name);
  // ---- of those that are handed over ----
  // Whose slot is free of the one before.
  void begin_next();
  void begin_those_with_slots();
  std::optional<Next> take_begun();
  // False: there is nothing to be handed over now.
  bool hand_over_next();
  bool has_one_for_a_shepherd() const;
  // There is a new reason to refuse orders.
  void refuse_next() {
    look_again_ = true;
    slot_freed_();
  }
  // The slot that is to have the next order, which waits no longer.
  std::optional<std::pair<size_t, RunOrder>> choose_next();
  // For who has it in hand: gives it out of hand; takes it back from its shepherd (false: it has
  // begun); it is not the next any more, and its folder is removed: it waits again, before all
  // others, or is given back to the server if it is unwanted.
  void put_down(size_t slot);
  bool take_back(size_t slot);
  void drop_next(size_t slot, const AttemptName& name);
  // Takes in hand, for put_down_all(), those that are unwanted for this reason, if it is not "".
  // Called with the mutex held.
  std::vector<size_t> pick_up_unwanted(const std::function<std::string(const Next&)>& why);
  void put_down_all(const std::vector<size_t>& slots);
  // If there is a new reason to refuse orders.
  void look_at_next_again();
  // Takes back those that would be refused now.
  void refuse_next_if(const std::function<bool(const Next&)>& condition);
  // For a slot that is free, while no other order waits. False: there is none.
  bool take_one_back();
  // From behind attempts that are not short, so that those that come later do not pass them.
  void take_old_ones_back();
  // The newest for which the condition, which is asked with the mutex held, is true.
  bool take_back_if(const std::function<bool(const Next&)>& condition);
  // Called with the mutex held.
  bool has_next() const;
  void renew(Next& next, int64_t lease_ns);
  // Writes the assignment to disk. Throws std::exception.
  void keep_promise(RunOrder& order);
  // `returning`: the server took it for accepted.
  void undo(const AttemptName& name, bool returning);
  void remove_folder(const AttemptName& name);

  const DeskSettings settings_;
  Files& files_;
  const PublicPresence& presence_;
  const std::function<void(std::shared_ptr<const Assignment>, bool)> accepted_;
  const std::function<void(std::vector<VacateOrder>)> vacate_;
  SpareFolders spare_folders_;
  std::function<uint64_t()> removable_ = [] { return 0; };
  std::function<void(uint64_t)> make_room_;
  std::function<void(std::shared_ptr<const Assignment>, const std::string&)> given_back_;
  std::function<void()> slot_freed_ = [this] { start_ahead(); };
  NextAttempts* next_attempts_ = nullptr;
  std::atomic<bool> draining_{false};
  std::atomic<bool> disk_low_{false};
  std::atomic<bool> memory_low_{false};
  std::atomic<bool> look_again_{false};

  mutable std::mutex mutex_;
  std::string session_;
  uint64_t term_ = 0;  // largest of this session
  std::map<AttemptName, Known> known_;
  std::deque<RunOrder> ahead_;
  std::vector<Slot> slots_;
  protocol::ServerClock server_clock_;
  std::string trouble_;  // the last failure of the machine
  int64_t trouble_pause_ms_ = 0;
  int64_t trouble_until_ns_ = 0;            // CLOCK_BOOTTIME
  std::map<uint64_t, uint64_t> disk_used_;  // by job
  std::map<uint64_t, uint64_t> memory_used_;
  std::map<AttemptName, uint64_t> disk_in_use_;
  std::deque<uint64_t> unsaved_;  // jobs that may not be lifted
  // Recent ones, in both: a late repeat must start nothing.
  std::set<AttemptName> forgotten_;
  std::deque<AttemptName> forgotten_in_turn_;
  uint64_t memory_available_ = 0;
  int64_t memory_again_ns_ = 0;  // CLOCK_BOOTTIME
};

// All attempts that this client must name to the server, with what they use of the disk: those of
// Attempts (`of_attempts`) and the orders still being accepted. The latter are read first, so
// that an order taken over meanwhile is not missed; of them, those that wait are read last, so that
// one that has got its slot meanwhile is not said to wait.
std::vector<HeldAttempt> all_held(const OrderDesk& desk,
                                  const std::function<std::vector<HeldAttempt>()>& of_attempts);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_ORDER_DESK_H_
