#include "transport/orb_network.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>

#include "base/os_error.h"
#include "transport/guard/guarded_transport.h"

namespace sublet {
namespace {

std::optional<HostPort> peer_of(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST], port[NI_MAXSERV];
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(socket, any, &size) != 0 ||
      getnameinfo(any, size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return std::nullopt;
  HostPort peer{host, static_cast<uint16_t>(std::stoi(port))};
  peer.host.resize(std::min(peer.host.size(), peer.host.find('%')));  // without the interface
  return peer;
}

}  // namespace

OrbNetwork::OrbNetwork(const OrbSettings& settings) : settings_(settings) {
  if (!settings_.membership) return;
  try {
    context_ = TlsContext::of_member(settings_.membership->credentials);
  } catch (const TlsError& e) {
    throw OrbError(e.what());
  }
}

UniqueFd OrbNetwork::dial(int timeout_ms) {
  std::shared_ptr<const TlsContext> context;
  {
    std::lock_guard lock(mutex_);
    context = context_;
  }
  DialFailure failure{"server.unreachable", "out of file descriptors", "raise the limit"};
  try {
    TlsSession session = dial_server(settings_.membership->server, context, timeout_ms);
    const std::optional<HostPort> peer = peer_of(session.socket());
    UniqueFd plain = relay_.take(std::move(session), 0);
    if (plain.valid()) {
      std::lock_guard lock(mutex_);
      failure_.reset();
      peer_ = peer;
      return plain;
    }
  } catch (const DialError& e) {
    failure = {e.code(), e.what(), e.advice()};
  } catch (const TlsError& e) {
    failure = {"server.unreachable", e.what(), "try again"};
  }
  guard_report(failure.message);
  std::lock_guard lock(mutex_);
  failure_ = failure;
  return UniqueFd();
}

std::optional<DialFailure> OrbNetwork::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<HostPort> OrbNetwork::peer() const {
  std::lock_guard lock(mutex_);
  return peer_;
}

void OrbNetwork::use(const TlsCredentials& credentials) {
  auto context = TlsContext::of_member(credentials);
  std::lock_guard lock(mutex_);
  context_ = std::move(context);
}

void OrbNetwork::open_loopback() {
  LoopbackDoor::Hooks hooks;
  hooks.arrived = [](UniqueFd socket, uint32_t uid) {
    guard_hand_in(std::move(socket), Peer::local(uid));
  };
  hooks.log = [](std::string_view line) { guard_report(std::string(line)); };
  try {
    loopback_ = std::make_unique<LoopbackDoor>(*settings_.loopback_port, std::move(hooks));
  } catch (const OsError& e) {
    throw OrbError(e.what());
  }
}

void OrbNetwork::close_doors() {
  door_.reset();
  loopback_.reset();
}

void OrbNetwork::open_doors() {
  if (settings_.loopback_port) open_loopback();
  if (!settings_.network) return;
  DoorHooks hooks;
  hooks.admit = settings_.network->admit;
  hooks.join = settings_.network->join;
  hooks.arrived = [this](TlsSession session, const Admission& admission, const TlsPeer& peer) {
    arrived(std::move(session), admission, peer);
  };
  hooks.log = [](std::string_view line) { guard_report(std::string(line)); };
  try {
    door_ = std::make_unique<TlsDoor>(settings_.network->door, std::move(hooks));
  } catch (const std::exception& e) {
    throw OrbError(e.what());
  }
}

void OrbNetwork::arrived(TlsSession session, const Admission& admission, const TlsPeer& peer) {
  const uint64_t id = Peer::kFirstMember + admission.member;
  UniqueFd plain = relay_.take(std::move(session), id);
  // A member that was revoked between the first check and take() is disconnected here;
  // one that is revoked later by cut().
  const Admission again = settings_.network->admit(*peer.member, peer.serial);
  if (again.excluded != Exclusion::kNone) return relay_.cut(id);
  if (plain.valid()) guard_hand_in(std::move(plain), Peer{id, peer.member, admission.joined});
}

}  // namespace sublet
