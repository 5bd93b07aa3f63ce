#include "server/machines/logins.h"

namespace sublet::server {
namespace {
constexpr int64_t kBetweenLooksMs = 1000;
}

LoginsAnswer Logins::renewed(scheduling::MachineId machine, const LoginsReport& report,
                             int64_t now_ms) {
  std::lock_guard lock(mutex_);
  LoginsReport counted = report;
  if (counted.here)
    std::erase_if(*counted.here, [this](const auto& name) { return !is_wanted(name); });
  count(counted, true, now_ms);
  const auto known = said_.find(machine);
  if (known != said_.end()) count(known->second.report, false, now_ms);
  said_[machine] = {std::move(counted), now_ms};
  forget_old(now_ms);
  LoginsAnswer answer;
  for (const auto& [name, user] : users_)
    if (user.wanted_since_ms >= 0) answer.wanted.push_back(name);
  for (const std::string& name : report.asked) {
    const User& user = users_[name];
    const bool all_answered = undecided_ == 0 && user.wanted_since_ms >= 0 &&
                              now_ms - user.wanted_since_ms >= known_after_ms_;
    if (user.here > 0 || all_answered) answer.logged_in[name] = user.here > 0;
  }
  return answer;
}

bool Logins::is_wanted(const std::string& name) const {
  const auto user = users_.find(name);
  return user != users_.end() && user->second.wanted_since_ms >= 0;
}

void Logins::count(const LoginsReport& report, bool adds, int64_t now_ms) {
  const size_t one = adds ? 1 : static_cast<size_t>(-1);
  for (const std::string& name : report.asked) {
    User& user = users_[name];
    user.asked += one;
    if (user.asked > 0 && user.wanted_since_ms < 0 && wanted_ < kMostWanted) {
      user.wanted_since_ms = now_ms;
      ++wanted_;
    }
  }
  if (!report.here) undecided_ += one;
  if (report.here)
    for (const std::string& name : *report.here) users_[name].here += one;
}

// Machines that have fallen silent, and users for whom nobody asks any more.
void Logins::forget_old(int64_t now_ms) {
  if (now_ms - forgot_at_ms_ < kBetweenLooksMs) return;
  forgot_at_ms_ = now_ms;
  std::erase_if(said_, [&](const auto& one) {
    const bool old = now_ms - one.second.at_ms >= kKnownForMs;
    if (old) count(one.second.report, false, now_ms);
    return old;
  });
  for (auto& [name, user] : users_) {
    if (user.asked > 0 || user.wanted_since_ms < 0) continue;
    user.wanted_since_ms = -1;
    --wanted_;
  }
  std::erase_if(users_, [](const auto& one) { return one.second.asked + one.second.here == 0; });
}

}  // namespace sublet::server
