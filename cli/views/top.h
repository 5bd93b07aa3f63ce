// The pool at one instant, as `sublet top` shows it: a frame that fits the
// terminal, JSON (shape in docs/json.md). Pure functions.
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
  JobCounts jobs;  // those that have not ended; the others are not counted
  std::vector<MachineInfo> machines;
  std::vector<Standing> standings;
  uint64_t evictions = 0;      // of the attempts that ended in the last hour
  bool own_evictions = true;   // of the caller's jobs only
  std::vector<Change> events;  // the caller's, or for administrators everybody's; oldest first
};

// How long to leave the server alone after a look that took so long: twenty times
// as long, from a second to a minute. One who watches so takes a twentieth of what
// a look takes at most, however large or busy the pool.
std::chrono::milliseconds pause_after_look(std::chrono::milliseconds took);

// rows 0: all there is, and the last events. Else at most `rows` lines: the
// lists share what there is, and say how much they leave out. `notice` stands
// below the figures, unless it is empty.
std::string top_frame(const PoolPicture& picture, const std::string& notice, size_t columns,
                      size_t rows, bool colour);
void write_json(JsonWriter& json, const PoolPicture& picture);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_TOP_H_
