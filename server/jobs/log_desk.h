// Questions about what running attempts write, held for those who wait for the
// answer. Asking a workstation is another thread's work (the dispatcher's);
// here upcalls wait for it. Who asks for the same octets shares one question.
// While nothing comes the question is asked again, at growing intervals.
//
// Threads: any.
#ifndef SUBLET_SERVER_JOBS_LOG_DESK_H_
#define SUBLET_SERVER_JOBS_LOG_DESK_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "server/machines/dispatcher.h"

namespace sublet::server {

struct LogDeskSettings {
  size_t held = 256;         // calls that wait, in all
  size_t held_per_user = 8;  // and of one user
  // Between an answer without text and the next question: doubling.
  std::chrono::milliseconds first_pause{200};
  std::chrono::milliseconds longest_pause{1'000};
  // A question that is not answered for so long counts as failed.
  std::chrono::milliseconds answer_within{15'000};
};

class LogDesk {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // Puts a question to a workstation and returns; the answer is told later, on
  // another thread, once or (while stopping) never.
  using Ask = std::function<void(scheduling::MachineId, const TextRequest&,
                                 std::function<void(TextAnswer)> callback)>;

  LogDesk(const LogDeskSettings& settings, Ask ask);

  // One held call of a user's, counted while it lives.
  class Place {
   public:
    Place(LogDesk* desk, std::string user) : desk_(desk), user_(std::move(user)) {}
    Place(Place&& other) noexcept
        : desk_(std::exchange(other.desk_, nullptr)), user_(std::move(other.user_)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(desk_, other.desk_);
      user_.swap(other.user_);
      return *this;
    }
    ~Place() {
      if (desk_) desk_->leave(user_);
    }

   private:
    LogDesk* desk_;
    std::string user_;
  };
  // Nothing when too many are held, or while stopping.
  std::optional<Place> enter(const std::string& user);

  // Blocks until there is text, the workstation lacks the attempt, or asking
  // fails; without any of these until `until`, but for one answer at least to a
  // question put after the call. For holders of a place.
  TextAnswer ask(scheduling::MachineId machine, const TextRequest& request, TimePoint until);
  // Blocks until then, or until stop().
  void pause(TimePoint until);

  // Whoever waits returns; nobody waits from here on.
  void stop();
  bool stopping() const;

  // Callers of ask() that wait now.
  size_t waiting() const;

 private:
  struct Key {
    scheduling::MachineId machine;
    scheduling::AttemptKey attempt;
    FileKind stream;
    uint64_t offset;
    auto operator<=>(const Key&) const = default;
  };
  struct Question {
    size_t askers = 0;
    uint64_t put = 0;  // how often it was put, and answered
    uint64_t answered = 0;
    TextAnswer answer;  // the last
    TimePoint next;     // to be put again, if that was without text
    std::chrono::milliseconds pause{0};
    bool open() const { return put > answered; }
  };

  void leave(const std::string& user);
  void put(const Key& key, Question& question, std::unique_lock<std::mutex>& lock);
  void on_text(const Key& key, TextAnswer answer);
  TextAnswer wait(const Key& key, Question& question, TimePoint until,
                  std::unique_lock<std::mutex>& lock);

  const LogDeskSettings settings_;
  const Ask ask_;
  mutable std::mutex mutex_;
  std::condition_variable news_;
  size_t held_ = 0;
  size_t waiting_ = 0;
  std::map<std::string, size_t> held_of_;
  std::map<Key, Question> questions_;  // those with askers or under way
  bool stopping_ = false;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_LOG_DESK_H_
