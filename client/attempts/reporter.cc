#include "client/attempts/reporter.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "protocol/attempt.h"

namespace sublet::client {
namespace {

// Limits of one call, which may always carry a single end. Outputs are limited so that
// the server answers in time, bytes so that the call fits into an ORB message (2 MiB),
// however many ends accumulated while the server was down. kMostReports is the IDL's.
constexpr size_t kMostOutputs = 10'000;
constexpr size_t kMostBytes = 512 << 10;
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kFirstRefusedMs = 1'000;
constexpr int64_t kLastRefusedMs = 60'000;

// Approximate size in a message.
size_t bytes_of(const AttemptEnd& end) {
  return sizeof end + end.reason.size() + end.outputs.size() * sizeof end.outputs[0];
}

}  // namespace

Reporter::Reporter(ServerCalls& server,
                   std::function<void(const AttemptName&, uint32_t, bool)> answered,
                   std::function<void(AttemptWork&)> waits, std::function<bool()> has_work)
    : server_(server),
      answered_(std::move(answered)),
      waits_(std::move(waits)),
      has_work_(std::move(has_work)),
      starts_due_ns_(kNever),
      thread_([this] { run(); }) {}

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
  const int64_t now = system_clock().boot_ns();
  const int64_t due = now + protocol::kStartToldAfterMs * kMs;
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    starts_.push_back({std::move(work), at_us, now, due});
    starts_due_ns_ = std::min(starts_due_ns_, due);
    wake = sleeps_beyond(starts_due_ns_);
  }
  if (wake) changed_.notify_one();
}

void Reporter::tell_ended(std::shared_ptr<AttemptWork> work) {
  const bool gathers = !protocol::is_eviction(work->end.end) && has_work_();
  const int64_t due = gathers ? system_clock().boot_ns() + kGatherNs : 0;
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    ends_.push_back({std::move(work), 0, due});
    wake = sleeps_beyond(due);
  }
  if (wake) changed_.notify_one();
}

void Reporter::tell_refused(std::shared_ptr<const Assignment> assignment,
                            const std::string& reason) {
  auto work = std::make_shared<AttemptWork>(std::move(assignment), "");
  work->outlives_power = true;
  work->end.name = work->assignment->name;
  work->end.end = protocol::kEndRefused;
  work->end.reason = reason;
  work->end.finished_us = system_clock().utc_us();
  tell_ended(std::move(work));
}

void Reporter::hurry() {
  {
    std::lock_guard lock(mutex_);
    hurry_ = true;
  }
  changed_.notify_one();
}

int64_t Reporter::next_due() const {
  int64_t due = starts_due_ns_;
  for (const auto& end : ends_) due = std::min(due, end.due_ns);
  return due;
}

Reporter::Starts Reporter::take_starts(int64_t now) {
  Starts out;
  std::erase_if(starts_, [](const Start& start) { return start.work->ended.load(); });
  if (starts_due_ns_ > now) return out;
  starts_due_ns_ = kNever;
  std::erase_if(starts_, [&](const Start& start) {
    const bool due = start.due_ns <= now;
    if (due)
      out.push_back(start);
    else
      starts_due_ns_ = std::min(starts_due_ns_, start.due_ns);
    return due;
  });
  return out;
}

Reporter::Ends Reporter::take_ends(int64_t now) {
  Ends out;
  // With one that is due all go.
  if (std::ranges::none_of(ends_, [&](const End& end) { return end.due_ns <= now; })) return out;
  std::deque<End> rest;
  size_t outputs = 0, bytes = 0;
  for (auto& end : ends_) {
    const AttemptEnd& what = end.work->end;
    // An end that was refused is sent alone: it would make the whole call fail.
    bool fits =
        out.empty() ||
        (out.size() < kMostReports && out[0].refused_pause_ms == 0 && end.refused_pause_ms == 0 &&
         outputs + what.outputs.size() <= kMostOutputs && bytes + bytes_of(what) <= kMostBytes);
    const bool postponed = end.refused_pause_ms > 0 && end.due_ns > now;
    if (postponed || !fits) {
      rest.push_back(end);
      continue;
    }
    outputs += what.outputs.size();
    bytes += bytes_of(what);
    out.push_back(end);
  }
  ends_.swap(rest);
  return out;
}

