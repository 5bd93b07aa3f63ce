#include "rules/builder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace sublet::rules {
namespace {

const char* name_of(Type type) {
  switch (type) {
    case Type::kBoolean:
      return "a truth";
    case Type::kNumber:
      return "a number";
    case Type::kText:
      return "a text";
    case Type::kTexts:
      break;
  }
  return "a list";
}

bool is_order(Operation operation) {
  return operation == Operation::kLess || operation == Operation::kLessEqual ||
         operation == Operation::kGreater || operation == Operation::kGreaterEqual;
}

// Bytes of the UTF-8 character that begins here; 0: none does.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80   ? 1
                        : byte(0) < 0xc2 ? 0
                        : byte(0) < 0xe0 ? 2
                        : byte(0) < 0xf0 ? 3
                        : byte(0) < 0xf5 ? 4
                                         : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Forms that are too long, surrogates, and what lies behind the last character.
  const bool wrong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) >= 0xa0) ||
                     (byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) >= 0x90);
  return wrong ? 0 : length;
}

std::string position(std::string_view text, size_t offset) {
  offset = std::min(offset, text.size());
  const auto lines = std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(offset), '\n');
  const size_t begin = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  size_t column = 1;  // in characters
  for (size_t i = begin == std::string_view::npos ? 0 : begin + 1; i < offset; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) ++column;
  const std::string place = "column " + std::to_string(column);
  const bool several = text.find('\n') != std::string_view::npos;
  return several ? "line " + std::to_string(lines + 1) + ", " + place : place;
}

}  // namespace

RuleError::RuleError(std::string_view text, Span place, const std::string& message)
    : std::runtime_error(position(text, place.begin) + ": " + message), place_(place) {}

void check_bytes(std::string_view text) {
  if (text.size() > kLongestRule)
    throw RuleError(text, {kLongestRule, text.size()},
                    "a rule has at most " + std::to_string(kLongestRule) + " bytes");
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = character(text.substr(i));
    const bool control =
        (byte < ' ' && byte != '\n' && byte != '\t' && byte != '\r') || byte == 0x7f;
    if (length == 0 || control) {
      char code[8];
      snprintf(code, sizeof code, "0x%02x", byte);
      throw RuleError(text, {i, i + 1},
                      std::string("the byte ") + code +
                          (control ? " cannot stand in a rule" : " is not UTF-8"));
    }
    i += length;
  }
}

Builder::Builder(const std::string& text, const Vocabulary& vocabulary, Type wanted)
    : compiled_(new Compiled{text, vocabulary, {}, {}, {}}), wanted_(wanted) {}

Span Builder::advance(size_t length) {
  const Span place{offset_, offset_ + length};
  offset_ += length;
  return place;
}

void Builder::refuse(Span place, const std::string& message) const {
  throw RuleError(compiled_->text, place, message);
}

std::string_view Builder::at(Span place) const {
  return std::string_view(compiled_->text).substr(place.begin, place.end - place.begin);
}

std::string Builder::quoted(Span place) const {
  constexpr size_t kLongest = 60;
  std::string text(at(place));
  if (text.size() > kLongest) {
    size_t end = kLongest;
    while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // no half character
    text = text.substr(0, end) + "...";
  }
  return text.starts_with('\'') ? text : "'" + text + "'";
}

size_t Builder::add(Part part, Type type, size_t waiting) {
  if (waiting > kDeepestRule)
    refuse(part.place, "this is nested more than " + std::to_string(kDeepestRule) + " deep");
  compiled_->parts.push_back(part);
  types_.push_back(type);
  waiting_.push_back(waiting);
  return types_.size() - 1;
}

size_t Builder::boolean(bool truth, Span place) {
  return add({.place = place, .literal = Value::of(truth)}, Type::kBoolean, 1);
}

size_t Builder::integer(std::string_view digits, Span place) {
  int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc()) refuse(place, "this number is above 9223372036854775807");
  return add({.place = place, .literal = Value::of(value)}, Type::kNumber, 1);
}

size_t Builder::real(std::string_view digits, Span place) {
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc() || !std::isfinite(value))
    refuse(place, "this number is too large or too small");
  return add({.place = place, .literal = Value::of(value)}, Type::kNumber, 1);
}

size_t Builder::text(Span place) {
  const std::string_view quoted = at(place);
  std::string& text = compiled_->texts.emplace_back();
  for (size_t i = 1; i + 1 < quoted.size(); ++i)
    text += quoted[i] == '\\' ? quoted[++i] : quoted[i];
  return add({.place = place, .literal = Value::of(std::string_view(text))}, Type::kText, 1);
}

