// One user's waiting jobs of one group. The lines of a group stand in matching/group_lines.h.
//
// Private to the brain.
#ifndef SUBLET_SCHEDULING_MATCHING_USER_LINE_H_
#define SUBLET_SCHEDULING_MATCHING_USER_LINE_H_

#include <algorithm>
#include <cstdint>

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

inline UserBound join(const UserBound& a, const UserBound& b) {
  return {least(a.least, b.least), std::min(a.since, b.since), a.licensed || b.licensed};
}

// One user's waiting jobs of one group (and of one host, with JobPolicy::turns_by_host; those of a
// batch with a limit, and those that licences are kept for, apart); deleted when it becomes empty.
struct UserLine {
  User* user = nullptr;
  Group* group = nullptr;
  // By which it stands in the group: the order of its best job, if users are served by their jobs;
  // then the user's number and the host, the batch, and whether licences are kept.
  UserKey key;
  uint64_t number = 0;
  UserBound of_jobs;
  bool stands = false;    // in the group; not while the user is passed over or the batch is full
  bool counted = false;   // in the user's place; only if it stands, and users are served by key
  bool licensed = false;  // licences are kept for its jobs
  uint32_t host = 0;
  uint64_t batch_id = 0;         // of `batch`; 0: null
  const Batch* batch = nullptr;  // with a limit; null: of batches without
  JobLine jobs;
};

// In a group, by the keys they have.
inline bool comes_before(const UserLine& a, const UserLine& b) {
  if (a.key != b.key) return a.key < b.key;
  if (a.number != b.number) return a.number < b.number;
  return a.batch_id != b.batch_id ? a.batch_id < b.batch_id : a.licensed < b.licensed;
}

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_USER_LINE_H_
