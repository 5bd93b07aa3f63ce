#include "cli/batch/instant.h"

#include <ctime>

namespace sublet::cli {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty(); }
  // So many digits, of a number in this range.
  bool number(size_t digits, int least, int most, int& value) {
    value = 0;
    if (text_.size() < digits) return false;
    for (const char c : text_.substr(0, digits)) {
      if (c < '0' || c > '9') return false;
      value = value * 10 + (c - '0');
    }
    text_.remove_prefix(digits);
    return value >= least && value <= most;
  }
  // One of these.
  char take(std::string_view any) {
    if (at_end() || any.find(text_.front()) == std::string_view::npos) return '\0';
    const char taken = text_.front();
    text_.remove_prefix(1);
    return taken;
  }

 private:
  std::string_view text_;
};

// "18:00" or "18:00:30".
bool read_time(Reader& in, tm& parts) {
  if (!in.number(2, 0, 23, parts.tm_hour) || !in.take(":") || !in.number(2, 0, 59, parts.tm_min))
    return false;
  return !in.take(":") || in.number(2, 0, 59, parts.tm_sec);
}

// "Z", "+01:00" or "+0100": seconds ahead of UTC.
bool read_zone(Reader& in, char sign, int64_t& ahead) {
  int hours = 0, minutes = 0;
  ahead = 0;
  if (sign == 'Z' || sign == 'z') return true;
  if (!in.number(2, 0, 23, hours)) return false;
  in.take(":");
  if (!in.number(2, 0, 59, minutes)) return false;
  ahead = (hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
  return true;
}

bool same_minute(const tm& a, const tm& b) {
  return a.tm_mday == b.tm_mday && a.tm_mon == b.tm_mon && a.tm_hour == b.tm_hour &&
         a.tm_min == b.tm_min;
}

}  // namespace

std::optional<int64_t> parse_instant(std::string_view text) {
  Reader in(text);
  tm parts = {};
  if (!in.number(4, 1970, 9999, parts.tm_year) || !in.take("-") ||
      !in.number(2, 1, 12, parts.tm_mon) || !in.take("-") || !in.number(2, 1, 31, parts.tm_mday))
    return std::nullopt;
  parts.tm_year -= 1900;
  --parts.tm_mon;
  if (in.take(" Tt") && !read_time(in, parts)) return std::nullopt;
  const char sign = in.take("Zz+-");
  int64_t ahead = 0;
  if ((sign != '\0' && !read_zone(in, sign, ahead)) || !in.at_end()) return std::nullopt;
  tm normal = parts;
  normal.tm_isdst = -1;
  const int64_t seconds = sign == '\0' ? mktime(&normal) : timegm(&normal);
  if (!same_minute(normal, parts)) return std::nullopt;
  return (seconds - ahead) * 1'000'000;
}

}  // namespace sublet::cli
