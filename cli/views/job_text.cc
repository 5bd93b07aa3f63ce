#include "cli/views/job_text.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace sublet::cli {

namespace {

// The number of bytes of a character with this first byte.
size_t length_by_lead(unsigned char lead) {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  return lead >= 0xc0 ? 2 : 1;
}

// The number of bytes at the end that may be the beginning of a character.
size_t begun_at_end(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    return length_by_lead(byte) > back ? back : 0;
  }
  return 0;
}

std::string safe(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\n\t\r\\"), text.size());
    out += escape_for_terminal(text.substr(0, end));
    if (end < text.size()) out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::string WholeCharacters::feed(std::string_view piece) {
  std::string text = std::exchange(rest_, "").append(piece);
  rest_ = text.substr(text.size() - begun_at_end(text));
  text.resize(text.size() - rest_.size());
  return text;
}

std::string WholeCharacters::finish() { return std::exchange(rest_, ""); }

std::string JobText::feed(std::string_view piece) {
  return for_terminal_ ? safe(characters_.feed(piece)) : std::string(piece);
}

std::string JobText::finish() { return safe(characters_.finish()); }

void keep_last_lines(std::string& text, uint64_t count) {
  size_t begin = text.size();
  for (uint64_t lines = 0; begin > 0 && lines < count; ++lines) {
    // The newline at `begin` - 1 ends the line that is added.
    const size_t before = begin >= 2 ? text.rfind('\n', begin - 2) : std::string::npos;
    begin = before == std::string::npos ? 0 : before + 1;
  }
  text.erase(0, begin);
}

}  // namespace sublet::cli
