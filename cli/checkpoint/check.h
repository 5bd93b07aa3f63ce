// Whether checkpoint files are whole. One thread.
#ifndef SUBLET_CLI_CHECKPOINT_CHECK_H_
#define SUBLET_CLI_CHECKPOINT_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace sublet::cli {

struct CheckedFile {
  std::string path;
  bool whole = false;
  uint64_t generation = 0;    // 0: not whole
  uint64_t bytes = 0;         // 0: not whole
  std::string problem = {};   // "" if it is whole
  int64_t at = -1;            // offset of the problem; -1: the file as a whole
  std::string checksum = {};  // the field that does not match, if that is the problem
};

// Each file; for a folder, the generations in it, newest first.
std::vector<CheckedFile> check_checkpoints(const std::vector<std::string>& paths);

// "checkpoint: whole, generation 7, 1.2 KiB"
std::string check_line(const CheckedFile& file);
void write_json(JsonWriter& json, const CheckedFile& file);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_CHECKPOINT_CHECK_H_
