// Where a user stands among those with waiting jobs (matching/user_queue.h).
//
// Private to the brain.
#ifndef SUBLET_SCHEDULING_MATCHING_USER_PLACE_H_
#define SUBLET_SCHEDULING_MATCHING_USER_PLACE_H_

#include <cstdint>

#include "scheduling/matching/search_tree.h"
#include "scheduling/matching/user_line.h"
#include "scheduling/policies/user_key.h"

namespace sublet::scheduling {

// Of users, and of one.
struct UsersBound {
  UserBound of_jobs;
  uint64_t groups = 0;  // the bits (Group::bit) of those in which they wait
  bool operator==(const UsersBound&) const = default;
};

inline UsersBound join(const UsersBound& a, const UsersBound& b) {
  return {join(a.of_jobs, b.of_jobs), a.groups | b.groups};
}

struct UserPlace : TreeLinks<User, UsersBound> {
  UserKey key;         // by which he stands
  UsersBound own;      // of his lines; or wider, since one has left or changed
  bool wide = false;   // it may be wider
  uint64_t lines = 0;  // of his that stand; 0: he does not stand
  // Counted by the job queue alone: his lines of batches with a limit.
  uint64_t limited = 0;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_USER_PLACE_H_
