#include "cli/batch/toml_reader.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace sublet::cli {

void TomlReader::fail(const TomlValue& at, const std::string& message) const {
  throw DocumentError(file_, at.line, at.column, message);
}
void TomlReader::check(const TomlValue& at, const std::string& wrong) const {
  if (!wrong.empty()) fail(at, wrong);
}

void TomlReader::each_member(const TomlValue& table, const std::string& place,
                             const Keys& known) const {
  for (const TomlMember& m : table.members) {
    auto key =
        std::find_if(known.begin(), known.end(), [&](const auto& k) { return m.key == k.first; });
    if (key == known.end()) unknown(m, place, known);
    key->second(m);
  }
}

const TomlValue& TomlReader::expect(const TomlMember& m, TomlKind kind) const {
  return expect(m.value, kind, m.key);
}
const TomlValue& TomlReader::expect(const TomlValue& v, TomlKind kind,
                                    const std::string& what) const {
  if (v.kind != kind)
    fail(v, what + " must be " + toml_kind_name(kind) + ", not " + toml_kind_name(v.kind));
  return v;
}

const std::string& TomlReader::text(const TomlValue& v, const std::string& what, size_t max) const {
  const std::string& s = expect(v, TomlKind::text, what).text;
  if (s.find('\0') != std::string::npos) fail(v, what + " may not contain a NUL character");
  if (s.size() > max) fail(v, what + " is longer than " + std::to_string(max) + " bytes");
  return s;
}
const std::string& TomlReader::text(const TomlMember& m, size_t max) const {
  return text(m.value, m.key, max);
}

int64_t TomlReader::integer(const TomlMember& m, int64_t min, int64_t max) const {
  int64_t n = expect(m, TomlKind::integer).integer;
  if (n < min || n > max)
    fail(m.value,
         m.key + " must be between " + std::to_string(min) + " and " + std::to_string(max));
  return n;
}

int64_t TomlReader::duration_ms(const TomlMember& m) const {
  std::optional<int64_t> ms;
  if (m.value.kind == TomlKind::integer) ms = parse_duration_ms(std::to_string(m.value.integer));
  if (m.value.kind == TomlKind::text) ms = parse_duration_ms(m.value.text);
  if (!ms || *ms == 0)
    fail(m.value, m.key + " must be a duration such as \"90 s\" or \"1 h 30 min\", above 0");
  return *ms;
}

uint64_t TomlReader::bytes(const TomlMember& m) const {
  std::optional<uint64_t> n;
  if (m.value.kind == TomlKind::integer && m.value.integer > 0)
    n = static_cast<uint64_t>(m.value.integer);
  if (m.value.kind == TomlKind::text) n = parse_bytes(m.value.text);
  if (!n || *n == 0 || *n >= kBytesEnd)
    fail(m.value, m.key + " must be a size such as \"2 GiB\" or \"500 MiB\", " + kBytesRange);
  return *n;
}

std::string TomlReader::where(const TomlValue& v) const {
  return file_ + ":" + std::to_string(v.line) + ":" + std::to_string(v.column);
}

void TomlReader::unknown(const TomlMember& m, const std::string& place, const Keys& known) const {
  std::vector<std::string> names;
  for (const auto& k : known) names.emplace_back(k.first);
  std::string near = nearest_word(m.key, names);
  std::string message = "unknown key '" + escape_for_terminal(m.key) + "' in " + place;
  if (near.empty()) {
    message += "; known are ";
    for (size_t i = 0; i < names.size(); ++i) message += (i == 0 ? "" : ", ") + names[i];
  } else {
    message += "; did you mean '" + near + "'?";
  }
  throw DocumentError(file_, m.line, m.column, message);
}

}  // namespace sublet::cli
