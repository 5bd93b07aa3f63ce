#include "rules/vocabulary.h"

#include <algorithm>
#include <numeric>

namespace sublet::rules {
namespace {

// Letters to insert, remove or replace to make one of the other (Levenshtein).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::optional<size_t> Vocabulary::find(std::string_view name) const {
  for (size_t i = 0; i < words_.size(); ++i)
    if (words_[i].name == name) return i;
  return std::nullopt;
}

std::string Vocabulary::nearest(std::string_view name) const {
  std::string nearest;
  size_t least = std::min<size_t>(3, name.size() / 2 + 1);  // three letters are another word
  for (const Word& word : words_) {
    // A name of thousands of letters is near to none.
    if (name.size() > word.name.size() + least) continue;
    const size_t one = distance(name, word.name);
    if (one < least) {
      least = one;
      nearest = word.name;
    }
  }
  return nearest;
}

}  // namespace sublet::rules
