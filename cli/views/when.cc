#include "cli/views/when.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "base/text.h"
#include "cli/pool/pool.h"

namespace sublet::cli {
namespace {

// Matches digits where `form` has 0, else the same character; a blank also matches T.
bool has_form(const std::string& text, const std::string& form) {
  return text.size() == form.size() &&
         std::equal(text.begin(), text.end(), form.begin(), [](char c, char f) {
           if (f == '0') return c >= '0' && c <= '9';
           return c == f || (f == ' ' && c == 'T');
         });
}

std::optional<int64_t> parse_instant(std::string text) {
  if (has_form(text, "0000-00-00")) text += " 00:00:00";
  if (has_form(text, "0000-00-00 00:00")) text += ":00";
  if (has_form(text, "0000-00-00 00:00:00Z")) text.pop_back();
  if (!has_form(text, "0000-00-00 00:00:00")) return std::nullopt;
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0;
  sscanf(text.c_str(), "%d-%u-%u%*c%u:%u:%u", &year, &month, &day, &hour, &minute, &second);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const std::chrono::seconds at = std::chrono::sys_days(date).time_since_epoch() +
                                  std::chrono::hours(hour) + std::chrono::minutes(minute) +
                                  std::chrono::seconds(second);
  return at.count() * 1'000'000;
}

}  // namespace

int64_t parse_when(const std::string& option, const std::string& text, int64_t now_us) {
  std::optional<int64_t> at = parse_instant(text);
  if (!at)
    if (const std::optional<int64_t> ms = parse_duration_ms(text))
      at = now_us - std::min(*ms, now_us / 1000) * 1000;
  if (!at)
    throw PoolError(ErrorKind::usage, "usage." + option.substr(2),
                    option + ": '" + text + "' is neither a time nor a duration",
                    "write 2026-11-20, \"2026-11-20 14:00\" (UTC), or how long ago: \"7 d\"", text);
  return std::max<int64_t>(1, *at);
}

}  // namespace sublet::cli
