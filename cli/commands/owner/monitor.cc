#include "cli/commands/owner/monitor.h"

#include <pwd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>

#include "base/local_socket.h"
#include "cli/pool/pool_client.h"
#include "protocol/pause.h"

namespace sublet::cli {
namespace {

struct Message {
  sublet_frame frame;
  std::string text;  // after the frame
};

PoolError no_monitor(const std::string& folders, const std::string& why) {
  return PoolError(ErrorKind::unavailable, "monitor.unreachable",
                   "no load monitor answers in " + folders + " (" + why + ")",
                   "start sublet-client; if it has another state folder, name that with --state",
                   folders);
}

// To the first monitor that listens. One that has died leaves its socket.
UniqueFd monitor_of(const std::vector<std::string>& folders, std::string* folder) {
  std::string tried, why;
  for (const std::string& one : folders) {
    try {
      *folder = one;
      return connect_local(SocketKind::seqpacket, one + "/owner.sock");
    } catch (const OsError& e) {
      tried += (tried.empty() ? "" : " or ") + one;
      why += (why.empty() ? "" : "; ") + std::string(std::strerror(e.code()));
    }
  }
  throw no_monitor(tried, why);
}

std::optional<Message> next_message(int socket, const std::string& folder) {
  char bytes[sizeof(sublet_frame) + SUBLET_OWNER_RULE_BYTES];
  const ssize_t got = recv(socket, bytes, sizeof bytes, 0);
  if (got == 0 || (got < 0 && errno == ECONNRESET)) return std::nullopt;
  if (got < 0) throw no_monitor(folder, errno == EAGAIN ? "no answer" : std::strerror(errno));
  Message message = {};
  if (got >= static_cast<ssize_t>(sizeof message.frame)) {
    memcpy(&message.frame, bytes, sizeof message.frame);
    message.text.assign(bytes + sizeof message.frame, bytes + got);
  }
  if (message.frame.magic != SUBLET_FRAME_MAGIC)
    throw no_monitor(folder, "its answer is of another version");
  return message;
}

// Unless a job spoke, which is refused as for the other words.
void refuse_as_it_says(const OwnerAnswer& answer) {
  if (answer.status.sequence == EINVAL)
    throw PoolError(ErrorKind::invalid, "owner.rule", answer.complaint,
                    "see docs/rules.md for the language, docs/load-monitor.md for the names", "");
  if (answer.status.sequence == EACCES)
    throw PoolError(ErrorKind::not_permitted, "owner.not_owner", answer.complaint,
                    "say it as root, or ask the administrator", "");
}

OwnersPair pair_of(const std::string& scope, bool fixed, std::string idle, std::string evict) {
  const size_t space = scope.find(' ');
  return {.fixed = fixed,
          .user = scope.substr(0, space),
          .anywhere = space != std::string::npos,
          .idle_when = std::move(idle),
          .evict_when = std::move(evict)};
}

void add(const Message& message, OwnerAnswer* answer) {
  if (message.frame.kind == SUBLET_FRAME_OWNER_ATTEMPT)
    answer->attempts.push_back({message.frame.job, message.frame.attempt, message.frame.arg[0],
                                message.frame.arg[1], message.frame.arg[2], message.frame.arg[3]});
  const size_t feed = message.text.find('\n');
  if (message.frame.kind == SUBLET_FRAME_OWNER_SENSE && feed != std::string::npos)
    answer->senses.push_back(
        {message.text.substr(0, feed), message.text.substr(feed + 1), message.frame.state != 0});
  const size_t second = message.text.find('\n', feed + 1);
  if (message.frame.kind == SUBLET_FRAME_OWNER_RULE && second != std::string::npos)
    answer->rules.push_back(pair_of(message.text.substr(0, feed), message.frame.state != 0,
                                    message.text.substr(feed + 1, second - feed - 1),
                                    message.text.substr(second + 1)));
  if (message.frame.kind == SUBLET_FRAME_OWNER_COMPLAINT) answer->complaint = message.text;
}

}  // namespace

std::string presence_name(uint32_t reason) {
  constexpr const char* kNames[] = {"",       "cpu",   "load",  "input",  "settling",
                                    "script", "blind", "quiet", "paused", "unseen",
                                    "sleep",  "media", "rule",  "rule"};
  return reason < std::size(kNames) ? kNames[reason] : std::to_string(reason);
}

std::string user_name(int64_t uid) {
  if (uid == protocol::Pause::kUnknown) return "an unknown user";
  const passwd* entry = getpwuid(static_cast<uid_t>(uid));
  return entry != nullptr ? entry->pw_name : "user id " + std::to_string(uid);
}

OwnerAnswer say_to_monitor(const std::vector<std::string>& folders, const OwnerWord& word,
                           int64_t patience_ms) {
  std::string folder;
  const UniqueFd socket = monitor_of(folders, &folder);
  const timeval patience = {.tv_sec = patience_ms / 1000, .tv_usec = patience_ms % 1000 * 1000};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = SUBLET_FRAME_OWNER;
  frame.state = word.word;
  frame.arg[0] = word.length_ms;
  const std::string message =
      std::string(reinterpret_cast<const char*>(&frame), sizeof frame) + word.text;
  if (send(socket.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0)
    throw no_monitor(folder, "it hangs up");
  OwnerAnswer answer;
  const auto status = next_message(socket.get(), folder);
  if (!status || status->frame.kind != SUBLET_FRAME_OWNER_STATUS)
    throw no_monitor(folder, "it hangs up; too many ask at once");
  answer.status = status->frame;
  while (const auto more = next_message(socket.get(), folder)) add(*more, &answer);
  if (!answer.complaint.empty()) refuse_as_it_says(answer);
  if (answer.status.sequence == EACCES) {
    const std::string who = user_name(answer.status.arg[2]);
    throw PoolError(ErrorKind::not_permitted, "owner.paused",
                    "this machine is paused by " + who + ", and only " + who +
                        " or root may end or shorten that",
                    "ask " + who + ", or say it as root", who);
  }
  if (answer.status.sequence != 0)
    throw PoolError(ErrorKind::not_permitted, "owner.job",
                    "a job may not speak for the owner of the machine",
                    "run it in a session of your own", folder);
  return answer;
}

}  // namespace sublet::cli
