#include "rules/hours.h"

#include <algorithm>
#include <array>

namespace sublet::rules {
namespace {

constexpr int64_t kMinute = 60'000'000, kDay = 1440 * kMinute, kWeek = 7 * kDay;
constexpr uint32_t kDayMinutes = 1440, kWeekMinutes = 7 * kDayMinutes;
constexpr std::array<std::string_view, 7> kDays = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

// Microseconds since Monday 0:00 of its week. 1970 began on a Thursday.
int64_t place_in_week(int64_t instant, int32_t utc_offset) {
  const int64_t since = (instant % kWeek + int64_t{utc_offset} * 1'000'000 + 3 * kDay) % kWeek;
  return since < 0 ? since + kWeek : since;
}

std::string two_digits(uint32_t number) {
  return std::string(1, static_cast<char>('0' + number / 10)) +
         static_cast<char>('0' + number % 10);
}
std::string clock_text(uint32_t minutes) {
  return two_digits(minutes / 60) + ":" + two_digits(minutes % 60);
}

}  // namespace

LocalTime local_time(int64_t instant, int32_t utc_offset) {
  const auto minutes = static_cast<uint32_t>(place_in_week(instant, utc_offset) / kMinute);
  return {minutes / kDayMinutes, minutes % kDayMinutes / 60, minutes % 60};
}

class HoursParser {
 public:
  explicit HoursParser(std::string_view text) : text_(text) {}

  Hours run() {
    check_length(text_);
    do {
      window();
    } while (take(','));
    if (!at_end()) fail(at_, "a comma is missing before '" + word() + "'");
    check_length(hours_.text_);  // in its one form it may be longer
    hours_.settle();
    return std::move(hours_);
  }

 private:
  struct Days {
    uint32_t first = 0, count = 7;
  };

  void window() {
    skip();
    const bool has_days = at_letter();
    std::string text;
    const Days days = has_days ? this->days(text) : Days();
    skip();
    if (at_digit()) {
      if (has_days) text += " ";
      times(days, text);
    } else if (has_days) {
      for (uint32_t i = 0; i < days.count; ++i) add_day(days.first + i, 0, kDayMinutes);
    } else {
      fail(at_,
           (at_end() ? std::string("a window is missing") : "'" + word() + "' is not a window") +
               ": write days and times such as mon-fri 19:00-07:00");
    }
    hours_.text_ += (hours_.text_.empty() ? "" : ", ") + text;
  }

  Days days(std::string& text) {
    const uint32_t first = day();
    text += kDays[first];
    if (!take('-')) return {first, 1};
    skip();
    const uint32_t last = day();
    if (last != first) text += "-" + std::string(kDays[last]);
    return {first, (last + 7 - first) % 7 + 1};
  }

  uint32_t day() {
    const size_t begin = at_;
    std::string name;
    for (; at_letter(); ++at_) name += static_cast<char>(text_[at_] | 0x20);
    const auto found = std::find(kDays.begin(), kDays.end(), name);
    if (found != kDays.end()) return static_cast<uint32_t>(found - kDays.begin());
    at_ = begin;
    fail(begin, "'" + word() + "' is not a day: mon, tue, wed, thu, fri, sat or sun");
  }

  void times(const Days& days, std::string& text) {
    const size_t place = at_;
    const uint32_t begin = time();
    if (!take('-')) fail(at_, "the time at which the window ends is missing, as in 19:00-07:00");
    skip();
    const uint32_t end = time();
    if (begin == kDayMinutes) fail(place, "a window cannot begin at 24:00: write 00:00");
    if (begin == end) fail(place, "the window begins and ends at the same time");
    const uint32_t length = (end + kDayMinutes - begin - 1) % kDayMinutes + 1;
    for (uint32_t i = 0; i < days.count; ++i) add_day(days.first + i, begin, length);
    text += clock_text(begin) + "-" + clock_text(end);
  }

  void add_day(uint32_t day, uint32_t begin, uint32_t length) {
    hours_.add(day % 7 * kDayMinutes + begin, length);
  }

