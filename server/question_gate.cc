#include "server/question_gate.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "server/refusal.h"

namespace sublet::server {
namespace {

// A tenth of the weight of the other threads: low enough that these do not wait for a question,
// and high enough that it does not stop half-way through what others wait for.
constexpr int kNice = 10;

Refusal stopping() {
  return Refusal(Refusal::Kind::kUnavailable, "server.stopping", "the server is stopping",
                 "Try again in a moment.", "server");
}

}  // namespace

QuestionGate::QuestionGate(Settings settings) : settings_(std::move(settings)) {}

QuestionGate::~QuestionGate() { stop(); }

size_t QuestionGate::waiting() {
  std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const auto& [user, questions] : waiting_) sum += questions.size();
  return sum;
}

void QuestionGate::stop() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto& [user, questions] : waiting_)
      for (auto& question : questions) question->taken.set_value(false);
    waiting_.clear();
    turns_.clear();
    threads.swap(threads_);
  }
  changed_.notify_all();
  rested_.notify_all();
  for (auto& thread : threads) thread.join();
}

void QuestionGate::start_threads() {
  while (threads_.size() < settings_.at_once) threads_.emplace_back([this] { serve(); });
}

void QuestionGate::enqueue(const std::string& user, std::function<void()> answer) {
  const auto question = std::make_shared<Question>();
  question->answer = std::move(answer);
  {
    std::lock_guard lock(mutex_);
    if (stopping_) throw stopping();
    start_threads();
    const auto found = waiting_.find(user);
    if (found != waiting_.end() && found->second.size() >= settings_.waiting_per_user)
      throw Refusal(Refusal::Kind::kLimitExceeded, "questions.too_many",
                    std::to_string(found->second.size()) + " questions of " + user +
                        " wait for an answer already",
                    "Ask again when some of them are answered.", "questions");
    if (found == waiting_.end()) turns_.push_back(user);
    waiting_[user].push_back(question);
  }
  changed_.notify_one();
  if (!question->taken.get_future().get()) throw stopping();
}

std::deque<std::string>::iterator QuestionGate::next_user() {
  return std::ranges::find_if(turns_,
                              [&](const std::string& user) { return !answered_.contains(user); });
}

void QuestionGate::answer(Question& question) {
  const auto begun = std::chrono::steady_clock::now();
  settings_.run ? settings_.run(question.answer) : question.answer();
  question.taken.set_value(true);
  const auto ended = std::chrono::steady_clock::now();
  const auto rest = std::clamp<std::chrono::steady_clock::duration>(
      ended - begun, settings_.least_rest, settings_.longest_rest);
  std::unique_lock lock(mutex_);
  rested_.wait_until(lock, ended + rest, [&] { return stopping_; });
}

void QuestionGate::serve() {
  setpriority(PRIO_PROCESS, 0, kNice);  // of this thread; may be lowered by any user
  if (settings_.begin) settings_.begin();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || next_user() != turns_.end(); });
    if (stopping_) return;
    const auto turn = next_user();
    const std::string user = *turn;
    turns_.erase(turn);
    auto& questions = waiting_[user];
    const std::shared_ptr<Question> question = std::move(questions.front());
    questions.pop_front();
    if (questions.empty())
      waiting_.erase(user);
    else
      turns_.push_back(user);
    answered_.insert(user);
    lock.unlock();
    answer(*question);
    lock.lock();
    answered_.erase(user);
    changed_.notify_one();
  }
}

}  // namespace sublet::server
