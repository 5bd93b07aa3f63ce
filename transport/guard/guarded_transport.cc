#include "transport/guard/guarded_transport.h"

// The order of these matters to omniORB.
// clang-format off
#include <omniORB4/CORBA.h>
#include <omniORB4/giopEndpoint.h>
#include <omniORB4/omniServer.h>
#include <SocketCollection.h>
#include <omniORB4/unixConnection.h>
#include <omniORB4/unixAddress.h>
#include <omniORB4/unixEndpoint.h>
#include <omniORB4/omniIOR.h>
// clang-format on

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>

#include "base/os_error.h"
#include "base/unique_fd.h"
#include "transport/guard/connection_guard.h"
#include "transport/guard/pooled_connection.h"
#include "transport/guard/ready_set.h"
#include "transport/guard/unopened_endpoint.h"

namespace sublet {
namespace {

constexpr size_t kLongestPath = sizeof(sockaddr_un{}.sun_path) - 1;
// omniORB's own is 5. The kernel lowers this to its own limit.
constexpr int kBacklog = 4096;
// For closing the connections at rest when the ORB stops, which waits for 5 s.
constexpr std::chrono::seconds kLongestEnd{3};

// The user at the other end, as the kernel recorded it at connect or listen.
std::optional<uint32_t> peer_uid(int socket) {
  struct ucred who {};
  socklen_t size = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return std::nullopt;
  return who.uid;
}

sockaddr_un to_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), kLongestPath));
  return address;
}

using DialledConnection = Guarded<omni::unixActiveConnection>;

class GuardedAddress : public omni::giopAddress {
 public:
  explicit GuardedAddress(const char* path)
      : path_(path), address_(omni::unixConnection::unToString(path)) {}

  const char* type() const override { return "giop:unix"; }
  const char* address() const override { return address_; }
  omni::giopAddress* duplicate() const override { return new GuardedAddress(path_.c_str()); }
  using omni::giopAddress::duplicate;
  omni::giopActiveConnection* Connect(const omni_time_t& deadline, CORBA::ULong flags,
                                      CORBA::Boolean& timed_out) const override;

 private:
  const std::string path_;
  const CORBA::String_var address_;
};

// How long connect may wait, for SO_SNDTIMEO; at least 1 ms, because 0 means no limit.
timeval time_left(const omni_time_t& deadline) {
  if (!deadline) return {};
  omni_time_t now;
  omni_thread::get_time(now, omni_time_t());
  if (deadline <= now) return {0, 1000};
  const omni_time_t left = deadline - now + omni_time_t(0, 1'000'000);
  return {static_cast<time_t>(left.s), static_cast<suseconds_t>(left.ns / 1000)};
}

// The same for GuardSettings::dial.
int ms_left(const omni_time_t& deadline) {
  if (!deadline) return std::numeric_limits<int>::max();
  const timeval left = time_left(deadline);
  return static_cast<int>(left.tv_sec * 1000 + left.tv_usec / 1000);
}

omni::giopActiveConnection* dial_elsewhere(const std::string& path, const omni_time_t& deadline,
                                           CORBA::Boolean& timed_out) {
  UniqueFd socket = g_guard->settings().dial(ms_left(deadline));
  timed_out = !socket.valid() && !!deadline && ms_left(deadline) <= 1;
  if (!socket.valid()) return nullptr;
  ++g_guard->dialled;
  const Peer server{Peer::kFirstMember, MemberName{"", Role::kServer, path}};
  return new DialledConnection(server, false, socket.release(), path.c_str());
}

omni::giopActiveConnection* GuardedAddress::Connect(const omni_time_t& deadline, CORBA::ULong,
                                                    CORBA::Boolean& timed_out) const {
  if (g_guard->settings().dial) return dial_elsewhere(path_, deadline, timed_out);
  if (path_.size() > kLongestPath) {
    g_guard->report("cannot dial " + path_ + ": path too long");
    return nullptr;
  }
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return nullptr;
  timeval limit = time_left(deadline);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const sockaddr_un address = to_address(path_);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    timed_out = errno == EAGAIN || errno == EINPROGRESS;
    return nullptr;
  }
  limit = {};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const std::optional<uint32_t> uid = peer_uid(socket.get());
  const std::optional<uint32_t>& expected = g_guard->settings().server_uid;
  if (!uid || (expected && *uid != *expected && *uid != 0)) {
    ++g_guard->violations;
    g_guard->report("server at " + path_ + " not trusted: it runs as uid " +
                    (uid ? std::to_string(*uid) : "unknown"));
    return nullptr;
  }
  ++g_guard->dialled;
  return new DialledConnection(Peer::local(*uid), false, socket.release(), path_.c_str());
}

