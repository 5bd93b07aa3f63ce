#include "scheduling/machine_limits.h"

#include <charconv>

#include "scheduling/words.h"

namespace sublet::scheduling {
namespace {
// 0: it is no valid one.
uint64_t limit_from(const std::string& text) {
  uint64_t limit = 0;
  const char* const text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, limit);
  return error == std::errc() && end == text_end && limit <= kLargestLimit ? limit : 0;
}
}  // namespace

uint64_t MachineLimits::of(const std::string& machine) const {
  const auto own = named.find(machine);
  return own == named.end() ? all : own->second;
}

std::string MachineLimits::text() const {
  std::string text = all == 0 ? "" : std::to_string(all);
  for (const auto& [name, limit] : named)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(limit);
  return text;
}

std::optional<MachineLimits> parse_machine_limits(const std::string& text) {
  MachineLimits limits;
  for (const std::string& word : words_of(text)) {
    const size_t equals = word.rfind('=');
    const bool is_named = equals != std::string::npos;
    const uint64_t limit = limit_from(is_named ? word.substr(equals + 1) : word);
    const bool is_new =
        is_named ? limits.named.try_emplace(word.substr(0, equals), limit).second : limits.all == 0;
    if (limit == 0 || !is_new || equals == 0) return std::nullopt;
    if (!is_named) limits.all = limit;
  }
  return limits;
}

}  // namespace sublet::scheduling
