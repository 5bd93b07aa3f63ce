// One TLS 1.3 connection between members of a pool, or between a newcomer and the
// server. Each side checks the other: its certificate against the pool's authority,
// its pool, and on the client's side that it is the pool's server. On an error the
// server's side completes the handshake, so that it can report the reason; it must
// check excluded() before anything else.
//
// TlsContext is thread-safe; a TlsSession may be used by one thread at a time.
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

// The purpose of a connection; sent in the handshake (ALPN).
enum class TlsPurpose { kMember, kJoin };

class TlsContext {
 public:
  // Throw TlsError: the credentials are unreadable or do not match.
  static std::shared_ptr<const TlsContext> of_server(const TlsCredentials& credentials);
  static std::shared_ptr<const TlsContext> of_member(const TlsCredentials& credentials);
  // For a client that has no certificate yet but knows the authority's fingerprint.
  static std::shared_ptr<const TlsContext> of_newcomer(const Digest& authority);
  ~TlsContext();

 private:
  friend class TlsSession;
  struct State;
  explicit TlsContext(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The other side, according to its certificate.
struct TlsPeer {
  std::optional<MemberName> member;
  std::string serial;     // hex
  std::string authority;  // PEM, if the other side sent it
};

class TlsSession {
 public:
  // socket: connected, non-blocking. Throws TlsError.
  TlsSession(std::shared_ptr<const TlsContext> context, UniqueFd socket, TlsPurpose purpose);
  ~TlsSession();
  TlsSession(TlsSession&&) noexcept;
  TlsSession& operator=(TlsSession&&) noexcept;

  // The result of an operation: done, what to wait for, or that the session has ended.
  enum class Step { kDone, kWantsRead, kWantsWrite, kOver };
  Step handshake();
  // After the handshake. *count: bytes transferred if the result is kDone.
  Step read(char* bytes, size_t room, size_t* count);
  Step write(const char* bytes, size_t size, size_t* count);
  // Sends a close notification if that is possible without waiting.
  void say_goodbye();

  int socket() const;
  // Why the other side was not accepted, also after a failed handshake; kMalformed if
  // TLS itself failed.
  Exclusion excluded() const;
  // The purpose requested by the client; after the handshake.
  TlsPurpose purpose() const;
  const TlsPeer& peer() const;

 private:
  friend class TlsContext;
  struct State;
  std::unique_ptr<State> state_;
};

// Checks that this certificate is of the authority, currently valid, and a member's;
// PEM. Throws TlsError: one of them is not a certificate.
Exclusion check_member(const std::string& certificate, const std::string& authority);

// Blocks SIGPIPE in this thread during its lifetime, so that writing to a closed
// socket does not end the process.
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
