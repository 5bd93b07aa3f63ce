#include "server/jobs/log_service.h"

#include <algorithm>

#include "server/refusal.h"
#include "server/spool/service.h"

namespace sublet::server {
namespace {

using Clock = std::chrono::steady_clock;
using scheduling::AttemptState;

constexpr int64_t kLongestHold = 10'000;                    // ms
constexpr auto kAskAgain = std::chrono::milliseconds(500);  // between checks of the state

std::string named(JobId job) { return "job " + std::to_string(job); }
std::string named(JobId job, uint32_t attempt) {
  return "attempt " + std::to_string(attempt) + " of " + named(job);
}

Refusal attempt_unknown(JobId job, uint32_t attempt) {
  return Refusal(Refusal::Kind::kNotFound, "attempt.unknown", "there is no " + named(job, attempt),
                 "See `sublet show " + std::to_string(job) + "`.", named(job, attempt));
}

Refusal gone(JobId job, uint32_t attempt) {
  return Refusal(Refusal::Kind::kNotFound, "log.gone",
                 "the output of " + named(job, attempt) + " is not kept",
                 "Only the last attempt's output is kept, once the job is done or has failed; "
                 "`sublet logs --follow` reads other attempts while they run.",
                 named(job, attempt));
}

Refusal silent(const LogQuery& query, uint32_t attempt, const std::string& machine,
               const std::string& why) {
  return Refusal(
      Refusal::Kind::kUnavailable, "log.machine",
      machine + ", which runs " + named(query.job, attempt) + ", did not return its output: " + why,
      "Try again; if the machine stays unreachable, the job resumes on another.", machine);
}

}  // namespace

LogService::LogService(Archive& archive, Spool& spool, Access& access, LogDesk& desk)
    : archive_(archive), spool_(spool), access_(access), desk_(desk) {}

LogService::Source LogService::source_of(const AttemptRow& row, bool newest, FileKind stream) {
  using Where = Source::Where;
  Source source{row.attempt.key.attempt, Where::kNowhereYet, row.attempt.machine, row.machine_name,
                false};
  const AttemptState state = row.attempt.state;
  if (state == AttemptState::kRunning || state == AttemptState::kSuspended ||
      state == AttemptState::kLeaving || state == AttemptState::kDelivering) {
    source.where = Where::kMachine;
  } else if (state == AttemptState::kEnded) {
    const auto ended = row.attempt.ended;
    const bool kept =
        newest && (ended == scheduling::EndReason::kDone || scheduling::is_failure(ended));
    source.where = kept ? Where::kSpool : Where::kNowhere;
    source.cut = stream == FileKind::kStdout ? row.end.stdout_cut : row.end.stderr_cut;
  }
  return source;
}

// query.attempt 0 selects the newest attempt, or the next one if the newest left no
// output and the job has not ended.
LogService::Source LogService::find(const Caller& caller, const LogQuery& query) {
  const auto job = archive_.job(query.job);
  if (!job)
    throw Refusal(Refusal::Kind::kNotFound, "job.unknown", "there is no " + named(query.job),
                  "See `sublet ls --all`.", named(query.job));
  access_.require_owner(caller, job->job.user, named(query.job));
  const bool ended = scheduling::is_final(job->job.state);
  const std::vector<AttemptRow> attempts = archive_.attempts(query.job);
  const uint32_t newest = attempts.empty() ? 0 : attempts.back().attempt.key.attempt;
  Source next;
  next.attempt = newest + 1;
  if (query.attempt == 0) {
    if (newest == 0 && ended) return {0, Source::Where::kSpool, 0, "", false};
    if (newest == 0) return next;
    Source source = source_of(attempts.back(), true, query.stream);
    return source.where == Source::Where::kNowhere && !ended ? next : source;
  }
  if (query.attempt == next.attempt && !ended) return next;
  for (const AttemptRow& row : attempts)
    if (row.attempt.key.attempt == query.attempt)
      return source_of(row, query.attempt == newest, query.stream);
  throw attempt_unknown(query.job, query.attempt);
}

// A stream to which nothing was written has no file.
LogPiece LogService::read_spool(const LogQuery& query, const Source& source) {
  LogPiece piece{source.attempt, source.machine_name, "", true, source.cut, false};
  const auto row = archive_.output(query.job, query.stream, "");
  if (const Micros at = row ? 0 : archive_.outputs_removed_at(query.job); at > 0)
    throw outputs_removed(query.job, at);
  if (!row || row->attempt != source.attempt || query.offset >= row->size) return piece;
  piece.text.resize(std::min<uint64_t>(kTextOctets, row->size - query.offset));
  piece.text.resize(spool_.read(*row, query.offset, piece.text));
  piece.ended = query.offset + piece.text.size() >= row->size;
  return piece;
}

LogPiece LogService::read(const Caller& caller, const LogQuery& asked) {
  using Where = Source::Where;
  if (asked.stream != FileKind::kStdout && asked.stream != FileKind::kStderr)
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid",
                  "a job has only standard output and standard error",
                  "Ask for FILE_STDOUT or FILE_STDERR.", "stream");
  const auto until =
      Clock::now() + std::chrono::milliseconds(std::clamp<int64_t>(asked.hold_ms, 0, kLongestHold));
  LogQuery query = asked;
  std::optional<LogDesk::Place> place;
  std::string failure;
  while (true) {
    const Source source = find(caller, query);
    // Once the machine has been asked, stay with this attempt.
    if (source.where == Where::kMachine) query.attempt = source.attempt;
    LogPiece piece{source.attempt, source.machine_name, "", false, false, false};
    if (source.where == Where::kNowhere) throw gone(query.job, source.attempt);
    if (source.where == Where::kSpool) return read_spool(query, source);
    if (desk_.stopping())
      throw Refusal(Refusal::Kind::kUnavailable, "server.stopping", "the server is stopping",
                    "Try again.", "server");
    // According to the database it still runs there, but the request failed.
    if (!failure.empty()) throw silent(query, source.attempt, source.machine_name, failure);
    if (!place) place = desk_.enter(caller.user);
    piece.busy = !place;
    if (piece.busy) return piece;
    const auto again_at = std::min(until, Clock::now() + kAskAgain);
    if (source.where == Where::kMachine) {
      TextAnswer answer = desk_.ask(
          source.machine, {{query.job, source.attempt}, query.stream, query.offset}, again_at);
      piece.text = answer.kind == TextAnswer::Kind::kText ? std::move(answer.text) : "";
      if (!piece.text.empty()) return piece;
      if (answer.kind == TextAnswer::Kind::kFailed) {
        failure = answer.text;
        continue;
      }
    }
    if (Clock::now() >= until) return piece;
    // Also if the machine does not have the attempt: the order to start it, or the report of
    // its end, has not arrived yet.
    desk_.pause(again_at);
  }
}

}  // namespace sublet::server
