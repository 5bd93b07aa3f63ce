// The form in which a rule is kept: its parts in the order of evaluation, operands before what
// combines them.
#ifndef SUBLET_RULES_COMPILED_H_
#define SUBLET_RULES_COMPILED_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rules/rule.h"

namespace sublet::rules {

enum class Operation : uint8_t {
  kLiteral,
  kName,
  kExist,
  kNegate,
  kNot,
  // Two operands from here on.
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kContained,  // ~
  kIn,
  kEqual,
  kUnequal,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr
};

inline int operands_of(Operation operation) {
  if (operation >= Operation::kAdd) return 2;
  return operation == Operation::kNegate || operation == Operation::kNot ? 1 : 0;
}

struct Part {
  Operation operation = Operation::kLiteral;
  Span place;
  size_t left = 0;   // the part that is the first operand
  size_t right = 0;  // the second
  size_t name = 0;   // index in the vocabulary, of kName and kExist
  Value literal{};
};

struct Compiled {
  std::string text;
  Vocabulary vocabulary;
  std::vector<Part> parts;        // the last one is the rule
  std::deque<std::string> texts;  // that literals refer to
  std::vector<size_t> names;
};

// Throws RuleError. The vocabulary is copied.
std::unique_ptr<const Compiled> compile(const std::string& text, const Vocabulary& vocabulary,
                                        Type wanted);
// Of the whole. A value that is missing or of another type counts as unknown.
Value evaluate(const Compiled& compiled, std::span<const Value> values) noexcept;
// The value of one part, from the values of its operands. Never throws.
Value combine(Operation operation, const Value& left, const Value& right) noexcept;

}  // namespace sublet::rules

#endif  // SUBLET_RULES_COMPILED_H_
