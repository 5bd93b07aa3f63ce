// The past evictions of this workstation, in a file of the state folder that anybody here may
// read: `sublet owner history` needs neither the server nor this daemon. They outlive this daemon,
// but not always a loss of power.
//
// Threads: any; add() not on one that somebody waits for, because it writes a file.
#ifndef SUBLET_CLIENT_ATTEMPTS_EVICTION_NOTES_H_
#define SUBLET_CLIENT_ATTEMPTS_EVICTION_NOTES_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "protocol/eviction.h"
#include "protocol/frame.h"
#include "protocol/place.h"

namespace sublet::client {

class EvictionNotes {
 public:
  EvictionNotes(Files& files, const std::string& state_folder)
      : files_(files), path_(state_folder + "/" + protocol::kEvictionsFile) {}

  // The monitor's frame CAUSE: where the owner was seen at its instant. Never waits.
  void note_cause(const sublet_frame& cause);
  // `sensed_ns`: when its cause was sensed, for the place. Forgets the oldest beyond
  // kNotedEvictions. Logs failures; the next call tries again.
  void add(protocol::EvictionNote note, int64_t sensed_ns);

 private:
  struct Cause {
    int64_t instant = 0;  // CLOCK_BOOTTIME, ns
    protocol::Place place = {};
  };

  std::vector<protocol::EvictionNote> stored() const;
  std::string place_at(int64_t sensed_ns);

  Files& files_;
  const std::string path_;
  std::mutex causes_mutex_;  // held for moments only
  std::array<Cause, 32> causes_;
  size_t next_cause_ = 0;
  std::mutex mutex_;
  std::optional<std::vector<protocol::EvictionNote>> notes_;  // read when first needed
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_EVICTION_NOTES_H_
