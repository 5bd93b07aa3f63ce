// Starts and stops the ORB. All CORBA traffic of this process passes through the
// guarded transport (guarded_transport.h). Settings are made in code, so that
// neither an ORB configuration file nor the environment can weaken them.
//
// One Orb per process: omniORB keeps its state in globals. The Orb owns the
// ORB's threads, but not the servants (reference counted as usual).
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
  // Client: allow the server to call back, over the connections the client opens,
  // to objects in bidir_poa().
  bool call_back = false;
  // Server: call clients back over the connections that they opened.
  bool accept_call_back = false;
  // Bytes of the largest GIOP message, sent or received, all fragments
  // together. At least 8192.
  size_t max_message = 2u << 20;
  // How long a call made by this process may take; 0: no limit.
  // set_call_timeout() overrides it for one reference.
  int client_call_timeout_ms = 5000;
  // How long a peer may take to complete a request that it has begun to send, or to
  // receive its reply. The time taken by the servant does not count.
  int server_call_timeout_ms = 3000;
  // Maximum number of open accepted connections, in total and per user; further ones
  // are closed at once. Root and the user of this process are only subject to the
  // total, part of which is reserved for them.
  size_t max_connections = 16384;
  size_t max_connections_per_uid = 1024;
  // Decides, before a byte is read, whether this user may connect. Empty: every
  // user with access to the socket's folder. Called from one thread of the ORB at a
  // time; must not block.
  std::function<bool(uint32_t uid)> admit;
  // Client: the user who must own the listening socket of every server that
  // it connects to (root is accepted too). Unset: not checked.
  std::optional<uint32_t> server_uid;
  // Server: remote members of the pool connect by TLS through this door, in addition
  // to the Unix socket. admit and join as in DoorHooks.
  struct Network {
    DoorSettings door;
    std::function<Admission(const MemberName&, const std::string& serial)> admit;
    std::function<JoinAnswer(const JoinRequest&)> join;
  };
  std::optional<Network> network;
  // Server: programs on this host may also connect by plain TCP to this port of
  // 127.0.0.1 (transport/loopback_door.h); 0: any.
  std::optional<uint16_t> loopback_port;
  // Client: there is one server, reached over TLS as this member; paths given to
  // resolve() and addresses in references are then ignored.
  std::optional<Membership> membership;
  // Receives one line for each connection that was refused, or closed because of the
  // data it sent; at most ten a second, the rest are counted. Called from the ORB's
  // threads; must neither block nor call the ORB.
  std::function<void(std::string_view line)> log;
};

// The ORB could not be started; the text states the cause and the remedy.
class OrbError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Why the server could not be reached over TLS: text for display and a stable code.
struct DialFailure {
  std::string code;
  std::string message;
  std::string advice;
};

// Statistics of the guard since the start.
struct OrbCounters {
  uint64_t accepted = 0;    // connections admitted
  uint64_t refused = 0;     // because of policy, limits or lack of descriptors
  uint64_t dialled = 0;     // connections opened by this process
  uint64_t violations = 0;  // connections closed because of the data the peer sent
  uint64_t open_now = 0;    // accepted and not yet closed
};

class Orb {
 public:
  // Starts the ORB; with listen_path set, it accepts calls on return.
  // Throws OrbError: bad settings, the path too long, in use or not writable,
  // or a second Orb in this process.
  explicit Orb(const OrbSettings& settings);
  // Shuts down as shutdown() does.
  ~Orb();
  Orb(const Orb&) = delete;
  Orb& operator=(const Orb&) = delete;

  // Stops accepting calls, waits for those in progress, closes all connections
  // and removes the socket file. Must not be called in an upcall. A second call
  // has no effect.
  void shutdown();

  CORBA::ORB_ptr orb() const { return orb_; }
  PortableServer::POA_ptr root_poa() const { return root_poa_; }
  // For servants with a fixed key: activate_object_with_id("JobScheduler").
  PortableServer::POA_ptr ins_poa() const { return ins_poa_; }
  // For session references on the server (the server can call back only objects that
  // it receives through a reference of this POA) and for the client's objects that
  // are called back. Policies: BIDIRECTIONAL BOTH, PERSISTENT, USER_ID: a session's
  // name stays valid when its server restarts.
  PortableServer::POA_ptr bidir_poa() const { return bidir_poa_; }

  // A reference to the object with this fixed key at a Unix socket; the caller
  // releases it. Does not connect. Throws OrbError for a path or key that cannot be
  // written as an address.
  CORBA::Object_ptr resolve(const std::string& socket_path, const std::string& key) const;

  // The same object with the address of the server that this process belongs to: the
  // address in a reference may not be reachable from another host. Nil for nil.
  // The caller releases it. Throws OrbError: not a reference of our server.
  CORBA::Object_ptr at_server(CORBA::Object_ptr object) const;

  // The failure of the last connection attempt over TLS; none if it succeeded.
  std::optional<DialFailure> dial_failure() const;
  // The server's address in numbers, as of the last connection over TLS; none: there was none.
  std::optional<HostPort> server_address() const;
  // Uses these for later connections. Throws TlsError: unusable.
  void use(const TlsCredentials& credentials);
  // Starts to admit remote members and callers over the loopback interface.
  // Throws OrbError: the port is not available.
  void open_door();
  // The TCP port of the door for remote members, and the loopback's; 0: there
  // is none.
  uint16_t port() const;
  uint16_t loopback_port() const;
  // Closes all connections of a remote member (Peer::id).
  void cut(uint64_t id);

  static OrbCounters counters();

 private:
  // Declared first, so that it is destroyed after the ORB's objects.
  std::unique_ptr<OrbNetwork> network_;
  const bool over_tls_;
  CORBA::ORB_var orb_;
  PortableServer::POA_var root_poa_;
  PortableServer::POA_var ins_poa_;
  PortableServer::POA_var bidir_poa_;
};

// The peer whose call this thread is serving. None outside an upcall.
std::optional<Peer> calling_peer();
// The user of the calling process, as reported by the kernel. None outside an upcall
// and if the peer is not a local process.
std::optional<uint32_t> caller_uid();

// True if calls through this reference can only use the connection of the call that
// this thread is serving. A servant must check this before it keeps a reference that
// a client passed in: a forged one could lead to another client. False outside an
// upcall and for objects of this process.
bool leads_back_to_caller(CORBA::Object_ptr object);

// Limits calls through this reference to ms milliseconds (0: no limit).
void set_call_timeout(CORBA::Object_ptr object, int ms);

// The cause of a failed call, without the ORB's types.
enum class CallFailure {
  kUnreachable,  // no answer, or the connection was lost
  kTimeout,      // no answer in time
  kRefused,      // refused by the peer: permission, limits
  kGone,         // the object does not exist (any more)
  kProtocol,     // message not understood, too large, or text that is not UTF-8
  kInternal,     // failure inside the peer
};
struct CallError {
  CallFailure kind;
  bool maybe_done;   // the peer may have carried the call out
  std::string text;  // a sentence for display
};
CallError describe(const CORBA::SystemException& exception);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_ORB_H_
