#include "loadmon/pool_logins.h"

#include <sstream>

namespace sublet::loadmon {

void PoolLogins::forget() {
  logged_in_.clear();
  wanted_.clear();
  known_until_ = 0;
}

bool PoolLogins::note(const std::string& text, int64_t now) {
  forget();
  std::istringstream lines(text);
  std::string name, word;
  for (size_t n = 0; n < kMostNames && lines >> name; ++n) {
    if (!(lines >> word)) return false;
    if (word == "?")
      wanted_.push_back(name);
    else if (word == "0" || word == "1")
      logged_in_[name] = word == "1";
    else
      return false;
  }
  known_until_ = now + kKnownForNs;
  return true;
}

bool PoolLogins::forget_old(int64_t now) {
  if (known_until_ == 0 || now < known_until_) return false;
  forget();
  return true;
}

std::optional<bool> PoolLogins::is_logged_in(const std::string& user, int64_t now) const {
  const auto found = logged_in_.find(user);
  if (found == logged_in_.end() || now >= known_until_) return std::nullopt;
  return found->second;
}

}  // namespace sublet::loadmon
