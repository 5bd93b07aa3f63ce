// The guard of one ORB connection: received data passes through GiopFilter first,
// requests are counted, and a message must be completed in time.
#ifndef SUBLET_TRANSPORT_GUARD_CONNECTION_GUARD_H_
#define SUBLET_TRANSPORT_GUARD_CONNECTION_GUARD_H_

#include <omniORB4/CORBA.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "transport/guard/giop_filter.h"
#include "transport/guard/guard_state.h"
#include "transport/peer.h"

namespace sublet {

// Threads: the ORB's locks ensure that one thread at a time receives and one sends; the
// other functions may be called from any thread.
class ConnectionGuard {
 public:
  ConnectionGuard(int socket, const Peer& peer, bool accepted)
      : socket_(socket),
        accepted_(accepted),
        peer_(peer),
        identity_(peer.text()),
        filter_(g_guard->settings().max_message, accepted || g_guard->settings().may_be_called_back,
                &requests_) {}
  ~ConnectionGuard() {
    if (accepted_) g_guard->leave(peer_.id);
  }
  ConnectionGuard(const ConnectionGuard&) = delete;
  ConnectionGuard& operator=(const ConnectionGuard&) = delete;

  const char* identity() const { return identity_.c_str(); }
  const Peer& peer() const { return peer_; }
  // See guard_call_is_new().
  bool call_is_new();

  // Like giopConnection::Recv; raw reads from the connection itself.
  template <class Raw>
  int receive(uint8_t* buffer, size_t size, const omni_time_t& deadline, Raw raw);
  // False while a message is incomplete. For the thread that receives.
  bool between_messages() const { return filter_.at_rest(); }
  // Requests received so far. For the thread that receives.
  uint64_t requests() const { return filter_.requests_begun(); }
  // Like giopConnection::Send.
  template <class Raw>
  int send(uint8_t* data, size_t size, Raw raw);

 private:
  void refuse(const char* why);

  const int socket_;
  const bool accepted_;
  const Peer peer_;
  const std::string identity_;
  GiopRequests requests_;
  GiopFilter filter_;
  // How much longer the peer may take to complete the message with the number
  // waited_for_.
  std::chrono::nanoseconds patience_{0};
  uint64_t waited_for_ = ~uint64_t{0};
  // Requests received and upcalls begun; used by all threads that serve the
  // connection.
  std::atomic<uint64_t> came_{0};
  std::atomic<uint64_t> served_{0};
  // Bytes at the head of the next data to send that requests_ has already seen.
  size_t noted_ = 0;
};

template <class Raw>
int ConnectionGuard::receive(uint8_t* buffer, size_t size, const omni_time_t& deadline, Raw raw) {
  const int timeout_ms = g_guard->settings().message_timeout_ms;
  while (filter_.violation() == GiopViolation::kNone && size > filter_.held()) {
    const size_t held = filter_.held();
    omni_time_t until = deadline;
    // Only time spent waiting here counts: the ORB itself may pause between the parts
    // of a message.
    const bool limited = !filter_.at_rest() && timeout_ms > 0;
    const auto before =
        limited ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    if (limited) {
      if (waited_for_ != filter_.begun()) {
        waited_for_ = filter_.begun();
        patience_ = std::chrono::milliseconds(timeout_ms);
      }
      const int64_t left = std::max<int64_t>(1'000'000, patience_.count());
      omni_time_t ours;
      omni_thread::get_time(ours, omni_time_t(left / 1'000'000'000, left % 1'000'000'000));
      if (!deadline || ours < deadline) until = ours;
    }
    const int got = raw(buffer + held, size - held, until);
    if (limited) patience_ -= std::chrono::steady_clock::now() - before;
    if (got <= 0) {
      const bool stalled = got == 0 && !(until == deadline);
      if (!stalled) return got;
      refuse("message not completed in time");
      break;
    }
    const size_t passed = filter_.feed(buffer + held, static_cast<size_t>(got), buffer);
    came_ = filter_.requests_begun();
    if (filter_.violation() != GiopViolation::kNone) {
      refuse(to_text(filter_.violation()));
      // Makes the socket readable, so that the ORB calls again at once, after it has
      // answered the valid messages.
      ::shutdown(socket_, SHUT_RD);
    }
    if (passed > 0) return static_cast<int>(passed);
  }
  // The ORB may keep a failed bidirectional connection open for minutes; the peer
  // must see the end at once.
  ::shutdown(socket_, SHUT_RDWR);
  return -1;
}

template <class Raw>
int ConnectionGuard::send(uint8_t* data, size_t size, Raw raw) {
  // Recorded before sending, because another thread may receive the reply first. Bytes
  // that the socket did not accept are passed again and must not be recorded twice.
  if (size > noted_) {
    requests_.sent(data + noted_, size - noted_);
    noted_ = size;
  }
  const int sent = raw();
  if (sent > 0) noted_ -= std::min(noted_, static_cast<size_t>(sent));
  return sent;
}

// A CloseConnection as the ORB sends it: only this, when it drops the connection.
inline bool is_goodbye(const void* data, size_t size) {
  static constexpr char kMagic[] = {'G', 'I', 'O', 'P', 1};
  static constexpr char kRest[] = {5, 0, 0, 0, 0};
  const char* bytes = static_cast<const char*>(data);
  return size == 12 && std::memcmp(bytes, kMagic, sizeof kMagic) == 0 &&
         std::memcmp(bytes + 7, kRest, sizeof kRest) == 0;
}

// A mixin for the ORB's connection classes.
template <class Base>
class Guarded : public Base {
 public:
  template <class... Arguments>
  Guarded(const Peer& peer, bool accepted, Arguments... arguments)
      : Base(arguments...), guard_(this->pd_socket, peer, accepted) {}

  int Recv(void* buffer, size_t size, const omni_time_t& deadline) override {
    return guard_.receive(static_cast<uint8_t*>(buffer), size, deadline,
                          [this](uint8_t* to, size_t room, const omni_time_t& until) {
                            return receive_raw(to, room, until);
                          });
  }
  int Send(void* data, size_t size, const omni_time_t& deadline) override {
    // The ORB holds its locks meanwhile, so it must not wait for a peer that does not read.
    if (is_goodbye(data, size))
      return ::send(this->pd_socket, data, size, MSG_DONTWAIT | MSG_NOSIGNAL) == 12 ? 12 : -1;
    return guard_.send(static_cast<uint8_t*>(data), size,
                       [&] { return Base::Send(data, size, deadline); });
  }
  const char* peeridentity() override { return guard_.identity(); }
  void* peerdetails() override { return &guard_; }

 protected:
  // Data before the filter has seen it.
  virtual int receive_raw(uint8_t* buffer, size_t size, const omni_time_t& deadline) {
    return Base::Recv(buffer, size, deadline);
  }

  ConnectionGuard guard_;
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_GUARD_CONNECTION_GUARD_H_
