// By what a policy orders the users.
#ifndef SUBLET_SCHEDULING_POLICIES_USER_KEY_H_
#define SUBLET_SCHEDULING_POLICIES_USER_KEY_H_

#include <compare>
#include <cstdint>
#include <optional>

namespace sublet::scheduling {

// Smaller is served earlier, by the first member that differs. Equal ones are served in the order
// of the users' numbers.
struct UserKey {
  double rank = 0;
  double value = 0;
  uint64_t turn = 0;
  auto operator<=>(const UserKey&) const = default;
};

// Whether the key's turn comes only when the circle that begins behind `from` has come round
// (JobPolicy::from). Keys of smaller ranks stand before the circle.
inline bool comes_round(const std::optional<UserKey>& from, const UserKey& key) {
  return from && key.rank >= from->rank && !(*from < key);
}

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_USER_KEY_H_
