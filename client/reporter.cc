#include "client/reporter.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/log.h"

namespace sublet::client {
namespace {
constexpr size_t kMostEnds = 100;  // in one call, as the contract says
}

Reporter::Reporter(ServerCalls& server,
                   std::function<void(const AttemptName&, uint32_t, bool)> answered)
    : server_(server), answered_(std::move(answered)), thread_([this] { run(); }) {}

Reporter::~Reporter() { stop(); }

void Reporter::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Reporter::tell_started(std::shared_ptr<AttemptWork> work, int64_t at_us) {
  {
    std::lock_guard lock(mutex_);
    starts_.push_back({std::move(work), at_us});
  }
  changed_.notify_one();
}

void Reporter::tell_ended(std::shared_ptr<AttemptWork> work) {
  {
    std::lock_guard lock(mutex_);
    ends_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void Reporter::hurry() {
  {
    std::lock_guard lock(mutex_);
    hurry_ = true;
  }
  changed_.notify_one();
}

void Reporter::run() {
  int64_t pause_ms = 0;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (starts_.empty() && ends_.empty()) {
      changed_.wait(lock);
      continue;
    }
    if (pause_ms > 0) {
      changed_.wait_for(lock, std::chrono::milliseconds(pause_ms),
                        [this] { return stopping_ || hurry_; });
      if (stopping_) return;
    }
    hurry_ = false;
    std::deque<Start> starts;
    starts.swap(starts_);
    size_t count = std::min(kMostEnds, ends_.size());
    std::vector<std::shared_ptr<AttemptWork>> ends(ends_.begin(), ends_.begin() + count);
    ends_.erase(ends_.begin(), ends_.begin() + count);
    lock.unlock();
    bool ok = send_starts(starts) && send_ends(ends);
    lock.lock();
    starts_.insert(starts_.begin(), starts.begin(), starts.end());
    ends_.insert(ends_.begin(), ends.begin(), ends.end());
    pause_ms = ok ? 0 : next_pause(pause_ms);
  }
}

bool Reporter::send_starts(std::deque<Start>& starts) {
  for (; !starts.empty(); starts.pop_front()) {
    const Start& start = starts.front();
    if (start.work->over) continue;  // its end says everything
    const AttemptName& name = start.work->assignment->name;
    try {
      answered_(name, server_.started(name, start.at_us), false);
    } catch (const ServerError& error) {
      if (error.passing()) return false;
      log(Severity::warning) << start.work->label()
                             << ": the server refused to hear of its start: " << error.what();
    }
  }
  return true;
}

bool Reporter::send_ends(std::vector<std::shared_ptr<AttemptWork>>& ends) {
  if (ends.empty()) return true;
  try {
    return send_batch(ends);
  } catch (const ServerError& error) {
    if (error.passing()) return false;
    if (ends.size() == 1) {
      log(Severity::error) << ends[0]->label()
                           << ": the server refused the report of its end: " << error.what();
      return false;
    }
  }
  // One bad report must not hold up the others.
  std::vector<std::shared_ptr<AttemptWork>> left;
  for (auto& work : ends) {
    std::vector<std::shared_ptr<AttemptWork>> one{work};
    if (!send_ends(one)) left.push_back(work);
  }
  ends = std::move(left);
  return ends.empty();
}

bool Reporter::send_batch(std::vector<std::shared_ptr<AttemptWork>>& ends) {
  std::vector<AttemptEnd> reports;
  for (const auto& work : ends) reports.push_back(work->end);
  std::set<AttemptName> answered;
  for (const auto& verdict : server_.ended(reports)) {
    answered.insert(verdict.name);
    answered_(verdict.name, verdict.value, true);
  }
  std::erase_if(ends, [&](const auto& work) { return answered.contains(work->assignment->name); });
  return ends.empty();
}

}  // namespace sublet::client
