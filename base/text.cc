#include "base/text.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>

namespace sublet {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Both digits at text[i], or -1.
int hex_pair(std::string_view text, size_t i) {
  if (i + 2 > text.size()) return -1;
  int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

struct CodePoint {
  char32_t value;
  size_t length;  // bytes; 1 when invalid
  bool valid;
};

// The code point that begins at bytes[i]. Overlong forms, surrogates and
// anything above U+10FFFF are invalid.
CodePoint code_point(std::string_view bytes, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(bytes[k]); };
  const unsigned char lead = byte(i);
  if (lead < 0x80) return {lead, 1, true};
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  const CodePoint invalid{lead, 1, false};
  if (lead < 0xc2 || lead > 0xf4 || i + length > bytes.size()) return invalid;
  char32_t value = lead & (0x7f >> length);
  for (size_t k = i + 1; k < i + length; ++k) {
    if ((byte(k) & 0xc0) != 0x80) return invalid;
    value = value << 6 | (byte(k) & 0x3f);
  }
  static constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) {
    return invalid;
  }
  return {value, length, true};
}

bool in_ranges(char32_t c, const std::pair<char32_t, char32_t>* first,
               const std::pair<char32_t, char32_t>* last) {
  return std::any_of(first, last,
                     [c](const auto& range) { return c >= range.first && c <= range.second; });
}

size_t width_of(const CodePoint& c) {
  static constexpr std::pair<char32_t, char32_t> kNone[] = {
      {0x300, 0x36f},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
      {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}};
  static constexpr std::pair<char32_t, char32_t> kWide[] = {
      {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},  {0x3400, 0x4dbf},
      {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xac00, 0xd7a3},  {0xf900, 0xfaff},
      {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f},
      {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
  if (!c.valid || c.value < 0x300) return 1;
  if (in_ranges(c.value, std::begin(kNone), std::end(kNone))) return 0;
  return in_ranges(c.value, std::begin(kWide), std::end(kWide)) ? 2 : 1;
}

// Code points that move the cursor, split lines or reorder the text.
bool is_unsafe(char32_t c) {
  static constexpr std::pair<char32_t, char32_t> kUnsafe[] = {
      {0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},  {0x200b, 0x200f},
      {0x2028, 0x202e}, {0x2060, 0x2069}, {0xfeff, 0xfeff}};
  return in_ranges(c, std::begin(kUnsafe), std::end(kUnsafe));
}

struct Unit {
  std::string_view name;
  double factor;
};

// Removes the number at the start of `text` (digits, perhaps a fraction) and returns it.
std::optional<double> take_number(std::string_view& text) {
  size_t end = text.find_first_not_of("0123456789.");
  std::string_view digits = text.substr(0, end);
  double number = 0;
  auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc() || last != digits.data() + digits.size()) {
    return std::nullopt;
  }
  text.remove_prefix(digits.size());
  return number;
}

void skip_spaces(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

std::string_view take_letters(std::string_view& text) {
  size_t n = 0;
  while (n < text.size() && std::isalpha(static_cast<unsigned char>(text[n]))) ++n;
  std::string_view letters = text.substr(0, n);
  text.remove_prefix(n);
  return letters;
}

// The sum of "number unit" pairs. `bare` is the factor of a lone number.
std::optional<double> parse_amounts(std::string_view text, const Unit* first, const Unit* last,
                                    double bare) {
  double sum = 0;
  bool any = false;
  for (skip_spaces(text); !text.empty(); skip_spaces(text)) {
    std::optional<double> number = take_number(text);
    if (!number) return std::nullopt;
    skip_spaces(text);
    std::string_view name = take_letters(text);
    if (name.empty() && !any && text.empty()) return *number * bare;
    const Unit* unit = std::find_if(first, last, [&](const Unit& u) { return u.name == name; });
    if (unit == last) return std::nullopt;
    sum += *number * unit->factor;
    any = true;
  }
  return any ? std::optional(sum) : std::nullopt;
}

std::string two_units(int64_t big, const char* big_unit, int64_t small, const char* small_unit) {
  std::string s = std::to_string(big) + " " + big_unit;
  if (small != 0) s += " " + std::to_string(small) + " " + small_unit;
  return s;
}

// "1.5", "2"
std::string with_one_decimal(double number) {
  char s[64];
  snprintf(s, sizeof s, "%.1f", number);
  const std::string text = s;
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

// Edit distance between a and b, ignoring case: insertions, deletions, replacements and
// swaps of adjacent characters.
size_t distance(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

std::string instant(int64_t utc_us, bool milliseconds) {
  int64_t seconds = utc_us / 1'000'000, us = utc_us % 1'000'000;
  if (us < 0) {
    --seconds;
    us += 1'000'000;
  }
  const time_t t = seconds;
  tm parts{};
  gmtime_r(&t, &parts);
  char s[64];
  size_t n = strftime(s, sizeof s, "%Y-%m-%dT%H:%M:%S", &parts);
  if (milliseconds) n += snprintf(s + n, sizeof s - n, ".%03d", static_cast<int>(us / 1000));
  return std::string(s, n) + "Z";
}

}  // namespace

std::string hex_encode(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string s;
  s.reserve(bytes.size() * 2);
  for (unsigned char c : bytes) {
    s += kDigits[c >> 4];
    s += kDigits[c & 15];
  }
  return s;
}

std::optional<std::string> hex_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    int value = hex_pair(text, i);
    if (value < 0) return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::string percent_encode(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string s;
  s.reserve(bytes.size());
  for (unsigned char c : bytes) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      s += static_cast<char>(c);
    } else {
      s += {'%', kDigits[c >> 4], kDigits[c & 15]};
    }
  }
  return s;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    int value = hex_pair(text, i + 1);
    if (value < 0) return std::nullopt;
    bytes += static_cast<char>(value);
    i += 2;
  }
  return bytes;
}

