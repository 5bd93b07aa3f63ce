// Sees to it that jobs do not fill the owner's disk. While attempts are here the
// free space of the file system with their folders is checked every `period`,
// and sooner when it shrinks so fast that it would be used up before; else once a
// minute. Below the reserve the desk takes no orders, and the attempt that uses the most is named:
// it must leave. While it leaves, no other is named, until it has made room or
// its time is over; when nearly nothing is left it is named again, to be killed.
// Before all that make_room removes what is only kept.
//
// A thread of its own: it waits for the disk, which may be slow. attempt_came() is
// for any thread, start() and stop() for the main one, look() for its own and for
// tests.
#ifndef SUBLET_CLIENT_MACHINE_DISK_WATCH_H_
#define SUBLET_CLIENT_MACHINE_DISK_WATCH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "client/attempts/order_desk.h"
#include "client/attempts/work.h"
#include "client/workers.h"

namespace sublet::client {

struct DiskSettings {
  std::string state_folder;
  uint64_t reserve = 0;       // never given to jobs; 0: nothing is watched
  int64_t period_ms = 2'000;  // at most between two looks
  int64_t leave_ms = 12'000;  // within it who was named must have made room
};

class DiskWatch {
 public:
  // name: told which attempt has to leave; changed: that the desk takes orders no
  // more, or again; make_room: removes so many bytes that no job needs, as far as
  // there are any. All on this thread.
  DiskWatch(const DiskSettings& settings, const Files& files, OrderDesk& desk,
            std::function<void(const AttemptName&, const LowDisk&)> name,
            std::function<void()> changed, std::function<void(uint64_t)> make_room);
  ~DiskWatch() { stop(); }
  void start();
  void stop();
  // There is something to watch.
  void attempt_came();

  // One look; the time until the next.
  int64_t scan(int64_t now_ns);

 private:
  static constexpr int64_t kShortestMs = 100;
  static constexpr int64_t kIdleMs = 60'000;

  void work();
  void set_low(uint64_t free);
  int64_t next_ms(uint64_t free, int64_t now_ns);
  void choose(const std::vector<AttemptName>& here, uint64_t free, int64_t now_ns);
  bool has_ended(const std::string& folder) const;
  bool has_made_room(const AttemptName& name) const;

  const DiskSettings settings_;
  const Files& files_;
  OrderDesk& desk_;
  const std::function<void(const AttemptName&, const LowDisk&)> name_;
  const std::function<void()> changed_;
  const std::function<void(uint64_t)> make_room_;
  std::atomic<bool> idle_{false};  // the next look is far away
  bool low_ = false;
  uint64_t last_free_ = 0;
  int64_t last_ns_ = 0;  // 0: no look yet
  std::set<AttemptName> named_;
  struct Leaving {
    AttemptName name;
    int64_t until_ns;
    bool killed;
  };
  std::optional<Leaving> leaving_;
  std::unique_ptr<Workers> thread_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_DISK_WATCH_H_
