// What the client and its process that moves files (mover.h) say to each other, over a socket that
// keeps messages apart: first the client's Opening, then in turn a Task with its open files, and
// its Reports, of which only the last is not kProgress. Both are the same program, so there is one
// version. Any thread.
#ifndef SUBLET_CLIENT_MOVER_MESSAGES_H_
#define SUBLET_CLIENT_MOVER_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "client/link/server_calls.h"
#include "client/mover/contents.h"

namespace sublet::client {

struct MoverOpening {
  std::string version;  // the program may have been replaced on disk
  ContentDoor door;
};

struct MoverTask {
  enum class Kind : uint32_t { kReceive, kCopy, kDigest, kSend };
  Kind kind = Kind::kReceive;
  WantedContent content;  // of kSend: size, offset
  uint64_t upload = 0;    // of kSend
  bool has_copy = false;  // of kReceive: the second file
};

struct MoverReport {
  enum class Kind : uint32_t { kProgress, kDone, kServerError, kFileError };
  Kind kind = Kind::kProgress;
  uint64_t bytes = 0;  // kProgress: of the last chunk
  uint64_t offset = 0;
  bool intact = false;
  bool copied = false;
  Digest digest = {};
  uint32_t error = 0;  // ServerError::Kind, or errno
  std::string code;    // of a ServerError; or what could not be done
  std::string text;    // of a ServerError; or the file
};

std::string encode(const MoverOpening& opening);
std::string encode(const MoverTask& task);
std::string encode(const MoverReport& report);
// Throw protocol::Damaged.
MoverOpening decode_opening(std::string_view message);
MoverTask decode_task(std::string_view message);
MoverReport decode_report(std::string_view message);

struct MoverMessage {
  std::string bytes;
  std::vector<UniqueFd> files;
};
// False: the other side has gone.
bool send_message(int socket, const std::string& bytes, const std::vector<int>& files = {});
// Waits for one. None: the other side has gone, or the message is too long or has files for which
// there are no descriptors.
std::optional<MoverMessage> receive_message(int socket);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MOVER_MESSAGES_H_
