// The accounts of the slots' jobs. A client run by root gives each slot its own user
// and group id. No other client of this machine may use it at the same time, since a
// shepherd ends a job by killing all processes of its id. Ids are therefore reserved
// machine-wide: one locked file each, naming the state folder that uses it. An id
// stays reserved while attempts are left in that folder, even if its client has died.
// Created once, at the start.
#ifndef SUBLET_CLIENT_ATTEMPTS_SLOT_ACCOUNTS_H_
#define SUBLET_CLIENT_ATTEMPTS_SLOT_ACCOUNTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace sublet::client {

class SlotAccounts {
 public:
  // All slots use the client's own account.
  static SlotAccounts own(uint32_t slots);
  // Reserves `slots` ids among the 4096 from `first` on, preferring those that this
  // state folder had before; `folder` holds the lock files. An id with a password
  // entry is an error, because the range is then wrong. Throws std::runtime_error.
  static SlotAccounts reserve(const std::string& folder, int64_t first, uint32_t slots,
                              const std::string& state_folder);

  // The first folder above `folder`, after resolving links, that such an account
  // cannot traverse; "": none. Missing folders count as traversable.
  static std::string in_the_way(const std::string& folder);

  // One per slot; -1: the client's own account.
  const std::vector<int64_t>& uids() const { return uids_; }

 private:
  bool take(const std::string& folder, int64_t uid, const std::string& state_folder, bool only_old);

  std::vector<int64_t> uids_;
  std::vector<UniqueFd> locks_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_SLOT_ACCOUNTS_H_
