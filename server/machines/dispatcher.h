// The dispatcher: carries out the brain's decisions after their commit. It makes
// all outgoing calls of the server, on its own threads, each with a time-out and
// without holding a lock (rule 5). There is at most one call to a workstation at
// a time; orders that arrive meanwhile are sent together in the next call.
//
// Workstations that do not answer delay no orders to others (rule 8): if all threads
// are in calls and none of these returns for kPatience, another thread is added, up
// to kMostThreads. Added threads end after kKeepIdle without work. Orders have
// priority over requests for output, which use at most half of the first threads
// (but at least one).
//
// Threads: any; only stop() blocks.
#ifndef SUBLET_SERVER_MACHINES_DISPATCHER_H_
#define SUBLET_SERVER_MACHINES_DISPATCHER_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "job/description.h"
#include "scheduling/events/events.h"
#include "scheduling/records.h"
#include "server/commit/changes.h"

namespace sublet::server {

// A complete order to run an attempt.
struct RunRequest {
  scheduling::AttemptKey key;
  std::string user;
  JobDescription spec;
  uint64_t generation = 0;  // checkpoint to resume from; 0: none
  uint64_t checkpoint_bytes = 0;
  int64_t decided = 0;  // microseconds of the brain's time
  bool ahead = false;   // StartAttempt::ahead
};

struct LeaveRequest {
  scheduling::AttemptKey key;
  scheduling::LeaveReason reason = scheduling::LeaveReason::kRemoved;
};

// Requests what an attempt has written to a stream, from `offset` on.
struct TextRequest {
  scheduling::AttemptKey key;
  FileKind stream = FileKind::kStdout;  // or kStderr
  uint64_t offset = 0;
};
struct TextAnswer {
  enum class Kind {
    kText,       // text: at most kTextOctets; empty if there is no more yet
    kNoAttempt,  // the workstation does not have that attempt
    kFailed,     // text: why
  };
  Kind kind = Kind::kText;
  std::string text;
};
inline constexpr uint32_t kTextOctets = 256 * 1024;

// A workstation that can be called; implemented with the ORB in corba_workstation.h.
class Workstation {
 public:
  virtual ~Workstation() = default;
  // One answer for each request, in order. Never throws.
  virtual std::vector<scheduling::OrderAnswered> run(const std::vector<RunRequest>& requests) = 0;
  // False: the call failed (the workstation learns of it when it renews).
  virtual bool vacate(const std::vector<LeaveRequest>& requests) = 0;
  virtual TextAnswer read_log(const TextRequest& request) = 0;
  // False only if the client is known to be gone.
  virtual bool alive() = 0;
};

class Dispatcher {
 public:
  static constexpr std::chrono::milliseconds kPatience{10};
  static constexpr std::chrono::seconds kKeepIdle{30};
  static constexpr size_t kMostThreads = 1000;

  struct Hooks {
    // The complete order; std::nullopt if the job's description is missing.
    std::function<std::optional<RunRequest>(const scheduling::StartAttempt&)> describe;
    // The results of orders; they must be passed to the brain.
    std::function<void(std::vector<scheduling::OrderAnswered>)> answered;
  };

  // threads: those that are kept; at least 1.
  Dispatcher(Hooks hooks, size_t threads);
  ~Dispatcher();
  void stop();

  void attach(scheduling::MachineId machine, std::shared_ptr<Workstation> workstation);
  // The machine's registration has ended: orders not yet sent are answered as not
  // delivered, and are never sent under the next registration (protocol/lease.h, W4).
  void detach(scheduling::MachineId machine);

  void decided(const std::vector<scheduling::Decision>& decisions);

  // Checks in the background whether this machine's workstation still answers; calls
  // the callback on a thread of the dispatcher.
  void probe(scheduling::MachineId machine, std::function<void(bool alive)> callback);

  // Sends the request in the background, after all orders that wait for a thread;
  // calls the callback on a thread of the dispatcher. The caller must limit the
  // number of such requests.
  void read_log(scheduling::MachineId machine, const TextRequest& request,
                std::function<void(TextAnswer)> callback);

 private:
  struct TextQuestion {
    TextRequest request;
    std::function<void(TextAnswer)> callback;
  };
  struct Mailbox {
    std::shared_ptr<Workstation> workstation;
    std::deque<scheduling::StartAttempt> starts;
    std::vector<scheduling::OrderAnswered> undelivered;  // will never be sent
    std::deque<LeaveRequest> leaves;
    std::vector<std::function<void(bool)>> probes;
    std::deque<TextQuestion> texts;
    bool called = false;       // a thread is calling it
    bool queued = false;       // it is in ready_
    bool text_queued = false;  // it is in ready_texts_
    bool has_orders() const {
      return !starts.empty() || !undelivered.empty() || !leaves.empty() || !probes.empty();
    }
  };
  // The work of one thread for one workstation: orders and probes, or one text request.
  struct Load {
    std::shared_ptr<Workstation> workstation;
    std::vector<scheduling::StartAttempt> starts;
    std::vector<scheduling::OrderAnswered> undelivered;
    std::vector<LeaveRequest> leaves;
    std::vector<std::function<void(bool)>> probes;
    std::optional<TextQuestion> text;
  };

  void make_ready(scheduling::MachineId machine, Mailbox& box);
  bool may_ask() const { return !ready_texts_.empty() && texts_under_way_ < most_texts_; }
  static Load take_orders(Mailbox& box);
  static Load take_text(Mailbox& box);
  bool starved() const { return !ready_.empty() && waiting_ == 0; }
  void add_thread();
  void watch();
  bool wait_for_work(std::unique_lock<std::mutex>& lock);
  void work();
  void deliver(Load load);
  void deliver_starts(Load& load);

  const Hooks hooks_;
  const size_t kept_;
  const size_t most_texts_;
  std::mutex mutex_;
  std::condition_variable wake_;  // of the threads that call
  std::condition_variable watch_wake_;
  std::map<scheduling::MachineId, Mailbox> boxes_;
  std::deque<scheduling::MachineId> ready_;        // with orders or probes
  std::deque<scheduling::MachineId> ready_texts_;  // with text requests
  size_t texts_under_way_ = 0;
  size_t waiting_ = 0;  // threads without work
  uint64_t taken_ = 0;  // loads
  bool stopping_ = false;
  std::map<std::thread::id, std::thread> threads_;
  std::vector<std::thread> ended_;  // for the watch to join
  std::thread watch_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_MACHINES_DISPATCHER_H_
