// The dispatcher: carries out the brain's decisions after their commit. All
// calls that leave the server are made here, on its own threads, with a
// time-out each and holding no lock (rule 5). At most one call to a
// workstation is under way at a time; what gathers meanwhile goes in the next.
// Orders go before questions about text, which at most half of the threads ask (of
// one, that one): workstations that do not answer them hold up no other's orders.
//
// Threads: every public function from any thread; none blocks but stop().
#ifndef SUBLET_SERVER_MACHINES_DISPATCHER_H_
#define SUBLET_SERVER_MACHINES_DISPATCHER_H_

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

// An order to run, complete.
struct RunRequest {
  scheduling::AttemptKey key;
  std::string user;
  JobDescription spec;
  uint64_t generation = 0;  // checkpoint to resume from; 0 none
  uint64_t checkpoint_bytes = 0;
  int64_t decided = 0;  // microseconds of the brain's time
};

struct LeaveRequest {
  scheduling::AttemptKey key;
  scheduling::LeaveReason reason = scheduling::LeaveReason::kRemoved;
};

// What an attempt has written to a stream, from `offset` on.
struct TextRequest {
  scheduling::AttemptKey key;
  FileKind stream = FileKind::kStdout;  // or kStderr
  uint64_t offset = 0;
};
struct TextAnswer {
  enum class Kind {
    kText,       // text: at most kTextOctets; empty where there is no more yet
    kNoAttempt,  // the workstation does not have that attempt
    kFailed,     // text: why
  };
  Kind kind = Kind::kText;
  std::string text;
};
inline constexpr uint32_t kTextOctets = 256 * 1024;

// A workstation that can be called; the edge to the ORB implements it.
class Workstation {
 public:
  virtual ~Workstation() = default;
  // One answer for each request, in order. Never throws.
  virtual std::vector<scheduling::OrderAnswered> run(const std::vector<RunRequest>& requests) = 0;
  // False: it could not be told (it will be told again when it renews).
  virtual bool vacate(const std::vector<LeaveRequest>& requests) = 0;
  virtual TextAnswer read_log(const TextRequest& request) = 0;
  // Whether somebody answers at the other end.
  virtual bool alive() = 0;
};

class Dispatcher {
 public:
  struct Hooks {
    // The order's contents; nothing when the job's description is lost.
    std::function<std::optional<RunRequest>(const scheduling::StartAttempt&)> describe;
    // What became of an order; must reach the brain.
    std::function<void(std::vector<scheduling::OrderAnswered>)> answered;
  };

  Dispatcher(Hooks hooks, size_t threads);
  ~Dispatcher();
  void stop();

  void attach(scheduling::MachineId machine, std::shared_ptr<Workstation> workstation);
  // Its registration is over: what was ordered under it and has not been sent is
  // answered as not delivered, and never sent under the next (protocol/lease.h, W4).
  void detach(scheduling::MachineId machine);

  void decided(const std::vector<scheduling::Decision>& decisions);

  // Asks in the background whether the workstation that holds this machine
  // still answers, and tells so on a thread of the dispatcher.
  void probe(scheduling::MachineId machine, std::function<void(bool alive)> callback);

  // Asks the workstation in the background, after all orders that wait for a
  // thread, and tells the answer on a thread of the dispatcher. Whoever asks
  // bounds how many such questions there are.
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
    std::vector<scheduling::OrderAnswered> undelivered;  // and never to be
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
  // Orders and probes, or one text.
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
  void work();
  void deliver(Load load);
  void deliver_starts(Load& load);

  const Hooks hooks_;
  const size_t most_texts_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<scheduling::MachineId, Mailbox> boxes_;
  std::deque<scheduling::MachineId> ready_;        // with orders or probes
  std::deque<scheduling::MachineId> ready_texts_;  // with questions
  size_t texts_under_way_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_MACHINES_DISPATCHER_H_
