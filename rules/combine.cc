// What the operations mean (docs/rules.md).
#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <optional>

#include "rules/compiled.h"

namespace sublet::rules {
namespace {

std::optional<int64_t> exact(Operation operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (operation == Operation::kAdd) overflow = __builtin_add_overflow(a, b, &result);
  if (operation == Operation::kSubtract) overflow = __builtin_sub_overflow(a, b, &result);
  if (operation == Operation::kMultiply) overflow = __builtin_mul_overflow(a, b, &result);
  if (overflow) return std::nullopt;
  return result;
}

Value calculate(Operation operation, const Value& left, const Value& right) {
  const bool integers =
      left.kind() == Value::Kind::kInteger && right.kind() == Value::Kind::kInteger;
  if (integers && operation != Operation::kDivide) {
    const auto result = exact(operation, left.integer(), right.integer());
    return result ? Value::of(*result) : Value();
  }
  const double a = left.real(), b = right.real();
  switch (operation) {
    case Operation::kAdd:
      return Value::of(a + b);
    case Operation::kSubtract:
      return Value::of(a - b);
    case Operation::kMultiply:
      return Value::of(a * b);
    default:
      return b == 0 ? Value() : Value::of(a / b);
  }
}

// Exact, although not every 64-bit integer is a double.
std::strong_ordering compare(int64_t integer, double real) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (real >= kEnd) return std::strong_ordering::less;
  if (real < -kEnd) return std::strong_ordering::greater;
  const double whole = std::trunc(real);
  const auto order = integer <=> static_cast<int64_t>(whole);
  if (order != std::strong_ordering::equal || real == whole) return order;
  return real > whole ? std::strong_ordering::less : std::strong_ordering::greater;
}

std::strong_ordering reversed(std::strong_ordering order) { return 0 <=> order; }

std::strong_ordering compare(const Value& left, const Value& right) {
  const bool a_is_integer = left.kind() == Value::Kind::kInteger;
  const bool b_is_integer = right.kind() == Value::Kind::kInteger;
  if (left.kind() == Value::Kind::kText) return left.text() <=> right.text();
  if (left.kind() == Value::Kind::kBoolean || (a_is_integer && b_is_integer))
    return left.integer() <=> right.integer();
  if (a_is_integer) return compare(left.integer(), right.real());
  if (b_is_integer) return reversed(compare(right.integer(), left.real()));
  return left.real() < right.real()   ? std::strong_ordering::less
         : left.real() > right.real() ? std::strong_ordering::greater
                                      : std::strong_ordering::equal;
}

bool holds(Operation operation, std::strong_ordering order) {
  switch (operation) {
    case Operation::kEqual:
      return order == 0;
    case Operation::kUnequal:
      return order != 0;
    case Operation::kLess:
      return order < 0;
    case Operation::kLessEqual:
      return order <= 0;
    case Operation::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

Value all_of(Truth a, Truth b) {
  if (a == Truth::kFalse || b == Truth::kFalse) return Value::of(false);
  return a == Truth::kTrue && b == Truth::kTrue ? Value::of(true) : Value();
}

Value any_of(Truth a, Truth b) {
  if (a == Truth::kTrue || b == Truth::kTrue) return Value::of(true);
  return a == Truth::kFalse && b == Truth::kFalse ? Value::of(false) : Value();
}

Value negated(const Value& value) {
  if (value.kind() == Value::Kind::kReal) return Value::of(-value.real());
  if (value.kind() != Value::Kind::kInteger ||
      value.integer() == std::numeric_limits<int64_t>::min())
    return {};
  return Value::of(-value.integer());
}

Value opposite(Truth truth) {
  return truth == Truth::kUnknown ? Value() : Value::of(truth == Truth::kFalse);
}

}  // namespace

Value Value::of(double real) {
  if (!std::isfinite(real)) return {};
  Value value(Kind::kReal);
  value.real_ = real;
  return value;
}

bool Value::is(Type type) const {
  switch (type) {
    case Type::kBoolean:
      return kind_ == Kind::kBoolean;
    case Type::kNumber:
      return kind_ == Kind::kInteger || kind_ == Kind::kReal;
    case Type::kText:
      return kind_ == Kind::kText;
    case Type::kTexts:
      return kind_ == Kind::kTexts;
  }
  return false;
}

Value combine(Operation operation, const Value& left, const Value& right) noexcept {
  if (operation == Operation::kAnd) return all_of(left.truth(), right.truth());
  if (operation == Operation::kOr) return any_of(left.truth(), right.truth());
  if (operation == Operation::kNot) return opposite(left.truth());
  if (operation == Operation::kNegate) return negated(left);
  if (!left.is_known() || !right.is_known()) return {};
  switch (operation) {
    case Operation::kAdd:
    case Operation::kSubtract:
    case Operation::kMultiply:
    case Operation::kDivide:
      return calculate(operation, left, right);
    case Operation::kContained:
      return Value::of(right.text().find(left.text()) != std::string_view::npos);
    case Operation::kIn: {
      const auto texts = right.texts();
      return Value::of(std::find(texts.begin(), texts.end(), left.text()) != texts.end());
    }
    default:
      return Value::of(holds(operation, compare(left, right)));
  }
}

}  // namespace sublet::rules
