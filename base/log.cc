#include "base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/log/attributes/attribute_set.hpp>
#include <boost/log/attributes/constant.hpp>
#include <boost/log/attributes/value_visitation.hpp>
#include <boost/log/core.hpp>
#include <boost/log/sinks/async_frontend.hpp>
#include <boost/log/sinks/basic_sink_backend.hpp>
#include <boost/log/sinks/bounded_fifo_queue.hpp>
#include <boost/log/sinks/drop_on_overflow.hpp>
#include <boost/log/utility/exception_handler.hpp>
#include <boost/smart_ptr/make_shared_object.hpp>
#include <boost/smart_ptr/shared_ptr.hpp>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/os_error.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace sublet {
namespace {

namespace logging = boost::log;
namespace sinks = boost::log::sinks;

// Longer messages are truncated, so that one cannot fill the disk.
constexpr size_t kLongestMessage = 8192;
// While lines are being dropped continuously, this is reported once per interval.
constexpr int64_t kReportEveryNs = 1'000'000'000;
constexpr long kGatherNs = 2'000'000;
constexpr uint64_t kMostGathered = 64 << 10;

struct Record {
  int64_t utc_us;
  Severity severity;
  std::string message;
};

std::atomic<int> least_severity{static_cast<int>(Severity::info)};
std::atomic<uint64_t> dropped{0};
// Upper bound of the records still queued since the last overflow.
std::atomic<int64_t> overflow_backlog{0};

// Called by the queue, under its lock, for every record that does not fit and for every
// record that is removed.
class CountDrops : public sinks::drop_on_overflow {
 public:
  template <typename Lock>
  static bool on_overflow(const logging::record_view&, Lock&) {
    ++dropped;
    overflow_backlog = kLogQueueRecords;
    return false;
  }
  static void on_queue_space_available() {
    if (overflow_backlog > 0) --overflow_backlog;
  }
};

std::string line_of(const Record& record, const std::string& component) {
  std::string line = format_instant_ms(record.utc_us) + " " + severity_name(record.severity) + " " +
                     component + ": ";
  line += escape_for_terminal(std::string_view(record.message).substr(0, kLongestMessage));
  if (record.message.size() > kLongestMessage) {
    line += "… (" + format_bytes(record.message.size()) + ")";
  }
  return line + "\n";
}

// What could not be written.
std::string_view write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return text;
}

uint64_t lines_in(std::string_view text) {
  return static_cast<uint64_t>(std::ranges::count(text, '\n'));
}

