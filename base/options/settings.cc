#include "base/options/settings.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/files.h"
#include "base/text.h"

namespace sublet {
namespace {

constexpr uint64_t kLargestFile = 1 << 20;

// Errors that last until somebody changes the file or its place. Others (too many open
// files, an I/O error) may be gone at the next start.
bool lasting(int code) {
  switch (code) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case ELOOP:
    case ENAMETOOLONG:
    case EFBIG:
      return true;
    default:
      return false;
  }
}

std::string at(const std::string& file, uint32_t line, uint32_t column) {
  return file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": ";
}

std::string number_text(SettingType type, double number) {
  if (type == SettingType::duration) return format_duration_ms(static_cast<int64_t>(number));
  if (type == SettingType::size || type == SettingType::sizes)
    return format_bytes(static_cast<uint64_t>(number));
  char s[64];
  snprintf(s, sizeof s, "%.15g", number);
  return s;
}

// The allowed values: "a duration such as \"30 s\" from 1 s to 1 h".
std::string expectation(const SettingSpec& spec) {
  static constexpr const char* kForms[] = {
      "true or false",
      "a whole number",
      "a number",
      "a string",
      "a list of strings",
      "a duration such as \"30 s\", \"2 min\" or a number of seconds",
      "a size such as \"64 MiB\" or a number of bytes",
      "a number",
      "a size such as \"64 MiB\" or a number of bytes"};
  std::string s = kForms[static_cast<size_t>(spec.type)];
  if (!spec.choices.empty()) {
    s = "one of";
    for (const std::string& choice : spec.choices) s += " \"" + choice + "\"";
  }
  if (std::isfinite(spec.min)) s += " from " + number_text(spec.type, spec.min);
  if (std::isfinite(spec.max)) s += " to " + number_text(spec.type, spec.max);
  return s;
}

std::string refusal(const SettingSpec& spec, const std::string& key) {
  return "\"" + escape_for_terminal(key) + "\" must be " + expectation(spec);
}

[[noreturn]] void refuse(const SettingSpec& spec) { throw SettingError(refusal(spec, spec.key)); }

// False for NaN.
bool within(const SettingSpec& spec, double number) {
  return number >= spec.min && number <= spec.max;
}

template <typename T>
T number_from(const SettingSpec& spec, std::string_view text) {
  T number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) refuse(spec);
  return number;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Whether it is a table with arbitrary keys.
bool has_names(SettingType type) {
  return type == SettingType::reals || type == SettingType::sizes;
}

std::optional<double> number_of_text(SettingType type, const std::string& text) {
  if (type == SettingType::sizes) {
    const std::optional<uint64_t> bytes = parse_bytes(text);
    return bytes ? std::optional<double>(static_cast<double>(*bytes)) : std::nullopt;
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// One value of such a table, as written in the file.
std::optional<double> number_of_value(SettingType type, const TomlValue& value) {
  if (value.kind == TomlKind::integer || value.kind == TomlKind::real) return value.real;
  if (type != SettingType::sizes || value.kind != TomlKind::text) return std::nullopt;
  return number_of_text(type, value.text);
}

// A string in TOML syntax.
std::string quoted(const std::string& text) {
  std::string s = "\"";
  for (char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) {
      char escaped[8];
      snprintf(escaped, sizeof escaped, "\\u%04x", code);
      s += escaped;
      continue;
    }
    if (c == '"' || c == '\\') s += '\\';
    s += c;
  }
  return s + "\"";
}

// The shortest text that is read as the same number.
std::string shortest(double number) {
  char s[32];
  return {s, std::to_chars(s, s + sizeof s, number).ptr};
}

// "a.b.c" -> "a.b" and "c".
std::pair<std::string, std::string> table_and_name(const std::string& key) {
  const size_t dot = key.rfind('.');
  if (dot == std::string::npos) return {"", key};
  return {key.substr(0, dot), key.substr(dot + 1)};
}

}  // namespace

Settings::Settings(std::vector<SettingSpec> specs) {
  for (SettingSpec& spec : specs) {
    Entry entry;
    entry.spec = spec;
    try {
      if (!has_names(spec.type)) set_from_text(entry, spec.default_value);
    } catch (const SettingError& e) {
      throw std::logic_error(std::string("default of a setting: ") + e.what());
    }
    entry.set = false;
    order_.push_back(spec.key);
    if (!entries_.emplace(spec.key, std::move(entry)).second) {
      throw std::logic_error("setting declared twice: " + spec.key);
    }
  }
}

void Settings::load_file(const std::string& path) {
  std::string text;
  try {
    text = system_files().read_file(path, kLargestFile);
  } catch (const FileError& e) {
    if (!lasting(e.code())) throw;
    throw SettingError(std::string(e.what()) + "; --config must name a settings file");
  }
  load_text(text, path);
}

void Settings::load_text(const std::string& toml, const std::string& file) {
  TomlValue document;
  try {
    document = parse_toml(toml, file);
  } catch (const DocumentError& e) {
    throw SettingError(e.what());
  }
  apply_table(document, "", file);
}

void Settings::apply_table(const TomlValue& table, const std::string& prefix,
                           const std::string& file) {
  for (const TomlMember& member : table.members) {
    const std::string key = prefix + member.key;
    auto known = entries_.find(key);
    if (known != entries_.end() && has_names(known->second.spec.type)) {
      apply_named(known->second, member, file);
      continue;
    }
    if (known != entries_.end()) {
      try {
        known->second = from_toml(known->second, member.value);
        known->second.place = at(file, member.value.line, member.value.column);
      } catch (const SettingError& e) {
        throw SettingError(at(file, member.value.line, member.value.column) + e.what());
      }
      continue;
    }
    const bool is_table = std::any_of(order_.begin(), order_.end(), [&](const std::string& k) {
      return k.starts_with(key + ".");
    });
    const std::string where = at(file, member.line, member.column);
    if (!is_table) throw SettingError(where + unknown(key));
    if (member.value.kind != TomlKind::table) {
      throw SettingError(where + "\"" + key + "\" must be a table");
    }
    apply_table(member.value, key + ".", file);
  }
}

std::string Settings::unknown(const std::string& key) const {
  const std::string near = nearest_word(key, order_);
  return "there is no setting \"" + escape_for_terminal(key) + "\"" +
         (near.empty() ? "; --print-settings lists them all" : "; did you mean \"" + near + "\"?");
}

void Settings::apply_named(Entry& entry, const TomlMember& table, const std::string& file) {
  if (table.value.kind != TomlKind::table) {
    throw SettingError(at(file, table.line, table.column) + "\"" + entry.spec.key +
                       "\" must be a table of " +
                       (entry.spec.type == SettingType::sizes ? "sizes" : "numbers"));
  }
  for (const TomlMember& member : table.value.members) {
    const TomlValue& value = member.value;
    const std::optional<double> number = number_of_value(entry.spec.type, value);
    if (!number || !within(entry.spec, *number)) {
      throw SettingError(at(file, value.line, value.column) +
                         refusal(entry.spec, entry.spec.key + "." + member.key));
    }
    entry.reals[member.key] = *number;
    entry.set = true;
  }
}

Settings::Entry Settings::from_toml(const Entry& old, const TomlValue& value) {
  Entry entry = old;
  const SettingSpec& spec = entry.spec;
  const bool is_integer = value.kind == TomlKind::integer;
  const bool is_number = is_integer || value.kind == TomlKind::real;
  entry.set = true;
  if (spec.type == SettingType::boolean && value.kind == TomlKind::boolean) {
    entry.boolean = value.boolean;
  } else if (spec.type == SettingType::integer && is_integer) {
    entry.integer = value.integer;
  } else if (spec.type == SettingType::real && is_number) {
    entry.real = value.real;
  } else if (spec.type == SettingType::text && value.kind == TomlKind::text) {
    entry.text = value.text;
  } else if (spec.type == SettingType::texts && value.kind == TomlKind::array) {
    entry.texts.clear();
    for (const TomlValue& item : value.items) {
      if (item.kind != TomlKind::text) refuse(spec);
      entry.texts.push_back(item.text);
    }
  } else if ((spec.type == SettingType::duration || spec.type == SettingType::size) &&
             (value.kind == TomlKind::text || is_number)) {
    const std::string number = is_integer ? std::to_string(value.integer) : shortest(value.real);
    set_from_text(entry, value.kind == TomlKind::text ? value.text : number);
  } else {
    refuse(spec);
  }
  check(entry);
  return entry;
}

void Settings::set_from_text(Entry& entry, const std::string& text) {
  const SettingSpec& spec = entry.spec;
  switch (spec.type) {
    case SettingType::boolean:
      if (text != "true" && text != "false") refuse(spec);
      entry.boolean = text == "true";
      break;
    case SettingType::integer:
      entry.integer = number_from<int64_t>(spec, text);
      break;
    case SettingType::real:
      entry.real = number_from<double>(spec, text);
      break;
    case SettingType::text:
      entry.text = text;
      break;
    case SettingType::texts:
      entry.texts = split(text);
      break;
    case SettingType::duration: {
      std::optional<int64_t> ms = parse_duration_ms(text);
      if (!ms) refuse(spec);
      entry.integer = *ms;
      entry.text = text;
      break;
    }
    case SettingType::size: {
      std::optional<uint64_t> bytes = parse_bytes(text);
      if (!bytes) refuse(spec);
      entry.integer = static_cast<int64_t>(*bytes);
      entry.text = text;
      break;
    }
    case SettingType::reals:
    case SettingType::sizes:
      refuse(spec);
  }
  entry.set = true;
  check(entry);
}

void Settings::check(const Entry& entry) {
  const SettingSpec& spec = entry.spec;
  double number = 0;
  switch (spec.type) {
    case SettingType::boolean:
    case SettingType::reals:
    case SettingType::sizes:
      return;
    case SettingType::text:
      if (!spec.choices.empty() &&
          std::find(spec.choices.begin(), spec.choices.end(), entry.text) == spec.choices.end()) {
        refuse(spec);
      }
      return;
    case SettingType::texts:
      number = static_cast<double>(entry.texts.size());
      break;
    case SettingType::real:
      number = entry.real;
      break;
    default:
      number = static_cast<double>(entry.integer);
  }
  if (!within(spec, number)) refuse(spec);
}

void Settings::override_with(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  const std::string key = assignment.substr(0, equals);
  const std::string where = "setting \"" + escape_for_terminal(assignment) + "\": ";
  if (equals == std::string::npos) throw SettingError(where + "write it as KEY=VALUE");
  const std::string text = assignment.substr(equals + 1);
  try {
    if (auto known = entries_.find(key); known != entries_.end()) {
      Entry entry = known->second;
      set_from_text(entry, text);
      entry.place.clear();
      known->second = entry;
      return;
    }
    auto [table, name] = table_and_name(key);
    auto free = entries_.find(table);
    if (free == entries_.end() || !has_names(free->second.spec.type)) {
      throw SettingError(unknown(key));
    }
    const SettingSpec& spec = free->second.spec;
    const std::optional<double> number = number_of_text(spec.type, text);
    if (!number || !within(spec, *number)) throw SettingError(refusal(spec, key));
    free->second.reals[name] = *number;
    free->second.set = true;
  } catch (const SettingError& e) {
    throw SettingError(where + e.what());
  }
}

const Settings::Entry& Settings::get(const std::string& key, SettingType type) const {
  auto known = entries_.find(key);
  if (known == entries_.end() || known->second.spec.type != type) {
    throw std::logic_error("setting not declared with that type: " + key);
  }
  return known->second;
}

bool Settings::boolean(const std::string& key) const {
  return get(key, SettingType::boolean).boolean;
}
int64_t Settings::integer(const std::string& key) const {
  return get(key, SettingType::integer).integer;
}
double Settings::real(const std::string& key) const { return get(key, SettingType::real).real; }
const std::string& Settings::text(const std::string& key) const {
  return get(key, SettingType::text).text;
}
const std::vector<std::string>& Settings::texts(const std::string& key) const {
  return get(key, SettingType::texts).texts;
}
int64_t Settings::duration_ms(const std::string& key) const {
  return get(key, SettingType::duration).integer;
}
uint64_t Settings::size_bytes(const std::string& key) const {
  return static_cast<uint64_t>(get(key, SettingType::size).integer);
}
const std::map<std::string, double>& Settings::reals(const std::string& key) const {
  return get(key, SettingType::reals).reals;
}
const std::map<std::string, double>& Settings::sizes(const std::string& key) const {
  return get(key, SettingType::sizes).reals;
}
SettingError Settings::wrong(const std::vector<std::string>& keys,
                             const std::string& problem) const {
  for (const std::string& key : keys) {
    const std::string& place = entries_.at(key).place;
    if (!place.empty()) return SettingError(place + problem);
  }
  return SettingError(problem);
}

bool Settings::is_set(const std::string& key) const {
  auto known = entries_.find(key);
  if (known == entries_.end()) throw std::logic_error("no such setting: " + key);
  return known->second.set;
}

std::string Settings::to_toml(const Entry& entry) {
  switch (entry.spec.type) {
    case SettingType::boolean:
      return entry.boolean ? "true" : "false";
    case SettingType::integer:
      return std::to_string(entry.integer);
    case SettingType::real:
      return shortest(entry.real);
    case SettingType::texts: {
      std::string s = "[";
      for (const std::string& part : entry.texts) s += (s.size() > 1 ? ", " : "") + quoted(part);
      return s + "]";
    }
    default:
      return quoted(entry.text);
  }
}

std::vector<Settings::Description> Settings::descriptions() const {
  std::vector<Description> all;
  for (const std::string& key : order_) {
    Entry entry;
    entry.spec = entries_.at(key).spec;
    const bool free = has_names(entry.spec.type);
    if (!free) set_from_text(entry, entry.spec.default_value);
    all.push_back({free ? key + ".NAME" : key, entry.spec.doc, expectation(entry.spec),
                   free ? "" : to_toml(entry)});
  }
  return all;
}

void Settings::print_named(const Entry& entry, std::ostream& out) {
  out << "# " << entry.spec.doc
      << "\n# NAME = " << (entry.spec.type == SettingType::sizes ? "\"10 GiB\"" : "1.0") << "\n";
  for (const auto& [name, number] : entry.reals)
    out << quoted(name) << " = " << shortest(number) << "\n";
  out << "\n";
}

void Settings::print(std::ostream& out) const {
  std::vector<std::string> tables = {""};  // keys without a table must come first
  for (const std::string& key : order_) {
    const bool free = has_names(entries_.at(key).spec.type);
    const std::string table = free ? key : table_and_name(key).first;
    if (std::find(tables.begin(), tables.end(), table) == tables.end()) tables.push_back(table);
  }
  for (const std::string& table : tables) {
    if (!table.empty()) out << "[" << table << "]\n";
    for (const std::string& key : order_) {
      const Entry& entry = entries_.at(key);
      if (has_names(entry.spec.type)) {
        if (key == table) print_named(entry, out);
      } else if (table_and_name(key).first == table) {
        out << "# " << entry.spec.doc << "\n# Value: " << expectation(entry.spec) << ".\n"
            << table_and_name(key).second << " = " << to_toml(entry) << "\n\n";
      }
    }
  }
}

}  // namespace sublet
