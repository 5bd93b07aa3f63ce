// What differs between two checkpoints. One thread.
#ifndef SUBLET_CLI_CHECKPOINT_DIFFERENCE_H_
#define SUBLET_CLI_CHECKPOINT_DIFFERENCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/checkpoint/file.h"

namespace sublet::cli {

// Elements of the same index that are not the same bit for bit.
struct ValueDifference {
  uint64_t differing = 0;
  uint64_t first = 0;  // the index of the first; the values there as exact texts
  std::string old_value, new_value;
  // The largest absolute difference between two numbers, exact for integers; missing for
  // streams, and if of every pair one is not a number.
  std::optional<std::string> largest;
};

struct SectionDifference {
  enum class Kind { added, removed, changed };
  Kind kind = Kind::changed;
  std::string name;
  std::optional<CheckpointSection> before, after;
  // Of the indices that both have, if their types are the same.
  std::optional<ValueDifference> values = {};
  // Of streams: the first bytes of both, for a person.
  std::string old_beginning = {}, new_beginning = {};
};

struct CheckpointDifference {
  // Another program, or another layout: sections of the same name may mean something else.
  bool other_program = false;
  bool other_layout = false;
  std::vector<SectionDifference> sections;  // in the order of the old file, then the added ones
  bool none() const { return !other_program && !other_layout && sections.empty(); }
};

// Generation, time, progress and the order of the sections do not count. Reads both files once
// more. Throws CheckpointFault.
CheckpointDifference compare(const CheckpointFile& before, const CheckpointFile& after);

// A line for each difference; "" if there is none.
std::string difference_text(const CheckpointDifference& difference, const CheckpointFile& before,
                            const CheckpointFile& after);
void write_json(JsonWriter& json, const CheckpointDifference& difference,
                const CheckpointFile& before, const CheckpointFile& after);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_CHECKPOINT_DIFFERENCE_H_
