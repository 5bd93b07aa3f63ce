// A thread pool for slow work: files and calls to the server. A task runs once,
// when it is due, on any of the threads. There is no order among tasks: two of the
// same attempt are never queued at once. Any thread may post; the mutex protects
// only the queue and the list of threads.
//
// Two threads are made at the start, the others when all are at work: an idle workstation has no
// use for them, and each takes 8 kB. They are made by threads of the pool, whose priorities they
// inherit, and never under the mutex, since a machine without memory may take its time.
#ifndef SUBLET_CLIENT_WORKERS_H_
#define SUBLET_CLIENT_WORKERS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "attempt/disk_priority.h"

namespace sublet::client {

class Workers {
 public:
  // nice: of these threads; disk: their disk priority. Both are inherited
  // by the processes they start.
  explicit Workers(size_t threads, int nice = 0, DiskPriority disk = DiskPriority::kNormal);
  // Waits for running tasks and drops queued ones (their work is recorded on disk and
  // resumed at the next start).
  ~Workers();
  void stop();

  void post(std::function<void()> task, int64_t delay_ms = 0);
  // Runs delayed tasks now: the server is back, or a task must stop.
  void hurry();

 private:
  void work();
  void run(std::function<void()> task);
  // Called before a task is run, so that the next one does not wait for it.
  void add_thread_if_none_waits(std::unique_lock<std::mutex>& lock);

  const size_t most_;
  const int nice_;
  const DiskPriority disk_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<int64_t, std::function<void()>> tasks_;  // by CLOCK_BOOTTIME ns
  bool stopping_ = false;
  size_t made_ = 0;     // threads, or being made
  size_t waiting_ = 0;  // of them, for a task
  std::vector<std::thread> threads_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_WORKERS_H_
