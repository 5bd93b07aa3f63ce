// The pool's server over the ORB: its references, and how calls are made, their failures
// translated, and calls repeated. For pool_client.cc only.
#ifndef SUBLET_CLI_POOL_CORBA_POOL_H_
#define SUBLET_CLI_POOL_CORBA_POOL_H_

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "cli/pool/idl_translation.h"
#include "cli/pool/pool.h"
#include "cli/pool/pool_client.h"
#include "transport/orb.h"

namespace sublet::cli {

// Any thread may make calls; `patience` is only changed while no call is in progress.
struct CorbaPool {
  CorbaPool(const ServerAddress& server, const Patience& p);

  // One try. Returns what f returns.
  template <typename F>
  auto once(F f) -> decltype(f()) {
    try {
      return f();
    } catch (const CORBA::UserException&) {
      rethrow_translated();
    } catch (const CORBA::SystemException& e) {
      throw failure_of(e);
    }
  }

  // Repeats the call as described in pool_client.h.
  template <typename F>
  auto call(F f) -> decltype(f()) {
    const auto start = Clock::now();
    const auto end = start + std::chrono::milliseconds(patience.unreachable_ms);
    auto pause = kFirstPause;
    bool maybe_done = false;
    for (int timeouts = 0, waits = 0;; pause = std::min(2 * pause, kPause)) {
      try {
        return once(f);
      } catch (PoolError& e) {
        e.maybe_done = maybe_done = maybe_done || e.maybe_done;
        bool again = false;
        if (e.code == "server.timeout") again = ++timeouts < patience.tries_after_timeout;
        if (is_entering(e)) again = ++waits < kMostWaits;
        if (e.code == "server.down" || e.code == "server.unreachable" || passes(e))
          again = Clock::now() + pause < (socket_is_missing() ? start + kSocketGap : end);
        if (!again) throw;
        std::this_thread::sleep_for(pause);
      }
    }
  }

  std::string path;    // or tls://HOST:PORT
  std::string origin;  // of the path
  Patience patience;
  Orb orb;
  v1::JobScheduler_var scheduler;
  v1::JobScheduler_var watcher;  // for long polls
  v1::JobScheduler_var committer;
  v1::JobScheduler_var leaver;  // for calls while the process ends
  v1::MachineAllocator_var allocator;
  v1::Membership_var membership;
  v1::Administration_var administration;
  v1::Accounting_var accounting;
  v1::Spool_var spool;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kSocketGap = std::chrono::milliseconds(300);
  static constexpr auto kFirstPause = std::chrono::milliseconds(5);
  static constexpr auto kPause = std::chrono::milliseconds(100);  // longest, between two tries
  static constexpr int kMostWaits = 30;                           // of 40 s each, in the server

  template <typename T>
  typename T::_ptr_type resolve(const char* key) {
    CORBA::Object_var object = orb.resolve(path, key);
    return T::_unchecked_narrow(object);
  }

  PoolError failure_of(const CORBA::SystemException& e) const;
  // Inside a catch block: throws the contract's exceptions as PoolError; rethrows the ORB's.
  [[noreturn]] static void rethrow_translated();
  // Whether the server's state is temporary, so that the call may be repeated.
  static bool passes(const PoolError& e);
  // The batch is committed, and the server has not entered all its jobs yet.
  static bool is_entering(const PoolError& e);
  // Whether the socket does not exist. Then a server is not expected soon, unless the caller
  // waits, or a restarted server is just creating its socket.
  bool socket_is_missing() const;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_POOL_CORBA_POOL_H_
