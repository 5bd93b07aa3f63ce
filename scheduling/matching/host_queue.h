// The hosts that jobs are submitted from, and the queue REQUESTING of those with waiting jobs.
//
// Private to the brain; owned by the matcher; one caller at a time.
#ifndef SUBLET_SCHEDULING_MATCHING_HOST_QUEUE_H_
#define SUBLET_SCHEDULING_MATCHING_HOST_QUEUE_H_

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduling/shared_string.h"

namespace sublet::scheduling {

// A host that jobs are submitted from.
struct Host {
  SharedString name;   // its jobs share it
  uint32_t index = 0;  // never reused
  uint64_t jobs = 0;   // live ones submitted from it, an array counts once
  uint64_t waiting = 0;
  uint64_t turn = 0;  // position in REQUESTING: smaller is nearer to the head; 0: not in it
};

class HostQueue {
 public:
  // The host of one more live job, made if necessary; leave forgets a host without jobs.
  Host* enter(const std::string& name);
  void leave(Host* host);
  // Null: no live job was submitted from it.
  const Host* known(const std::string& name) const;
  // Null: no job of this host waits.
  Host* waiting(const std::string& name);

  // `count` jobs of this host began or ceased to wait.
  void began_to_wait(Host& host, uint64_t count);
  void ceased_to_wait(Host& host, uint64_t count);
  // The host was served: moves to the tail if it has more waiting jobs.
  void served(Host& host);
  // It was served in vain: moves to the head if it has waiting jobs.
  void return_turn(Host& host);
  const std::map<uint64_t, Host*>& requesting() const { return requesting_; }
  // Reorders REQUESTING.
  void requeue(const std::vector<Host*>& order);

 private:
  static constexpr uint64_t kMiddle = uint64_t{1} << 62;  // turns run out at neither end

  std::unordered_map<std::string, Host> hosts_;
  std::map<uint64_t, Host*> requesting_;
  uint32_t last_index_ = 0;
  uint64_t last_turn_ = kMiddle;
  uint64_t first_turn_ = kMiddle;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_HOST_QUEUE_H_
