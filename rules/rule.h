// A rule: an expression in the OMG's constraint language that is true, false or not known
// (docs/rules.md). It is checked against the names that exist when it is parsed; evaluating it
// neither allocates nor fails, so that it may stand between the owner and an eviction.
#ifndef SUBLET_RULES_RULE_H_
#define SUBLET_RULES_RULE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "rules/value.h"
#include "rules/vocabulary.h"

namespace sublet::rules {

constexpr size_t kLongestRule = 4096;  // bytes
constexpr size_t kDeepestRule = 64;    // operands that wait for another, such as parentheses

// Bytes of the rule's text, [begin, end).
struct Span {
  size_t begin = 0;
  size_t end = 0;
  bool operator==(const Span&) const = default;
};

// what(): "column 12: unknown name 'on_batery'; did you mean 'on_battery'?", with the line
// before it if there are several.
class RuleError : public std::runtime_error {
 public:
  RuleError(std::string_view text, Span place, const std::string& message);
  // Of what is wrong.
  Span place() const { return place_; }

 private:
  Span place_;
};

struct Compiled;

// Immutable: any thread may use it.
class Rule {
 public:
  // Throws RuleError. The vocabulary is copied.
  static Rule parse(const std::string& text, const Vocabulary& vocabulary);
  Rule(Rule&&) noexcept;
  Rule& operator=(Rule&&) noexcept;
  ~Rule();

  const std::string& text() const;
  // One value for each name of the vocabulary. A value that is missing or of another type counts
  // as unknown. Number of steps: at most kLongestRule.
  Truth evaluate(std::span<const Value> values) const noexcept;
  // The indices of the names that it uses, in ascending order.
  const std::vector<size_t>& names() const;
  // What it is whatever the values are, as far as its form tells: `false`, `1 > 2 and cpu > 1`,
  // but not `cpu < 1 and cpu > 2`. kUnknown: it depends.
  Truth always() const noexcept;
  // The parts that decided the result, each with the values of its names, in the order of the
  // text: {"cpu > 0.25 (cpu is 0.41)"}. Those that are not known, if the result is not known.
  std::vector<std::string> why(std::span<const Value> values) const;

 private:
  explicit Rule(std::unique_ptr<const Compiled> compiled);

  std::unique_ptr<const Compiled> compiled_;
};

// The same for an expression that is a number, or not known.
class Formula {
 public:
  // Throws RuleError. The vocabulary is copied.
  static Formula parse(const std::string& text, const Vocabulary& vocabulary);
  Formula(Formula&&) noexcept;
  Formula& operator=(Formula&&) noexcept;
  ~Formula();

  // As Rule::evaluate. Finite; std::nullopt: it is not known.
  std::optional<double> evaluate(std::span<const Value> values) const noexcept;

 private:
  explicit Formula(std::unique_ptr<const Compiled> compiled);

  std::unique_ptr<const Compiled> compiled_;
};

}  // namespace sublet::rules

#endif  // SUBLET_RULES_RULE_H_
