// One TLS 1.3 connection between members of a pool, or of a newcomer with its
// server. Both sides check the other: its certificate against the pool's
// authority, its pool, and on the client's side that it is the pool's server.
// The server's side notes what is wrong instead of breaking off, so that it can
// say so; it must ask excluded() before anything else.
//
// TlsContext may be shared by threads; a TlsSession is one thread's at a time.
#ifndef SUBLET_TRANSPORT_TLS_SESSION_H_
#define SUBLET_TRANSPORT_TLS_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "transport/membership.h"
#include "transport/tls/authority.h"

namespace sublet {

// The name in the certificate of every pool's server.
inline constexpr char kServerName[] = "server";

// A member's own certificate and key, and its authority's certificate; PEM.
struct TlsCredentials {
  std::string authority;
  std::string certificate;
  std::string key;
};

// What a connection is for; said in the handshake.
enum class TlsPurpose { kMember, kJoin };

class TlsContext {
 public:
  // Throw TlsError: something does not fit or cannot be read.
  static std::shared_ptr<const TlsContext> of_server(const TlsCredentials& credentials);
  static std::shared_ptr<const TlsContext> of_member(const TlsCredentials& credentials);
  // Of one who has no certificate yet and knows the authority's fingerprint.
  static std::shared_ptr<const TlsContext> of_newcomer(const Digest& authority);
  ~TlsContext();

 private:
  friend class TlsSession;
  struct State;
  explicit TlsContext(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The other side, as far as its certificate says.
struct TlsPeer {
  std::optional<MemberName> member;
  std::string serial;     // hex
  std::string authority;  // PEM, where the other side sent it
};

class TlsSession {
 public:
  // socket: connected, not blocking. Throws TlsError.
  TlsSession(std::shared_ptr<const TlsContext> context, UniqueFd socket, TlsPurpose purpose);
  ~TlsSession();
  TlsSession(TlsSession&&) noexcept;
  TlsSession& operator=(TlsSession&&) noexcept;

  // What a step led to: done, or what to wait for, or that it is all over.
  enum class Step { kDone, kWantsRead, kWantsWrite, kOver };
  Step handshake();
  // After the handshake. *count: bytes moved, where the step is done.
  Step read(char* bytes, size_t room, size_t* count);
  Step write(const char* bytes, size_t size, size_t* count);
  // Says that nothing more will come, if that needs no waiting.
  void say_goodbye();

  int socket() const;
  // Also of a handshake that failed: why the other side was not accepted;
  // kMalformed where TLS itself failed.
  Exclusion excluded() const;
  // What the other side wants; after the handshake.
  TlsPurpose purpose() const;
  const TlsPeer& peer() const;

 private:
  friend class TlsContext;
  struct State;
  std::unique_ptr<State> state_;
};

// Whether this certificate is of the authority, good now, and for a member; PEM.
// Throws TlsError: one of them is no certificate.
Exclusion check_member(const std::string& certificate, const std::string& authority);

// Writes to a socket whose reader has gone must not end the process: blocks
// SIGPIPE in this thread while it lives.
class PipeSignalBlocked {
 public:
  PipeSignalBlocked();
  ~PipeSignalBlocked();
  PipeSignalBlocked(const PipeSignalBlocked&) = delete;
  PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

 private:
  bool was_blocked_ = false;
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_SESSION_H_
