#include "cli/transfer/submission_outcome.h"

#include <string>
#include <utility>

namespace sublet::cli {

namespace {

PoolError uncertain(uint64_t batch) {
  const std::string subject = batch != 0 ? std::to_string(batch) : "";
  return PoolError(
      ErrorKind::unavailable, "submit.uncertain", "interrupted while the jobs were being committed",
      "see `sublet ls" + (batch != 0 ? " --batch " + subject : std::string()) + "`", subject);
}

}  // namespace

void SubmissionOutcome::batch_opened(uint64_t batch) {
  std::lock_guard lock(mutex_);
  submitted_.batch = batch;
}

bool SubmissionOutcome::begin_commit() {
  std::lock_guard lock(mutex_);
  if (stage_ == Stage::kInterrupted) return false;
  stage_ = Stage::kCommitting;
  return true;
}

Submitted SubmissionOutcome::committed(IdRange jobs) {
  std::lock_guard lock(mutex_);
  submitted_.jobs = jobs;
  if (stage_ == Stage::kCommitting) stage_ = Stage::kSubmitted;
  return submitted_;
}

void SubmissionOutcome::announce(const std::function<void()>& how) {
  std::lock_guard lock(mutex_);
  if (stage_ != Stage::kInterrupted) how();
}

void SubmissionOutcome::tell(const std::function<void()>& how) {
  std::lock_guard lock(mutex_);
  if (stage_ == Stage::kInterrupted) return;
  how();
  stage_ = Stage::kTold;
}

uint64_t SubmissionOutcome::interrupt(const std::function<void(const PoolError&)>& failed,
                                      const std::function<void(const Submitted&)>& submitted) {
  std::lock_guard lock(mutex_);
  switch (std::exchange(stage_, Stage::kInterrupted)) {
    case Stage::kSending:
      failed(PoolError(ErrorKind::unavailable, "submit.interrupted", "interrupted",
                       "nothing was submitted"));
      return submitted_.batch;
    case Stage::kCommitting:
      failed(uncertain(submitted_.batch));
      return 0;
    case Stage::kSubmitted:
      submitted(submitted_);
      return 0;
    case Stage::kTold:
    case Stage::kInterrupted:
      return 0;
  }
  return 0;
}

}  // namespace sublet::cli
