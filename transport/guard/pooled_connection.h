// An accepted connection that has no thread while it waits for its peer. Between requests it
// is at rest: in the end point's ReadySet, without the streams and buffers that the ORB would
// keep for it. Once it is readable a thread of the ORB's pool serves it, and brings it back to
// rest a moment after the last request.
//
// The ORB's own way, which this replaces, is a list of all connections that it searches at
// every change (SocketCollection).
#ifndef SUBLET_TRANSPORT_GUARD_POOLED_CONNECTION_H_
#define SUBLET_TRANSPORT_GUARD_POOLED_CONNECTION_H_

// The order of these matters to omniORB.
// clang-format off
#include <omniORB4/CORBA.h>
#include <omniORB4/giopEndpoint.h>
#include <omniORB4/omniServer.h>
#include <SocketCollection.h>
#include <omniORB4/unixConnection.h>
// clang-format on

#include <atomic>

#include "transport/guard/connection_guard.h"
#include "transport/guard/ready_set.h"

namespace sublet {

// Threads: as giopConnection. At most one thread of the pool serves a connection (the ORB's
// maxServerThreadPerConnection is 1); it alone receives, peeks and brings to rest.
class PooledConnection final : public Guarded<omni::unixConnection>, public ReadySet::Member {
 public:
  // The end point is a SocketCollection; it and the set outlive the connection.
  PooledConnection(const Peer& peer, int socket, omni::SocketCollection* endpoint, const char* path,
                   ReadySet* set)
      : Guarded(peer, true, socket, endpoint, path, CORBA::Boolean(false)), set_(*set) {}
  ~PooledConnection() override;

  CORBA::Boolean gatekeeperCheckSpecific(omni::giopStrand* strand) override;
  CORBA::Boolean isSelectable() override { return true; }
  void setSelectable(int now, CORBA::Boolean data_in_buffer) override;
  void clearSelectable() override;
  CORBA::Boolean Peek() override;
  void Shutdown() override;
  const char* peeraddress() override;

 protected:
  int receive_raw(uint8_t* buffer, size_t size, const omni_time_t& deadline) override;

 private:
  bool unserved() const;
  bool readable_soon() const;
  bool let_go_of_streams(omni::giopStrand* strand);
  void rest();

  ReadySet& set_;
  // Known from the first request; it lives a little longer than the connection.
  std::atomic<omni::giopStrand*> strand_{nullptr};
  std::atomic<bool> resting_{false};
  std::atomic<bool> taken_{false};
  std::atomic<bool> readable_{false};  // known to be, by the thread that serves next
  bool watched_ = false;
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_GUARD_POOLED_CONNECTION_H_
