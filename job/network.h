// What a job may reach over the network, by the words of batch files and settings. Any thread.
#ifndef SUBLET_JOB_NETWORK_H_
#define SUBLET_JOB_NETWORK_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sublet {

// NETWORK_... of idl/types.idl, the same numbers. From kNone on: the higher, the more.
enum class Network : uint32_t { kDefault = 0, kNone = 1, kServer = 2, kAny = 3 };

// Without kDefault.
inline std::vector<std::string> network_names() { return {"none", "server", "any"}; }

// Of kDefault: "".
inline std::string network_name(Network network) {
  return network == Network::kDefault ? "" : network_names().at(static_cast<size_t>(network) - 1);
}

inline std::optional<Network> network_named(std::string_view name) {
  for (const Network network : {Network::kNone, Network::kServer, Network::kAny})
    if (name == network_name(network)) return network;
  return std::nullopt;
}

// A wish of kDefault is none.
inline Network stricter_network(Network most, Network wish) {
  return wish == Network::kDefault ? most : std::min(most, wish);
}

}  // namespace sublet

#endif  // SUBLET_JOB_NETWORK_H_