// Waits until there is something to report and the pause has passed. False: stop.
bool Reporter::wait(std::unique_lock<std::mutex>& lock, int64_t pause_ms) {
  int64_t free_ns = system_clock().boot_ns() + pause_ms * kMs;
  for (;;) {
    if (stopping_) return false;
    if (hurry_) {
      hurry_ = false;
      free_ns = 0;
      for (auto& end : ends_) end.due_ns = 0;
    }
    int64_t due = std::max(next_due(), free_ns);
    int64_t now = system_clock().boot_ns();
    if (due <= now) return true;
    sleeps_until_ns_ = due;
    if (due == kNever)
      changed_.wait(lock);
    else
      changed_.wait_for(lock, std::chrono::nanoseconds(due - now));
    sleeps_until_ns_ = 0;
  }
}

void Reporter::run() {
  int64_t pause_ms = 0;
  std::unique_lock lock(mutex_);
  while (wait(lock, pause_ms)) {
    const int64_t now = system_clock().boot_ns();
    Starts starts = take_starts(now);
    Ends ends = take_ends(now);
    lock.unlock();
    bool ok = send_starts(starts) && send_ends(ends);
    for (const auto& end : ends) waits_(*end.work);
    lock.lock();
    starts_.insert(starts_.begin(), starts.begin(), starts.end());
    for (const Start& start : starts) starts_due_ns_ = std::min(starts_due_ns_, start.due_ns);
    // Refused ends are queued again behind the others.
    auto at = ok ? ends_.end() : ends_.begin();
    ends_.insert(at, ends.begin(), ends.end());
    pause_ms = ok ? 0 : next_pause(pause_ms);
  }
}

bool Reporter::send_starts(Starts& starts) {
  std::erase_if(starts, [](const Start& start) { return start.work->ended.load(); });
  size_t most = kMostReports;  // per call; 1 after a refusal, to find the bad report
  while (!starts.empty()) {
    const auto end = starts.begin() + static_cast<ptrdiff_t>(std::min(most, starts.size()));
    const Starts group(starts.begin(), end);
    try {
      send_group(group);
    } catch (const ServerError& error) {
      if (error.passing()) return false;
      if (group.size() > 1) {
        most = 1;
        continue;
      }
      log(Severity::warning) << group[0].work->label()
                             << ": the server refused the report of its start: " << error.what();
    }
    starts.erase(starts.begin(), end);
  }
  return true;
}

void Reporter::send_group(const Starts& starts) {
  std::vector<AttemptStart> reports;
  const int64_t now = system_clock().boot_ns();
  for (const Start& start : starts)
    reports.push_back({start.work->assignment->name, start.at_us, (now - start.since_ns) / kMs});
  for (const auto& verdict : server_.started(reports))
    answered_(verdict.name, verdict.value, false);
}

void Reporter::postpone(End& end) {
  end.refused_pause_ms = std::clamp(end.refused_pause_ms * 2, kFirstRefusedMs, kLastRefusedMs);
  end.due_ns = system_clock().boot_ns() + end.refused_pause_ms * kMs;
}

bool Reporter::send_ends(Ends& ends) {
  if (ends.empty()) return true;
  try {
    send_batch(ends);
    return true;
  } catch (const ServerError& error) {
    if (error.passing()) return false;
    if (ends.size() == 1) {
      End& end = ends[0];
      postpone(end);
      log(Severity::error) << end.work->label() << ": the server refused the report of its end, "
                           << "again in " << format_duration_ms(end.refused_pause_ms) << ": "
                           << error.what();
      return true;
    }
  }
  // One bad report must not hold up the others.
  Ends left;
  bool here = true;
  for (auto& end : ends) {
    Ends one{end};
    here = here && send_ends(one);
    left.insert(left.end(), one.begin(), one.end());
  }
  ends = std::move(left);
  return here;
}

void Reporter::send_batch(Ends& ends) {
  std::vector<AttemptEnd> reports;
  for (const auto& end : ends) reports.push_back(end.work->end);
  std::set<AttemptName> answered;
  for (const auto& verdict : server_.ended(reports)) {
    answered.insert(verdict.name);
    answered_(verdict.name, verdict.value, true);
  }
  std::erase_if(ends,
                [&](const auto& end) { return answered.contains(end.work->assignment->name); });
  // Ends left out of the answer count as refused.
  for (auto& end : ends) postpone(end);
}

}  // namespace sublet::client
