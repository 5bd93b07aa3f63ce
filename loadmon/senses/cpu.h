// The owner's CPU use: what all processes used less what jobs and Sublet's daemons used.
#ifndef SUBLET_LOADMON_SENSES_CPU_H_
#define SUBLET_LOADMON_SENSES_CPU_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "loadmon/senses/sense.h"

namespace sublet::loadmon {

// The CPU time of processes since some instant, as the kernel accounts for it at each switch. What
// it samples at clock ticks (user, nice, system of /proc/stat) misses a program that sleeps
// whenever the clock ticks. One thread.
class CpuClock {
 public:
  virtual ~CpuClock() = default;
  // In seconds. nullopt: it cannot be read.
  virtual std::optional<double> read() = 0;
  // Whether it contains what jobs and Sublet's daemons used.
  virtual bool counts_jobs() const = 0;
  // What should be known of it, for the log; "": nothing.
  virtual std::string remark() const { return ""; }
};

// The best of those that this machine has:
// - cgroup v2, if this process is in a unit sublet-client.service: all top-level groups other
//   than jobs' less that unit, in which are the client, its shepherds, and without root the jobs;
// - cgroup v1: cpuacct.usage of the root;
// - the processors' idle time: exact where the kernel stops its tick when idle, in steps of 10 ms.
// `root`: "" or, in tests, a folder that contains sys/fs/cgroup/ and proc/.
std::unique_ptr<CpuClock> open_cpu_clock(const std::string& root);

// The average over the last 450 ms or a little more: as long as a program that starts must run to
// be told from a flicker.
class CpuSense : public Sense {
 public:
  explicit CpuSense(const std::string& root) : clock_(open_cpu_clock(root)) {}
  std::string name() const override { return "cpu"; }
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;
  std::string absence() const override { return clock_->remark(); }

 private:
  struct Reading {
    int64_t at = 0;       // CLOCK_BOOTTIME, ns
    double owners_s = 0;  // CPU time without the jobs'
  };

  std::unique_ptr<CpuClock> clock_;
  double jobs_s_ = 0;             // since the first reading
  std::deque<Reading> readings_;  // the first is the newest that is old enough
  double cores_ = -1;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSES_CPU_H_
