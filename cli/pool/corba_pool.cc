#include "cli/pool/corba_pool.h"

#include <sys/un.h>

#include <cerrno>

#include "base/files.h"
#include "base/local_socket.h"
#include "cli/pool/members.h"

namespace sublet::cli {
namespace {

constexpr int64_t kHoldMax = 10'000;
constexpr int kCommitFactor = 6;
constexpr size_t kLongestPath = sizeof(sockaddr_un{}.sun_path) - 1;

template <typename E>
PoolError translated(ErrorKind kind, const E& e) {
  return {kind, e.code.in(), e.message.in(), e.advice.in(), e.subject.in()};
}

// Tests the socket itself: the errno of connecting to it, or 0 if a process listens.
int socket_errno(const std::string& path) {
  if (path.size() > kLongestPath && !path.starts_with(kTlsScheme))
    return ENAMETOOLONG;  // for the ORB
  try {
    connect_local(SocketKind::stream, path, true);
    return 0;
  } catch (const OsError& e) {
    return e.code() == EAGAIN ? 0 : e.code();
  }
}

// server: the path with its origin.
PoolError unreachable(const std::string& server, const std::string& path, int code,
                      const std::string& why) {
  std::string start =
      "start sublet-server there, or name another socket with --server or $SUBLET_SERVER";
  switch (code) {
    case ENOENT:
    case ENOTDIR:
      return {ErrorKind::unavailable, "server.down", "no server at " + server + ": no such socket",
              start, path};
    case ECONNREFUSED:
      return {ErrorKind::unavailable, "server.down", "no server listens on " + server, start, path};
    case ENAMETOOLONG:
      return {ErrorKind::invalid, "server.path",
              "the path of the server's socket has " + std::to_string(path.size()) +
                  " bytes; at most " + std::to_string(kLongestPath) + " are allowed",
              "use a shorter path, such as a relative one", path};
    case EACCES:
    case EPERM:
      return {ErrorKind::not_permitted, "server.no_access",
              "you may not connect to the server at " + server,
              "ask the administrator for access to that folder", path};
    default:
      return {ErrorKind::unavailable, "server.unreachable",
              "the server at " + server + " cannot be reached: " + why,
              "try again; see the server's log", path};
  }
}

// server: the path with its origin.
PoolError from_call_error(const std::string& server, const std::string& path,
                          const CallError& error) {
  switch (error.kind) {
    case CallFailure::kTimeout:
      return {ErrorKind::unavailable, "server.timeout",
              "the server at " + server + " does not answer in time",
              "check whether it is overloaded or stopped; --timeout sets a longer limit", path};
    case CallFailure::kRefused:
      return {ErrorKind::not_permitted, "server.refused",
              "the server at " + server + " refuses the call: " + error.text,
              "ask the administrator", path};
    case CallFailure::kGone:
      return {ErrorKind::unavailable, "server.lacks",
              "the server at " + server + " does not know this operation",
              "use the same version of command and server", path};
    case CallFailure::kProtocol:
      return {ErrorKind::invalid, "call.protocol",
              "the server at " + server + " did not understand the call: " + error.text,
              "use the same version of command and server", path};
    default:
      return {ErrorKind::unavailable, "server.failed",
              "the server at " + server + " failed in the call: " + error.text,
              "see its log; try again", path};
  }
}

PoolError marked(PoolError error, bool maybe_done) {
  error.maybe_done = maybe_done;
  return error;
}

OrbSettings client_settings(const std::string& server, const Patience& patience) {
  OrbSettings settings;
  settings.client_call_timeout_ms = patience.call_timeout_ms;
  settings.membership = membership_at(server);
  return settings;
}

// Why a remote server refused us, or we refused it. `origin`: of its address.
PoolError from_dial_failure(const std::string& server, const std::string& origin,
                            const DialFailure& failure) {
  const bool unreached = failure.code.starts_with("server.");
  return {unreached ? ErrorKind::unavailable : ErrorKind::not_permitted, failure.code,
          failure.message + (unreached ? " (address " + origin + ")" : ""), failure.advice, server};
}

}  // namespace

CorbaPool::CorbaPool(const ServerAddress& server, const Patience& p)
    : path(server.address),
      origin(server.origin),
      patience(p),
      orb(client_settings(server.address, p)) {
  scheduler = resolve<v1::JobScheduler>("JobScheduler");
  watcher = resolve<v1::JobScheduler>("JobScheduler");
  committer = resolve<v1::JobScheduler>("JobScheduler");
  leaver = resolve<v1::JobScheduler>("JobScheduler");
  allocator = resolve<v1::MachineAllocator>("MachineAllocator");
  membership = resolve<v1::Membership>("Membership");
  administration = resolve<v1::Administration>("Administration");
  accounting = resolve<v1::Accounting>("Accounting");
  spool = resolve<v1::Spool>("Spool");
  set_call_timeout(watcher, patience.call_timeout_ms + static_cast<int>(kHoldMax));
  // Committing a million jobs takes long, and a repeated call would only add to the load.
  set_call_timeout(committer, patience.call_timeout_ms * kCommitFactor);
  set_call_timeout(leaver, 1000);
}

PoolError CorbaPool::failure_of(const CORBA::SystemException& e) const {
  CallError error = describe(e);
  const auto failure = orb.dial_failure();
  if (error.kind == CallFailure::kUnreachable && failure)
    return marked(from_dial_failure(path, origin, *failure), error.maybe_done);
  const std::string server = path + " (" + origin + ")";
  if (error.kind == CallFailure::kUnreachable)
    return marked(unreachable(server, path, socket_errno(path), error.text), error.maybe_done);
  return marked(from_call_error(server, path, error), error.maybe_done);
}

void CorbaPool::rethrow_translated() {
  try {
    throw;
  } catch (const v1::Invalid& e) {
    throw translated(ErrorKind::invalid, e);
  } catch (const v1::NotFound& e) {
    throw translated(ErrorKind::not_found, e);
  } catch (const v1::NotPermitted& e) {
    throw translated(ErrorKind::not_permitted, e);
  } catch (const v1::Conflict& e) {
    throw translated(ErrorKind::conflict, e);
  } catch (const v1::LimitExceeded& e) {
    throw translated(ErrorKind::limit_exceeded, e);
  } catch (const v1::Unavailable& e) {
    throw translated(ErrorKind::unavailable, e);
  }
}

bool CorbaPool::passes(const PoolError& e) {
  return e.kind == ErrorKind::unavailable &&
         (e.code == "server.stopping" || e.code == "server.busy");
}

bool CorbaPool::is_entering(const PoolError& e) {
  return e.kind == ErrorKind::unavailable && e.code == "batch.entering";
}

bool CorbaPool::socket_is_missing() const {
  return patience.unreachable_ms <= Patience{}.unreachable_ms && !path.starts_with(kTlsScheme) &&
         socket_errno(path) == ENOENT;
}

}  // namespace sublet::cli
