// Default paths by which server, client, load monitor and command of one machine find each
// other.
#ifndef SUBLET_BASE_OPTIONS_DEFAULT_PLACES_H_
#define SUBLET_BASE_OPTIONS_DEFAULT_PLACES_H_

#include <optional>
#include <string>
#include <vector>

namespace sublet {

inline constexpr char kMachinesServer[] = "/run/sublet/server.sock";  // run by root or a service
inline constexpr char kMachinesClient[] = "/var/lib/sublet-client";   // state of a client of root

// The state folder of a client that this user runs; nullopt: neither $XDG_STATE_HOME nor $HOME
// says where.
std::optional<std::string> users_client_state();
// Where a client, and so the sockets of its load monitor, may be: the folder given, else that
// of this user's own client and that of the machine's.
std::vector<std::string> client_states(const std::string& given);

}  // namespace sublet

#endif  // SUBLET_BASE_OPTIONS_DEFAULT_PLACES_H_
