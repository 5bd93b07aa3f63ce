// Senses that simulate an owner in tests and demonstrations: a script played from the
// start, or a control file that may be changed.
#ifndef SUBLET_LOADMON_SENSES_SCRIPTED_H_
#define SUBLET_LOADMON_SENSES_SCRIPTED_H_

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "loadmon/senses/sense.h"

namespace sublet::loadmon {

// A value in a script: "away", "active", the owner's CPU use in cores, or "load" and the
// owner's load average over one minute. The rule is applied to numbers as to measured ones.
struct ScriptedValue {
  protocol::ScriptedOwner owner = protocol::ScriptedOwner::kNone;
  double cpu = -1;
  double load = -1;

  void fill(protocol::PresenceSample* sample) const;
};
// Returns nullopt if it is none of these. Ignores surrounding white space.
std::optional<ScriptedValue> parse_scripted_value(const std::string& word);

struct ScriptLine {
  int64_t at_ns = 0;  // after the start
  ScriptedValue value;
};
// "FILE:LINE: what is wrong".
class ScriptError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// Parses lines of `seconds value`; times must not decrease, # starts a comment. At most
// 100,000 lines. `file` is for messages. Throws ScriptError.
std::vector<ScriptLine> parse_script(const std::string& text, const std::string& file);

// Plays a script. Before its first line the owner is active; its last line remains in
// effect.
class ScriptSense : public Sense {
 public:
  ScriptSense(std::vector<ScriptLine> lines, int64_t start)
      : lines_(std::move(lines)), start_(start) {}
  std::string name() const override { return "script"; }
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;
  bool notice(int64_t now, protocol::PresenceSample* sample) override;
  int64_t next_notice(int64_t now) const override;

 private:
  std::vector<ScriptLine> lines_;
  int64_t start_;
};

// Reads a value from a file whenever that file changes. If it is missing or invalid, the
// sense fails; an empty file (being written) changes nothing.
class ControlSense : public Sense {
 public:
  // Throws OsError if the file's folder cannot be watched.
  explicit ControlSense(const std::string& path);
  std::string name() const override { return "control"; }
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;
  // Names the file, and what it holds.
  std::string problem() const override;
  int handle() const override { return watch_.get(); }
  bool notice(int64_t now, protocol::PresenceSample* sample) override;

 private:
  void drain();
  void read_control();

  std::string path_;
  std::string name_;  // in its folder
  UniqueFd watch_;
  std::optional<ScriptedValue> value_;
  std::string text_;  // that the value was read from; cut
  int error_ = 0;     // errno: it could not be read
  bool changed_ = true;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSES_SCRIPTED_H_
