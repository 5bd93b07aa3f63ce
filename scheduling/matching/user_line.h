// One user's waiting jobs of one group, and the line of the users in a group.
//
// Private to the brain.
#ifndef SUBLET_SCHEDULING_MATCHING_USER_LINE_H_
#define SUBLET_SCHEDULING_MATCHING_USER_LINE_H_

#include <cstdint>

#include "scheduling/hashed.h"
#include "scheduling/matching/job_line.h"
#include "scheduling/policies/user_key.h"

namespace sublet::scheduling {

struct Batch;
struct Group;
struct User;

// Of lines, and of one.
struct UserBound {
  Amounts least;          // no job needs less
  Micros since = 0;       // none has waited since an earlier instant
  bool licensed = false;  // one is of jobs that licences are kept for
  bool operator==(const UserBound&) const = default;
};

// One user's waiting jobs of one group (and of one host, with JobPolicy::turns_by_host; those of a
// batch with a limit, and those that licences are kept for, apart); deleted when it becomes empty.
struct UserLine : TreeLinks<UserLine, UserBound> {
  User* user = nullptr;
  Group* group = nullptr;
  uint32_t host = 0;
  const Batch* batch = nullptr;  // with a limit; null: of batches without
  bool licensed = false;         // licences are kept for its jobs
  JobLine jobs;
  // By which it stands in the group: the key, then the user's number and the host, the batch, and
  // whether licences are kept.
  UserKey key;
  uint64_t number = 0;
  uint64_t batch_id = 0;  // of `batch`; 0: null
  bool stands = false;    // in the group; not while the user is passed over or the batch is full
  UserBound of_jobs;
};

struct UserLineTraits {
  using Node = UserLine;
  using Bound = UserBound;
  static UserLine& links(UserLine& line) { return line; }
  static const UserLine& links(const UserLine& line) { return line; }
  static bool before(const UserLine& a, const UserLine& b) {
    if (a.key != b.key) return a.key < b.key;
    if (a.number != b.number) return a.number < b.number;
    return a.batch_id != b.batch_id ? a.batch_id < b.batch_id : a.licensed < b.licensed;
  }
  static uint64_t id(const UserLine& line) {
    return hashed(2 * line.batch_id + (line.licensed ? 1 : 0)) ^ line.number;
  }
  static UserBound bound(const UserLine& line) { return line.of_jobs; }
  static UserBound join(const UserBound& a, const UserBound& b) {
    return {least(a.least, b.least), std::min(a.since, b.since), a.licensed || b.licensed};
  }
};
using LineTree = SearchTree<UserLineTraits>;

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_USER_LINE_H_
