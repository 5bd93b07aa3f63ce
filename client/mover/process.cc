#include "client/mover/process.h"

#include <poll.h>
#include <unistd.h>

#include <thread>

#include "base/files.h"
#include "client/mover/messages.h"
#include "protocol/codec.h"

namespace sublet::client {
namespace {

struct ClientGone {};

// Whoever runs with so little weight needs no pace.
class ReportedTurns : public ChunkTurns {
 public:
  explicit ReportedTurns(int socket) : socket_(socket) {}
  void begin() override {}
  void end(uint64_t bytes) override {
    MoverReport progress;
    progress.bytes = bytes;
    if (!send_message(socket_, encode(progress))) throw ClientGone();
  }

 private:
  const int socket_;
};

void perform(const MoverTask& task, const std::vector<UniqueFd>& files, ContentCalls& server,
             ChunkTurns& turns, MoverReport& report) {
  const WantedContent& content = task.content;
  const int file = files.at(0).get();
  switch (task.kind) {
    case MoverTask::Kind::kReceive: {
      const int copy = task.has_copy ? files.at(1).get() : -1;
      report.offset = content.offset;
      const ReceivedContent received =
          receive_content(server, content, file, copy, turns, &report.offset);
      report.intact = received.intact;
      report.copied = received.copied;
      return;
    }
    case MoverTask::Kind::kCopy:
      report.intact = copy_content(file, files.at(1).get(), content.size, content.digest, turns);
      return;
    case MoverTask::Kind::kDigest:
      report.digest = content_digest(file, content.size, turns);
      return;
    case MoverTask::Kind::kSend:
      return send_content(server, file, content.size, task.upload, content.offset, turns);
  }
  throw protocol::Damaged("no such task");
}

MoverReport report_of(const MoverTask& task, const std::vector<UniqueFd>& files,
                      ContentCalls& server, ChunkTurns& turns) {
  MoverReport report;
  try {
    perform(task, files, server, turns, report);
    report.kind = MoverReport::Kind::kDone;
  } catch (const ServerError& error) {
    report.kind = MoverReport::Kind::kServerError;
    report.error = static_cast<uint32_t>(error.kind());
    report.code = error.code();
    report.text = error.what();
  } catch (const FileError& error) {
    report.kind = MoverReport::Kind::kFileError;
    report.error = static_cast<uint32_t>(error.code());
    report.code = error.doing();
    report.text = error.subject();
  }
  return report;
}

}  // namespace

int serve_mover(int socket, const OpenContents& open) try {
  auto message = receive_message(socket);
  if (!message) return 0;
  const MoverOpening opening = decode_opening(message->bytes);
  if (opening.version != SUBLET_VERSION) return 1;
  const std::unique_ptr<ContentCalls> server = open(opening.door);
  ReportedTurns turns(socket);
  while ((message = receive_message(socket))) {
    const MoverTask task = decode_task(message->bytes);
    const MoverReport report = report_of(task, message->files, *server, turns);
    // A program that was received cannot be executed while it is open for writing.
    message->files.clear();
    if (!send_message(socket, encode(report))) return 0;
  }
  return 0;
} catch (const ClientGone&) {
  return 0;
} catch (const std::exception&) {  // of the messages, or the ORB cannot be started
  return 1;
}

void end_with(int socket) {
  std::thread([socket] {
    pollfd closed = {socket, 0, 0};
    while (poll(&closed, 1, -1) <= 0 || (closed.revents & (POLLHUP | POLLERR)) == 0) {
    }
    _exit(0);
  }).detach();
}

}  // namespace sublet::client