// The listening end point, while there is one.
class GuardedEndpoint;
std::mutex g_endpoint_mutex;
GuardedEndpoint* g_endpoint = nullptr;

class GuardedEndpoint : public omni::unixEndpoint {
 public:
  explicit GuardedEndpoint(const char* path)
      : omni::unixEndpoint(path),
        path_(path),
        reserve_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}
  ~GuardedEndpoint() override;

  CORBA::Boolean Bind() override;
  // Any thread. Queues a connection to be returned as an accepted one.
  void hand_in(UniqueFd socket, const Peer& peer);
  omni::giopConnection* AcceptAndMonitor(omni::giopConnection::notifyReadable_t callback,
                                         void* cookie) override;
  void Poke() override;

 protected:
  CORBA::Boolean notifyReadable(omni::SocketHolder* holder) override;

 private:
  bool clear_the_way() const;
  bool accept_one();
  void turn_one_away();
  bool take_handed_in();
  omni::giopConnection* next_connection();

  struct Newcomer {
    UniqueFd socket;
    Peer peer;
  };

  const std::string path_;
  // Closed briefly when descriptors run out, so that a new connection can be accepted
  // and closed instead of waking this thread again and again.
  UniqueFd reserve_;
  Newcomer newcomer_;
  std::mutex mutex_;
  std::deque<Newcomer> handed_in_;
  std::atomic<bool> poked_{false};
  // Of the accepted connections; each of them keeps the end point alive.
  std::optional<ReadySet> resting_;
};

// Removes the stale socket of a dead server; false, with the reason recorded, if the
// path is in use otherwise.
bool GuardedEndpoint::clear_the_way() const {
  if (path_.size() > kLongestPath) {
    g_guard->fail("the socket path " + path_ + " has " + std::to_string(path_.size()) +
                  " bytes; at most " + std::to_string(kLongestPath) + " are allowed");
    return false;
  }
  struct stat found {};
  if (::lstat(path_.c_str(), &found) != 0) return true;
  if (!S_ISSOCK(found.st_mode)) {
    g_guard->fail(path_ + " exists and is not a socket");
    return false;
  }
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = to_address(path_);
  const bool refused =
      ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno == ECONNREFUSED;
  if (!refused) {
    g_guard->fail("another process listens on " + path_);
    return false;
  }
  if (::unlink(path_.c_str()) == 0) return true;
  g_guard->fail("cannot remove the stale socket " + path_ + ": " + std::strerror(errno));
  return false;
}

CORBA::Boolean GuardedEndpoint::Bind() {
  if (!clear_the_way()) return false;
  errno = 0;
  if (!omni::unixEndpoint::Bind() || ::listen(pd_socket, kBacklog) != 0) {
    g_guard->fail("cannot listen on " + path_ + ": " + std::strerror(errno));
    return false;
  }
  try {
    resting_.emplace();
  } catch (const OsError& e) {
    g_guard->fail(e.what());
    return false;
  }
  std::lock_guard<std::mutex> lock(g_endpoint_mutex);
  g_endpoint = this;
  return true;
}

GuardedEndpoint::~GuardedEndpoint() {
  {
    std::lock_guard<std::mutex> lock(g_endpoint_mutex);
    if (g_endpoint == this) g_endpoint = nullptr;
  }
  for (const Newcomer& one : handed_in_) g_guard->leave(one.peer.id);
}

void GuardedEndpoint::hand_in(UniqueFd socket, const Peer& peer) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    handed_in_.push_back({std::move(socket), peer});
  }
  wakeUp();
}

bool GuardedEndpoint::take_handed_in() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (handed_in_.empty()) return false;
  newcomer_ = std::move(handed_in_.front());
  handed_in_.pop_front();
  return true;
}

void GuardedEndpoint::Poke() {
  poked_ = true;
  wakeUp();
}

// Null: the ORB is stopping, or the socket has failed.
omni::giopConnection* GuardedEndpoint::next_connection() {
  omni::SocketHolder::setSelectable(1, false);
  while (!poked_) {
    if (newcomer_.socket.valid() || take_handed_in()) {
      return new PooledConnection(newcomer_.peer, newcomer_.socket.release(),
                                  static_cast<omni::SocketCollection*>(this), path_.c_str(),
                                  &*resting_);
    }
    if (!Select()) return nullptr;
  }
  return nullptr;
}

