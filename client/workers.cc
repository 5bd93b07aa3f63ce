#include "client/workers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>

#include "base/clock.h"
#include "base/log.h"

namespace sublet::client {

namespace {

constexpr size_t kMadeAtStart = 2;

}  // namespace

Workers::Workers(size_t threads, int nice, DiskPriority disk)
    : most_(threads), nice_(nice), disk_(disk), made_(std::min(threads, kMadeAtStart)) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < made_; ++i) threads_.emplace_back([this] { work(); });
}

Workers::~Workers() { stop(); }

void Workers::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    tasks_.clear();
  }
  changed_.notify_all();
  // One that is making another adds it before its own end.
  for (std::thread one;; one.join()) {
    std::lock_guard lock(mutex_);
    if (threads_.empty()) break;
    one = std::move(threads_.back());
    threads_.pop_back();
  }
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

void Workers::add_thread_if_none_waits(std::unique_lock<std::mutex>& lock) {
  if (waiting_ > 0 || made_ == most_ || stopping_) return;
  ++made_;
  lock.unlock();
  std::thread next;
  try {
    next = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    log(Severity::warning) << "no further thread for work: " << error.what();
  }
  lock.lock();
  if (next.joinable())
    threads_.push_back(std::move(next));
  else
    --made_;
}

void Workers::run(std::function<void()> task) {
  try {
    task();
  } catch (const std::exception& error) {
    log(Severity::error) << "a task failed unexpectedly: " << error.what();
  }
}

void Workers::work() {
  // Raising the nice value is always permitted.
  if (nice_ > 0) setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice_);
  if (disk_ != DiskPriority::kNormal) set_disk_priority(0, disk_);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const int64_t wait_ns =
        tasks_.empty() ? INT64_MAX : tasks_.begin()->first - system_clock().boot_ns();
    if (wait_ns > 0) {
      ++waiting_;
      if (tasks_.empty())
        changed_.wait(lock);
      else
        changed_.wait_for(lock, std::chrono::nanoseconds(wait_ns));
      --waiting_;
      continue;
    }
    auto task = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
    add_thread_if_none_waits(lock);
    lock.unlock();
    run(std::move(task));
    lock.lock();
  }
}

}  // namespace sublet::client
