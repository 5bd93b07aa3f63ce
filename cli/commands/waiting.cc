#include "cli/commands/waiting.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "cli/names.h"
#include "cli/pool/pool_client.h"
#include "cli/views/jobs.h"

namespace sublet::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kHoldMs = 5'000;  // other users' jobs send no changes: counted this often
constexpr int64_t kServerAwayMs = 600'000;
constexpr auto kShortestRound = std::chrono::milliseconds(200);
constexpr auto kBetweenLines = std::chrono::seconds(1);
constexpr int64_t kIdleMs = 1'000;  // no job runs for so long: the reason is printed
constexpr auto kBetweenReasons = std::chrono::seconds(2);
constexpr auto kFirstReasonPause = std::chrono::seconds(5);
constexpr auto kLongestReasonPause = std::chrono::seconds(600);

int64_t ms_since(Clock::time_point then) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - then).count();
}

std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

class Waiter {
 public:
  Waiter(Context& context, const JobFilter& filter, std::optional<int64_t> timeout_ms)
      : context_(context), filter_(filter), timeout_ms_(timeout_ms) {}

  WaitResult run() {
    PoolClient& pool = context_.pool();
    // First the position in the history, then the counts, so that no change is missed.
    since_ = pool.changes_since(0, 0).last;
    result_.counts = pool.count(filter_);
    if (nothing_runs()) idle_since_ = started_;
    ended_at_start_ = result_.counts.total() - result_.counts.unfinished();
    tell();
    while (result_.counts.unfinished() > 0 && !result_.timed_out) {
      Clock::time_point round = Clock::now();
      try_round();
      if (result_.counts.unfinished() == 0) break;
      tell();
      tell_reason();
      result_.timed_out = timeout_ms_ && ms_since(started_) >= *timeout_ms_;
      // Avoids spinning: a server with too many observers answers at once.
      if (!result_.timed_out) std::this_thread::sleep_until(round + kShortestRound);
    }
    tell();
    end_progress();
    if (result_.counts.removed > 0) {
      JobFilter stopped = filter_;
      stopped.stopped = JobFilter::Stopped::only;
      result_.stopped = pool.count(stopped).removed;
    }
    return result_;
  }

 private:
  void try_round() {
    try {
      one_round();
      away_since_.reset();
    } catch (const PoolError& e) {
      if (e.kind != ErrorKind::unavailable) throw;
      if (!away_since_) {
        away_since_ = Clock::now();
        say(error_line(e) + " (still waiting)");
      }
      if (ms_since(*away_since_) > kServerAwayMs) throw;
    }
  }

  void one_round() {
    const bool soon = nothing_runs() && last_reason_.empty() && !context_.json;
    int64_t hold = soon ? kIdleMs : kHoldMs;
    if (line_waits_) hold = std::clamp<int64_t>(-ms_since(next_line_), 0, hold);
    if (timeout_ms_) hold = std::clamp<int64_t>(*timeout_ms_ - ms_since(started_), 0, hold);
    ChangePage page = context_.pool().changes_since(since_, hold);
    since_ = page.last;
    for (const Change& c : page.items) {
      bool ours = filter_.batch != 0 ? c.batch == filter_.batch : contains_id(filter_.ids, c.job);
      if (ours && is_eviction(c.ended)) ++result_.evictions;
    }
    result_.counts = context_.pool().count(filter_);
    if (!nothing_runs()) return idle_since_.reset();
    if (!idle_since_) idle_since_ = Clock::now();
    if (ms_since(*idle_since_) < kIdleMs || Clock::now() < next_reason_ || context_.json) return;
    find_reason();
  }

  bool nothing_runs() const {
    const JobCounts& c = result_.counts;
    return c.placed + c.running + c.suspended + c.delivering == 0;
  }

  // Of the first job that is not done, as the brain sees it now. Others' jobs cannot be shown:
  // then there is no reason.
  void find_reason() {
    next_reason_ = Clock::now() + kBetweenReasons;
    JobFilter first = filter_;
    first.runs = first.unfinished_only = true;
    try {
      const JobPage page = context_.pool().list(first, "", 1);
      if (page.jobs.empty()) return;
      const JobSummary job = context_.pool().show(page.jobs[0].id).summary;
      if (job.state != kWaiting && job.state != kHeld) return;
      // "held by ann", "held: 5 attempts in a row vanished ..."
      const bool says_held = job.reason.starts_with("held");
      reason_ = "job " + std::to_string(job.id) +
                (job.state != kHeld ? " waits: "
                 : says_held        ? " is "
                                    : " is held: ") +
                escape_for_terminal(job.reason);
    } catch (const PoolError&) {
      return;
    }
  }

  // Another reason is told at once; the same with other numbers, which may change all the time,
  // more and more seldom.
  void tell_reason() {
    if (reason_ == last_reason_) return;
    const bool other = without_digits(reason_) != without_digits(last_reason_);
    if (!other && Clock::now() < next_numbers_) return;
    reason_pause_ = other ? kFirstReasonPause : std::min(2 * reason_pause_, kLongestReasonPause);
    next_numbers_ = Clock::now() + reason_pause_;
    last_reason_ = reason_;
    end_progress();
    say(reason_);
  }

