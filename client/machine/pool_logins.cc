#include "client/machine/pool_logins.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <cstring>
#include <optional>
#include <sstream>

#include "base/local_socket.h"
#include "protocol/frame.h"

namespace sublet::client {
namespace {

constexpr timeval kPatience = {.tv_sec = 1, .tv_usec = 0};

std::string message_of(const LoginsAnswer& answer) {
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = SUBLET_FRAME_OWNER;
  frame.state = SUBLET_OWNER_POOL;
  std::string text;
  const auto add = [&text](const std::string& user, const char* what) {
    const std::string line = user + what;
    if (text.size() + line.size() <= SUBLET_OWNER_RULE_BYTES) text += line;
  };
  for (const auto& [user, logged_in] : answer.logged_in) add(user, logged_in ? " 1\n" : " 0\n");
  for (const std::string& user : answer.wanted) add(user, " ?\n");
  return std::string(reinterpret_cast<const char*>(&frame), sizeof frame) + text;
}

// The text of the monitor's answer; none: there is no whole one.
std::optional<std::string> text_from(int socket) {
  char bytes[sizeof(sublet_frame) + SUBLET_OWNER_RULE_BYTES];
  for (ssize_t got; (got = recv(socket, bytes, sizeof bytes, 0)) > 0;) {
    sublet_frame frame;
    if (got < static_cast<ssize_t>(sizeof frame)) break;
    memcpy(&frame, bytes, sizeof frame);
    if (frame.magic != SUBLET_FRAME_MAGIC) break;
    if (frame.kind != SUBLET_FRAME_OWNER_LOGINS) continue;
    return std::string(bytes + sizeof frame, bytes + got);
  }
  return std::nullopt;
}

}  // namespace

void PoolLogins::exchange(const LoginsAnswer& answer) {
  report_ = {};
  UniqueFd socket;
  try {
    socket = connect_local(SocketKind::seqpacket, socket_);
  } catch (const OsError&) {
    return;
  }
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  const std::string message = message_of(answer);
  if (send(socket.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0) return;
  const auto text = text_from(socket.get());
  if (!text) return;
  report_.takes_part = true;
  std::istringstream lines(*text);
  for (std::string word, user; lines >> word >> user;)
    (word == "ask" ? report_.asked : report_.here).push_back(user);
}

}  // namespace sublet::client
