// The pool at one instant, as `sublet top` shows it: a frame that fits the terminal, or
// JSON (format in docs/json.md). Pure functions.
#ifndef SUBLET_CLI_VIEWS_TOP_H_
#define SUBLET_CLI_VIEWS_TOP_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/pool/pool.h"

namespace sublet::cli {

struct PoolPicture {
  int64_t at_us = 0;
  std::string pool;
  JobCounts jobs;  // only of jobs that have not ended
  std::vector<MachineInfo> machines;
  std::vector<Standing> standings;
  uint64_t evictions = 0;      // of the attempts that ended in the last hour
  bool own_evictions = true;   // of the caller's jobs only
  std::vector<Change> events;  // the caller's, for administrators all users'; oldest first
};

// The pause before the server is asked again: twenty times as long as the last time took,
// from a second to a minute. This bounds the load that `top` causes, however large or busy
// the pool is.
std::chrono::milliseconds pause_after_refresh(std::chrono::milliseconds took);

// rows 0: everything, and the last events. Else at most `rows` lines: the lists share them
// and show how many items they leave out. `notice` is shown below the figures, unless empty.
std::string top_frame(const PoolPicture& picture, const std::string& notice, size_t columns,
                      size_t rows, bool colour);
void write_json(JsonWriter& json, const PoolPicture& picture);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_TOP_H_
