// What is slow to read, or may block: the state of disks, network, power and programs.
#ifndef SUBLET_LOADMON_FACTS_MACHINE_STATE_H_
#define SUBLET_LOADMON_FACTS_MACHINE_STATE_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sublet::loadmon {

// none: this machine does not tell.
struct MachineState {
  int64_t at = 0;  // CLOCK_BOOTTIME, ns
  std::optional<double> memory_available, memory_pressure, disk_pressure, disk_busy, disk_free,
      network, battery, temperature;  // units: facts_vocabulary()
  bool on_battery = false;
  std::vector<std::string> users, programs;
};

// Reads it again and again; rates are those since the last time. Any one thread.
class MachineStateFiles {
 public:
  // `root`: "" or, in tests, a folder with proc/, sys/ and run/. `folder`: whose file system's
  // free space counts.
  MachineStateFiles(std::string root, std::string folder);

  // `jobs`: processes whose descendants and themselves are no programs of the owner's.
  MachineState read(int64_t now, const std::vector<pid_t>& jobs);

 private:
  std::string text_of(const std::string& path) const;
  std::optional<double> pressure(const std::string& of) const;
  std::optional<double> disk_busy(double seconds);
  std::optional<double> network(double seconds);
  void read_power(MachineState* state) const;
  std::optional<double> temperature() const;
  std::vector<std::string> users() const;
  std::vector<std::string> programs(const std::vector<pid_t>& jobs) const;

  const std::string root_, folder_;
  int64_t last_ = 0;
  std::map<std::string, double> disk_ms_;  // by device, when it was last read
  std::optional<double> network_bytes_;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_FACTS_MACHINE_STATE_H_
