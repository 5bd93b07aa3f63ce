#include "client/machine/pool_logins.h"

#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <sstream>

#include "base/clock.h"
#include "base/local_socket.h"
#include "protocol/frame.h"

namespace sublet::client {
namespace {

constexpr int64_t kPatienceMs = 1000;

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

// Whether it becomes so before `until` (CLOCK_BOOTTIME, ms).
bool becomes(int socket, short events, int64_t until) {
  const int64_t left = until - system_clock().boot_ns() / 1'000'000;
  pollfd one = {socket, events, 0};
  return left > 0 && poll(&one, 1, static_cast<int>(left)) > 0;
}

// The text of the monitor's answer; none: there is no whole one in time.
std::optional<std::string> ask(int socket, const std::string& message, int64_t until) {
  if (!becomes(socket, POLLOUT, until) ||
      send(socket, message.data(), message.size(), MSG_NOSIGNAL) < 0)
    return std::nullopt;
  std::vector<char> bytes(sizeof(sublet_frame) + SUBLET_OWNER_RULE_BYTES);
  while (becomes(socket, POLLIN, until)) {
    const ssize_t got = recv(socket, bytes.data(), bytes.size(), 0);
    sublet_frame frame;
    if (got < static_cast<ssize_t>(sizeof frame)) break;
    memcpy(&frame, bytes.data(), sizeof frame);
    if (frame.magic != SUBLET_FRAME_MAGIC) break;
    if (frame.kind == SUBLET_FRAME_OWNER_LOGINS)
      return std::string(bytes.data() + sizeof frame, bytes.data() + got);
  }
  return std::nullopt;
}

}  // namespace

void PoolLogins::exchange(const LoginsAnswer& answer) {
  report_ = {};
  const int64_t until = system_clock().boot_ns() / 1'000'000 + kPatienceMs;
  std::optional<std::string> text;
  try {
    // Without waiting: others may have filled the queue, or the monitor be stopped.
    const UniqueFd socket = connect_local(SocketKind::seqpacket, socket_, true);
    text = ask(socket.get(), message_of(answer), until);
  } catch (const OsError&) {
  }
  if (!text) return;
  report_.takes_part = report_.here_known = true;
  std::istringstream lines(*text);
  for (std::string word, user; lines >> word;) {
    if (word == "unknown")
      report_.here_known = false;
    else if (lines >> user)
      (word == "ask" ? report_.asked : report_.here).push_back(user);
  }
}

}  // namespace sublet::client
