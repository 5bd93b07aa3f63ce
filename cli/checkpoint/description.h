// What is in a checkpoint, as text and as JSON. One thread.
#ifndef SUBLET_CLI_CHECKPOINT_DESCRIPTION_H_
#define SUBLET_CLI_CHECKPOINT_DESCRIPTION_H_

#include <string>

#include "base/json.h"
#include "cli/checkpoint/file.h"

namespace sublet::cli {

// The header, then a line for each section: its first values, least, greatest and mean. Reads
// the file once more. `width`: columns of the terminal, 0: no limit.
std::string checkpoint_text(const CheckpointFile& file, size_t width, bool colour);
// Likewise, as an object.
void write_json(JsonWriter& json, const CheckpointFile& file);

// Prints every value of the section to stdout as it is read, one a line; with `json` as an
// object on one line. Throws PoolError.
void print_values(const CheckpointFile& file, const CheckpointSection& section, bool json);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_CHECKPOINT_DESCRIPTION_H_
