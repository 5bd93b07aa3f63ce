#include "job/leaving.h"

namespace sublet {
namespace {
constexpr std::string_view kNames[] = {"", "leave", "suspend", "linger", "kill"};
}

std::string leaving_name(Leaving leaving) {
  const auto number = static_cast<uint32_t>(leaving);
  return number < std::size(kNames) ? std::string(kNames[number]) : std::to_string(number);
}

std::optional<Leaving> leaving_named(std::string_view name) {
  for (uint32_t i = 1; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<Leaving>(i);
  return std::nullopt;
}

std::vector<std::string> leaving_names() { return {kNames + 1, std::end(kNames)}; }

}  // namespace sublet
