#include "base/options/toml_document.h"

#include <stdexcept>

// toml++ has assertions that malformed text can violate ("[<" at the start of a line), and
// with NDEBUG relies on them: either way the process would crash.
[[noreturn]] static void toml_broken(const char* what) { throw std::logic_error(what); }
#undef NDEBUG
#define TOML_ASSERT(expr) (static_cast<bool>(expr) ? static_cast<void>(0) : toml_broken(#expr))
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/options/toml_problem.h"

namespace sublet {
namespace {

std::string date_text(const toml::node& node) {
  std::ostringstream out;
  if (const auto* date = node.as_date()) out << **date;
  if (const auto* time = node.as_time()) out << **time;
  if (const auto* both = node.as_date_time()) out << **both;
  return out.str();
}

TomlValue convert(const toml::node& node);

void convert_table(const toml::table& table, TomlValue& value) {
  value.kind = TomlKind::table;
  for (const auto& [key, inner] : table) {
    value.members.push_back({std::string(key.str()), key.source().begin.line,
                             key.source().begin.column, convert(inner)});
  }
  // toml++ sorts by name; restore the order of the file.
  std::stable_sort(value.members.begin(), value.members.end(),
                   [](const TomlMember& a, const TomlMember& b) {
                     return std::pair(a.line, a.column) < std::pair(b.line, b.column);
                   });
}

TomlValue convert(const toml::node& node) {
  TomlValue value;
  value.line = node.source().begin.line;
  value.column = node.source().begin.column;
  if (const auto* table = node.as_table()) {
    convert_table(*table, value);
  } else if (const auto* array = node.as_array()) {
    value.kind = TomlKind::array;
    for (const toml::node& item : *array) value.items.push_back(convert(item));
  } else if (const auto* text = node.as_string()) {
    value.kind = TomlKind::text;
    value.text = **text;
  } else if (const auto* integer = node.as_integer()) {
    value.kind = TomlKind::integer;
    value.integer = **integer;
    value.real = static_cast<double>(**integer);
  } else if (const auto* real = node.as_floating_point()) {
    value.kind = TomlKind::real;
    value.real = **real;
  } else if (const auto* boolean = node.as_boolean()) {
    value.kind = TomlKind::boolean;
    value.boolean = **boolean;
  } else {
    value.kind = TomlKind::date;
    value.text = date_text(node);
  }
  return value;
}

}  // namespace

DocumentError::DocumentError(const std::string& file, uint32_t line, uint32_t column,
                             const std::string& message)
    : std::runtime_error(file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " +
                         message),
      line_(line),
      column_(column) {}

const char* toml_kind_name(TomlKind kind) {
  switch (kind) {
    case TomlKind::boolean:
      return "true or false";
    case TomlKind::integer:
      return "a whole number";
    case TomlKind::real:
      return "a number with a point";
    case TomlKind::text:
      return "a string";
    case TomlKind::date:
      return "a date or time";
    case TomlKind::array:
      return "a list";
    case TomlKind::table:
      return "a table";
  }
  return "a value";
}

const TomlValue* TomlValue::find(std::string_view key) const {
  for (const TomlMember& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

TomlValue parse_toml(std::string_view text, const std::string& file) {
  try {
    return convert(toml::parse(text));
  } catch (const toml::parse_error& e) {
    const toml::source_position where = e.source().begin;
    throw DocumentError(file, where.line, where.column,
                        toml_problem(text, where.line, where.column, e.description()));
  } catch (const std::logic_error&) {
    throw DocumentError(file, 1, 1, toml_problem(text, 1, 1, ""));
  }
}

}  // namespace sublet
