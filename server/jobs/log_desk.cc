#include "server/jobs/log_desk.h"

#include <algorithm>

namespace sublet::server {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = TextAnswer::Kind;

bool without_text(const TextAnswer& answer) {
  return answer.kind == Kind::kText && answer.text.empty();
}

}  // namespace

LogDesk::LogDesk(const LogDeskSettings& settings, Ask ask)
    : settings_(settings), ask_(std::move(ask)) {}

std::optional<LogDesk::Place> LogDesk::enter(const std::string& user) {
  std::lock_guard lock(mutex_);
  // A question whose askers gave up remains until it is answered, so it counts too.
  if (stopping_ || held_ >= settings_.held || questions_.size() >= settings_.held)
    return std::nullopt;
  auto of_user = held_of_.try_emplace(user).first;
  if (of_user->second >= settings_.held_per_user) return std::nullopt;
  ++of_user->second;
  ++held_;
  return std::optional<Place>(std::in_place, this, user);
}

void LogDesk::leave(const std::string& user) {
  std::lock_guard lock(mutex_);
  --held_;
  auto of_user = held_of_.find(user);
  if (--of_user->second == 0) held_of_.erase(of_user);
}

TextAnswer LogDesk::ask(scheduling::MachineId machine, const TextRequest& request,
                        TimePoint until) {
  const Key key{machine, request.key, request.stream, request.offset};
  std::unique_lock lock(mutex_);
  Question& question = questions_[key];  // not erased while it has askers
  ++question.askers;
  TextAnswer answer = wait(key, question, until, lock);
  if (--question.askers == 0 && !question.open()) questions_.erase(key);
  return answer;
}

TextAnswer LogDesk::wait(const Key& key, Question& question, TimePoint until,
                         std::unique_lock<std::mutex>& lock) {
  // An answer to a request sent earlier may be out of date: its text is valid, but not its
  // lack of text.
  const uint64_t seen = question.answered, mine = question.put + 1;
  const TimePoint latest = std::max(until, Clock::now()) + settings_.answer_within;
  while (!stopping_) {
    const TimePoint now = Clock::now();
    if (question.answered > seen && !without_text(question.answer)) return question.answer;
    if (question.answered >= mine && now >= until) return question.answer;
    if (now >= latest) break;
    if (!question.open() && (question.answered < mine || now >= question.next)) {
      put(key, question, lock);
      continue;
    }
    ++waiting_;
    news_.wait_until(lock, question.open() ? latest : std::min(until, question.next));
    --waiting_;
  }
  return {Kind::kFailed, stopping_ ? "the server is stopping" : "it did not answer in time"};
}

void LogDesk::put(const Key& key, Question& question, std::unique_lock<std::mutex>& lock) {
  ++question.put;
  lock.unlock();
  ask_(key.machine, {key.attempt, key.stream, key.offset},
       [this, key](TextAnswer answer) { on_text(key, std::move(answer)); });
  lock.lock();
}

void LogDesk::on_text(const Key& key, TextAnswer answer) {
  std::lock_guard lock(mutex_);
  auto found = questions_.find(key);
  Question& question = found->second;
  question.answered = question.put;
  question.pause = std::clamp(question.pause * 2, settings_.first_pause, settings_.longest_pause);
  question.next = Clock::now() + question.pause;
  question.answer = std::move(answer);
  if (question.askers == 0)
    questions_.erase(found);
  else
    news_.notify_all();
}

void LogDesk::pause(TimePoint until) {
  std::unique_lock lock(mutex_);
  news_.wait_until(lock, until, [this] { return stopping_; });
}

void LogDesk::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  news_.notify_all();
}

bool LogDesk::stopping() const {
  std::lock_guard lock(mutex_);
  return stopping_;
}

size_t LogDesk::waiting() const {
  std::lock_guard lock(mutex_);
  return waiting_;
}

}  // namespace sublet::server
