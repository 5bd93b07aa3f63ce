// Periodic work that may take long: removes expired batches, old requests and unneeded
// files, moves events, old uses and finished jobs to files, restores the disk reserve, and records
// the CPU time the server itself uses. Runs on a thread of its own, so that nothing waits for it.
#ifndef SUBLET_SERVER_HOUSEKEEPER_H_
#define SUBLET_SERVER_HOUSEKEEPER_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "server/accounting/history.h"
#include "server/commit/event_history.h"
#include "server/commit/pipeline.h"
#include "server/jobs/history.h"
#include "server/machines/sessions.h"
#include "server/spool/disk_guard.h"
#include "server/spool/service.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

struct HousekeeperSettings {
  Micros batch_idle = 3600ll * 1'000'000;          // open batches idle for longer expire
  Micros keep_requests = 24 * 3600ll * 1'000'000;  // to recognize repeats; idl/types.idl
  Micros keep_changes = 0;
  Micros keep_uses = 0;
  Micros keep_jobs = 0;
  std::string history_folder;
};

class Housekeeper {
 public:
  Housekeeper(const HousekeeperSettings& settings, Pipeline& pipeline, Archive& archive,
              SpoolService& files, DiskGuard& disk, Sessions& sessions, EventHistory& events);
  ~Housekeeper();
  void start();
  void stop();

  // One round.
  void tidy();

 private:
  void loop();
  void forget_old();

  const HousekeeperSettings settings_;
  Pipeline& pipeline_;
  Archive& archive_;
  SpoolService& files_;
  DiskGuard& disk_;
  Sessions& sessions_;
  EventHistory& events_;
  UsageHistory history_;
  JobHistory jobs_;
  Micros recorded_cpu_ = 0;  // of this process
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_HOUSEKEEPER_H_
