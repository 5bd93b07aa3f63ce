#include "client/machine/network_rules.h"

namespace sublet::client {

Network NetworkRules::of(Network wish) const {
  const Network stricter = stricter_network(most, wish);
  return stricter == Network::kServer && server_is_here ? Network::kNone : stricter;
}

std::string NetworkRules::lacking(Network wish) const {
  if (wish == Network::kAny && most != Network::kAny)
    return "it needs the network, and this machine's owner permits " +
           std::string(most == Network::kNone ? "none" : "only the pool's server");
  switch (of(wish)) {
    case Network::kNone:
      return can_have_own ? "" : "this machine cannot keep jobs off the network";
    case Network::kServer:
      return can_watch_traffic
                 ? ""
                 : "this machine cannot keep jobs from reaching others than the server";
    default:
      return "";
  }
}

}  // namespace sublet::client
