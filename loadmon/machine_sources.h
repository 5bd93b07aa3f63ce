// The sources that look at the machine itself: CPU use, load averages, input.
#ifndef SUBLET_LOADMON_MACHINE_SOURCES_H_
#define SUBLET_LOADMON_MACHINE_SOURCES_H_

#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "loadmon/source.h"

namespace sublet::loadmon {

// CPU ticks that all processes of the machine have used since boot, from the
// text of /proc/stat; false when it is not such a text. Time that went into
// interrupts or was stolen by a hypervisor is not counted.
bool parse_busy_ticks(const std::string& proc_stat, uint64_t* ticks);
// The three averages, from the text of /proc/loadavg.
bool parse_load(const std::string& proc_loadavg, std::array<double, 3>* load);

// What all processes used less what the jobs used, over the time since the last
// sample. Samples closer together than 200 ms give the last answer again: the
// kernel counts in ticks of 10 ms.
class CpuSource : public Source {
 public:
  CpuSource();
  std::string name() const override { return "cpu"; }
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;

 private:
  UniqueFd stat_;
  int64_t last_ = 0;
  uint64_t last_ticks_ = 0;
  double jobs_seconds_ = 0;  // since last_
  double cores_ = -1;
};

// The kernel's load averages less the jobs' part in them.
class LoadSource : public Source {
 public:
  LoadSource();
  std::string name() const override { return "load"; }
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;

 private:
  UniqueFd loadavg_;
  int64_t last_ = 0;
  protocol::LoadCorrection correction_;
};

// When a terminal was last read from: /dev/tty1 ... and the folder of pseudo
// terminals, sampled every 2 s. The kernel moves these times in steps of 8 s, and windows of a
// graphical session do not show here: a coarse sense, but one that every
// machine has. A machine without terminals has no known input.
class InputSource : public Source {
 public:
  std::string name() const override { return "input"; }
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;

 private:
  int64_t last_ = 0;      // look at the terminals, ns
  int64_t youngest_ = 0;  // access time, s UTC; 0: no terminal
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_MACHINE_SOURCES_H_
