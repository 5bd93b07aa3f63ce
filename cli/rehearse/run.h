// One run of a rehearsed program, from its start to its end, over as many attempts as its
// interruptions make. One thread.
#ifndef SUBLET_CLI_REHEARSE_RUN_H_
#define SUBLET_CLI_REHEARSE_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/rehearse/carried.h"
#include "cli/rehearse/outcome.h"
#include "cli/rehearse/schedule.h"

namespace sublet::cli {

// What is known of an undisturbed run.
struct Undisturbed {
  Outcome outcome;
  int64_t wall_us = 0;
  int64_t cpu_us = 0;
  uint64_t saves = 0;   // by itself
  uint64_t points = 0;  // 0: it makes none
  uint64_t bytes = 0;   // of its last save
  int64_t save_us = 0;
};

struct RunEnded {
  Outcome outcome;
  std::vector<std::string> problems;  // why it is no run that a pool would accept
  std::string last_words;             // of an end other than exit status 0: ", its stderr ..."
  uint64_t interruptions = 0;
  uint64_t saves = 0;      // that were carried to the next attempt
  uint64_t anew = 0;       // attempts that began anew although something had been saved
  uint64_t cut_saves = 0;  // attempts killed while they were saving
  uint64_t handled = 0;    // requests that found a handler
  uint64_t bytes = 0;      // of the largest save
  int64_t save_us = 0;     // the longest save that the program reports
  int64_t wall_us = 0;
  int64_t cpu_us = 0;                   // of all attempts
  std::vector<int64_t> gone_us;         // from each request until it was gone
  uint64_t points = 0;                  // of the last attempt, if they were counted
  uint64_t reported_saves = 0;          // of the last attempt
  uint64_t passed = 0;                  // points at which it left, together
  std::optional<uint64_t> first_point;  // at which its first attempt left, if at a point
};

class Runner {
 public:
  // Runs are made in numbered folders below `folder`.
  Runner(const Rehearsed& program, const std::string& folder)
      : program_(program), folder_(folder) {}

  // Nothing disturbs it. `count_points`: instead of its duration its points are of interest.
  RunEnded run_undisturbed(bool count_points);
  RunEnded run_interrupted(const PlannedRun& plan, const Undisturbed& undisturbed);
  // One attempt with what is carried, left at this point of it (0: at none): the state it saved.
  // nullopt: it ended before, or saved nothing.
  struct Reached {
    std::optional<Carried> state;
    uint64_t points = 0;
  };
  Reached run_to_point(const Carried& from, uint64_t point);

  // An attempt that takes longer hangs.
  void set_longest_us(int64_t us) { longest_us_ = us; }
  // Removes the files of the last run.
  void forget_run();
  const std::string& folder() const { return folder_; }

 private:
  class Chain;
  static AttemptOrder order_for(const Interruption& interruption, const Undisturbed& undisturbed,
                                const RunEnded& so_far);
  AttemptFolder next_folder();
  std::string run_folder() const;
  void begin_run();

  const Rehearsed& program_;
  const std::string folder_;
  uint64_t runs_ = 0;
  uint64_t attempts_ = 0;  // of this run
  int64_t longest_us_ = INT64_MAX / 4;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_REHEARSE_RUN_H_
