#include "cli/commands/log_reading.h"

#include <algorithm>

#include "cli/names.h"
#include "cli/views/job_text.h"
#include "cli/views/output.h"
#include "protocol/attempt.h"

namespace sublet::cli {

namespace {

using std::chrono::milliseconds;

constexpr int64_t kHoldMs = 10'000;
constexpr int64_t kHoldOfTwoMs = 500;    // short: while one stream waits, the other is not read
constexpr milliseconds kEmptyPause{20};  // avoids spinning if the server answers at once
constexpr milliseconds kAwayPause{1'000};
constexpr int kAwayTries = 600;
constexpr milliseconds kBusyPause{200};
constexpr int kBusyTries = 50;

PoolError busy() {
  return {ErrorKind::unavailable, "log.busy", "too many readers of job output",
          "try again later, or end some `sublet logs --follow`"};
}

}  // namespace

LogReader::LogReader(LogCalls& calls, LogOutput& output, LogRequest request, Pause pause)
    : calls_(calls),
      output_(output),
      request_(std::move(request)),
      pause_(std::move(pause)),
      attempt_(request_.attempt) {
  for (FileKind kind : request_.kinds) streams_.push_back({kind});
}

std::optional<JobDetail> LogReader::run() {
  for (Stream& stream : streams_) read_what_is_there(stream);
  if (!request_.follow) return {};
  while (true) {
    follow_attempt();
    if (request_.attempt != 0) return {};
    JobDetail job = patiently([&] { return calls_.show(request_.job); });
    if (!go_to_next_attempt(job)) return job;
  }
}

void LogReader::read_what_is_there(Stream& stream) {
  if (request_.tail) last_lines_ = "";
  while (step(stream, 0) && !stream.ended) {
  }
  if (!last_lines_) return;
  const std::string text = *std::exchange(last_lines_, {});
  if (!text.empty()) output_.text(stream.kind, stream.offset - text.size(), text);
}

void LogReader::follow_attempt() {
  while (true) {
    const auto open = std::ranges::count_if(streams_, [](const Stream& s) { return !s.ended; });
    if (open == 0) return;
    bool any = false;
    for (Stream& stream : streams_)
      if (!stream.ended) any |= step(stream, open > 1 ? kHoldOfTwoMs : kHoldMs);
    if (!any) pause_(kEmptyPause);
  }
}

bool LogReader::go_to_next_attempt(const JobDetail& job) {
  const std::string name = "attempt " + std::to_string(attempt_);
  // Later attempts may have started and ended since.
  const bool last = is_final(job.summary.state) &&
                    (job.attempts.empty() || job.attempts.back().number <= attempt_);
  const bool gone = std::ranges::any_of(streams_, [](const Stream& s) { return s.gone; });
  for (const AttemptInfo& a : job.attempts)
    if (a.number == attempt_ && (gone || !last))
      output_.note(name + " ended: " + protocol::end_name(a.ended) +
                   (gone ? "; its last output is not kept" : ""));
  if (last) return false;
  ++attempt_;
  for (Stream& stream : streams_) stream = {stream.kind};
  return true;
}

bool LogReader::step(Stream& stream, int64_t hold_ms) {
  const std::optional<LogPart> part = ask(stream, hold_ms);
  if (!part) {
    stream.ended = stream.gone = true;
    output_.end(stream.kind, false);
    return false;
  }
  announce(*part);
  if (last_lines_) {
    *last_lines_ += part->text;
    keep_last_lines(*last_lines_, *request_.tail);
  } else if (!part->text.empty()) {
    output_.text(stream.kind, stream.offset, part->text);
  }
  stream.offset += part->text.size();
  stream.ended = part->ended;
  if (part->ended) output_.end(stream.kind, part->cut);
  return !part->text.empty();
}

std::optional<LogPart> LogReader::ask(const Stream& stream, int64_t hold_ms) {
  try {
    return patiently([&] { return ask_until_heard(stream, hold_ms); });
  } catch (const PoolError& e) {
    // The attempt was there or was expected; nothing is kept of it.
    const bool ended = e.code == "log.gone" || e.code == "attempt.unknown";
    if (!ended || !announced_) throw;
    return {};
  }
}

LogPart LogReader::ask_until_heard(const Stream& stream, int64_t hold_ms) {
  for (int tries = 0; request_.follow || tries < kBusyTries; ++tries) {
    LogPart part = calls_.read_log(request_.job, attempt_, stream.kind, stream.offset, hold_ms);
    if (!part.busy) return part;
    pause_(kBusyPause);
  }
  throw busy();
}

template <typename Call>
auto LogReader::patiently(Call call) -> decltype(call()) {
  for (int tries = 0;; ++tries) {
    try {
      return call();
    } catch (const PoolError& e) {
      if (e.kind != ErrorKind::unavailable || !request_.follow || tries >= kAwayTries) throw;
      if (tries == 0) output_.note(error_line(e) + " (still following)");
      pause_(kAwayPause);
    }
  }
}

void LogReader::announce(const LogPart& part) {
  attempt_ = part.attempt;
  const std::pair now(part.attempt, part.machine);
  if (announced_ == now) return;
  announced_ = now;
  output_.attempt(part.attempt, part.machine);
}

}  // namespace sublet::cli
