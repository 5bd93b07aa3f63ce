// The one place where the ORB is started and stopped. Everything that this
// process says or hears through CORBA passes the guarded transport
// (guarded_transport.h); settings are given in code, so that neither an ORB
// configuration file nor the environment can weaken them.
//
// One Orb per process: omniORB keeps its state in globals. The Orb owns the
// ORB's threads; servants stay their owner's (reference counted as usual).
// All functions may be called from any thread after the constructor returns.
#ifndef SUBLET_TRANSPORT_ORB_H_
#define SUBLET_TRANSPORT_ORB_H_

#include <omniORB4/CORBA.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "transport/peer.h"
#include "transport/tls/dial.h"
#include "transport/tls/door.h"

namespace sublet {

class OrbNetwork;

struct OrbSettings {
  // Unix socket to listen on; empty: client only. At most 107 bytes. A stale
  // socket file is replaced, a live one is an error.
  std::string listen_path;
  // Client: offer the connections it opens for calls in the other direction,
  // to objects in bidir_poa().
  bool call_back = false;
  // Server: call clients back over the connections that they opened.
  bool accept_call_back = false;
  // Bytes of the largest GIOP message, sent or received, all fragments
  // together. At least 8192.
  size_t max_message = 2u << 20;
  // How long a call made by this process may take; 0: for ever.
  // set_call_timeout() overrides it for one reference.
  int client_call_timeout_ms = 5000;
  // How long a peer may take to deliver a request once begun, or to take its
  // reply. The time that a servant works does not count.
  int server_call_timeout_ms = 3000;
  // Connections accepted at a time, in all and of one user; those beyond are
  // closed at once. Root and the user of this process are subject to the
  // total only, of which the last places are kept for them.
  size_t max_connections = 16384;
  size_t max_connections_per_uid = 1024;
  // Decides, before a byte is read, whether this user may connect. Empty:
  // everyone whom the folder around the socket lets through. Called from one
  // thread of the ORB at a time; must not block.
  std::function<bool(uint32_t uid)> admit;
  // Client: the user who must own the listening socket of every server that
  // is dialled (root is accepted too). Unset: not checked.
  std::optional<uint32_t> server_uid;
  // Server: remote members of the pool connect by TLS through this
  // door, besides the Unix socket. admit and join as in DoorHooks.
  struct Network {
    DoorSettings door;
    std::function<Admission(const MemberName&, const std::string& serial)> admit;
    std::function<JoinAnswer(const JoinRequest&)> join;
  };
  std::optional<Network> network;
  // Server: programs of this host may also come by plain TCP to this port of
  // 127.0.0.1 (transport/loopback_door.h); 0: any.
  std::optional<uint16_t> loopback_port;
  // Client: there is one server, reached over TLS as this member; paths given to
  // resolve() and addresses in references are then of no account.
  std::optional<Membership> membership;
  // One line for each connection that was refused or closed for what it sent,
  // at most ten a second, the rest counted. Called from the ORB's threads;
  // must not block nor call the ORB.
  std::function<void(std::string_view line)> log;
};

// The ORB could not be started; the text says what was wrong and what to do.
class OrbError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Why the server could not be reached over TLS: for people, and a stable code.
struct DialFailure {
  std::string code;
  std::string message;
  std::string advice;
};

// What the guard has done since the start.
struct OrbCounters {
  uint64_t accepted = 0;    // connections admitted
  uint64_t refused = 0;     // turned away by policy, limit or lack of descriptors
  uint64_t dialled = 0;     // connections opened by this process
  uint64_t violations = 0;  // connections closed for what the peer sent
  uint64_t open_now = 0;    // accepted and not yet closed
};

class Orb {
 public:
  // Starts the ORB; with listen_path set, calls are answered on return.
  // Throws OrbError: bad settings, the path too long, in use or not writable,
  // or a second Orb in this process.
  explicit Orb(const OrbSettings& settings);
  // Shuts down as shutdown() does.
  ~Orb();
  Orb(const Orb&) = delete;
  Orb& operator=(const Orb&) = delete;

  // Takes no more calls, waits for those in progress, closes all connections
  // and removes the socket file. Must not be called inside an upcall. A second
  // call does nothing.
  void shutdown();

  CORBA::ORB_ptr orb() const { return orb_; }
  PortableServer::POA_ptr root_poa() const { return root_poa_; }
  // For servants with a fixed key: activate_object_with_id("JobScheduler").
  PortableServer::POA_ptr ins_poa() const { return ins_poa_; }
  // For session references on the server (only a reference of this POA lets
  // the server call back what it is given through it) and for the client's own
  // objects that are called back. Policies: BIDIRECTIONAL BOTH, PERSISTENT,
  // USER_ID: a session's name stays valid when its server restarts.
  PortableServer::POA_ptr bidir_poa() const { return bidir_poa_; }

  // A reference to the object with this fixed key behind a Unix socket; the
  // caller releases it. Makes no connection. Throws OrbError on a path or key
  // that cannot be written as an address.
  CORBA::Object_ptr resolve(const std::string& socket_path, const std::string& key) const;

  // The same object, reached at the server that this process belongs to: what a
  // reference says of its place may lead nowhere from another host. Nil for nil.
  // The caller releases it. Throws OrbError: not a reference of our server.
  CORBA::Object_ptr at_server(CORBA::Object_ptr object) const;

  // Of the last connection tried over TLS; nothing if it succeeded.
  std::optional<DialFailure> dial_failure() const;
  // Makes later connections with these. Throws TlsError: unusable.
  void use(const TlsCredentials& credentials);
  // Remote members, and callers over the loopback, are admitted from now on.
  // Throws OrbError: the port is not to be had.
  void open_door();
  // The TCP port of the door for remote members, and the loopback's; 0: there
  // is none.
  uint16_t port() const;
  uint16_t loopback_port() const;
  // Closes all connections of a remote member (Peer::id).
  void cut(uint64_t id);

  static OrbCounters counters();

 private:
  // Before the ORB's: they end after it.
  std::unique_ptr<OrbNetwork> network_;
  const bool over_tls_;
  CORBA::ORB_var orb_;
  PortableServer::POA_var root_poa_;
  PortableServer::POA_var ins_poa_;
  PortableServer::POA_var bidir_poa_;
};

// Who makes the call that this thread is serving. Nothing outside an upcall.
std::optional<Peer> calling_peer();
// The user who does, by the kernel's word. Empty outside an upcall, and where the peer is no local
// process.
std::optional<uint32_t> caller_uid();

// True if calls through this reference can only go back over the connection
// that brings the call which this thread is serving. A servant checks this
// before it keeps a reference that a client passed in: a forged one leads to
// another client. False outside an upcall and for objects of this process.
bool leads_back_to_caller(CORBA::Object_ptr object);

// Limits calls through this reference to ms milliseconds (0: for ever).
void set_call_timeout(CORBA::Object_ptr object, int ms);

// What went wrong with a call, without the ORB's types.
enum class CallFailure {
  kUnreachable,  // no answer, or the connection was lost
  kTimeout,      // no answer in time
  kRefused,      // the peer would not have it: permission, limits
  kGone,         // the object does not exist (any more)
  kProtocol,     // message not understood, too large, or text that is not UTF-8
  kInternal,     // the peer's own failure
};
struct CallError {
  CallFailure kind;
  bool maybe_done;   // the peer may have carried the call out
  std::string text;  // a sentence for people
};
CallError describe(const CORBA::SystemException& exception);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_ORB_H_
