// The load averages.
#ifndef SUBLET_LOADMON_SENSES_LOAD_H_
#define SUBLET_LOADMON_SENSES_LOAD_H_

#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "loadmon/senses/sense.h"

namespace sublet::loadmon {

// The three averages, from the text of /proc/loadavg.
bool parse_load(const std::string& proc_loadavg, std::array<double, 3>* load);

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

#endif  // SUBLET_LOADMON_SENSES_LOAD_H_
