// The names that a rule may use, with their types. A rule refers to a name by its index here, so
// the values of an evaluation are an array in this order.
#ifndef SUBLET_RULES_VOCABULARY_H_
#define SUBLET_RULES_VOCABULARY_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/value.h"

namespace sublet::rules {

struct Word {
  std::string name;
  Type type = Type::kBoolean;
  std::string meaning;  // with its unit: "cores in use by the owner"
};

class Vocabulary {
 public:
  explicit Vocabulary(std::vector<Word> words) : words_(std::move(words)) {}

  size_t size() const { return words_.size(); }
  const Word& operator[](size_t index) const { return words_[index]; }
  const std::vector<Word>& words() const { return words_; }
  std::optional<size_t> find(std::string_view name) const;
  // The name that was probably meant; "": none is near.
  std::string nearest(std::string_view name) const;

 private:
  std::vector<Word> words_;
};

}  // namespace sublet::rules

#endif  // SUBLET_RULES_VOCABULARY_H_
