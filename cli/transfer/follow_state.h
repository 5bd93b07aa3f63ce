// The progress of `sublet fetch --follow`, in a small file of the user's, so that after a restart
// it continues and fetches nothing twice. One thread.
#ifndef SUBLET_CLI_TRANSFER_FOLLOW_STATE_H_
#define SUBLET_CLI_TRANSFER_FOLLOW_STATE_H_

#include <cstdint>
#include <map>
#include <string>

#include "base/files.h"

namespace sublet::cli {

struct FollowState {
  uint64_t since = 0;  // changes up to this one have been handled; 0: there were none
  int64_t at_us = 0;   // the instant of the last one; 0: not started
  // Jobs whose outputs are being fetched, or could not be stored and will be retried; the
  // value: whether the job's outputs get their own folder.
  std::map<uint64_t, bool> pending;
  bool operator==(const FollowState&) const = default;
};

// $XDG_STATE_HOME/sublet/fetch-..., or under ~/.local/state: one folder per server.
// Throws PoolError if there is no home.
std::string follow_folder(const std::string& server);

// Returns the initial state if the folder has none. A damaged file is set aside and named in
// *damage. Throws FileError.
FollowState read_follow_state(Files& files, const std::string& folder, std::string* damage);
// On disk when it returns. Throws FileError.
void write_follow_state(Files& files, const std::string& folder, const FollowState& state);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_TRANSFER_FOLLOW_STATE_H_
