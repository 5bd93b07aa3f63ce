#include "loadmon/senses/input_devices.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/input.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/os_error.h"

namespace sublet::loadmon {
namespace {
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kRest = 1'000 * kMs;
constexpr size_t kMostDevices = 256;
constexpr int kMostReads = 64;  // of 4 KiB at a time

bool is_device_name(const char* name) { return strncmp(name, "event", strlen("event")) == 0; }

// Sensors of acceleration report all the time, without anybody.
bool is_moved_by_itself(int fd) {
  unsigned char properties[INPUT_PROP_CNT / 8 + 1] = {};
  if (ioctl(fd, EVIOCGPROP(sizeof properties), properties) < 0) return false;
  return (properties[INPUT_PROP_ACCELEROMETER / 8] >> (INPUT_PROP_ACCELEROMETER % 8)) & 1;
}

protocol::Place place_of(int fd, const std::string& path) {
  protocol::Place place(std::string_view(path).substr(path.rfind('/') + 1));
  char name[64] = "";
  if (ioctl(fd, EVIOCGNAME(sizeof name - 1), name) <= 0) return place;
  place.append(" ");
  place.append(name);
  return place;
}
}  // namespace

InputDevices::InputDevices(const std::string& root)
    : dev_(root + "/dev"), inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (!inotify_.valid())
    throw OsError(errno, "watch", "input devices", "raise fs.inotify.max_user_instances");
  if (!events_.add(inotify_.get())) throw OsError(errno, "watch", "input devices");
  look_for_devices();
}

void InputDevices::watch_folder() {
  constexpr uint32_t kNames = IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR;
  if (inotify_add_watch(inotify_.get(), (dev_ + "/input").c_str(), kNames | IN_DELETE_SELF) >= 0)
    return;
  inotify_add_watch(inotify_.get(), dev_.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
}

void InputDevices::look_for_devices() {
  changed_ = false;
  watch_folder();
  unreadable_.clear();
  const std::string folder = dev_ + "/input";
  const std::unique_ptr<DIR, int (*)(DIR*)> names(opendir(folder.c_str()), closedir);
  if (!names) return;
  while (const dirent* entry = readdir(names.get()))
    if (is_device_name(entry->d_name)) open_device(folder + "/" + entry->d_name);
}

void InputDevices::open_device(const std::string& path) {
  const auto known = [&path](const auto& entry) { return entry.second.path == path; };
  if (std::any_of(devices_.begin(), devices_.end(), known)) return;
  struct stat about;
  if (devices_.size() >= kMostDevices || stat(path.c_str(), &about) != 0) return;
  if (!S_ISCHR(about.st_mode) && !S_ISFIFO(about.st_mode)) return;
  // A FIFO that is open for reading alone is always readable once its writer is gone.
  const int mode = S_ISFIFO(about.st_mode) ? O_RDWR : O_RDONLY;
  UniqueFd fd(open(path.c_str(), mode | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) {
    if (errno != ENOENT && errno != ENODEV) unreadable_[path] = errno;
    return;
  }
  if (is_moved_by_itself(fd.get()) || !events_.add(fd.get())) return;
  const int number = fd.get();
  const protocol::Place place = place_of(number, path);
  devices_[number] = {std::move(fd), path, place};
}

bool InputDevices::sample(int64_t now, const JobsEffect& /*jobs*/,
                          protocol::PresenceSample* sample) {
  drain(now);
  if (changed_) look_for_devices();
  events_.wake(now);
  fill(now, sample);
  return true;
}

bool InputDevices::notice(int64_t now, protocol::PresenceSample* sample) {
  drain(now);
  fill(now, sample);
  return true;
}

void InputDevices::drain(int64_t now) {
  bool any = false;
  for (const int fd : events_.ready()) {
    if (fd == inotify_.get()) {
      read_names();
      continue;
    }
    bool pressed = false;
    const bool there = discard(fd, &pressed);
    if (pressed) seen_in_ = devices_[fd].place;
    any = any || pressed;
    if (!there) {
      events_.remove(fd);
      devices_.erase(fd);
      changed_ = true;
    }
  }
  if (!any) return;
  seen_at_ = now;
  events_.rest(now + kRest);
}

bool InputDevices::discard(int fd, bool* any) {
  char bytes[4096];
  for (int reads = 0; reads < kMostReads; ++reads) {
    const ssize_t got = read(fd, bytes, sizeof bytes);
    if (got > 0) *any = true;
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got < 0) return true;
  }
  return true;
}

void InputDevices::read_names() {
  alignas(inotify_event) char events[4096];
  while (read(inotify_.get(), events, sizeof events) > 0) changed_ = true;
}

void InputDevices::fill(int64_t now, protocol::PresenceSample* sample) const {
  if (seen_at_ != kUnseen) note_input(now, seen_at_, "input devices", seen_in_, sample);
}

std::string InputDevices::absence() const {
  if (unreadable_.empty()) return devices_.empty() ? "there are none in " + dev_ + "/input" : "";
  const auto& [path, error] = *unreadable_.begin();
  const std::string others =
      unreadable_.size() == 1 ? "" : " and " + std::to_string(unreadable_.size() - 1) + " more";
  return OsError(error, "read", path + others,
                 "run the client as root, or put its account into the group of the device")
      .what();
}

}  // namespace sublet::loadmon
