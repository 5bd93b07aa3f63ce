#include "transport/loopback_door.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "base/epoll_thread.h"
#include "base/os_error.h"

namespace sublet {
namespace {

// The overflow uid: reported by the kernel for users not mapped in this namespace.
constexpr uint32_t kNobody = 65534;
constexpr int kBacklog = 128;
constexpr auto kPause = std::chrono::milliseconds(50);

struct Question {
  nlmsghdr head;
  inet_diag_req_v2 body;
};

bool on_loopback(const sockaddr_in& address) {
  return address.sin_family == AF_INET && (ntohl(address.sin_addr.s_addr) >> 24) == 127;
}

Question about(const sockaddr_in& theirs, const sockaddr_in& ours) {
  Question question{};
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.body.sdiag_family = AF_INET;
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_states = 1u << TCP_ESTABLISHED;
  question.body.id.idiag_sport = theirs.sin_port;
  question.body.id.idiag_dport = ours.sin_port;
  question.body.id.idiag_src[0] = theirs.sin_addr.s_addr;
  question.body.id.idiag_dst[0] = ours.sin_addr.s_addr;
  question.body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  question.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return question;
}

}  // namespace

std::optional<uint32_t> loopback_peer_uid(int socket) {
  sockaddr_in ours{}, theirs{};
  socklen_t size = sizeof ours;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&ours), &size) != 0) return std::nullopt;
  size = sizeof theirs;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&theirs), &size) != 0) return std::nullopt;
  if (!on_loopback(ours) || !on_loopback(theirs)) return std::nullopt;
  const UniqueFd kernel(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  const Question question = about(theirs, ours);
  alignas(nlmsghdr) char bytes[4096];
  if (::send(kernel.get(), &question, sizeof question, 0) != sizeof question) return std::nullopt;
  // The kernel answers before send returns.
  const ssize_t got = ::recv(kernel.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  nlmsghdr head;
  inet_diag_msg answer;
  if (got < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof answer)) return std::nullopt;
  std::memcpy(&head, bytes, sizeof head);
  std::memcpy(&answer, bytes + NLMSG_HDRLEN, sizeof answer);
  if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  // A socket that its process has closed has no inode, and is reported as owned by
  // root.
  if (answer.idiag_state != TCP_ESTABLISHED || answer.idiag_inode == 0) return std::nullopt;
  if (answer.idiag_uid == kNobody) return std::nullopt;
  return answer.idiag_uid;
}

struct LoopbackDoor::State {
  Hooks hooks;
  UniqueFd listener;
  EpollThread loop;

  void accept_one();
};

void LoopbackDoor::State::accept_one() {
  UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid()) {
    // Out of descriptors: avoid a busy loop.
    if (errno != EAGAIN && errno != ECONNABORTED) std::this_thread::sleep_for(kPause);
    return;
  }
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const auto uid = loopback_peer_uid(socket.get());
  if (!uid) return hooks.log("loopback connection refused: the kernel does not know its user");
  hooks.arrived(std::move(socket), *uid);
}

LoopbackDoor::LoopbackDoor(uint16_t port, Hooks hooks) : state_(std::make_unique<State>()) {
  State* s = state_.get();
  s->hooks = std::move(hooks);
  s->listener.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  ::setsockopt(s->listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(s->listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(s->listener.get(), kBacklog) != 0)
    throw OsError(errno, "listen on", "127.0.0.1:" + std::to_string(port));
  s->loop.add(s->listener.get(), 0, EPOLLIN);
  s->loop.start({[s](uint64_t, uint32_t) { s->accept_one(); }, [] { return -1; }});
}

LoopbackDoor::~LoopbackDoor() { state_->loop.stop(); }

uint16_t LoopbackDoor::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(state_->listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

}  // namespace sublet
