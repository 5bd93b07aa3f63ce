// When a rehearsal interrupts its runs: drawn from a seed, the same on every machine. Pure.
#ifndef SUBLET_CLI_REHEARSE_SCHEDULE_H_
#define SUBLET_CLI_REHEARSE_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace sublet::cli {

struct Interruption {
  enum class Way {
    ask,           // at an instant
    ask_at_point,  // at a safe point, which the program counts itself
    kill_in_save   // asked at an instant, then killed a moment after it began to write
  };
  Way way = Way::ask;
  double share = 0;  // from 0 to 1: where in what is left of the time, or of the points
  // What was saved last is lost: the next attempt has the generation before.
  bool loses_newest = false;
};

struct PlannedRun {
  std::string what;                         // for a person
  std::vector<Interruption> interruptions;  // in this order, one an attempt
};

// `counts_points`: the program can be asked at its safe points.
std::vector<PlannedRun> draw_runs(uint64_t seed, uint64_t runs, bool counts_points);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_REHEARSE_SCHEDULE_H_
