// Keyboards, mice, touch screens: the kernel's input devices (evdev). That something was pressed or
// moved is all that is looked at; what it was is thrown away unread. One thread.
#ifndef SUBLET_LOADMON_SENSES_INPUT_DEVICES_H_
#define SUBLET_LOADMON_SENSES_INPUT_DEVICES_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "base/unique_fd.h"
#include "loadmon/senses/event_set.h"
#include "loadmon/senses/sense.h"

namespace sublet::loadmon {

class InputDevices : public Sense {
 public:
  // `root`: "" or, in tests, a folder that contains dev/input/; a FIFO there counts as a device
  // whose every byte is an event. Throws OsError if there is no inotify.
  explicit InputDevices(const std::string& root);

  std::string name() const override { return "input devices"; }
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;
  int handle() const override { return events_.handle(); }
  bool notice(int64_t now, protocol::PresenceSample* sample) override;
  std::string absence() const override;

  // Whether any device can be read, so that somebody at this machine is seen.
  bool can_see() const { return !devices_.empty(); }

 private:
  static constexpr int64_t kUnseen = std::numeric_limits<int64_t>::min();
  struct Device {
    UniqueFd fd;
    std::string path;
    protocol::Place place = {};  // its name here, and what it calls itself
  };

  // Watches dev/input, or dev until that appears.
  void watch_folder();
  void look_for_devices();
  void open_device(const std::string& path);
  void drain(int64_t now);
  // False: the device is gone.
  bool discard(int fd, bool* any);
  void read_names();
  void fill(int64_t now, protocol::PresenceSample* sample) const;

  const std::string dev_;
  UniqueFd inotify_;
  EventSet events_;
  std::map<int, Device> devices_;          // by descriptor
  std::map<std::string, int> unreadable_;  // path -> errno
  bool changed_ = false;                   // devices were added, or may be read now
  int64_t seen_at_ = kUnseen;              // CLOCK_BOOTTIME, ns
  protocol::Place seen_in_;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSES_INPUT_DEVICES_H_
