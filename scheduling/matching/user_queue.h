// The users with waiting jobs, in the order of their keys: in one order for all groups, because a
// user's key is the same in all of them, and changes often. Only for policies by key
// (JobPolicy::by_job); by job, the order of a user's lines is another one in each group
// (matching/group_lines.h).
//
// Each user, and each subtree of users, has a bound of what the jobs need and of the groups in
// which they wait, by which a search passes them over. A user's bound widens when one of his lines
// comes or changes. It is not narrowed when one leaves, because his other lines would have to be
// looked at, but when a search has looked at them in vain (`narrow`).
//
// The users are not owned. Private to the brain; owned by the job queue; one caller at a time.
#ifndef SUBLET_SCHEDULING_MATCHING_USER_QUEUE_H_
#define SUBLET_SCHEDULING_MATCHING_USER_QUEUE_H_

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "scheduling/books/ledger.h"
#include "scheduling/matching/search_tree.h"
#include "scheduling/matching/user_place.h"

namespace sublet::scheduling {

struct UserTraits {
  using Node = User;
  using Bound = UsersBound;
  static UserPlace& links(User& user) { return user.place; }
  static const UserPlace& links(const User& user) { return user.place; }
  static bool before(const User& a, const User& b) {
    if (a.place.key != b.place.key) return a.place.key < b.place.key;
    return a.record.number < b.record.number;
  }
  static uint64_t id(const User& user) { return user.record.number; }
  static const UsersBound& bound(const User& user) { return user.place.own; }
  static UsersBound join(const UsersBound& a, const UsersBound& b) {
    return scheduling::join(a, b);
  }
};

class UserQueue {
 public:
  // A line stands in its group from now on; if it is its user's first, he stands here, by this key.
  void add(const UserLine& line, const UserKey& key);
  // It stands no longer.
  void take(const UserLine& line);
  // Its bound has changed.
  void refresh(const UserLine& line);
  // The user has this key from now on. Does nothing if he does not stand here.
  void move(User& user, const UserKey& key);
  // The same for all of these users, who are all that stand here. O(users log users).
  void move_all(std::map<std::string, User>& users,
                const std::function<UserKey(const User&)>& key_of);
  // A search has looked at all his lines in vain.
  void narrow(User& user);

  // The first user who `is` so among those before the circle (JobPolicy::from), then among those
  // whose keys are behind `from`, and then among all: `is` may be asked twice about a user. Null:
  // nobody. May be so: users whose bound `may`.
  template <typename May, typename Is>
  User* first(const std::optional<UserKey>& from, May may, Is is) const {
    const auto behind = [&](const User& user) { return *from < user.place.key; };
    if (from) {
      if (User* user = first_before_circle(*from, may, is)) return user;
      if (User* user = users_.first_behind(behind, may, is)) return user;
    }
    return users_.first(may, is);
  }
  // In the same order, once each, until `visit` returns false.
  template <typename Visit>
  void walk(const std::optional<UserKey>& from, Visit visit) const {
    const auto any = [](const UsersBound&) { return true; };
    const auto behind = [&](const User& user) { return from && *from < user.place.key; };
    const auto is_last = [&](const User& user) { return !visit(user); };
    if (from && first_before_circle(*from, any, is_last) != nullptr) return;
    if (from && users_.first_behind(behind, any, is_last) != nullptr) return;
    users_.walk(any, [&](const User& user) {
      if (behind(user)) return false;
      return (from && user.place.key.rank < from->rank) || visit(user);
    });
  }

 private:
  template <typename May, typename Is>
  User* first_before_circle(const UserKey& from, May may, Is is) const {
    User* found = nullptr;
    users_.walk(may, [&](User& user) {
      if (user.place.key.rank >= from.rank) return false;
      if (is(user)) found = &user;
      return found == nullptr;
    });
    return found;
  }
  void widen(User& user, const UsersBound& bound);

  SearchTree<UserTraits> users_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_USER_QUEUE_H_
