// What a job may reach over the network, by the words of batch files and settings. Any thread.
#ifndef SUBLET_JOB_NETWORK_H_
#define SUBLET_JOB_NETWORK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sublet {

// NETWORK_... of idl/types.idl, the same numbers.
enum class Network : uint32_t { kDefault = 0, kNone = 1 };

// "none"; of kDefault: "".
inline std::string network_name(Network network) {
  return network == Network::kDefault ? "" : "none";
}

inline std::optional<Network> network_named(std::string_view name) {
  return name == "none" ? std::optional(Network::kNone) : std::nullopt;
}

}  // namespace sublet

#endif  // SUBLET_JOB_NETWORK_H_
