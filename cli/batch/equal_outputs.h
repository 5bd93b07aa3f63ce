// Outputs of different jobs that cannot be fetched into one folder. Pure.
#ifndef SUBLET_CLI_BATCH_EQUAL_OUTPUTS_H_
#define SUBLET_CLI_BATCH_EQUAL_OUTPUTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/batch/plan.h"

namespace sublet::cli {

// How much is compared: more would take too long, or too much memory.
struct ComparedOutputs {
  uint64_t names = 2'000'000;
  size_t bytes = 64u << 20;  // of these names
};

// Two required outputs of different jobs that have the same name, or of which one lies in the
// other: `results/a` in `results/`. Patterns are not compared, because nobody knows what they
// will match.
struct EqualOutputs {
  std::string name;         // with the values of its parameters; empty: all names differ
  std::string inside = {};  // the output that `name` lies in; empty: both are called `name`
  std::string where = {};   // "FILE:LINE:COLUMN" of the later one; empty: the command line
  uint64_t names = 0;       // of outputs that were to be compared
  uint64_t compared = 0;    // of these, the first
};
EqualOutputs find_equal_outputs(const BatchPlan& plan, const ComparedOutputs& most = {});

}  // namespace sublet::cli

#endif  // SUBLET_CLI_BATCH_EQUAL_OUTPUTS_H_
