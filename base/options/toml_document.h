// A TOML text as a plain tree in which all values have a line and column, for use in
// error messages.
#ifndef SUBLET_BASE_OPTIONS_TOML_DOCUMENT_H_
#define SUBLET_BASE_OPTIONS_TOML_DOCUMENT_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sublet {

// what() is "FILE:LINE:COLUMN: message".
class DocumentError : public std::runtime_error {
 public:
  DocumentError(const std::string& file, uint32_t line, uint32_t column,
                const std::string& message);
  uint32_t line() const { return line_; }
  uint32_t column() const { return column_; }

 private:
  uint32_t line_;
  uint32_t column_;
};

enum class TomlKind { boolean, integer, real, text, date, array, table };

// "a whole number", "a string", ...: for error messages.
const char* toml_kind_name(TomlKind kind);

struct TomlMember;

struct TomlValue {
  TomlKind kind = TomlKind::table;
  uint32_t line = 0;  // from 1
  uint32_t column = 0;
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;                  // also set for integers
  std::string text;                 // also the written form of a date
  std::vector<TomlValue> items;     // of an array
  std::vector<TomlMember> members;  // of a table, in the file's order

  // The member's value, or nullptr.
  const TomlValue* find(std::string_view key) const;
};

struct TomlMember {
  std::string key;
  uint32_t line = 0;  // of the key
  uint32_t column = 0;
  TomlValue value;
};

// The root table. `file` is for messages only. Throws DocumentError.
TomlValue parse_toml(std::string_view text, const std::string& file);

}  // namespace sublet

#endif  // SUBLET_BASE_OPTIONS_TOML_DOCUMENT_H_
