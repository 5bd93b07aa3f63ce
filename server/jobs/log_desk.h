// Requests for the output of running attempts, and the upcalls that wait for the
// replies. The dispatcher's threads call the workstations. Callers that want the
// same octets share one request. While there is no new output, the request is
// repeated at growing intervals.
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
  size_t held = 256;         // waiting calls, in all
  size_t held_per_user = 8;  // and per user
  // Pause between an empty answer and the next request; doubles each time.
  std::chrono::milliseconds first_pause{200};
  std::chrono::milliseconds longest_pause{1'000};
  // A request that is not answered for this long counts as failed.
  std::chrono::milliseconds answer_within{15'000};
};

class LogDesk {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // Sends a request to a workstation and returns; the callback is called later, on
  // another thread, once or (while stopping) never.
  using Ask = std::function<void(scheduling::MachineId, const TextRequest&,
                                 std::function<void(TextAnswer)> callback)>;

  LogDesk(const LogDeskSettings& settings, Ask ask);

  // One waiting call of a user, counted during the lifetime of this object.
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
  // std::nullopt if too many calls are waiting, or while stopping.
  std::optional<Place> enter(const std::string& user);

  // Blocks until there is text, the workstation does not have the attempt, or the
  // request fails. Otherwise returns at `until`, but not before one answer to a request
  // sent after this call. Only for callers that hold a Place.
  TextAnswer ask(scheduling::MachineId machine, const TextRequest& request, TimePoint until);
  // Blocks until then, or until stop().
  void pause(TimePoint until);

  // Wakes all waiting calls; later ones do not wait.
  void stop();
  bool stopping() const;

  // Number of callers that are waiting in ask().
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
    uint64_t put = 0;  // how often it was sent
    uint64_t answered = 0;
    TextAnswer answer;  // the last
    TimePoint next;     // when to send it again, if the last answer had no text
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
  std::map<Key, Question> questions_;  // those with askers or without an answer yet
  bool stopping_ = false;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOBS_LOG_DESK_H_
