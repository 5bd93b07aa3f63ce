// Keeps this machine registered: joins, renews the lease every D/3, reports each
// change of presence at once, and joins again whenever the session is gone, for
// ever, with a back-off, and at once when the server's socket is created again. A thread of its
// own, so that neither file transfers nor the owner's path wait for it. Other threads only set
// flags and write to an event descriptor.
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
  // The current state of all attempts; may wait for the reactor's thread. Empty and
  // false: the client is stopping.
  std::function<bool(std::vector<HeldAttempt>*)> held;
  std::function<MachineState()> state;
  // A renewal sent at `sent_ns` (CLOCK_BOOTTIME) was acknowledged.
  std::function<void(int64_t sent_ns, const Renewed&)> renewed;
  // Registered (again): those waiting for the server may retry now.
  std::function<void(const Joined&)> joined;
};

class SessionKeeper {
 public:
  // identity: as on disk; joined() is to keep the new one.
  SessionKeeper(ServerCalls& server, const MachineFacts& facts, const MachineIdentity& identity,
                const std::string& server_socket, KeeperHooks hooks);
  ~SessionKeeper();
  void start();

  // Any thread; none of them waits or allocates.
  void presence_changed();
  void something_changed();  // renew soon, at most once a second
  void session_ended();

  // Withdraws if it is registered, within about the ORB's call timeout, and
  // ends the thread.
  void stop(bool withdraw);

 private:
  void run();
  // True when the server's socket has been created again.
  bool wait(int64_t ms);
  void watch_socket();
  bool socket_is_new();
  void wake();
  // Registered and able to be called back, by whatever it takes.
  bool connect();
  bool join();
  bool attach_again();
  void lose(const ServerError& error);
  // False: the session is gone or the server away.
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
  UniqueFd watch_;  // of the socket's folder: a restarted server is noticed at once
  std::atomic<bool> stopping_{false};
  std::atomic<bool> withdraw_{false};
  std::atomic<bool> presence_{false};
  std::atomic<bool> changed_{false};
  std::atomic<bool> over_{true};  // no session

  // The thread's own.
  bool away_ = false;      // the session may stand, its connection does not
  std::string complaint_;  // what was said in the log; empty: all is well
  int64_t pause_ms_ = 0;
  int64_t renew_every_ms_ = 10'000;
  int64_t next_renew_ns_ = 0;
  int64_t last_renew_ns_ = 0;
  std::thread thread_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LINK_SESSION_KEEPER_H_
