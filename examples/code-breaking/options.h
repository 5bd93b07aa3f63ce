// The command line of code-breaking.
#ifndef SUBLET_EXAMPLES_CODE_BREAKING_OPTIONS_H_
#define SUBLET_EXAMPLES_CODE_BREAKING_OPTIONS_H_

#include <cstdint>
#include <string>

#include "examples/code-breaking/key_range.h"
#include "examples/code-breaking/search.h"

namespace sublet::code_breaking {

struct Options {
  Message message;
  KeyRange range{};  // this part's keys
  std::uint64_t packet = 16384;
  std::string found = "found";
  std::string checkpoint;  // empty: save only in a pool
  bool self_test = false;
  bool help = false;
};

extern const char kUsage[];

// Throws std::invalid_argument with one sentence.
Options parse_options(int argc, char** argv);

}  // namespace sublet::code_breaking

#endif  // SUBLET_EXAMPLES_CODE_BREAKING_OPTIONS_H_
