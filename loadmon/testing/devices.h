// Terminals and input devices for tests, below a folder in place of /. Devices are FIFOs, because
// there may be none on this machine; terminals are real.
#ifndef SUBLET_LOADMON_TESTING_DEVICES_H_
#define SUBLET_LOADMON_TESTING_DEVICES_H_

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iostream>
#include <string>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace sublet::loadmon::testing {

// Mounts terminals of their own at ROOT/dev/pts, so that those of this machine do not disturb.
// False: only root can.
inline bool mount_terminals(const std::string& root) {
  const bool mounted = geteuid() == 0 && mount("devpts", (root + "/dev/pts").c_str(), "devpts", 0,
                                               "newinstance,ptmxmode=0666") == 0;
  if (!mounted) std::cout << "skipped: only root can mount terminals" << std::endl;
  return mounted;
}

// A pseudo-terminal of the file system at ROOT/dev/pts.
struct PseudoTerminal {
  UniqueFd master, slave;
  unsigned number = 0;

  explicit PseudoTerminal(const std::string& root) {
    const std::string pts = root + "/dev/pts/";
    master.reset(open((pts + "ptmx").c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    CPPUNIT_ASSERT(master.valid());
    int locked = 0;
    CPPUNIT_ASSERT_EQUAL(0, ioctl(master.get(), TIOCSPTLCK, &locked));
    CPPUNIT_ASSERT_EQUAL(0, ioctl(master.get(), TIOCGPTN, &number));
    slave.reset(open((pts + std::to_string(number)).c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    CPPUNIT_ASSERT(slave.valid());
  }
  // Waits until it is old enough to be judged at once.
  void aged() const {
    struct stat about;
    CPPUNIT_ASSERT_EQUAL(0, fstat(slave.get(), &about));
    const int64_t opened = about.st_ctim.tv_sec * 1'000'000 + about.st_ctim.tv_nsec / 1'000;
    while (system_clock().utc_us() - opened < 30'000) usleep(1000);
  }
  // A line is typed, and read by a program.
  void type() {
    CPPUNIT_ASSERT_EQUAL(ssize_t{2}, write(master.get(), "x\n", 2));
    char text[8];
    CPPUNIT_ASSERT(read(slave.get(), text, sizeof text) > 0);
  }
  void print() { CPPUNIT_ASSERT_EQUAL(ssize_t{2}, write(slave.get(), "y\n", 2)); }
};

// ROOT/dev/input/NAME.
inline UniqueFd make_device(const std::string& root, const std::string& name) {
  const std::string path = root + "/dev/input/" + name;
  CPPUNIT_ASSERT_EQUAL(0, mkfifo(path.c_str(), 0600));
  return UniqueFd(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
}
inline void press(const UniqueFd& device) {
  const char event[24] = {};
  CPPUNIT_ASSERT_EQUAL(static_cast<ssize_t>(sizeof event), write(device.get(), event, 24));
}

}  // namespace sublet::loadmon::testing

#endif  // SUBLET_LOADMON_TESTING_DEVICES_H_
