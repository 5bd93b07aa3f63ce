#include "loadmon/senses/scripted.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/files.h"
#include "base/os_error.h"
#include "base/text.h"

namespace sublet::loadmon {
namespace {
constexpr size_t kMostLines = 100'000;
constexpr double kMostSeconds = 1e9;
constexpr double kMostCores = 1e6;
constexpr size_t kLongestValue = 64;  // in a control file, in bytes
constexpr int kMostReads = 16;        // of 4 KiB of events at a time
constexpr const char* kValues = "`away`, `active`, a number of cores, or `load` and a number";

// Parses the whole word as a number from 0 to `most`.
std::optional<double> parse_number(const std::string& word, double most) {
  // strtod alone would accept "inf", "0x1p3" and "1e3", which a script does not need.
  if (word.empty() || word.find_first_not_of("0123456789.") != std::string::npos)
    return std::nullopt;
  char* end;
  const double number = strtod(word.c_str(), &end);
  if (*end != 0 || !std::isfinite(number) || number > most) return std::nullopt;
  return number;
}

std::string trimmed(const std::string& text) {
  const size_t from = text.find_first_not_of(" \t\r\n");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}
}  // namespace

void ScriptedValue::fill(protocol::PresenceSample* sample) const {
  sample->scripted = owner;
  sample->cpu = cpu;
  sample->load[0] = load;
}

std::optional<ScriptedValue> parse_scripted_value(const std::string& word) {
  const std::string value = trimmed(word);
  if (value == "away") return ScriptedValue{protocol::ScriptedOwner::kAway};
  if (value == "active") return ScriptedValue{protocol::ScriptedOwner::kActive};
  const bool is_load = value.starts_with("load ");
  const std::optional<double> number =
      parse_number(is_load ? trimmed(value.substr(5)) : value, kMostCores);
  if (!number) return std::nullopt;
  ScriptedValue scripted;
  (is_load ? scripted.load : scripted.cpu) = *number;
  return scripted;
}

std::vector<ScriptLine> parse_script(const std::string& text, const std::string& file) {
  std::vector<ScriptLine> lines;
  std::istringstream in(text);
  std::string line;
  for (size_t number = 1; std::getline(in, line); ++number) {
    const auto fail = [&](const std::string& what) {
      throw ScriptError(file + ":" + std::to_string(number) + ": " + what);
    };
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (lines.size() == kMostLines) fail("more than " + std::to_string(kMostLines) + " lines");
    const size_t gap = line.find_first_of(" \t");
    const std::optional<double> seconds = parse_number(line.substr(0, gap), kMostSeconds);
    if (!seconds) fail("a line must be `seconds value`, seconds from 0 to 1000000000");
    const std::optional<ScriptedValue> value =
        parse_scripted_value(gap == std::string::npos ? "" : line.substr(gap));
    if (!value) fail(std::string("the value must be ") + kValues);
    const auto at = static_cast<int64_t>(*seconds * 1e9);
    if (!lines.empty() && at < lines.back().at_ns) fail("times must not decrease");
    lines.push_back({at, *value});
  }
  if (lines.empty()) throw ScriptError(file + ": has no line `seconds value`");
  return lines;
}

bool ScriptSense::sample(int64_t now, const JobsEffect& /*jobs*/,
                         protocol::PresenceSample* sample) {
  return notice(now, sample);
}

bool ScriptSense::notice(int64_t now, protocol::PresenceSample* sample) {
  const auto next = std::upper_bound(
      lines_.begin(), lines_.end(), now - start_,
      [](int64_t elapsed, const ScriptLine& line) { return elapsed < line.at_ns; });
  if (next == lines_.begin()) {
    sample->scripted = protocol::ScriptedOwner::kActive;
  } else {
    std::prev(next)->value.fill(sample);
  }
  return true;
}

int64_t ScriptSense::next_notice(int64_t now) const {
  const auto next = std::upper_bound(
      lines_.begin(), lines_.end(), now - start_,
      [](int64_t elapsed, const ScriptLine& line) { return elapsed < line.at_ns; });
  return next == lines_.end() ? kNever : start_ + next->at_ns;
}

ControlSense::ControlSense(const std::string& path)
    : path_(path),
      name_(path.substr(path.rfind('/') + 1)),
      watch_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  // Of the folder only names are watched, because the file may be replaced or created later, and
  // others may be written to all the time.
  const std::string folder = folder_of(path);
  if (!watch_.valid() ||
      inotify_add_watch(watch_.get(), folder.c_str(),
                        IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE) < 0) {
    throw OsError(errno, "watch", folder);
  }
}

void ControlSense::drain() {
  alignas(inotify_event) char events[4096];
  for (int reads = 0; reads < kMostReads; ++reads) {
    const ssize_t got = read(watch_.get(), events, sizeof events);
    if (got <= 0) return;
    for (const char* at = events; at < events + got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof *event + event->len;
      // Events of the file itself have no name.
      changed_ = changed_ || event->len == 0 || name_ == event->name;
    }
  }
}

void ControlSense::read_control() {
  changed_ = false;
  // Before it is read, so that no change is missed. It may be another file of this name now.
  inotify_add_watch(watch_.get(), path_.c_str(), IN_MODIFY | IN_CLOSE_WRITE);
  // Non-blocking: a FIFO must not block the monitor.
  const UniqueFd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char text[kLongestValue];
  const ssize_t got = fd.valid() ? read(fd.get(), text, sizeof text) : -1;
  if (got == 0 && value_) return;
  error_ = got < 0 ? errno : 0;
  text_.assign(text, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  value_ = parse_scripted_value(text_);
}

std::string ControlSense::problem() const {
  if (error_ != 0) return OsError(error_, "read", path_).what();
  const std::string word = trimmed(text_);
  if (word.empty()) return path_ + ": a value is missing: " + kValues;
  return path_ + ": '" + escape_for_terminal(word) +
         (text_.size() == kLongestValue ? "...' is not " : "' is not ") + kValues;
}

bool ControlSense::sample(int64_t now, const JobsEffect& /*jobs*/,
                          protocol::PresenceSample* sample) {
  return notice(now, sample);
}

bool ControlSense::notice(int64_t /*now*/, protocol::PresenceSample* sample) {
  drain();
  if (changed_) read_control();
  if (!value_) return false;
  value_->fill(sample);
  return true;
}

}  // namespace sublet::loadmon
