// The accounts of the slots' jobs: a client that is root runs each slot under a
// user and group id of its own, which no other client of this machine may use at
// the same time, since a shepherd ends a job by ending all processes of its id.
// So ids are reserved machine-wide: one locked file each, naming the state
// folder that uses it. An id stays a state folder's own while attempts are left
// there, also when its client has died. Made once, at the start.
#ifndef SUBLET_CLIENT_ATTEMPTS_SLOT_ACCOUNTS_H_
#define SUBLET_CLIENT_ATTEMPTS_SLOT_ACCOUNTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace sublet::client {

class SlotAccounts {
 public:
  // The client's own account for every slot.
  static SlotAccounts own(uint32_t slots);
  // `slots` ids from `first` on, at most 4096 looked at, those that this state
  // folder had before first of all; `folder` holds the files. Ids with a
  // password entry are an error: the range is wrong then. Throws
  // std::runtime_error.
  static SlotAccounts reserve(const std::string& folder, int64_t first, uint32_t slots,
                              const std::string& state_folder);

  // The folder above `folder`, links followed, that such an account cannot pass;
  // "": none. What is not there yet counts as passable.
  static std::string in_the_way(const std::string& folder);

  // One a slot; -1: the client's own account.
  const std::vector<int64_t>& uids() const { return uids_; }

 private:
  bool take(const std::string& folder, int64_t uid, const std::string& state_folder, bool only_old);

  std::vector<int64_t> uids_;
  std::vector<UniqueFd> locks_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_SLOT_ACCOUNTS_H_
