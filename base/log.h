// The log: log(Severity::info) << "machine " << name << " joined"; writes one
// line. A separate thread writes the lines from a queue of fixed size, so callers never
// wait for a disk; lines that do not fit are dropped, counted and reported. Any thread
// may log, even before log_start() (then directly to stderr). Not for signal handlers
// nor the eviction path.
//
// A line: instant (UTC, ms), severity, component, message. Control characters
// are escaped, so that an untrusted string cannot forge a second line.
#ifndef SUBLET_BASE_LOG_H_
#define SUBLET_BASE_LOG_H_

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

namespace sublet {

enum class Severity { debug, info, warning, error };

const char* severity_name(Severity severity);
// None unless it is one of debug, info, warning, error.
std::optional<Severity> severity_from(const std::string& name);

struct LogSettings {
  std::string component = {};  // "server", "client", ...
  std::string file = {};       // empty: stderr
  Severity level = Severity::info;
  uint64_t rotate_bytes = 10 << 20;  // then FILE becomes FILE.1, FILE.1 becomes FILE.2
  uint32_t keep = 5;                 // rotated files kept in addition to the current one
};

// Capacity of the queue (fixed: a template argument of Boost.Log).
inline constexpr uint32_t kLogQueueRecords = 8192;

// Throws OsError if the file cannot be opened. log_start and log_stop must be called
// from one thread (main). The writing thread blocks all signals.
void log_start(const LogSettings& settings);
// Writes the queued lines and stops; later lines go to stderr.
void log_stop();
void log_level(Severity level);
// Lines lost since the process started: the queue was full or writing failed.
uint64_t log_dropped();
bool log_enabled(Severity severity);
void log_write(Severity severity, const std::string& message);

class LogLine {
 public:
  explicit LogLine(Severity severity) : severity_(severity) {
    if (log_enabled(severity)) stream_.emplace();
  }
  LogLine(LogLine&&) = delete;
  ~LogLine() {
    if (stream_) log_write(severity_, stream_->str());
  }
  template <typename T>
  LogLine& operator<<(const T& value) {
    if (stream_) *stream_ << value;
    return *this;
  }

 private:
  Severity severity_;
  std::optional<std::ostringstream> stream_;
};

inline LogLine log(Severity severity) { return LogLine(severity); }

}  // namespace sublet

#endif  // SUBLET_BASE_LOG_H_
