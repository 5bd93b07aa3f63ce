// The past evictions of this workstation, in a file of the state folder that anybody here may
// read: `sublet owner history` needs neither the server nor this daemon. They outlive this daemon,
// but not always a loss of power.
//
// Threads: any, but not one that somebody waits for: it writes a file.
#ifndef SUBLET_CLIENT_ATTEMPTS_EVICTION_NOTES_H_
#define SUBLET_CLIENT_ATTEMPTS_EVICTION_NOTES_H_

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "protocol/eviction.h"

namespace sublet::client {

class EvictionNotes {
 public:
  EvictionNotes(Files& files, const std::string& state_folder)
      : files_(files), path_(state_folder + "/" + protocol::kEvictionsFile) {}

  // Forgets the oldest beyond kNotedEvictions. Logs failures; the next call tries again.
  void add(const protocol::EvictionNote& note);

 private:
  std::vector<protocol::EvictionNote> stored() const;

  Files& files_;
  const std::string path_;
  std::mutex mutex_;
  std::optional<std::vector<protocol::EvictionNote>> notes_;  // read when first needed
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_EVICTION_NOTES_H_