std::string format_duration_ms(int64_t ms) {
  if (ms < 0) return "-" + format_duration_ms(ms == INT64_MIN ? INT64_MAX : -ms);
  if (ms < 1000) return std::to_string(ms) + " ms";
  if (ms < 60'000) {
    const int64_t tenths = ms / 100;  // truncated, not rounded: never "60.0 s"
    return std::to_string(tenths / 10) +
           (tenths % 10 ? "." + std::to_string(tenths % 10) : std::string()) + " s";
  }
  const int64_t s = ms / 1000, min = s / 60, h = min / 60;
  if (h == 0) return two_units(min, "min", s % 60, "s");
  if (h < 24) return two_units(h, "h", min % 60, "min");
  return two_units(h / 24, "d", h % 24, "h");
}

std::optional<int64_t> parse_duration_ms(std::string_view text) {
  static constexpr Unit kUnits[] = {
      {"ms", 1}, {"s", 1e3}, {"min", 60e3}, {"h", 3600e3}, {"d", 86400e3}};
  std::optional<double> ms = parse_amounts(text, std::begin(kUnits), std::end(kUnits), 1e3);
  if (!ms || !(*ms < 9e15)) return std::nullopt;  // beyond 2^53 a double is not exact
  return std::llround(*ms);
}

std::string plain_number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double number = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; number >= 1023.95 && unit + 1 < std::size(kUnits); ++unit) number /= 1024;
  return with_one_decimal(number) + " " + kUnits[unit];
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
  static constexpr Unit kUnits[] = {{"B", 1},
                                    {"kB", 1e3},
                                    {"MB", 1e6},
                                    {"GB", 1e9},
                                    {"TB", 1e12},
                                    {"KiB", 1024.0},
                                    {"MiB", 1048576.0},
                                    {"GiB", 1073741824.0},
                                    {"TiB", 1099511627776.0},
                                    {"PiB", 1125899906842624.0}};
  std::optional<double> bytes = parse_amounts(text, std::begin(kUnits), std::end(kUnits), 1);
  if (!bytes || !(*bytes < 9e15)) return std::nullopt;
  return static_cast<uint64_t>(std::llround(*bytes));
}

std::string format_instant(int64_t utc_us) { return instant(utc_us, false); }
std::string format_instant_ms(int64_t utc_us) { return instant(utc_us, true); }

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongestWord = 100;  // the time is quadratic
  if (word.size() > kLongestWord) return "";
  size_t best = std::max<size_t>(1, word.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
    const size_t d = begins ? 1 : distance(word, candidate);
    if (d < best) {
      best = d;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string quote_for_shell(std::string_view word) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./+=:,@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

bool is_utf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    CodePoint c = code_point(bytes, i);
    if (!c.valid) return false;
    i += c.length;
  }
  return true;
}

std::string to_utf8(std::string_view bytes) {
  std::string s;
  s.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    CodePoint c = code_point(bytes, i);
    s += c.valid ? bytes.substr(i, c.length) : std::string_view("\xef\xbf\xbd");
    i += c.length;
  }
  return s;
}

std::string escape_for_terminal(std::string_view bytes) {
  std::string s;
  s.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    CodePoint c = code_point(bytes, i);
    char code[16];
    if (c.valid && c.value == '\n') {
      s += "\\n";
    } else if (c.valid && c.value == '\t') {
      s += "\\t";
    } else if (c.valid && c.value == '\\') {
      s += "\\\\";
    } else if (c.valid && !is_unsafe(c.value)) {
      s += bytes.substr(i, c.length);
    } else {
      const bool one_byte = !c.valid || c.value < 0x80;
      snprintf(code, sizeof code, one_byte ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(c.value));
      s += code;
    }
    i += c.length;
  }
  return s;
}

size_t display_width(std::string_view utf8) {
  size_t width = 0;
  for (size_t i = 0; i < utf8.size();) {
    CodePoint c = code_point(utf8, i);
    width += width_of(c);
    i += c.length;
  }
  return width;
}

std::string fit(std::string_view utf8, size_t width, bool right_aligned) {
  if (width == 0) return "";
  std::string s(utf8);
  size_t have = display_width(utf8);
  if (have > width) {
    size_t i = 0;
    have = 0;
    while (i < utf8.size()) {
      CodePoint c = code_point(utf8, i);
      if (have + width_of(c) > width - 1) break;
      have += width_of(c);
      i += c.length;
    }
    s = std::string(utf8.substr(0, i)) + "…";
    ++have;
  }
  const std::string spaces(width - have, ' ');
  return right_aligned ? spaces + s : s + spaces;
}

std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         const std::vector<bool>& right_aligned, size_t total_width) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  size_t total = widths.empty() ? 0 : 2 * (widths.size() - 1);
  for (size_t width : widths) total += width;
  while (total_width != 0 && total > total_width) {
    auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= 1) break;
    --*widest;
    --total;
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += fit(row[i], widths[i], i < right_aligned.size() && right_aligned[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace sublet
