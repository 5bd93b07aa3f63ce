// Helpers of the shepherd's tests: a fake monitor, attempts with a real sublet-shepherd,
// and waiting for a condition.
#ifndef SUBLET_CLIENT_SHEPHERD_TEST_RIG_H_
#define SUBLET_CLIENT_SHEPHERD_TEST_RIG_H_

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "attempt/cgroup.h"
#include "attempt/folder.h"
#include "attempt/slot_shepherd.h"
#include "attempt/tenant.h"
#include "protocol/frame.h"

namespace sublet::shepherd {

int64_t boot_now_ns();
// Returns false at the deadline (100 s).
bool wait_until(const std::function<bool()>& condition);
bool skip_unless_root(const char* what);
// Unless jobs get mount namespaces of their own here.
bool skip_without_walls(const char* what);
// Unless namespaces are kept here from attempt to attempt.
bool skip_without_rooms(const char* what);

// The newest child of a slot's shepherd with that name; 0: there is none.
pid_t child_named(const SlotShepherd& slot, const std::string& name);

class FakeMonitor {
 public:
  explicit FakeMonitor(const std::string& path);
  ~FakeMonitor();
  // Sets the presence that it sends now and with every heartbeat.
  void say(sublet_presence state);
  // Keeps the connections but sends nothing more.
  void fall_silent() { silent_ = true; }
  // Ends and closes all connections.
  void die();
  int acknowledged() const { return acknowledged_; }
  // Connections, HELLOs and ENDEDs until now.
  int connected() const { return connected_; }
  int greeted() const { return greeted_; }
  int done() const { return done_; }
  // Connections that were closed, of which all that they said is counted.
  int lost() const { return lost_; }

 private:
  void run();
  void send_to(int fd);

  UniqueFd listener_;
  std::mutex mutex_;
  std::vector<UniqueFd> connections_;
  std::atomic<int> state_{SUBLET_PRESENCE_AWAY};
  std::atomic<bool> silent_{false}, over_{false};
  std::atomic<int> acknowledged_{0}, connected_{0}, greeted_{0}, done_{0}, lost_{0};
  std::thread thread_;
};

// A temporary folder with a monitor and any number of attempts. The destructor kills
// all their processes and removes the folder.
class Rig {
 public:
  Rig();
  ~Rig();

  // An order for test_job with these arguments, with its own user id if root runs the
  // test.
  AttemptOrder order(const std::vector<std::string>& arguments);
  // The same account for all, as the attempts of a slot have it, and control groups.
  AttemptOrder in_slot(AttemptOrder order) const;
  // For a shell, there.
  AttemptOrder script(const std::string& text);
  // A copy of test_job that every account may execute: others may be unable to
  // traverse the checkout's path.
  std::string test_job() const;
  // Writes the order and starts a shepherd for it alone; returns the attempt's folder.
  std::string start(const AttemptOrder& order);
  // The same, but a shepherd of its own is started and has to run the attempt of a folder that is
  // there.
  ProcessId start_shepherd(const AttemptOrder& order) const;
  // Writes the order only.
  std::string prepare(const AttemptOrder& order);
  SlotShepherd start_slot();
  // Has a shepherd run it, and waits for its end.
  AttemptExit run_in(SlotShepherd& slot, const AttemptOrder& order);
  // The same of one that has to start; returns what it printed.
  std::string tell(SlotShepherd& slot, const AttemptOrder& order);
  std::string folder(const AttemptOrder& order) const;
  // Waits for the shepherd to end; returns its exit status.
  int wait(const std::string& folder);
  int wait_for(const ProcessId& shepherd) const;
  // The same, but returns the exit record.
  AttemptExit finish(const std::string& folder);
  AttemptExit exit_of(const std::string& folder) const;
  AttemptExit run(const AttemptOrder& order) { return finish(start(order)); }
  bool job_is_ready(const std::string& folder) const;
  AttemptRecord record(const std::string& folder) const;
  std::string read(const std::string& path) const;
  // The number of processes whose SUBLET_STATUS names that folder.
  int processes_of(const std::string& folder) const;

  sublet_frame frame(const AttemptOrder& order, sublet_frame_kind kind, uint32_t reason = 0) const;
  // Sends the frame over a new connection, which it returns.
  UniqueFd ask(const std::string& folder, const sublet_frame& frame) const;
  // The next frame of that kind, or nullopt at the deadline.
  std::optional<sublet_frame> receive(int socket, sublet_frame_kind kind) const;

  FakeMonitor& monitor() { return *monitor_; }
  const std::string& base() const { return base_; }
  const AttemptCgroups& cgroups() const { return cgroups_; }
  void use_cgroups(AttemptOrder* order) const;
  // For attempts that start from now on. At first nothing is hidden, and base() is granted, where
  // the programs and files of tests are.
  void set_places(const AttemptPlaces& places) const;

 private:
  std::string base_;
  std::unique_ptr<FakeMonitor> monitor_;
  AttemptCgroups cgroups_;
  int64_t next_job_ = 1;
  struct Running {
    std::string folder;
    ProcessId process;
  };
  std::vector<Running> running_;
  std::vector<ProcessId> slots_;  // they may have ended
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_TEST_RIG_H_
