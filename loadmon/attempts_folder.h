// Finds the attempts in the client's folder and reads what is needed to kill them: their
// processes, save deadlines and cgroups. One thread.
#ifndef SUBLET_LOADMON_ATTEMPTS_FOLDER_H_
#define SUBLET_LOADMON_ATTEMPTS_FOLDER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "loadmon/attempts.h"
#include "loadmon/jobs_meter.h"

namespace sublet::loadmon {

class AttemptsFolder {
 public:
  // `folder`: the client's attempts/; empty: there is none.
  // `save_ms`: the save deadline of an attempt whose order cannot be read.
  AttemptsFolder(const std::string& folder, int64_t save_ms, Attempts* attempts);

  // Returns the attempt, adding it if it is new.
  Attempt* find(uint64_t job, uint32_t attempt, int64_t now);
  // Reads what is needed to kill it, unless that has been done. Not part of find(), so
  // that thousands of short jobs a second cost little.
  void prepare(Attempt* attempt);
  void prepare_all();
  // Its shepherd has written the exit record, which it does when no process is left.
  bool has_ended(const Attempt& attempt) const;
  // Prepares all attempts, and adds running ones that no shepherd has claimed. Cheap while
  // the folder has not changed.
  void scan(int64_t now);
  // The processes known to belong to jobs.
  std::vector<pid_t> processes() const;
  // The jobs whose records have been read.
  std::vector<JobToMeter> to_meter() const;

 private:
  std::string folder_of_attempt(const Attempt& attempt) const;

  std::string folder_;
  int64_t save_ms_;
  Attempts* attempts_;
  int64_t changed_ = 0;     // the folder's modification time at the last scan, ns
  int64_t look_until_ = 0;  // a record may appear some time after its folder
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_ATTEMPTS_FOLDER_H_
