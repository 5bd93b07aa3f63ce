// The owner sits there and touches nothing: sound that is played or recorded, and an open camera,
// are a film or a call. Jobs' own do not count. One thread.
#ifndef SUBLET_LOADMON_SENSES_MEDIA_H_
#define SUBLET_LOADMON_SENSES_MEDIA_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "loadmon/senses/sense.h"

namespace sublet::loadmon {

class Media : public Sense {
 public:
  // `root`: "" or, in tests, a folder with proc/asound/ and dev/. `is_jobs`: whether a process
  // belongs to a job. Throws OsError if there is no inotify.
  Media(const std::string& root, std::function<bool(pid_t)> is_jobs);

  std::string name() const override { return "media"; }
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;
  // Cameras alone: nothing tells that sound begins.
  int handle() const override { return inotify_.get(); }
  bool notice(int64_t now, protocol::PresenceSample* sample) override;

 private:
  void look_for_streams();
  void look_for_cameras();
  bool is_sounding(const std::string& status) const;
  // Of a stream or a camera, by its path.
  protocol::Place place_of(const std::string& path, const char* folder) const;
  // Counts the cameras that were opened and closed.
  void drain();

  const std::string root_;
  const std::function<bool(pid_t)> is_jobs_;
  UniqueFd inotify_;
  int dev_watch_ = -1;
  int64_t looked_at_ = 0;             // for streams; CLOCK_BOOTTIME, ns
  std::vector<std::string> streams_;  // paths of status files
  struct Camera {
    protocol::Place place = {};
    int opens = 0;  // how often it is open, since it is watched
  };
  std::map<int, Camera> cameras_;  // by watch
  bool sounding_ = false;
  protocol::Place sounds_in_;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSES_MEDIA_H_