size_t Builder::lookup(Span place) {
  const std::string name(at(place));
  const auto index = compiled_->vocabulary.find(name);
  if (!index) {
    const std::string near = compiled_->vocabulary.nearest(name);
    refuse(place, "unknown name " + quoted(place) +
                      (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
  auto& names = compiled_->names;
  const auto where = std::lower_bound(names.begin(), names.end(), *index);
  if (where == names.end() || *where != *index) names.insert(where, *index);
  return *index;
}

size_t Builder::name(Span place) {
  const size_t index = lookup(place);
  return add({.operation = Operation::kName, .place = place, .name = index},
             compiled_->vocabulary[index].type, 1);
}

size_t Builder::exist(Span name, Span place) {
  return add({.operation = Operation::kExist, .place = place, .name = lookup(name)}, Type::kBoolean,
             1);
}

void Builder::require(Type type, size_t part, const std::string& what) const {
  if (types_[part] == type) return;
  const Span place = compiled_->parts[part].place;
  refuse(place, what + " needs " + name_of(type) + ", and " + quoted(place) + " is " +
                    name_of(types_[part]));
}

size_t Builder::unary(Operation operation, size_t operand, Span place) {
  const bool negates = operation == Operation::kNegate;
  if (operation == Operation::kNot && types_[operand] != Type::kBoolean) {
    const Span wrong = compiled_->parts[operand].place;
    refuse(wrong, "'not' needs a truth, and " + quoted(wrong) + " is " + name_of(types_[operand]) +
                      "; to negate a comparison, write not (a < b)");
  }
  require(negates ? Type::kNumber : Type::kBoolean, operand, negates ? "'-'" : "'not'");
  return add({.operation = operation, .place = place, .left = operand}, types_[operand],
             waiting_[operand]);
}

void Builder::require_same(Operation operation, size_t left, size_t right) const {
  const Span place{compiled_->parts[left].place.begin, compiled_->parts[right].place.end};
  if (types_[left] != types_[right])
    refuse(place, std::string("cannot compare ") + name_of(types_[left]) + " with " +
                      name_of(types_[right]));
  if (types_[left] == Type::kTexts) refuse(place, "lists cannot be compared; write 'name' in list");
  if (is_order(operation) && types_[left] == Type::kBoolean)
    refuse(place, "truths have no order; compare them with == or !=");
}

Type Builder::result_of(Operation operation, size_t left, size_t right, Span place) const {
  const std::string what = "'" +
                           std::string(operation == Operation::kAnd  ? "and"
                                       : operation == Operation::kOr ? "or"
                                                                     : "") +
                           "'";
  switch (operation) {
    case Operation::kAnd:
    case Operation::kOr:
      require(Type::kBoolean, left, what);
      require(Type::kBoolean, right, what);
      return Type::kBoolean;
    case Operation::kAdd:
    case Operation::kSubtract:
    case Operation::kMultiply:
    case Operation::kDivide:
      require(Type::kNumber, left, "arithmetic");
      require(Type::kNumber, right, "arithmetic");
      return Type::kNumber;
    case Operation::kContained:
      require(Type::kText, left, "'~'");
      require(Type::kText, right, "'~'");
      return Type::kBoolean;
    case Operation::kIn:
      require(Type::kText, left, "'in'");
      if (types_[right] != Type::kTexts)
        refuse(place, "'in' needs a list, and " + quoted(compiled_->parts[right].place) + " is " +
                          name_of(types_[right]) +
                          (types_[right] == Type::kText ? "; write 'part' ~ text" : ""));
      return Type::kBoolean;
    default:
      require_same(operation, left, right);
      return Type::kBoolean;
  }
}

size_t Builder::binary(Operation operation, size_t left, size_t right, Span place) {
  const Type type = result_of(operation, left, right, place);
  return add({.operation = operation, .place = place, .left = left, .right = right}, type,
             std::max(waiting_[left], waiting_[right] + 1));
}

void Builder::finish(size_t part) {
  if (types_[part] == wanted_) return;
  const std::string is = std::string(", and this is ") + name_of(types_[part]);
  refuse(compiled_->parts[part].place,
         wanted_ == Type::kBoolean ? "a rule must be a truth" + is + "; compare it with something"
                                   : "this must be a number" + is);
}

}  // namespace sublet::rules
