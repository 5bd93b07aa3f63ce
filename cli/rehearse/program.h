// The program of a rehearsal, and what every attempt finds: a new folder with its inputs, and the
// environment that it has in the pool. One thread.
#ifndef SUBLET_CLI_REHEARSE_PROGRAM_H_
#define SUBLET_CLI_REHEARSE_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/batch/plan.h"

namespace sublet::cli {

struct Rehearsed {
  PlannedJob job;
  int64_t deadline_ms = 2000;  // from the request to save until it is killed
  std::string compare;         // the user's own command; "": byte by byte
};

// The folder of one attempt.
struct AttemptFolder {
  std::string path;
  std::string work() const { return path + "/work"; }
  std::string checkpoint() const { return path + "/checkpoint"; }
  std::string status() const { return path + "/status"; }
  std::string out() const { return path + "/stdout"; }
  std::string err() const { return path + "/stderr"; }
};

// Makes it, and copies the inputs. Throws PoolError "input.missing", FileError.
AttemptFolder make_attempt_folder(const Rehearsed& program, const std::string& path);

// As client/staging/staging.h sets it, and the shepherd. `attempt`: from 1.
std::vector<std::string> attempt_environment(const Rehearsed& program, const AttemptFolder& folder,
                                             uint64_t attempt);

// The program as a path that spawn() accepts in the working folder. Throws PoolError
// "rehearse.start" if there is none.
std::string find_program(const Rehearsed& program, const std::vector<std::string>& environment);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_REHEARSE_PROGRAM_H_
