// Reads values of a TOML file and checks their types and ranges. Throws DocumentError
// with file, line and column.
#ifndef SUBLET_CLI_BATCH_TOML_READER_H_
#define SUBLET_CLI_BATCH_TOML_READER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/options/toml_document.h"

namespace sublet::cli {

inline constexpr size_t kTextMax = 128 * 1024;  // of an argument or variable, as execve takes them
// The sizes that a job may ask for: parse_bytes reads no larger ones.
inline constexpr uint64_t kBytesEnd = 9'000'000'000'000'000;
inline constexpr const char* kBytesRange = "above 0 and below 9000 TB";

class TomlReader {
 public:
  // `folder`: base of relative paths.
  TomlReader(std::string file, std::string folder)
      : file_(std::move(file)), folder_(std::move(folder)) {}

  using Handler = std::function<void(const TomlMember&)>;
  using Keys = std::vector<std::pair<const char*, Handler>>;

  [[noreturn]] void fail(const TomlValue& at, const std::string& message) const;
  // Throws if `wrong`, a checking function's error text, is not empty.
  void check(const TomlValue& at, const std::string& wrong) const;

  // Calls the handler of each member. For an unknown key, the error suggests the nearest
  // known one. `place`: the table's name, for messages.
  void each_member(const TomlValue& table, const std::string& place, const Keys& known) const;

  const TomlValue& expect(const TomlMember& m, TomlKind kind) const;
  const TomlValue& expect(const TomlValue& v, TomlKind kind, const std::string& what) const;
  const std::string& text(const TomlValue& v, const std::string& what, size_t max = kTextMax) const;
  const std::string& text(const TomlMember& m, size_t max = kTextMax) const;
  int64_t integer(const TomlMember& m, int64_t min, int64_t max) const;
  int64_t duration_ms(const TomlMember& m) const;  // above 0
  uint64_t bytes(const TomlMember& m) const;       // above 0, below kBytesEnd

  const std::string& folder() const { return folder_; }
  std::string where(const TomlValue& v) const;  // "FILE:LINE:COLUMN"

 private:
  [[noreturn]] void unknown(const TomlMember& m, const std::string& place, const Keys& known) const;

  std::string file_;
  std::string folder_;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_BATCH_TOML_READER_H_
