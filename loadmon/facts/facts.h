// The names that a workstation's rules may use (docs/load-monitor.md), and their values.
#ifndef SUBLET_LOADMON_FACTS_FACTS_H_
#define SUBLET_LOADMON_FACTS_FACTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "loadmon/facts/machine_state.h"
#include "protocol/presence.h"
#include "rules/value.h"
#include "rules/vocabulary.h"

namespace sublet::loadmon {

// In the order of facts_vocabulary().
enum class Fact : size_t {
  kCpu,
  kLoad,
  kInputIdle,
  kMedia,
  kHour,
  kMinute,
  kDay,
  kWorkdays,
  kUsers,
  kPrograms,
  kMemoryAvailable,
  kMemoryPressure,
  kDiskPressure,
  kDiskBusy,
  kDiskFree,
  kNetwork,
  kOnBattery,
  kBattery,
  kTemperature,
  kCount
};

const rules::Vocabulary& facts_vocabulary();
// Whether it is read from a MachineState.
bool is_of_machine(Fact fact);

// One thread.
class Facts {
 public:
  // The time of day, by the local clock.
  void set_time(int64_t utc_us);
  // nullptr: nothing is known of the machine.
  void set_machine(const MachineState* state);
  // The measurements of a sample. Allocates nothing.
  void set_sample(const protocol::PresenceSample& sample);

  const std::array<rules::Value, static_cast<size_t>(Fact::kCount)>& values() const {
    return values_;
  }

 private:
  rules::Value& value(Fact fact) { return values_[static_cast<size_t>(fact)]; }

  std::array<rules::Value, static_cast<size_t>(Fact::kCount)> values_;
  MachineState machine_;
  std::vector<std::string_view> users_, programs_;  // into machine_
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_FACTS_FACTS_H_
