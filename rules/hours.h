// Hours of the week, in local time: "mon-fri 19:00-07:00, sat, sun".
//
//   hours   windows, separated by commas: they are open if one of them is
//   window  days, times, or days and then times; no days: every day, no times: all day
//   days    "mon", or "fri-mon" from the first to the second
//   times   "19:00-07:00", up to but not including the second, which is of the next day unless it
//           is later; then the window belongs to the day on which it begins. "24:00" ends a day.
#ifndef SUBLET_RULES_HOURS_H_
#define SUBLET_RULES_HOURS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sublet::rules {

struct LocalTime {
  uint32_t weekday = 0;  // from 0, Monday
  uint32_t hour = 0;
  uint32_t minute = 0;
  bool operator==(const LocalTime&) const = default;
};
// Of this instant (microseconds UTC) where local time is so many seconds ahead of UTC.
LocalTime local_time(int64_t instant, int32_t utc_offset);

constexpr size_t kLongestHours = 500;  // octets

// what(): "column 5: 'tus' is not a day: mon, tue, wed, thu, fri, sat or sun".
class HoursError : public std::runtime_error {
 public:
  HoursError(size_t column, const std::string& message)
      : runtime_error("column " + std::to_string(column) + ": " + message) {}
};

class Hours {
 public:
  // Throws HoursError.
  static Hours parse(std::string_view text);
  // In one form: parse() gives the same.
  const std::string& text() const { return text_; }

  bool open_at(int64_t instant, int32_t utc_offset) const;
  // The first instant after this one at which they open or close, as long as local time stays as
  // far ahead; none: they are always open.
  std::optional<int64_t> next_change(int64_t instant, int32_t utc_offset) const;
  // The last one at or before this one at which they opened or closed.
  std::optional<int64_t> last_change(int64_t instant, int32_t utc_offset) const;

 private:
  friend class HoursParser;
  void add(uint32_t begin, uint32_t length);
  void settle();

  std::string text_;
  // Minutes of the week from Monday 0:00, [begin, end): ascending, apart, none across the week's
  // end.
  std::vector<std::pair<uint32_t, uint32_t>> spans_;
  std::vector<uint32_t> changes_;  // at which they open or close, ascending
};

}  // namespace sublet::rules

#endif  // SUBLET_RULES_HOURS_H_
