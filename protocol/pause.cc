#include "protocol/pause.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace sublet::protocol {
namespace {

constexpr std::string_view kFormat = "pause-1";

// Removes the first word and the space or newline after it; "" if there is none.
std::string_view next_word(std::string_view* rest, char end) {
  const size_t size = rest->find(end);
  if (size == std::string_view::npos) return *rest = {};
  const std::string_view word = rest->substr(0, size);
  rest->remove_prefix(size + 1);
  return word;
}

template <typename Number>
bool parse(std::string_view word, Number* number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *number);
  return error == std::errc() && end == word.data() + word.size() && *number >= 0;
}

}  // namespace

int64_t Pause::left_ms(const Moment& now) const {
  if (length_ms <= 0) return kEndless;
  const int64_t passed = now.boot == begun.boot ? (now.boot_ns - begun.boot_ns) / 1'000'000
                                                : (now.utc_us - begun.utc_us) / 1'000;
  return std::clamp<int64_t>(length_ms - passed, 0, length_ms);
}

std::string encode(const Pause& pause) {
  return std::string(kFormat) + " " + pause.begun.boot + " " + std::to_string(pause.begun.boot_ns) +
         " " + std::to_string(pause.begun.utc_us) + " " + std::to_string(pause.length_ms) + " " +
         std::to_string(pause.by) + "\n";
}

std::optional<Pause> decode_pause(const std::string& line) {
  std::string_view rest = line;
  Pause pause;
  const bool known = next_word(&rest, ' ') == kFormat;
  pause.begun.boot = next_word(&rest, ' ');
  const bool possible = known && parse(next_word(&rest, ' '), &pause.begun.boot_ns) &&
                        parse(next_word(&rest, ' '), &pause.begun.utc_us) &&
                        parse(next_word(&rest, ' '), &pause.length_ms) &&
                        parse(next_word(&rest, '\n'), &pause.by) &&
                        pause.length_ms <= kLongestPauseMs;
  if (!possible || !rest.empty()) return std::nullopt;
  return pause;
}

}  // namespace sublet::protocol
