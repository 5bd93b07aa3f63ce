// The threads for slow work: files and the server. A task runs once, at its
// time, on any of them; tasks of one attempt are never queued together, so they
// need no order. Any thread may post; the mutex is held for the queue alone.
#ifndef SUBLET_CLIENT_WORKERS_H_
#define SUBLET_CLIENT_WORKERS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace sublet::client {

class Workers {
 public:
  // nice: of these threads; what they start has it too.
  explicit Workers(size_t threads, int nice = 0);
  // Finishes the tasks under way; those that wait are dropped (what they would
  // have done is on disk, and done at the next start).
  ~Workers();
  void stop();

  void post(std::function<void()> task, int64_t delay_ms = 0);
  // What waits for its time runs now: the server is back, or a task was told to
  // stop.
  void hurry();

 private:
  void work(int nice);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<int64_t, std::function<void()>> tasks_;  // by CLOCK_BOOTTIME ns
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_WORKERS_H_
