#include "server/accounting/usage.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>

#include "base/text.h"

namespace sublet::server {
namespace {

constexpr Micros kDay = 86'400ll * 1'000'000;

std::string text_of_day(int64_t day) { return format_instant(day * kDay).substr(0, 10); }

// Days since 1970-01-01; -1: there is no such day.
int64_t day_of(int year, int month, int day) {
  const std::chrono::year_month_day date = std::chrono::year(year) / month / day;
  return date.ok() ? std::chrono::sys_days(date).time_since_epoch().count() : -1;
}

// An ISO week belongs to the year of its Thursday. 1970-01-01 was a Thursday, so the
// Thursday of week n is day 7n.
std::string text_of_week(int64_t week) {
  const std::string thursday = text_of_day(7 * week);
  const int64_t number = (7 * week - day_of(std::stoi(thursday), 1, 1)) / 7 + 1;
  return thursday.substr(0, 5) + (number < 10 ? "W0" : "W") + std::to_string(number);
}

// -1: not a number, or too large.
template <typename Number>
Number number_in(std::string_view text) {
  Number number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

}  // namespace

const char* name_of(GroupBy by) {
  constexpr const char* kNames[] = {"user", "machine", "batch", "day", "week", "job"};
  return kNames[static_cast<uint32_t>(by) - 1];
}

bool is_numbered(GroupBy by) { return by != GroupBy::kUser && by != GroupBy::kMachine; }

std::string group_text(GroupBy by, int64_t number) {
  if (by == GroupBy::kDay) return text_of_day(number);
  if (by == GroupBy::kWeek) return text_of_week(number);
  return std::to_string(number);
}

std::optional<int64_t> group_number(GroupBy by, const std::string& text) {
  const std::string_view words = text;
  int64_t number = -1;
  if (by == GroupBy::kDay && words.size() == 10) {
    number = day_of(number_in<int>(words.substr(0, 4)), number_in<int>(words.substr(5, 2)),
                    number_in<int>(words.substr(8)));
  } else if (by == GroupBy::kWeek && words.size() == 8) {  // 4 January is always in week 1
    number = (day_of(number_in<int>(words.substr(0, 4)), 1, 4) + 3) / 7 +
             number_in<int>(words.substr(6)) - 1;
  } else if (by == GroupBy::kBatch || by == GroupBy::kJob) {
    number = number_in<int64_t>(words);
  }
  if (number < 0 || group_text(by, number) != text) return std::nullopt;
  return number;
}

StepSpread spread_of(uint32_t step, std::vector<int64_t>& values) {
  std::sort(values.begin(), values.end());
  const auto percentile = [&](size_t p) { return values[(values.size() * p + 99) / 100 - 1]; };
  return {step, values.size(), percentile(50), percentile(95), percentile(99), values.back()};
}

}  // namespace sublet::server
