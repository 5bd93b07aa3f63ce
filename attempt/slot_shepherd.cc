#include "attempt/slot_shepherd.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "protocol/frame.h"

namespace sublet {
namespace {

// The same in client/shepherd/slot.h.
constexpr int kLink = 3;

std::pair<UniqueFd, UniqueFd> make_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    throw OsError(errno, "make", "a pair of sockets");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// False if nobody is at the other end.
bool send_with(int socket, const sublet_frame& frame, int descriptor) {
  iovec bytes = {const_cast<sublet_frame*>(&frame), sizeof frame};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof descriptor);
  memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return true;
  if (errno == EPIPE || errno == ECONNRESET) return false;
  throw OsError(errno, "send an order to", "the shepherd");
}

}  // namespace

SlotShepherd::SlotShepherd(const std::string& program, const std::string& state_folder) {
  auto [ours, theirs] = make_pair();
  SpawnOptions options;
  options.folder = "/";
  options.new_session = true;
  options.fds = {{theirs.get(), kLink}};
  process_ = spawn({program, "--slot", state_folder}, {}, options);
  link_ = std::move(ours);
}

SlotShepherd::Given SlotShepherd::run(const AttemptName& name, bool behind) {
  auto [ours, theirs] = make_pair();
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = SUBLET_FRAME_RUN;
  frame.job = name.job;
  frame.attempt = name.attempt;
  frame.arg[0] = behind;
  const bool taken = send_with(link_.get(), frame, theirs.get());
  return {std::move(ours), taken};
}

}  // namespace sublet
