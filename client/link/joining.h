// `sublet-client join TOKEN`: makes this machine a member of a remote pool.
// Main thread.
#ifndef SUBLET_CLIENT_LINK_JOINING_H_
#define SUBLET_CLIENT_LINK_JOINING_H_

#include <string>

namespace sublet::client {

// The path of the membership file in a client's state folder.
std::string membership_path(const std::string& state_folder);

// Returns the exit code; prints the result, or what is wrong and what to do.
int join_pool_with(const std::string& token, const std::string& state_folder);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LINK_JOINING_H_
