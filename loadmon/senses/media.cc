#include "loadmon/senses/media.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/files.h"
#include "base/os_error.h"

namespace sublet::loadmon {
namespace {
constexpr int64_t kLookEvery = 10'000'000'000;
constexpr size_t kMostStreams = 64;
constexpr int kMostReads = 16;  // of 4 KiB of events at a time

bool is_camera(const std::string& name) { return name.starts_with("video"); }

template <typename Function>
void for_each_name(const std::string& folder, const char* prefix, Function function) {
  const std::unique_ptr<DIR, int (*)(DIR*)> names(opendir(folder.c_str()), closedir);
  if (!names) return;
  while (const dirent* entry = readdir(names.get()))
    if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) function(folder + "/" + entry->d_name);
}
}  // namespace

Media::Media(const std::string& root, std::function<bool(pid_t)> is_jobs)
    : root_(root), is_jobs_(std::move(is_jobs)), inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (!inotify_.valid())
    throw OsError(errno, "watch", "cameras", "raise fs.inotify.max_user_instances");
  look_for_cameras();
}

// card0/pcm0p/sub0/status: a card, a device that plays (p) or records (c), a stream.
void Media::look_for_streams() {
  streams_.clear();
  for_each_name(root_ + "/proc/asound", "card", [this](const std::string& card) {
    for_each_name(card, "pcm", [this](const std::string& device) {
      for_each_name(device, "sub", [this](const std::string& stream) {
        if (streams_.size() < kMostStreams) streams_.push_back(stream + "/status");
      });
    });
  });
}

void Media::look_for_cameras() {
  dev_watch_ = inotify_add_watch(inotify_.get(), (root_ + "/dev").c_str(),
                                 IN_CREATE | IN_ATTRIB | IN_ONLYDIR);
  for_each_name(root_ + "/dev", "video", [this](const std::string& camera) {
    const int watch = inotify_add_watch(inotify_.get(), camera.c_str(), IN_OPEN | IN_CLOSE);
    if (watch >= 0) cameras_.try_emplace(watch, Camera{.place = place_of(camera, "/dev/")});
  });
}

bool Media::is_sounding(const std::string& status) const {
  const UniqueFd fd(open(status.c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t got = fd.valid() ? read(fd.get(), text, sizeof text - 1) : -1;
  if (got <= 0) return false;
  text[got] = 0;
  if (strncmp(text, "state: RUNNING", strlen("state: RUNNING")) != 0) return false;
  // "owner_pid   : 1234"
  const char* owner = strstr(text, "owner_pid");
  const char* colon = owner == nullptr ? nullptr : strchr(owner, ':');
  const auto pid = colon == nullptr ? 0 : static_cast<pid_t>(strtol(colon + 1, nullptr, 10));
  return pid <= 0 || !is_jobs_(pid);
}

bool Media::sample(int64_t now, const JobsEffect& /*jobs*/, protocol::PresenceSample* sample) {
  if (looked_at_ == 0 || now - looked_at_ >= kLookEvery) {
    look_for_streams();
    looked_at_ = now;
  }
  const auto sounds =
      std::find_if(streams_.begin(), streams_.end(),
                   [this](const std::string& status) { return is_sounding(status); });
  sounding_ = sounds != streams_.end();
  if (sounding_) sounds_in_ = place_of(folder_of(*sounds), "/proc/asound/");
  return notice(now, sample);
}

bool Media::notice(int64_t /*now*/, protocol::PresenceSample* sample) {
  drain();
  if (sounding_) note_media("sound", sounds_in_, sample);
  for (const auto& [watch, camera] : cameras_)
    if (camera.opens > 0) note_media("an open camera", camera.place, sample);
  return true;
}

protocol::Place Media::place_of(const std::string& path, const char* folder) const {
  const size_t before = root_.size() + strlen(folder);
  return protocol::Place(std::string_view(path).substr(std::min(path.size(), before)));
}

void Media::drain() {
  alignas(inotify_event) char events[4096];
  for (int reads = 0; reads < kMostReads; ++reads) {
    const ssize_t got = read(inotify_.get(), events, sizeof events);
    if (got <= 0) return;
    for (const char* at = events; at < events + got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof *event + event->len;
      const auto camera = cameras_.find(event->wd);
      if (event->mask & IN_Q_OVERFLOW) {
        for (auto& [watch, one] : cameras_) one.opens = 0;
      } else if (event->wd == dev_watch_) {
        if (event->len > 0 && is_camera(event->name)) look_for_cameras();
      } else if (camera == cameras_.end()) {
        continue;
      } else if (event->mask & IN_IGNORED) {
        cameras_.erase(camera);
      } else if (event->mask & IN_OPEN) {
        ++camera->second.opens;
      } else if ((event->mask & IN_CLOSE) && camera->second.opens > 0) {
        --camera->second.opens;
      }
    }
  }
}

}  // namespace sublet::loadmon
