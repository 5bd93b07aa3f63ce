// The descriptors of connections at rest, watched by one thread: a connection that waits
// for its peer has no thread of its own. Each waiting member is announced once, when its
// descriptor becomes readable or its peer has closed; then it has to wait again.
//
// Free of the ORB. Threads: all functions may be called from any thread, start() and
// stop() from one at a time. While it calls `ready` the set holds no lock.
#ifndef SUBLET_TRANSPORT_GUARD_READY_SET_H_
#define SUBLET_TRANSPORT_GUARD_READY_SET_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"

namespace sublet {

class ReadySet {
 public:
  // To be forgotten before its descriptor is closed. Only the set uses its contents.
  class Member {
   private:
    friend class ReadySet;
    uint64_t number_ = 0;  // 0: not in the set
    bool waiting_ = false;
    bool ended_ = false;
  };

  // Throws OsError: no descriptors.
  ReadySet();
  // Stops. No member is left.
  ~ReadySet();
  ReadySet(const ReadySet&) = delete;
  ReadySet& operator=(const ReadySet&) = delete;

  using Ready = std::function<void(Member&)>;
  // Starts the thread, which calls ready. No effect while it runs.
  void start(Ready ready);
  // Ends the thread. After that no call of ready is in progress. Must not be called by
  // ready.
  void stop();

  // Announces the member once, as soon as the descriptor is readable; at_once: without
  // waiting for that. A descriptor that cannot be watched is announced at once, too.
  void wait(Member& member, int descriptor, bool at_once = false);
  // The member will not be announced any more; returns when no call for it is in progress.
  void forget(Member& member);
  // Its descriptor has been shut down, so that it is readable now or as soon as it waits.
  void ended(Member& member);
  // Waits until all waiting members that have ended are announced; false: not within this
  // time.
  bool settle(std::chrono::milliseconds longest);
  // Members in the set, waiting or not.
  size_t size() const;

 private:
  void run();
  void announce(uint64_t number);
  bool watch(Member& member, int descriptor);
  void no_longer_waits(Member& member);
  void wake();

  const UniqueFd epoll_;
  const UniqueFd wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  struct Place {
    Member* member;
    int descriptor;
  };
  std::unordered_map<uint64_t, Place> members_;
  std::vector<uint64_t> at_once_;
  uint64_t last_number_ = 0;
  size_t ended_waiting_ = 0;
  Member* announced_ = nullptr;  // now, by the thread
  bool stopping_ = false;
  Ready ready_;
  std::thread thread_;
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_GUARD_READY_SET_H_
