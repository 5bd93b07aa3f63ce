// Reads a batch file (docs/batch-files.md) into a plan. Errors in the file are
// DocumentErrors with line and column. Pure, except for read_batch_file.
#ifndef SUBLET_CLI_BATCH_FILE_H_
#define SUBLET_CLI_BATCH_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/batch/plan.h"

namespace sublet::cli {

inline constexpr uint64_t kBatchFileMax = 16u << 20;

// `file`: name for messages; `folder`: base of relative paths.
BatchPlan parse_batch(std::string_view text, const std::string& file, const std::string& folder);
// Throws PoolError if the file cannot be read or is larger than kBatchFileMax.
BatchPlan read_batch_file(const std::string& path);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_BATCH_FILE_H_
