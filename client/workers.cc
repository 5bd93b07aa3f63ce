#include "client/workers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <exception>

#include "base/clock.h"
#include "base/log.h"

namespace sublet::client {

Workers::Workers(size_t threads, int nice, DiskPriority disk) {
  for (size_t i = 0; i < threads; ++i)
    threads_.emplace_back([this, nice, disk] { work(nice, disk); });
}

Workers::~Workers() { stop(); }

void Workers::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    tasks_.clear();
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void Workers::post(std::function<void()> task, int64_t delay_ms) {
  int64_t due = delay_ms <= 0 ? 0 : system_clock().boot_ns() + delay_ms * 1'000'000;
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    const auto queued = tasks_.emplace(due, std::move(task));
    // All threads that have nothing to do wait for the first.
    wake = due == 0 || queued == tasks_.begin();
  }
  if (wake) changed_.notify_one();
}

void Workers::hurry() {
  {
    std::lock_guard lock(mutex_);
    std::multimap<int64_t, std::function<void()>> now;
    for (auto& [due, task] : tasks_) now.emplace(0, std::move(task));
    tasks_.swap(now);
  }
  changed_.notify_all();
}

void Workers::work(int nice, DiskPriority disk) {
  // Raising the nice value is always permitted.
  if (nice > 0) setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);
  if (disk != DiskPriority::kNormal) set_disk_priority(0, disk);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (tasks_.empty()) {
      changed_.wait(lock);
      continue;
    }
    int64_t wait_ns = tasks_.begin()->first - system_clock().boot_ns();
    if (wait_ns > 0) {
      changed_.wait_for(lock, std::chrono::nanoseconds(wait_ns));
      continue;
    }
    auto task = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
    lock.unlock();
    try {
      task();
    } catch (const std::exception& error) {
      log(Severity::error) << "a task failed unexpectedly: " << error.what();
    }
    task = nullptr;
    lock.lock();
  }
}

}  // namespace sublet::client
