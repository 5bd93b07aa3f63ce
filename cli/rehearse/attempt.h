// One attempt of a rehearsed program: started as a shepherd starts it, asked to leave as a shepherd
// asks it. Main thread; stop_all() may be called by the thread that waits for signals.
#ifndef SUBLET_CLI_REHEARSE_ATTEMPT_H_
#define SUBLET_CLI_REHEARSE_ATTEMPT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "cli/rehearse/program.h"
#include "protocol/attempt.h"

namespace sublet::cli {

struct AttemptOrder {
  uint64_t number = 1;
  std::optional<int64_t> ask_after_us;  // none: not at an instant
  // Killed so long after it began to write, if it was asked.
  std::optional<int64_t> kill_after_write_us;
  std::optional<uint64_t> stop_at;  // the safe point at which to leave; 0: only counts points
  int64_t longest_us = 0;           // killed after that, as one that hangs
};

struct AttemptEnded {
  protocol::EndCode end = protocol::kEndNone;
  std::string how;  // "exit status 0", "killed by signal 11 (Segmentation fault)"
  bool asked = false;
  bool killed = false;    // because it had not ended by itself
  bool cut_save = false;  // killed after it began to write
  bool hung = false;      // killed although nobody had asked it to leave
  bool handled = true;    // a process of it handled the signal
  int64_t wall_us = 0;
  int64_t cpu_us = 0;
  int64_t gone_us = -1;  // from the request at an instant until its processes were gone
  // What its status page says.
  uint64_t generation = 0;
  uint64_t resumed_generation = 0;
  uint64_t points = 0;
  int64_t save_us = 0;
  bool aware = false;
  // The listed files that were whole when it ended: names -> paths; and all that were there.
  std::map<std::string, std::string> whole_files, listed_files;
};

// Throws PoolError "rehearse.start".
AttemptEnded run_attempt(const Rehearsed& program, const AttemptFolder& folder,
                         const AttemptOrder& order);

// Kills what runs, and lets nothing start from now on.
void stop_all();

}  // namespace sublet::cli

#endif  // SUBLET_CLI_REHEARSE_ATTEMPT_H_