  void tell() {
    const JobCounts& c = result_.counts;
    uint64_t ended = c.total() - c.unfinished();
    std::string line =
        progress_line(c, result_.evictions,
                      c.held > 0 ? std::nullopt
                                 : time_left(ended - std::min(ended, ended_at_start_),
                                             c.unfinished(), ms_since(started_)));
    if (context_.terminal.err_is_screen) {
      show_progress(line, context_.terminal.err_columns);
    } else if (!context_.json) {
      line_waits_ = line != last_line_ && Clock::now() < next_line_;
      if (line == last_line_ || line_waits_) return;
      say(line);
      last_line_ = line;
      next_line_ = Clock::now() + kBetweenLines;
    }
  }

  Context& context_;
  const JobFilter& filter_;
  std::optional<int64_t> timeout_ms_;
  Clock::time_point started_ = Clock::now();
  bool line_waits_ = false;  // until next_line_
  Clock::time_point next_line_ = started_;
  Clock::time_point next_reason_ = started_;
  std::optional<Clock::time_point> idle_since_;  // none of the jobs has run since then
  std::chrono::seconds reason_pause_ = kFirstReasonPause;
  Clock::time_point next_numbers_ = started_;
  std::string reason_, last_reason_;
  std::optional<Clock::time_point> away_since_;
  uint64_t since_ = 0;
  uint64_t ended_at_start_ = 0;
  std::string last_line_;
  WaitResult result_;
};

void name_failed(Context& context, JobFilter filter) {
  constexpr uint32_t kNamed = 10;
  filter.states = {kFailed, kRemoved};
  filter.stopped = JobFilter::Stopped::without;
  JobPage page = context.pool().list(filter, "", kNamed);
  for (const JobSummary& job : page.jobs)
    say("job " + std::to_string(job.id) + " " + job_state_name(job.state) +
        (job.reason.empty() ? "" : ": " + escape_for_terminal(job.reason)) + "; see `sublet show " +
        std::to_string(job.id) + "`");
  if (!page.next.empty()) say("and more; see `sublet ls --state failed --state removed`");
}

// Prints the reason of one of the jobs that a stopped batch removed.
void name_stopped(Context& context, JobFilter filter, uint64_t count) {
  filter.stopped = JobFilter::Stopped::only;
  filter.runs = true;
  JobPage page = context.pool().list(filter, "", 1);
  if (page.jobs.empty()) return;
  say(counted(count, "job") + " removed; job " + std::to_string(page.jobs[0].id) + ": " +
      escape_for_terminal(page.jobs[0].reason));
}

}  // namespace

int WaitResult::exit_status() const {
  return counts.failed + counts.removed > stopped ? kExitJobsFailed : 0;
}

WaitResult wait_for_jobs(Context& context, const JobFilter& filter,
                         std::optional<int64_t> timeout_ms) {
  return Waiter(context, filter, timeout_ms).run();
}

std::function<void()> tell_how_to_continue(const Context& context, const JobFilter& filter,
                                           const std::string& options,
                                           std::function<void(JsonWriter&)> begin) {
  const PoolError error(ErrorKind::unavailable, "wait.interrupted", "the jobs stay in the pool",
                        "to continue: `sublet wait " + options + Selection::words(filter) + "`");
  return [error, json = context.json, begin = std::move(begin)] {
    // Not made safe to show: the command is for copying.
    if (!json) return say("sublet: " + error.message + "; " + error.advice);
    JsonWriter out;
    begin(out.begin_object());
    out.key("error");
    write_json(out, error);
    out.end_object();
    print(out.str() + "\n");
  };
}

std::optional<int64_t> time_left(uint64_t ended, uint64_t left, int64_t elapsed_ms) {
  if (ended < 3 || elapsed_ms < 5'000 || left == 0) return {};
  return static_cast<int64_t>(static_cast<double>(elapsed_ms) * static_cast<double>(left) /
                              static_cast<double>(ended));
}

std::string progress_line(const JobCounts& c, uint64_t evictions, std::optional<int64_t> left_ms) {
  std::string out = std::to_string(c.done) + " of " + std::to_string(c.total()) + " done";
  auto add = [&](uint64_t n, const char* what) {
    if (n > 0) out += ", " + std::to_string(n) + " " + what;
  };
  add(c.failed, "failed");
  add(c.removed, "removed");
  add(c.running, "running");
  add(c.suspended, "suspended");
  add(c.delivering, "delivering");
  add(c.waiting + c.placed, "waiting");
  add(c.held, "held");
  if (evictions > 0) out += ", " + counted(evictions, "eviction");
  if (left_ms && *left_ms >= 1000)
    out += ", about " + format_duration_ms(*left_ms / 1000 * 1000) + " left";
  return out;
}

int report_wait(Context& context, const JobFilter& filter, const WaitResult& result) {
  const int status = result.exit_status();
  if (status != 0 && !context.json) name_failed(context, filter);
  if (result.stopped > 0 && !context.json) name_stopped(context, filter, result.stopped);
  if (!context.json) print(counts_line(result.counts) + "\n");
  if (result.timed_out) {
    if (!context.json)
      say("sublet: the timeout has expired; to continue: `sublet wait " + Selection::words(filter) +
          "`");
    return kExitTimeout;
  }
  return status;
}

}  // namespace sublet::cli
