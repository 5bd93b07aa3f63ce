// Keeps jobs from filling the owner's disk. While there are attempts, the free space of
// the file system with their folders is checked every `period`, and sooner if it
// shrinks so fast that the reserve would be reached earlier; otherwise once a minute.
// Below the reserve, make_room first removes cached files. If that is not enough, the
// desk accepts no orders, and the attempt that uses the most is named: it must leave.
// No other is named until it has made room or its time has passed; if it keeps writing
// until hardly anything is left, it is named again and killed. Who is over a bound of its own
// (disk_bounds.h) is named at each scan.
//
// Uses its own thread, because the disk may be slow. attempt_came() may be called from
// any thread, start() and stop() from the main one, scan() from its own and by tests.
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
#include "client/machine/disk_bounds.h"
#include "client/workers.h"

namespace sublet::client {

struct DiskSettings {
  std::string state_folder;
  uint64_t reserve = 0;       // bytes never given to jobs
  int64_t period_ms = 2'000;  // longest time between two scans
  int64_t leave_ms = 12'000;  // time for a named attempt to make room
};

class DiskWatch {
 public:
  // name: called with the attempt that has to leave; changed: called when the desk
  // stops or resumes accepting orders; make_room: removes up to so many bytes that no
  // job needs. All are called on this object's thread.
  DiskWatch(const DiskSettings& settings, const Files& files, OrderDesk& desk,
            std::function<void(const AttemptName&, const Shortage&)> name,
            std::function<void()> changed, std::function<void(uint64_t)> make_room);
  ~DiskWatch() { stop(); }
  void start();
  void stop();
  // An attempt has been accepted.
  void attempt_came();

  // Scans once; returns the time in ms until the next scan.
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
  const std::function<void(const AttemptName&, const Shortage&)> name_;
  const std::function<void()> changed_;
  const std::function<void(uint64_t)> make_room_;
  std::atomic<bool> idle_{false};  // the next scan is later than period_ms
  DiskBounds bounds_;
  bool low_ = false;
  uint64_t last_free_ = 0;
  int64_t last_ns_ = 0;  // 0: no scan yet
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
