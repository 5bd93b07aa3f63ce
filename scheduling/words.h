// The words of a text: what stands between blanks.
#ifndef SUBLET_SCHEDULING_WORDS_H_
#define SUBLET_SCHEDULING_WORDS_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace sublet::scheduling {

inline std::vector<std::string> words_of(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string> words;
  for (size_t at = text.find_first_not_of(kBlanks); at < text.size();) {
    const size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_WORDS_H_
