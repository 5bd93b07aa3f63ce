#include "rules/rule.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "rules/builder.h"
#include "rules/compiled.h"
#include "rules/parser.h"
#include "rules/scanner.h"

namespace sublet::rules {
namespace {

Value named(const Compiled& rule, size_t name, std::span<const Value> values) {
  if (name >= values.size() || !values[name].is(rule.vocabulary[name].type)) return {};
  return values[name];
}

Value leaf(const Compiled& rule, const Part& part, std::span<const Value> values) {
  if (part.operation == Operation::kLiteral) return part.literal;
  const Value value = named(rule, part.name, values);
  return part.operation == Operation::kExist ? Value::of(value.is_known()) : value;
}

std::string shown(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUnknown:
      return "not known";
    case Value::Kind::kBoolean:
      return value.truth() == Truth::kTrue ? "true" : "false";
    case Value::Kind::kInteger:
      return std::to_string(value.integer());
    case Value::Kind::kReal: {
      char text[40];
      snprintf(text, sizeof text, "%.4g", value.real());
      return text;
    }
    case Value::Kind::kText:
      return "'" + std::string(value.text()) + "'";
    case Value::Kind::kTexts:
      break;
  }
  std::string list;
  constexpr size_t kShown = 8;
  const auto texts = value.texts();
  for (size_t i = 0; i < std::min(texts.size(), kShown); ++i)
    list += (i > 0 ? ", " : "") + std::string(texts[i]);
  return "[" + list + (texts.size() > kShown ? ", ...]" : "]");
}

// Finds the parts that decided a result.
class Reasons {
 public:
  Reasons(const Compiled& rule, std::span<const Value> values) : rule_(rule), values_(values) {
    for (const Part& part : rule.parts) {
      const bool is_leaf = operands_of(part.operation) == 0;
      results_.push_back(
          is_leaf ? leaf(rule, part, values)
                  : combine(part.operation, results_[part.left],
                            operands_of(part.operation) == 2 ? results_[part.right] : Value()));
    }
  }

  std::vector<std::string> find() {
    // Parts that stand before others are found after them.
    std::vector<size_t> open{rule_.parts.size() - 1};
    std::vector<size_t> found;
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      const Part& part = rule_.parts[at];
      if (part.operation == Operation::kNot) {
        open.push_back(part.left);
      } else if (part.operation == Operation::kAnd || part.operation == Operation::kOr) {
        for (const size_t operand : {part.right, part.left})
          if (results_[operand].truth() == results_[at].truth()) open.push_back(operand);
      } else {
        found.push_back(at);
      }
    }
    std::vector<std::string> lines;
    for (const size_t part : found) lines.push_back(line(part));
    return lines;
  }

 private:
  std::string line(size_t decided) const {
    const Part& part = rule_.parts[decided];
    std::string text = rule_.text.substr(part.place.begin, part.place.end - part.place.begin);
    std::string names;
    std::vector<size_t> said;
    for (size_t i = 0; i <= decided; ++i) {
      const Part& one = rule_.parts[i];
      const bool inside = one.place.begin >= part.place.begin && one.place.end <= part.place.end;
      const bool is_name = one.operation == Operation::kName || one.operation == Operation::kExist;
      if (!inside || !is_name || std::count(said.begin(), said.end(), one.name) > 0) continue;
      said.push_back(one.name);
      names += (names.empty() ? "" : ", ") + rule_.vocabulary[one.name].name + " is " +
               shown(named(rule_, one.name, values_));
    }
    return names.empty() ? text : text + " (" + names + ")";
  }

  const Compiled& rule_;
  const std::span<const Value> values_;
  std::vector<Value> results_;
};

}  // namespace

Rule::Rule(std::unique_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
Rule::Rule(Rule&&) noexcept = default;
Rule& Rule::operator=(Rule&&) noexcept = default;
Rule::~Rule() = default;

std::unique_ptr<const Compiled> compile(const std::string& text, const Vocabulary& vocabulary,
                                        Type wanted) {
  check_bytes(text);
  Builder builder(text, vocabulary, wanted);
  Scanner scanner(text);
  Parser(builder, scanner.state()).parse();
  return builder.take();
}

Rule Rule::parse(const std::string& text, const Vocabulary& vocabulary) {
  return Rule(compile(text, vocabulary, Type::kBoolean));
}

const std::string& Rule::text() const { return compiled_->text; }
const std::vector<size_t>& Rule::names() const { return compiled_->names; }

// A stack on the stack: Builder has checked how high it becomes.
Value evaluate(const Compiled& compiled, std::span<const Value> values) noexcept {
  std::array<Value, kDeepestRule> stack;
  size_t height = 0;
  for (const Part& part : compiled.parts) {
    const int operands = operands_of(part.operation);
    if (operands == 0) {
      stack[height++] = leaf(compiled, part, values);
    } else if (operands == 1) {
      stack[height - 1] = combine(part.operation, stack[height - 1], {});
    } else {
      stack[height - 2] = combine(part.operation, stack[height - 2], stack[height - 1]);
      --height;
    }
  }
  return stack[0];
}

Truth Rule::evaluate(std::span<const Value> values) const noexcept {
  return rules::evaluate(*compiled_, values).truth();
}

Truth Rule::always() const noexcept { return evaluate({}); }

std::vector<std::string> Rule::why(std::span<const Value> values) const {
  return Reasons(*compiled_, values).find();
}

Formula::Formula(std::unique_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
Formula::Formula(Formula&&) noexcept = default;
Formula& Formula::operator=(Formula&&) noexcept = default;
Formula::~Formula() = default;

Formula Formula::parse(const std::string& text, const Vocabulary& vocabulary) {
  return Formula(compile(text, vocabulary, Type::kNumber));
}

std::optional<double> Formula::evaluate(std::span<const Value> values) const noexcept {
  const Value value = rules::evaluate(*compiled_, values);
  if (!value.is(Type::kNumber)) return std::nullopt;
  return value.real();
}

}  // namespace sublet::rules
