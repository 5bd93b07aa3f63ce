// Reads a job's output, and follows it from attempt to attempt until the job has ended.
// One thread.
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
  uint32_t attempt = 0;         // 0: the newest, and when following also later ones
  std::vector<FileKind> kinds;  // FileKind::kStdout, FileKind::kStderr, or both
  bool follow = false;
  std::optional<uint64_t> tail;  // last lines of the existing text; unset: all
};

// Receives the text.
class LogOutput {
 public:
  virtual ~LogOutput() = default;
  // The following text is this attempt's. Empty machine: the attempt does not exist yet;
  // number 0: the job has ended without one.
  virtual void attempt(uint32_t number, const std::string& machine) = 0;
  virtual void text(FileKind kind, uint64_t offset, const std::string& text) = 0;
  // The end of this attempt's stream; cut: it exceeded its limit.
  virtual void end(FileKind kind, bool cut) = 0;
  // A message for the user, safe to show.
  virtual void note(const std::string& sentence) = 0;
};

class LogReader {
 public:
  using Pause = std::function<void(std::chrono::milliseconds)>;
  LogReader(LogCalls& calls, LogOutput& output, LogRequest request, Pause pause);

  // Returns when all existing text has been read; when following, at the end of the job
  // (or of request.attempt). Returns the ended job if it was followed to its end. Throws
  // PoolError; when following, not if server or machine are unreachable for less than
  // ten minutes.
  std::optional<JobDetail> run();

 private:
  struct Stream {
    FileKind kind = FileKind::kStdout;
    uint64_t offset = 0;
    bool ended = false;
    bool gone = false;  // its last text is not kept
  };

  void read_what_is_there(Stream& stream);
  void follow_attempt();
  // Returns false if the job has ended with this attempt.
  bool go_to_next_attempt(const JobDetail& job);
  // Reads the next piece. Returns false if there was no text.
  bool step(Stream& stream, int64_t hold_ms);
  // nullopt: the attempt has ended, and its text is not kept.
  std::optional<LogPart> ask(const Stream& stream, int64_t hold_ms);
  LogPart ask_until_heard(const Stream& stream, int64_t hold_ms);
  void announce(const LogPart& part);
  // Makes the call; when following, repeats it while the other end is unreachable.
  template <typename Call>
  auto patiently(Call call) -> decltype(call());

  LogCalls& calls_;
  LogOutput& output_;
  const LogRequest request_;
  const Pause pause_;
  uint32_t attempt_;
  std::vector<Stream> streams_;
  std::optional<std::string> last_lines_;  // set while only the last lines are collected
  std::optional<std::pair<uint32_t, std::string>> announced_;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_COMMANDS_LOG_READING_H_