  // 24:00 included.
  uint32_t time() {
    const size_t begin = at_;
    uint32_t hour = 0, minute = 0;
    const bool good = number(1, hour) && at_ < text_.size() && text_[at_] == ':' &&
                      (++at_, number(2, minute)) && hour * 60 + minute <= kDayMinutes &&
                      minute < 60;
    if (good) return hour * 60 + minute;
    at_ = begin;
    fail(begin, "'" + word() + "' is not a time such as 19:00");
  }

  // Of two digits at most.
  bool number(size_t least_digits, uint32_t& number) {
    size_t digits = 0;
    for (; at_digit() && digits < 2; ++at_, ++digits)
      number = number * 10 + static_cast<uint32_t>(text_[at_] - '0');
    return digits >= least_digits && !at_digit();
  }

  bool at_end() const { return at_ == text_.size(); }
  bool at_digit() const { return !at_end() && text_[at_] >= '0' && text_[at_] <= '9'; }
  bool at_letter() const {
    return !at_end() && (text_[at_] | 0x20) >= 'a' && (text_[at_] | 0x20) <= 'z';
  }
  void skip() {
    while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(char wanted) {
    skip();
    const bool there = !at_end() && text_[at_] == wanted;
    at_ += there;
    return there;
  }
  // What stands here, up to something that parts words.
  std::string word() const {
    constexpr std::string_view kBetween = " \t,-";
    if (!at_end() && kBetween.find(text_[at_]) != std::string_view::npos) return {text_[at_]};
    const size_t end = std::min(text_.find_first_of(kBetween, at_), text_.size());
    return std::string(text_.substr(at_, std::min<size_t>(end - at_, 20)));
  }
  static void check_length(std::string_view text) {
    if (text.size() > kLongestHours)
      fail(kLongestHours, "more than " + std::to_string(kLongestHours) + " octets");
  }
  [[noreturn]] static void fail(size_t at, const std::string& message) {
    throw HoursError(at + 1, message);
  }

  std::string_view text_;
  size_t at_ = 0;
  Hours hours_;
};

Hours Hours::parse(std::string_view text) { return HoursParser(text).run(); }

// A window may go on in the next week.
void Hours::add(uint32_t begin, uint32_t length) {
  const uint32_t end = begin + length;
  spans_.emplace_back(begin, std::min(end, kWeekMinutes));
  if (end > kWeekMinutes) spans_.emplace_back(0, end - kWeekMinutes);
}

void Hours::settle() {
  std::sort(spans_.begin(), spans_.end());
  std::vector<std::pair<uint32_t, uint32_t>> apart;
  for (const auto& span : spans_) {
    if (!apart.empty() && span.first <= apart.back().second)
      apart.back().second = std::max(apart.back().second, span.second);
    else
      apart.push_back(span);
  }
  spans_ = std::move(apart);
  // What goes on from Sunday to Monday does not change there.
  const bool goes_on = spans_.front().first == 0 && spans_.back().second == kWeekMinutes;
  for (const auto& [begin, end] : spans_) {
    if (begin != 0 || !goes_on) changes_.push_back(begin);
    if (end != kWeekMinutes || !goes_on) changes_.push_back(end % kWeekMinutes);
  }
  std::sort(changes_.begin(), changes_.end());
}

bool Hours::open_at(int64_t instant, int32_t utc_offset) const {
  const auto minute = static_cast<uint32_t>(place_in_week(instant, utc_offset) / kMinute);
  return std::any_of(spans_.begin(), spans_.end(), [minute](const auto& span) {
    return span.first <= minute && minute < span.second;
  });
}

std::optional<int64_t> Hours::next_change(int64_t instant, int32_t utc_offset) const {
  if (changes_.empty()) return std::nullopt;
  const int64_t place = place_in_week(instant, utc_offset);
  for (const uint32_t change : changes_)
    if (change * kMinute > place) return instant - place + change * kMinute;
  return instant - place + kWeek + changes_.front() * kMinute;
}

std::optional<int64_t> Hours::last_change(int64_t instant, int32_t utc_offset) const {
  if (changes_.empty()) return std::nullopt;
  const int64_t place = place_in_week(instant, utc_offset);
  for (auto change = changes_.rbegin(); change != changes_.rend(); ++change)
    if (*change * kMinute <= place) return instant - place + *change * kMinute;
  return instant - place - kWeek + changes_.back() * kMinute;
}

}  // namespace sublet::rules
