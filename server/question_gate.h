// Where users' questions wait that may take long: lists, counts, reports, what a job is. Few are
// answered at a time, by threads of low priority, so that no user's questions delay another's
// jobs, nor for long another's questions (rule 8): at most one of each user at a time, and the
// users take turns. After each answer the thread and the user rest: otherwise questions that are
// answered in no time would come as fast as both cores can carry them, and that work, of the ORB
// and of the caller, has no low priority.
//
// Threads: any may ask and stop. A question runs on a thread of the gate, so it must not hold the
// brain (Pipeline::ask): a thread of low priority might keep it for long.
#ifndef SUBLET_SERVER_QUESTION_GATE_H_
#define SUBLET_SERVER_QUESTION_GATE_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace sublet::server {

class QuestionGate {
 public:
  struct Settings {
    size_t at_once = 4;
    size_t waiting_per_user = 64;
    // The rest is as long as the answer took, within these.
    std::chrono::microseconds least_rest{2'000};
    std::chrono::microseconds longest_rest{20'000};
    // Calls this question, on a thread of the gate, with what shall hold for each; empty: nothing.
    std::function<void(const std::function<void()>& question)> run = {};
    // Called by each thread of the gate before its first question; empty: nothing.
    std::function<void()> begin = {};
  };

  // Its threads begin with the first question.
  explicit QuestionGate(Settings settings);
  ~QuestionGate();
  QuestionGate(const QuestionGate&) = delete;

  // Waits for this user's turn and returns what the question returns, or throws what it throws.
  // Throws Refusal kLimitExceeded "questions.too_many" if too many of the user wait, and
  // kUnavailable "server.stopping".
  template <typename F>
  auto ask(const std::string& user, F question) -> decltype(question()) {
    std::packaged_task<decltype(question())()> task(std::move(question));
    auto answer = task.get_future();
    enqueue(user, [&task] { task(); });
    return answer.get();
  }

  // Questions that wait for their turn.
  size_t waiting();

  // Refuses new questions and those that wait; returns when the others are answered.
  void stop();

 private:
  struct Question {
    std::function<void()> answer;
    // False: it is refused. Not an exception, which two threads would hold.
    std::promise<bool> taken;
  };
  // Returns when a thread has called `answer`; throws if none ever will.
  void enqueue(const std::string& user, std::function<void()> answer);
  void start_threads();
  void serve();
  // Answers it and rests.
  void answer(Question& question);
  // The user whose turn it is and who has no question under way; end(): there is none.
  std::deque<std::string>::iterator next_user();

  const Settings settings_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable rested_;  // only the end wakes who rests
  std::map<std::string, std::deque<std::shared_ptr<Question>>> waiting_;  // none is empty
  std::deque<std::string> turns_;   // the users of waiting_, whose turn is next first
  std::set<std::string> answered_;  // users whose question is under way, or who rest
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_QUESTION_GATE_H_
