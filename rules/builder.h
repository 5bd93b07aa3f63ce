// Puts a rule together from what the grammar finds, and checks types. Internal to rules/.
#ifndef SUBLET_RULES_BUILDER_H_
#define SUBLET_RULES_BUILDER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rules/compiled.h"

namespace sublet::rules {

class Builder {
 public:
  // `wanted`: what the whole is to be, a truth or a number.
  Builder(const std::string& text, const Vocabulary& vocabulary, Type wanted);

  // Each returns the new part. All throw RuleError.
  size_t boolean(bool truth, Span place);
  size_t integer(std::string_view digits, Span place);
  size_t real(std::string_view digits, Span place);
  size_t text(Span place);  // a literal, with its quotes
  size_t name(Span place);
  size_t exist(Span name, Span place);
  size_t unary(Operation operation, size_t operand, Span place);
  size_t binary(Operation operation, size_t left, size_t right, Span place);
  // The whole, which must be of the type that is wanted.
  void finish(size_t part);

  // The scanner's position: the place of the next `length` bytes.
  Span advance(size_t length);
  [[noreturn]] void refuse(Span place, const std::string& message) const;
  std::string_view at(Span place) const;
  // The same in quotes, for messages, and cut off if it is long.
  std::string quoted(Span place) const;

  std::unique_ptr<const Compiled> take() { return std::move(compiled_); }

 private:
  size_t add(Part part, Type type, size_t waiting);
  size_t lookup(Span place);
  Type result_of(Operation operation, size_t left, size_t right, Span place) const;
  void require(Type type, size_t part, const std::string& what) const;
  void require_same(Operation operation, size_t left, size_t right) const;

  std::unique_ptr<Compiled> compiled_;
  const Type wanted_;
  std::vector<Type> types_;      // of the parts
  std::vector<size_t> waiting_;  // how many values the evaluation of each part needs room for
  size_t offset_ = 0;
};

// Throws RuleError at the first byte that no rule may have.
void check_bytes(std::string_view text);

}  // namespace sublet::rules

#endif  // SUBLET_RULES_BUILDER_H_
