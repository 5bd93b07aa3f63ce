#include "server/machines/logins.h"

#include <algorithm>

namespace sublet::server {

LoginsAnswer Logins::renewed(scheduling::MachineId machine, const LoginsReport& report,
                             int64_t now_ms) {
  std::lock_guard lock(mutex_);
  said_[machine] = {report, now_ms};
  forget_old(now_ms);
  LoginsAnswer answer;
  for (const auto& [user, since] : wanted_since_) answer.wanted.push_back(user);
  for (const std::string& user : report.asked) {
    const auto wanted = wanted_since_.find(user);
    if (wanted == wanted_since_.end()) continue;
    const bool logged_in = is_logged_in(user);
    if (logged_in || now_ms - wanted->second >= known_after_ms_) answer.logged_in[user] = logged_in;
  }
  return answer;
}

bool Logins::is_logged_in(const std::string& user) const {
  return std::any_of(said_.begin(), said_.end(),
                     [&](const auto& one) { return one.second.report.here.contains(user); });
}

// Also takes up who is newly asked for, and drops for whom nobody asks any more.
void Logins::forget_old(int64_t now_ms) {
  std::erase_if(said_, [&](const auto& one) { return now_ms - one.second.at_ms >= kKnownForMs; });
  std::set<std::string> asked;
  for (const auto& [machine, said] : said_)
    asked.insert(said.report.asked.begin(), said.report.asked.end());
  std::erase_if(wanted_since_, [&](const auto& one) { return !asked.contains(one.first); });
  for (const std::string& user : asked)
    if (wanted_since_.size() < kMostWanted) wanted_since_.emplace(user, now_ms);
}

}  // namespace sublet::server
