// The senses that measure the machine itself: CPU use, load averages.
#ifndef SUBLET_LOADMON_SENSES_MACHINE_H_
#define SUBLET_LOADMON_SENSES_MACHINE_H_

#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "loadmon/senses/sense.h"

namespace sublet::loadmon {

// CPU ticks used by all processes since boot, from the text of /proc/stat; false if it
// cannot be parsed. Interrupt time and time stolen by a hypervisor are not counted.
bool parse_busy_ticks(const std::string& proc_stat, uint64_t* ticks);
// The three averages, from the text of /proc/loadavg.
bool parse_load(const std::string& proc_loadavg, std::array<double, 3>* load);

// The CPU use of all processes minus that of the jobs, since the last sample. Samples
// less than 200 ms apart return the last value again, since the kernel counts in ticks of
// 10 ms.
class CpuSense : public Sense {
 public:
  CpuSense();
  std::string name() const override { return "cpu"; }
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;

 private:
  UniqueFd stat_;
  int64_t last_ = 0;
  uint64_t last_ticks_ = 0;
  double jobs_seconds_ = 0;  // since last_
  double cores_ = -1;
};

// The kernel's load averages minus the jobs' share.
class LoadSense : public Sense {
 public:
  LoadSense();
  std::string name() const override { return "load"; }
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;

 private:
  UniqueFd loadavg_;
  int64_t last_ = 0;
  protocol::LoadCorrection correction_;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSES_MACHINE_H_