// Writes to a rotating file or to stderr, all that it has consumed at each flush(). Used only by
// the writing thread (and by log_stop after that thread has ended).
class Backend
    : public sinks::basic_sink_backend<
          sinks::combine_requirements<sinks::synchronized_feeding, sinks::flushing>::type> {
 public:
  explicit Backend(LogSettings settings) : settings_(std::move(settings)), reported_(dropped) {
    if (!settings_.file.empty()) open();
  }

  void consume(const logging::record_view& view) {
    logging::visit<Record>("Record", view, [this](const Record& record) { gather(record); });
    report_if_due();
  }

  void flush() {
    write_gathered();
    report_if_due();
  }

  // No more lines come.
  void finish() {
    write_gathered();
    if (dropped != reported_) report();
  }

 private:
  void open() {
    fd_.reset(::open(settings_.file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
    if (!fd_.valid()) throw OsError(errno, "write the log", settings_.file);
    struct stat st {};
    fstat(fd_.get(), &st);
    rotates_ = S_ISREG(st.st_mode);
    size_ = static_cast<uint64_t>(st.st_size);
  }

  // FILE.4 becomes FILE.5, ... FILE becomes FILE.1, and a new FILE is created. A
  // failed rename is ignored: a log that is too long is better than none.
  void rotate() {
    const auto name = [this](uint32_t n) {
      return n == 0 ? settings_.file : settings_.file + "." + std::to_string(n);
    };
    if (settings_.keep == 0) unlink(settings_.file.c_str());
    for (uint32_t n = settings_.keep; n > 0; --n) {
      std::rename(name(n - 1).c_str(), name(n).c_str());
    }
    fd_.reset();
  }

  void try_to_open() {
    try {
      open();
    } catch (const OsError&) {
      // The next line tries again.
    }
  }

  // Returns how many lines could not be written.
  uint64_t write_lines(const std::string& lines) {
    if (settings_.file.empty()) return lines_in(write_whole(STDERR_FILENO, lines));
    if (fd_.valid() && rotates_ && size_ > 0 && size_ + lines.size() > settings_.rotate_bytes) {
      rotate();
    }
    if (!fd_.valid()) try_to_open();
    if (!fd_.valid()) return lines_in(lines);
    size_ += lines.size();
    // A line of which a part was written is ended first.
    const bool ended = !torn_ || write_whole(fd_.get(), "\n").empty();
    const uint64_t lost = lines_in(ended ? write_whole(fd_.get(), lines) : lines);
    torn_ = lost > 0;  // on a full disk part of one may have been written
    return lost;
  }

  void gather(const Record& record) {
    const std::string line = line_of(record, settings_.component);
    const bool turns_over =
        rotates_ && size_ + gathered_.size() + line.size() > settings_.rotate_bytes;
    if (turns_over || gathered_.size() > kMostGathered) write_gathered();
    gathered_ += line;
  }

  void write_gathered() {
    if (gathered_.empty()) return;
    std::string lines;
    lines.swap(gathered_);
    dropped += write_lines(lines);
  }

  void report_if_due() {
    if (dropped == reported_) return;
    const int64_t now = system_clock().boot_ns();
    if (losing_since_ns_ == 0) losing_since_ns_ = now;
    if (overflow_backlog == 0 || now - losing_since_ns_ >= kReportEveryNs) report();
  }

  void report() {
    write_gathered();
    const uint64_t now = dropped;
    losing_since_ns_ = 0;
    const Record record{system_clock().utc_us(), Severity::warning,
                        std::to_string(now - reported_) + " lines of this log were lost"};
    if (write_lines(line_of(record, settings_.component)) == 0) reported_ = now;
  }

  const LogSettings settings_;
  UniqueFd fd_;
  bool rotates_ = false;
  bool torn_ = false;
  uint64_t size_ = 0;
  std::string gathered_;
  uint64_t reported_;
  int64_t losing_since_ns_ = 0;  // 0: all losses have been reported
};

using Queue = sinks::bounded_fifo_queue<kLogQueueRecords, CountDrops>;
using Sink = sinks::asynchronous_sink<Backend, Queue>;

// The writing thread. Lines come in bursts: it gathers what comes within a moment, since to wake up
// for each costs more than to write it.
class Writer {
 public:
  explicit Writer(boost::shared_ptr<Sink> sink)
      : sink_(std::move(sink)), thread_([this] { run(); }) {}
  // Writes what is queued.
  ~Writer() {
    stopping_ = true;
    wake();
    thread_.join();
    write_queued();
    guarded([this] { sink_->locked_backend()->finish(); });
  }
  // After a line was queued. Any thread.
  void wake() {
    if (awake_.exchange(1) == 0) awake_.notify_one();
  }
  const boost::shared_ptr<Sink>& sink() const { return sink_; }

 private:
  void run() {
    while (!stopping_) {
      awake_.wait(0);
      const timespec moment = {0, kGatherNs};
      if (!stopping_) nanosleep(&moment, nullptr);
      awake_ = 0;  // whoever queues a line from now on wakes it again
      write_queued();
    }
  }
  // Not by the sink's flush(), during which who queues a line would wait.
  void write_queued() {
    guarded([this] {
      sink_->feed_records();
      sink_->locked_backend()->flush();
    });
  }
  // Without memory lines are lost, and nothing else.
  static void guarded(const std::function<void()>& write) {
    try {
      write();
    } catch (const std::exception&) {
      ++dropped;
    }
  }

  const boost::shared_ptr<Sink> sink_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> awake_{0};
  std::thread thread_;
};

// Shared for logging, exclusive for start and stop.
std::shared_mutex mutex;
std::unique_ptr<Writer> writer;

void write_now(const Record& record) {
  dropped += lines_in(write_whole(STDERR_FILENO, line_of(record, program_invocation_short_name)));
}

}  // namespace

const char* severity_name(Severity severity) {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  return kNames[static_cast<size_t>(severity)];
}

std::optional<Severity> severity_from(const std::string& name) {
  for (Severity s : {Severity::debug, Severity::info, Severity::warning, Severity::error}) {
    if (name == severity_name(s)) return s;
  }
  return std::nullopt;
}

void log_start(const LogSettings& settings) {
  log_stop();
  constexpr bool kOwnThread = false;
  auto sink = boost::make_shared<Sink>(boost::make_shared<Backend>(settings), kOwnThread);
  sink->set_exception_handler(logging::nop());
  least_severity = static_cast<int>(settings.level);
  // The new thread inherits this mask, in which all signals are blocked.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  auto replacement = std::make_unique<Writer>(sink);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  std::unique_lock lock(mutex);
  writer = std::move(replacement);
  logging::core::get()->add_sink(sink);
}

void log_stop() {
  std::unique_ptr<Writer> old;
  std::unique_lock lock(mutex);
  old.swap(writer);
  if (old) logging::core::get()->remove_sink(old->sink());
  lock.unlock();
}

void log_level(Severity level) { least_severity = static_cast<int>(level); }
uint64_t log_dropped() { return dropped; }
bool log_enabled(Severity severity) { return static_cast<int>(severity) >= least_severity; }

void log_write(Severity severity, const std::string& message) {
  Record record{system_clock().utc_us(), severity, message};
  std::shared_lock lock(mutex);
  if (!writer) {
    lock.unlock();
    write_now(record);
    return;
  }
  logging::attribute_set attributes;
  attributes.insert("Record", logging::attributes::make_constant(std::move(record)));
  logging::record open = logging::core::get()->open_record(attributes);
  if (!open) return;
  logging::core::get()->push_record(std::move(open));
  writer->wake();
}

}  // namespace sublet
