// Reads what a job writes, and follows it from attempt to attempt, from machine
// to machine, until the job has ended. One thread.
#ifndef SUBLET_CLI_COMMANDS_LOG_READING_H_
#define SUBLET_CLI_COMMANDS_LOG_READING_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/pool/pool.h"

namespace sublet::cli {

struct LogRequest {
  uint64_t job = 0;
  uint32_t attempt = 0;         // 0: the newest, and when following those after it
  std::vector<FileKind> kinds;  // FileKind::kStdout, FileKind::kStderr, or both
  bool follow = false;
  std::optional<uint64_t> tail;  // lines of what is there already; unset: all
};

// Takes what is read.
class LogOutput {
 public:
  virtual ~LogOutput() = default;
  // What follows is this attempt's. machine empty: it is not made yet; number 0:
  // the job has ended without one.
  virtual void attempt(uint32_t number, const std::string& machine) = 0;
  virtual void text(FileKind kind, uint64_t offset, const std::string& text) = 0;
  // The end of this attempt's stream; cut: it grew over its bound.
  virtual void end(FileKind kind, bool cut) = 0;
  // A sentence for people, safe to show.
  virtual void note(const std::string& sentence) = 0;
};

class LogReader {
 public:
  using Pause = std::function<void(std::chrono::milliseconds)>;
  LogReader(LogCalls& calls, LogOutput& output, LogRequest request, Pause pause);

  // Returns when all that is there has been read; when following, with the end of
  // the job (or of request.attempt). The job as it ended, if it was followed so
  // far. Throws PoolError; when following, not for a server or a machine that is
  // away for less than ten minutes.
  std::optional<JobDetail> run();

 private:
  struct Stream {
    FileKind kind = FileKind::kStdout;
    uint64_t offset = 0;
    bool ended = false;
    bool gone = false;  // with the last of its text
  };

  void read_what_is_there(Stream& stream);
  void follow_attempt();
  // False: the job has ended with this one.
  bool go_to_next_attempt(const JobDetail& job);
  // Reads on. False: there was no text.
  bool step(Stream& stream, int64_t hold_ms);
  // Nothing: the attempt has ended, and nothing is kept of it.
  std::optional<LogPart> ask(const Stream& stream, int64_t hold_ms);
  LogPart ask_until_heard(const Stream& stream, int64_t hold_ms);
  void announce(const LogPart& part);
  // Makes the call; when following, again while the other end is away.
  template <typename Call>
  auto patiently(Call call) -> decltype(call());

  LogCalls& calls_;
  LogOutput& output_;
  const LogRequest request_;
  const Pause pause_;
  uint32_t attempt_;
  std::vector<Stream> streams_;
  std::optional<std::string> last_lines_;  // while only these are wanted
  std::optional<std::pair<uint32_t, std::string>> announced_;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_COMMANDS_LOG_READING_H_
