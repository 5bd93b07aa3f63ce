// Keeps this machine registered: joins, renews the lease every D/3, reports each
// change of presence at once, and joins again whenever the session is gone, retrying
// forever with a back-off, and at once when the server's socket is created again.
// Uses its own thread, so that neither file transfers nor the eviction path wait for
// it. Other threads only set flags and write to an event descriptor.
#ifndef SUBLET_CLIENT_LINK_SESSION_KEEPER_H_
#define SUBLET_CLIENT_LINK_SESSION_KEEPER_H_

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "client/link/server_calls.h"

namespace sublet::client {

struct KeeperHooks {
  // The current state of all attempts; may wait for the reactor thread. False: the
  // client is stopping.
  std::function<bool(std::vector<HeldAttempt>*)> held;
  std::function<MachineState()> state;
  // A renewal sent at `sent_ns` (CLOCK_BOOTTIME) was acknowledged.
  std::function<void(int64_t sent_ns, const Renewed&)> renewed;
  // Registered (again): work waiting for the server may retry now.
  std::function<void(const Joined&)> joined;
};

class SessionKeeper {
 public:
  // identity: as stored on disk; joined() must store the new one.
  SessionKeeper(ServerCalls& server, const MachineFacts& facts, const MachineIdentity& identity,
                const std::string& server_socket, KeeperHooks hooks);
  ~SessionKeeper();
  void start();

  // Any thread; these neither wait nor allocate.
  void presence_changed();
  void something_changed();  // renew soon, at most once a second
  void session_ended();

  // If `withdraw` and registered, withdraws (takes up to about the ORB's call
  // timeout); then ends the thread.
  void stop(bool withdraw);

 private:
  void run();
  // True if the server's socket has been created again.
  bool wait(int64_t ms);
  void watch_socket();
  bool socket_is_new();
  void wake();
  // Joins or attaches again, whichever is needed.
  bool connect();
  bool join();
  void log_joined();
  bool attach_again();
  void lose(const ServerError& error);
  // False: the session is gone or the server unavailable.
  bool renew();
  bool report();
  int64_t next_wait_ms(int64_t now) const;
  void failed(const std::string& why);
  void back();

  ServerCalls& server_;
  const MachineFacts facts_;
  MachineIdentity identity_;
  const KeeperHooks hooks_;
  const std::string socket_;
  UniqueFd event_;
  UniqueFd watch_;  // inotify on the socket's folder, to notice a restarted server at once
  std::atomic<bool> stopping_{false};
  std::atomic<bool> withdraw_{false};
  std::atomic<bool> presence_{false};
  std::atomic<bool> changed_{false};
  std::atomic<bool> over_{true};  // no session

  // Used by the thread only.
  bool away_ = false;      // the session may exist, but its connection does not
  std::string complaint_;  // the last failure; empty: none since the last success
  bool joined_ = false;    // at least once since this client started
  int64_t pause_ms_ = 0;
  int64_t renew_every_ms_ = 10'000;
  int64_t next_renew_ns_ = 0;
  int64_t last_renew_ns_ = 0;
  std::thread thread_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LINK_SESSION_KEEPER_H_
