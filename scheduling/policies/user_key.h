// By what a policy orders the users.
#ifndef SUBLET_SCHEDULING_POLICIES_USER_KEY_H_
#define SUBLET_SCHEDULING_POLICIES_USER_KEY_H_

#include <compare>
#include <cstdint>

namespace sublet::scheduling {

// Smaller is served earlier, by the first member that differs. Equal ones are served in the order
// of the users' numbers.
struct UserKey {
  double rank = 0;
  double value = 0;
  uint64_t turn = 0;
  auto operator<=>(const UserKey&) const = default;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_USER_KEY_H_