// The cookie is an object of the calling thread, which deletes it after a null.
omni::giopConnection* GuardedEndpoint::AcceptAndMonitor(
    omni::giopConnection::notifyReadable_t callback, void* cookie) {
  resting_->start([callback, cookie](ReadySet::Member& member) {
    thread_local const omni_thread::ensure_self as_a_thread_of_the_orb;
    callback(cookie, static_cast<PooledConnection*>(&member));
  });
  omni::giopConnection* const next = next_connection();
  if (next != nullptr) return next;
  // The ORB has shut down the connections that can be called back, and waits for the threads
  // that delete them: each needs one.
  resting_->settle(kLongestEnd);
  resting_->stop();
  return nullptr;
}

CORBA::Boolean GuardedEndpoint::notifyReadable(omni::SocketHolder*) {
  const bool usable = accept_one();
  omni::SocketHolder::setSelectable(1, false);
  return usable;
}

// False if the listening socket is no longer usable.
bool GuardedEndpoint::accept_one() {
  UniqueFd socket(::accept4(pd_socket, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid()) {
    if (errno == EMFILE || errno == ENFILE) turn_one_away();
    // The connection still waits: avoid a busy loop.
    if (errno == ENOBUFS || errno == ENOMEM) omni_thread::sleep(0, 10'000'000);
    return errno != EBADF;
  }
  const std::optional<uint32_t> uid = peer_uid(socket.get());
  if (uid && g_guard->enter(Peer::local(*uid))) newcomer_ = {std::move(socket), Peer::local(*uid)};
  return true;
}

void GuardedEndpoint::turn_one_away() {
  reserve_.reset();
  {
    const UniqueFd unwanted(::accept4(pd_socket, nullptr, nullptr, SOCK_CLOEXEC));
    // There was no reserve: avoid a busy loop.
    if (!unwanted.valid()) omni_thread::sleep(0, 10'000'000);
  }
  reserve_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ++g_guard->refused;
  g_guard->report("connection refused: out of file descriptors");
  errno = EMFILE;
}

class GuardedTransport : public omni::giopTransportImpl {
 public:
  GuardedTransport() : omni::giopTransportImpl("giop:unix") {}

  omni::giopEndpoint* toEndpoint(const char* path) override {
    return isValid(path) ? new GuardedEndpoint(path) : nullptr;
  }
  omni::giopAddress* toAddress(const char* path) override {
    return isValid(path) ? new GuardedAddress(path) : nullptr;
  }
  CORBA::Boolean isValid(const char* path) override { return path != nullptr && *path != '\0'; }
  CORBA::Boolean addToIOR(const char* path, omni::IORPublish* points) override {
    if (!isValid(path)) return false;
    omniIOR::add_TAG_OMNIORB_UNIX_TRANS(path, points);
    return true;
  }
  const omnivector<const char*>* getInterfaceAddress() override {
    static const omnivector<const char*> none;
    return &none;
  }
};

}  // namespace

void install_guarded_transport(const GuardSettings& settings) {
  g_guard = new GuardState(settings);
  // The ORB finds transports by the beginning of their names, its own first: that one
  // is renamed and ours takes its name, so that every address in every reference uses
  // the guard.
  omni::giopTransportImpl* unguarded = omni::giopTransportImpl::str2Transport("giop:unix:/");
  if (unguarded != nullptr) unguarded->type = "unguarded:unix";
  // Never deleted: the ORB keeps it in its list.
  new GuardedTransport();
  install_unopened_endpoint();
}

GuardCounters guard_counters() {
  return g_guard == nullptr ? GuardCounters{} : g_guard->counters();
}

std::string guard_error() { return g_guard == nullptr ? std::string() : g_guard->error(); }

void guard_report(const std::string& line) { g_guard->report(line); }

bool guard_hand_in(UniqueFd socket, const Peer& peer) {
  std::lock_guard<std::mutex> lock(g_endpoint_mutex);
  if (g_endpoint == nullptr || !g_guard->enter(peer)) return false;
  g_endpoint->hand_in(std::move(socket), peer);
  return true;
}

const Peer* guard_peer(void* peerdetails) {
  return peerdetails == nullptr ? nullptr : &static_cast<ConnectionGuard*>(peerdetails)->peer();
}

bool guard_call_is_new(void* peerdetails) {
  // Only guarded connections have details: no other transport is in use.
  return peerdetails == nullptr || static_cast<ConnectionGuard*>(peerdetails)->call_is_new();
}

}  // namespace sublet
