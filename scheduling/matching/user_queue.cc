#include "scheduling/matching/user_queue.h"

#include <algorithm>
#include <vector>

#include "scheduling/matching/suitability.h"

namespace sublet::scheduling {
namespace {
UsersBound bound_of(const UserLine& line) { return {line.of_jobs, line.group->bit}; }
}  // namespace

void UserQueue::add(const UserLine& line, const UserKey& key) {
  UserPlace& place = line.user->place;
  if (place.lines++ > 0) return widen(*line.user, bound_of(line));
  place.key = key;
  place.own = bound_of(line);
  place.wide = false;
  users_.add(*line.user);
}

void UserQueue::take(const UserLine& line) {
  UserPlace& place = line.user->place;
  place.wide = true;
  if (--place.lines == 0) users_.take(*line.user);
}

void UserQueue::refresh(const UserLine& line) {
  line.user->place.wide = true;
  widen(*line.user, bound_of(line));
}

void UserQueue::widen(User& user, const UsersBound& bound) {
  const UsersBound wider = join(user.place.own, bound);
  if (wider == user.place.own) return;
  user.place.own = wider;
  users_.refresh(user);
}

void UserQueue::narrow(User& user) {
  UserPlace& place = user.place;
  if (!place.wide || place.lines == 0) return;
  place.wide = false;
  std::optional<UsersBound> own;
  for (const auto& line : user.lines)
    if (line->stands) own = own ? join(*own, bound_of(*line)) : bound_of(*line);
  if (*own == place.own) return;
  place.own = *own;
  users_.refresh(user);
}

void UserQueue::move(User& user, const UserKey& key) {
  if (user.place.lines == 0 || user.place.key == key) return;
  users_.take(user);
  user.place.key = key;
  users_.add(user);
}

void UserQueue::move_all(std::map<std::string, User>& users,
                         const std::function<UserKey(const User&)>& key_of) {
  std::vector<User*> standing;
  for (auto& [name, user] : users) {
    if (user.place.lines == 0) continue;
    user.place.key = key_of(user);
    standing.push_back(&user);
  }
  // Each is added at the end, which costs less than in between.
  std::sort(standing.begin(), standing.end(),
            [](const User* a, const User* b) { return UserTraits::before(*a, *b); });
  users_.clear();
  for (User* user : standing) users_.add(*user);
}

}  // namespace sublet::scheduling
