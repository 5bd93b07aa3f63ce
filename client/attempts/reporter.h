// Reports starts and ends to the server, in batches, until it answers. Uses its own
// thread, so that a report never waits for a file transfer, nor a renewal for a
// report. A start is told after a while (protocol::kStartToldAfterMs), unless the attempt has ended
// by then; while orders wait for a slot, an end waits for others, for kGatherNs at most: the
// machine has work. Unsent ends are on disk in the attempts' folders and survive a restart. A
// report that the server refuses is repeated alone, after its own back-off, so that
// it does not hold up the others.
#ifndef SUBLET_CLIENT_ATTEMPTS_REPORTER_H_
#define SUBLET_CLIENT_ATTEMPTS_REPORTER_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "client/attempts/work.h"
#include "client/link/server_calls.h"

namespace sublet::client {

class Reporter {
 public:
  static constexpr int64_t kGatherNs = 8'000'000;

  // answered: VERDICT_... for a start or an end. waits: an end could not be reported
  // now. Both are called on the reporter's thread. has_work: orders wait for a slot; called on any
  // thread.
  Reporter(ServerCalls& server,
           std::function<void(const AttemptName&, uint32_t verdict, bool of_end)> answered,
           std::function<void(AttemptWork&)> waits, std::function<bool()> has_work);
  ~Reporter();
  void stop();

  // Any thread. work->end is complete.
  void tell_started(std::shared_ptr<AttemptWork> work, int64_t at_us);
  void tell_ended(std::shared_ptr<AttemptWork> work);
  // That it was accepted and does not start. Nothing of it is on disk: a crash of this process says
  // the same, since the next one does not name it.
  void tell_refused(std::shared_ptr<const Assignment> assignment, const std::string& reason);
  // Retries at once, because the server is back.
  void hurry();

 private:
  struct Start {
    std::shared_ptr<AttemptWork> work;
    int64_t at_us;     // UTC
    int64_t since_ns;  // the same, CLOCK_BOOTTIME
    int64_t due_ns;    // CLOCK_BOOTTIME
  };
  struct End {
    std::shared_ptr<AttemptWork> work;
    int64_t refused_pause_ms = 0;  // 0: never refused
    int64_t due_ns = 0;            // CLOCK_BOOTTIME
  };
  using Starts = std::vector<Start>;
  using Ends = std::vector<End>;
  void run();
  bool wait(std::unique_lock<std::mutex>& lock, int64_t pause_ms);
  // Whether the thread must be woken for what is due then. With the mutex held.
  bool sleeps_beyond(int64_t due_ns) const { return due_ns < sleeps_until_ns_; }
  // Removes the starts to report now from the queue. With the mutex held.
  Starts take_starts(int64_t now);
  // Removes the ends to report now from the queue. With the mutex held.
  Ends take_ends(int64_t now);
  int64_t next_due() const;
  // Remove from the argument what was reported. False: the server is down; try later.
  bool send_starts(Starts& starts);
  void send_group(const Starts& starts);  // throws ServerError
  bool send_ends(Ends& ends);
  static void postpone(End& end);
  void send_batch(Ends& ends);  // throws ServerError

  ServerCalls& server_;
  const std::function<void(const AttemptName&, uint32_t, bool)> answered_;
  const std::function<void(AttemptWork&)> waits_;
  const std::function<bool()> has_work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool hurry_ = false;
  int64_t sleeps_until_ns_ = 0;  // 0: the thread is awake
  Starts starts_;
  // When starts_ is looked at next: one look for all that have come and gone meanwhile.
  int64_t starts_due_ns_;
  std::deque<End> ends_;
  std::thread thread_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_REPORTER_H_
