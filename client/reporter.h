// Tells the server of starts and ends, in batches, until it answers. A thread of
// its own: a report never waits behind a file on its way, nor a renewal behind a
// report. What it still has to say is on disk in the attempts' folders, so
// nothing is lost with it.
#ifndef SUBLET_CLIENT_REPORTER_H_
#define SUBLET_CLIENT_REPORTER_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "client/attempt_work.h"
#include "client/server_calls.h"

namespace sublet::client {

class Reporter {
 public:
  // answered: VERDICT_... of a start or an end, on the reporter's thread.
  Reporter(ServerCalls& server,
           std::function<void(const AttemptName&, uint32_t verdict, bool of_end)> answered);
  ~Reporter();
  void stop();

  // Any thread. work->end is complete.
  void tell_started(std::shared_ptr<AttemptWork> work, int64_t at_us);
  void tell_ended(std::shared_ptr<AttemptWork> work);
  // The server is back.
  void hurry();

 private:
  struct Start {
    std::shared_ptr<AttemptWork> work;
    int64_t at_us;
  };
  void run();
  // False: the server is away, once more later.
  bool send_starts(std::deque<Start>& starts);
  bool send_ends(std::vector<std::shared_ptr<AttemptWork>>& ends);
  bool send_batch(std::vector<std::shared_ptr<AttemptWork>>& ends);  // throws ServerError

  ServerCalls& server_;
  const std::function<void(const AttemptName&, uint32_t, bool)> answered_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool hurry_ = false;
  std::deque<Start> starts_;
  std::vector<std::shared_ptr<AttemptWork>> ends_;
  std::thread thread_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_REPORTER_H_
