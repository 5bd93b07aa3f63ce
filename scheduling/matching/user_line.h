// One user's waiting jobs of one group, and the line of the users in a group.
//
// Private to the brain.
#ifndef SUBLET_SCHEDULING_MATCHING_USER_LINE_H_
#define SUBLET_SCHEDULING_MATCHING_USER_LINE_H_

#include <cstdint>

#include "scheduling/matching/job_line.h"
#include "scheduling/policies/user_key.h"

namespace sublet::scheduling {

struct Group;
struct User;

// One user's waiting jobs of one group (and of one host, with JobPolicy::turns_by_host); deleted
// when it becomes empty.
struct UserLine : TreeLinks<UserLine, Amounts> {
  User* user = nullptr;
  Group* group = nullptr;
  uint32_t host = 0;
  JobLine jobs;
  // By which it stands in the group: the key, then the user's number and the host.
  UserKey key;
  uint64_t number = 0;
  bool stands = false;  // in the group; not while the user is passed over
  Amounts least;        // of its jobs
};

struct UserLineTraits {
  using Node = UserLine;
  using Bound = Amounts;
  static UserLine& links(UserLine& line) { return line; }
  static const UserLine& links(const UserLine& line) { return line; }
  static bool before(const UserLine& a, const UserLine& b) {
    return a.key != b.key ? a.key < b.key : a.number < b.number;
  }
  static uint64_t id(const UserLine& line) { return line.number; }
  static Amounts bound(const UserLine& line) { return line.least; }
  static Amounts join(const Amounts& a, const Amounts& b) { return scheduling::least(a, b); }
};
using LineTree = SearchTree<UserLineTraits>;

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_USER_LINE_H_
