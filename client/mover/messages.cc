#include "client/mover/messages.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "protocol/codec.h"

namespace sublet::client {
namespace {

using protocol::Decoder;
using protocol::Encoder;

constexpr size_t kMostFiles = 2;
constexpr size_t kLargest = 128 << 10;  // certificates and a path

void put(Encoder& out, const Digest& digest) {
  out.text({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

Digest get_digest(Decoder& in) {
  const std::string text = in.text();
  Digest digest = {};
  if (text.size() != digest.size()) throw protocol::Damaged("a digest has another length");
  std::copy(text.begin(), text.end(), digest.begin());
  return digest;
}

void put(Encoder& out, const FilePlace& place) {
  out.number(static_cast<uint32_t>(place.kind));
  out.text(place.session);
  out.number(place.job);
  out.number(place.attempt);
  out.number(place.file);
  out.text(place.name);
  out.number(place.generation);
}

FilePlace get_place(Decoder& in) {
  FilePlace place;
  place.kind = static_cast<FileKind>(in.number32());
  place.session = in.text();
  place.job = in.number();
  place.attempt = in.number32();
  place.file = in.number();
  place.name = in.text();
  place.generation = in.number();
  return place;
}

void put(Encoder& out, const Membership& membership) {
  out.text(membership.server.host);
  out.number(uint32_t{membership.server.port});
  out.text(membership.credentials.authority);
  out.text(membership.credentials.certificate);
  out.text(membership.credentials.key);
}

Membership get_membership(Decoder& in) {
  Membership membership;
  membership.server.host = in.text();
  membership.server.port = static_cast<uint16_t>(in.number32());
  membership.credentials.authority = in.text();
  membership.credentials.certificate = in.text();
  membership.credentials.key = in.text();
  return membership;
}

// Its files are received into `control`.
struct Envelope {
  explicit Envelope(std::string& bytes) : part{bytes.data(), bytes.size()} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  iovec part;
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))] = {};
  msghdr header = {};
};

std::vector<UniqueFd> files_in(msghdr& header) {
  std::vector<UniqueFd> files;
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    int numbers[kMostFiles];
    const size_t count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(numbers, CMSG_DATA(one), count * sizeof(int));
    for (size_t i = 0; i < count; ++i) files.emplace_back(numbers[i]);
  }
  return files;
}

}  // namespace

std::string encode(const MoverOpening& opening) {
  Encoder out;
  out.text(opening.version);
  out.text(opening.door.socket);
  out.number(opening.door.uid);
  out.flag(opening.door.membership.has_value());
  if (opening.door.membership) put(out, *opening.door.membership);
  return out.take();
}

MoverOpening decode_opening(std::string_view message) {
  Decoder in(message);
  MoverOpening opening;
  opening.version = in.text();
  opening.door.socket = in.text();
  opening.door.uid = in.number32();
  if (in.flag()) opening.door.membership = get_membership(in);
  return opening;
}

std::string encode(const MoverTask& task) {
  Encoder out;
  out.number(static_cast<uint32_t>(task.kind));
  put(out, task.content.place);
  out.number(task.content.size);
  put(out, task.content.digest);
  out.number(task.content.offset);
  out.number(task.upload);
  out.flag(task.has_copy);
  return out.take();
}

MoverTask decode_task(std::string_view message) {
  Decoder in(message);
  MoverTask task;
  task.kind = static_cast<MoverTask::Kind>(in.number32());
  task.content.place = get_place(in);
  task.content.size = in.number();
  task.content.digest = get_digest(in);
  task.content.offset = in.number();
  task.upload = in.number();
  task.has_copy = in.flag();
  return task;
}

std::string encode(const MoverReport& report) {
  Encoder out;
  out.number(static_cast<uint32_t>(report.kind));
  out.number(report.bytes);
  out.number(report.offset);
  out.flag(report.intact);
  out.flag(report.copied);
  put(out, report.digest);
  out.number(report.error);
  out.text(report.code);
  out.text(report.text);
  return out.take();
}

MoverReport decode_report(std::string_view message) {
  Decoder in(message);
  MoverReport report;
  report.kind = static_cast<MoverReport::Kind>(in.number32());
  report.bytes = in.number();
  report.offset = in.number();
  report.intact = in.flag();
  report.copied = in.flag();
  report.digest = get_digest(in);
  report.error = in.number32();
  report.code = in.text();
  report.text = in.text();
  return report;
}

bool send_message(int socket, const std::string& bytes, const std::vector<int>& files) {
  std::string sent = bytes;
  Envelope envelope(sent);
  const size_t size = files.size() * sizeof(int);
  if (files.empty()) {
    envelope.header.msg_control = nullptr;
    envelope.header.msg_controllen = 0;
  } else {
    envelope.header.msg_controllen = CMSG_SPACE(size);
    cmsghdr* const rights = CMSG_FIRSTHDR(&envelope.header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(rights), files.data(), size);
  }
  ssize_t count = 0;
  while ((count = sendmsg(socket, &envelope.header, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return count == static_cast<ssize_t>(bytes.size());
}

std::optional<MoverMessage> receive_message(int socket) {
  MoverMessage message;
  message.bytes.resize(kLargest);
  Envelope envelope(message.bytes);
  ssize_t count = 0;
  while ((count = recvmsg(socket, &envelope.header, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  if (count <= 0) return std::nullopt;
  message.files = files_in(envelope.header);
  if ((envelope.header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return std::nullopt;
  message.bytes.resize(static_cast<size_t>(count));
  return message;
}

}  // namespace sublet::client
