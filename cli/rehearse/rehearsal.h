// A whole rehearsal: a program runs undisturbed, then interrupted, and the results are compared.
// One thread.
#ifndef SUBLET_CLI_REHEARSE_REHEARSAL_H_
#define SUBLET_CLI_REHEARSE_REHEARSAL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/rehearse/parting.h"
#include "cli/rehearse/run.h"

namespace sublet::cli {

enum class Verdict {
  passed,
  differs,            // an interrupted run, from an undisturbed one
  not_deterministic,  // two undisturbed runs differ already
  never_saved,        // every interruption starts it anew
  never_interrupted   // it ended before
};
const char* verdict_name(Verdict verdict);  // "passed", "differs", "not-deterministic", ...

struct RunReport {
  std::string what;
  RunEnded ended;
  std::vector<std::string> differences;  // and problems; none: it passed
  // CPU time beyond that of an undisturbed run. None if points were counted: that costs time, too.
  std::optional<int64_t> repeated_us;
};

struct RehearsalReport {
  Verdict verdict = Verdict::passed;
  uint64_t seed = 0;
  Undisturbed undisturbed;
  std::vector<std::string> undisturbed_differences;  // of the second undisturbed run
  std::vector<RunReport> runs;
  std::optional<Parting> parting;
};

struct RehearsalOptions {
  Rehearsed program;
  uint64_t runs = 10;
  uint64_t seed = 1;
};

// `folder`: an existing one, for all files. `tell`: called before each run with its number and
// what it is. Throws PoolError, FileError.
RehearsalReport rehearse(const RehearsalOptions& options, const std::string& folder,
                         const std::function<void(uint64_t, const std::string&)>& tell);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_REHEARSE_REHEARSAL_H_
