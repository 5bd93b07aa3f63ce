#include "base/options/default_places.h"

#include <cstdlib>

namespace sublet {

std::optional<std::string> users_client_state() {
  const char* state = getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/sublet-client";
  const char* home = getenv("HOME");
  if (home != nullptr) return std::string(home) + "/.local/state/sublet-client";
  return std::nullopt;
}

std::vector<std::string> client_states(const std::string& given) {
  if (!given.empty()) return {given};
  std::vector<std::string> folders;
  if (const auto own = users_client_state()) folders.push_back(*own);
  folders.push_back(kMachinesClient);
  return folders;
}

}  // namespace sublet
