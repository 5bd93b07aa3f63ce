// Reads the machine's state on a thread of its own, because a disk or a driver may block, and the
// monitor's thread must not. What is too old counts as not known.
#ifndef SUBLET_LOADMON_FACTS_MACHINE_READER_H_
#define SUBLET_LOADMON_FACTS_MACHINE_READER_H_

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "loadmon/facts/machine_state.h"

namespace sublet::loadmon {

class MachineReader {
 public:
  using Read = std::function<MachineState(int64_t now, const std::vector<pid_t>& jobs)>;

  static constexpr int64_t kPeriod = 5'000'000'000;     // between two readings; ns
  static constexpr int64_t kBelieved = 30'000'000'000;  // of a reading; ns

  explicit MachineReader(Read read);
  // A reading that hangs is left behind.
  ~MachineReader();

  // For the monitor's thread; never waits. Asks for a reading if the last one is older than
  // kPeriod. True: `state` was replaced, by what was read since the last call, or by nothing if
  // that is too old to be believed.
  bool refresh(int64_t now, const std::function<std::vector<pid_t>()>& jobs,
               std::optional<MachineState>* state);

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    bool asked = false, stopping = false;
    int64_t now = 0;
    std::vector<pid_t> jobs;
    std::optional<MachineState> read;
  };
  static void work(const std::shared_ptr<Shared>& shared, const Read& read);

  std::shared_ptr<Shared> shared_;
  int64_t asked_at_ = 0;  // 0: not yet
  int64_t read_at_ = 0;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_FACTS_MACHINE_READER_H_
