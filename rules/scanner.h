// The scanner that Flex makes from tokens.ll. Internal to rules/.
#ifndef SUBLET_RULES_SCANNER_H_
#define SUBLET_RULES_SCANNER_H_

#include <cstddef>
#include <string_view>

#include "rules/builder.h"

namespace sublet::rules {

class Scanner {
 public:
  // The text must live as long.
  explicit Scanner(std::string_view text);
  ~Scanner();
  Scanner(const Scanner&) = delete;
  void* state() { return state_; }

 private:
  void* state_ = nullptr;
};

// The next token. Throws RuleError.
int yylex(size_t* value, Span* place, Builder& builder, void* scanner);

}  // namespace sublet::rules

#endif  // SUBLET_RULES_SCANNER_H_
