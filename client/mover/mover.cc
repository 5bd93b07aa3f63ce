#include "client/mover/mover.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/files.h"
#include "base/log.h"
#include "protocol/codec.h"

namespace sublet::client {
namespace {

constexpr int kLookForStopMs = 20;

// Throws what the process could not do.
void check(const MoverReport& report) {
  if (report.kind == MoverReport::Kind::kServerError)
    throw ServerError(static_cast<ServerError::Kind>(report.error), report.code, report.text);
  if (report.kind == MoverReport::Kind::kFileError)
    throw FileError(static_cast<int>(report.error), report.code, report.text);
}

}  // namespace

// Of what is moved here.
class Mover::Turns : public ChunkTurns {
 public:
  explicit Turns(Mover& mover) : mover_(mover) {}
  void begin() override {
    turn_.emplace(mover_.pace_, mover_.work_.stop);
    if (mover_.work_.stop) throw TaskStopped();
  }
  void end(uint64_t bytes) override {
    turn_.reset();
    mover_.moved_here_ += bytes;
    mover_.passed_(bytes);
  }

 private:
  Mover& mover_;
  std::optional<PacedWork> turn_;
};

Mover::Mover(AttemptWork& work, ServerCalls& server, Pace& pace, const MoverSettings& settings)
    : work_(work), server_(server), pace_(pace), settings_(settings) {}

Mover::~Mover() { end(); }

ReceivedContent Mover::receive(const WantedContent& wanted, int file, int copy, uint64_t* offset) {
  if (!elsewhere(wanted.size)) {  // what is here already is read again
    Turns turns(*this);
    return receive_content(server_, wanted, file, copy, turns, offset);
  }
  MoverTask task;
  task.kind = MoverTask::Kind::kReceive;
  task.content = wanted;
  task.content.place.session = server_.content_door().session;
  task.has_copy = copy >= 0;
  *offset = wanted.offset;
  const MoverReport report = ask(task, copy >= 0 ? std::vector{file, copy} : std::vector{file});
  *offset = report.offset;
  check(report);
  return {report.intact, report.copied};
}

bool Mover::copy(int from, int to, uint64_t size, const Digest& digest) {
  if (!elsewhere(size)) {
    Turns turns(*this);
    return copy_content(from, to, size, digest, turns);
  }
  MoverTask task;
  task.kind = MoverTask::Kind::kCopy;
  task.content.size = size;
  task.content.digest = digest;
  const MoverReport report = ask(task, {from, to});
  check(report);
  return report.intact;
}

Digest Mover::digest(int file, uint64_t size) {
  if (!elsewhere(size)) {
    Turns turns(*this);
    return content_digest(file, size, turns);
  }
  MoverTask task;
  task.kind = MoverTask::Kind::kDigest;
  task.content.size = size;
  const MoverReport report = ask(task, {file});
  check(report);
  return report.digest;
}

void Mover::send(int file, uint64_t size, uint64_t upload, uint64_t offset) {
  if (!elsewhere(size - offset)) {
    Turns turns(*this);
    return send_content(server_, file, size, upload, offset, turns);
  }
  MoverTask task;
  task.kind = MoverTask::Kind::kSend;
  task.content.size = size;
  task.content.offset = offset;
  task.upload = upload;
  check(ask(task, {file}));
}

bool Mover::elsewhere(uint64_t bytes) {
  if (work_.stop) throw TaskStopped();
  if (is_checkpoint_ && !pace_.is_free()) return false;
  if (process_) return true;
  if (settings_.command.empty() || work_.moves_here || moved_here_ + bytes <= kMostHere)
    return false;
  try {
    start();
    return true;
  } catch (const OsError& error) {
    log(Severity::warning) << work_.label()
                           << ": no process to move its files could be started, so they are "
                              "moved at normal weight: "
                           << error.what();
    work_.moves_here = true;
    return false;
  }
}

void Mover::start() {
  settings_.cgroups.hold_controllers();
  AttemptOrder order;
  settings_.cgroups.set_helper_folders(&order);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw OsError(errno, "make", "a pair of sockets");
  UniqueFd ours(ends[0]);
  const UniqueFd others(ends[1]);
  const MoverOpening opening{SUBLET_VERSION, server_.content_door()};
  process_ = Process{std::move(ours), start_demoted(settings_.shepherd_program, order,
                                                    settings_.command, others.get())};
  log(Severity::debug) << work_.label() << ": its files are moved by another process, "
                       << process_->keeper.id.pid;
  if (!send_message(process_->socket.get(), encode(opening))) died();
}

// Killed rather than waited for, with what weight it may need for that: with that of a job it would
// take long beside a busy owner.
void Mover::end() {
  if (!process_) return;
  process_->socket.reset();
  syscall(SYS_pidfd_send_signal, process_->keeper.pidfd.get(), SIGTERM, nullptr, 0);
  while (waitpid(process_->keeper.id.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_.reset();
}

MoverReport Mover::ask(const MoverTask& task, const std::vector<int>& files) {
  if (!send_message(process_->socket.get(), encode(task), files)) died();
  for (;;) {
    const MoverReport report = hear();
    if (report.kind != MoverReport::Kind::kProgress) return report;
    passed_(report.bytes);
  }
}

bool Mover::must_end() const { return work_.stop || (is_checkpoint_ && !pace_.is_free()); }

void Mover::give_up() {
  end();
  if (work_.stop) throw TaskStopped();
  throw ServerError(ServerError::Kind::kAway, "", "the owner is back");
}

MoverReport Mover::hear() {
  pollfd answer = {process_->socket.get(), POLLIN, 0};
  do {
    if (must_end()) give_up();
  } while (poll(&answer, 1, kLookForStopMs) <= 0);
  const auto message = receive_message(process_->socket.get());
  if (!message) died();
  try {
    return decode_report(message->bytes);
  } catch (const protocol::Damaged&) {
    died();
  }
}

void Mover::died() {
  end();
  work_.moves_here = true;
  log(Severity::warning) << work_.label()
                         << ": the process that moves its files has ended unexpectedly; they are "
                            "moved at normal weight";
  throw ServerError(ServerError::Kind::kAway, "", "the process that moved its files has ended");
}

}  // namespace sublet::client
