// What a name stands for while a rule is evaluated: a truth, a number, a text, several texts,
// or nothing that is known. Trivially copyable: texts belong to the caller, who keeps them until
// the evaluation is over.
#ifndef SUBLET_RULES_VALUE_H_
#define SUBLET_RULES_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sublet::rules {

enum class Type { kBoolean, kNumber, kText, kTexts };

// Three-valued (Kleene): what follows from something unknown is unknown, unless the rest decides.
enum class Truth { kFalse, kTrue, kUnknown };

class Value {
 public:
  enum class Kind : uint8_t { kUnknown, kBoolean, kInteger, kReal, kText, kTexts };

  Value() = default;  // unknown
  static Value of(bool truth) {
    Value value(Kind::kBoolean);
    value.integer_ = truth ? 1 : 0;
    return value;
  }
  static Value of(Truth truth) {
    return truth == Truth::kUnknown ? Value() : of(truth == Truth::kTrue);
  }
  static Value of(int64_t integer) {
    Value value(Kind::kInteger);
    value.integer_ = integer;
    return value;
  }
  // Infinite, or not a number: unknown.
  static Value of(double real);
  static Value of(const char*) = delete;  // it would be a truth
  static Value of(std::string_view text) {
    Value value(Kind::kText);
    value.text_ = text.data();
    value.size_ = text.size();
    return value;
  }
  static Value of(std::span<const std::string_view> texts) {
    Value value(Kind::kTexts);
    value.texts_ = texts.data();
    value.size_ = texts.size();
    return value;
  }

  Kind kind() const { return kind_; }
  bool is_known() const { return kind_ != Kind::kUnknown; }
  bool is(Type type) const;
  Truth truth() const {
    if (kind_ != Kind::kBoolean) return Truth::kUnknown;
    return integer_ != 0 ? Truth::kTrue : Truth::kFalse;
  }
  int64_t integer() const { return integer_; }
  double real() const { return kind_ == Kind::kInteger ? static_cast<double>(integer_) : real_; }
  std::string_view text() const { return {text_, size_}; }
  std::span<const std::string_view> texts() const { return {texts_, size_}; }

 private:
  explicit Value(Kind kind) : kind_(kind) {}

  union {
    int64_t integer_ = 0;
    double real_;
    const char* text_;
    const std::string_view* texts_;
  };
  size_t size_ = 0;
  Kind kind_ = Kind::kUnknown;
};

}  // namespace sublet::rules

#endif  // SUBLET_RULES_VALUE_H_
