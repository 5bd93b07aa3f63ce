// For what part of the time programs other than jobs wait for memory, by the kernel's pressure
// counters ("some"). Where jobs have control groups beside those of all other programs, it is what
// any of the others says: a job may wait for its own bound. Else it is /proc/pressure/memory, in
// which the jobs' waits are contained, and the kernel's own work of freeing memory. One thread.
#ifndef SUBLET_CLIENT_MACHINE_MEMORY_PRESSURE_H_
#define SUBLET_CLIENT_MACHINE_MEMORY_PRESSURE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/machine/memory_watch.h"

namespace sublet::client {

class MemoryPressure {
 public:
  // jobs_in: the folder of version 2 in which the jobs' control groups are made; "": they have none
  explicit MemoryPressure(const std::string& jobs_in,
                          const std::string& machine = "/proc/pressure/memory");

  // Since the last look. ppm is 0 if that is not known: at the first look, or if the kernel does
  // not say. Reads files that wait for no disk.
  Pressure look(int64_t now_ns);

 private:
  std::vector<std::string> others() const;

  const std::string beside_;  // where the others' control groups are; "": not there
  const std::string machine_;
  int64_t last_ns_ = 0;                     // of the last look
  std::map<std::string, int64_t> last_us_;  // by file: for how long some program had waited
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_MEMORY_PRESSURE_H_
