#include "rules/hours.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <ctime>

namespace sublet::rules {
namespace {

constexpr int64_t kSecond = 1'000'000, kMinute = 60 * kSecond, kHour = 60 * kMinute,
                  kDay = 24 * kHour;
// 2026-11-23 0:00 UTC, a Monday.
constexpr int64_t kMonday = 1'795'392'000 * kSecond;

int64_t at(int day, int hour, int minute = 0) {
  return kMonday + day * kDay + hour * kHour + minute * kMinute;
}

class HoursTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(HoursTest);
  CPPUNIT_TEST(local_times);
  CPPUNIT_TEST(local_times_are_those_of_the_system);
  CPPUNIT_TEST(one_form);
  CPPUNIT_TEST(nights_and_weekends);
  CPPUNIT_TEST(across_the_end_of_the_week);
  CPPUNIT_TEST(always);
  CPPUNIT_TEST(local_time_decides);
  CPPUNIT_TEST(changes_are_where_it_changes);
  CPPUNIT_TEST(wrong_ones);
  CPPUNIT_TEST_SUITE_END();

 public:
  void local_times() {
    const auto same = [](LocalTime expected, int64_t instant, int32_t offset) {
      CPPUNIT_ASSERT(expected == local_time(instant, offset));
    };
    same({3, 0, 0}, 0, 0);  // a Thursday
    same({2, 23, 59}, -1, 0);
    same({0, 0, 0}, kMonday, 0);
    same({0, 5, 30}, kMonday, 5 * 3600 + 1800);
    same({6, 16, 0}, kMonday, -8 * 3600);
    same({6, 23, 59}, at(7, 0) - 1, 0);
  }

  void local_times_are_those_of_the_system() {
    CPPUNIT_ASSERT(rc::check([](int32_t seconds) {
      const time_t then = seconds;
      tm parts = {};
      gmtime_r(&then, &parts);
      const LocalTime expected{static_cast<uint32_t>(parts.tm_wday + 6) % 7,
                               static_cast<uint32_t>(parts.tm_hour),
                               static_cast<uint32_t>(parts.tm_min)};
      RC_ASSERT(local_time(int64_t{seconds} * kSecond, 0) == expected);
    }));
  }

  void one_form() {
    const auto form = [](const char* text) { return Hours::parse(text).text(); };
    CPPUNIT_ASSERT_EQUAL(std::string("mon-fri 19:00-07:00, sat, sun"),
                         form("  Mon - FRI 19:00 -7:00,sat ,sun "));
    CPPUNIT_ASSERT_EQUAL(std::string("00:00-24:00"), form("0:00-24:00"));
    CPPUNIT_ASSERT_EQUAL(std::string("mon, mon"), form("mon-mon, mon"));
    CPPUNIT_ASSERT_EQUAL(std::string("fri-mon"), form("fri-mon"));
  }

  void nights_and_weekends() {
    const Hours hours = Hours::parse("mon-fri 19:00-07:00, sat, sun");
    const auto open = [&](int day, int hour, int minute = 0) {
      return hours.open_at(at(day, hour, minute), 0);
    };
    CPPUNIT_ASSERT(!open(0, 6));  // Sunday's window ended with Sunday
    CPPUNIT_ASSERT(!open(0, 18, 59) && open(0, 19) && open(1, 6, 59) && !open(1, 7));
    CPPUNIT_ASSERT(open(5, 6) && open(5, 12) && open(6, 23, 59));
    CPPUNIT_ASSERT_EQUAL(at(0, 19), hours.next_change(at(0, 7), 0).value());
    CPPUNIT_ASSERT_EQUAL(at(1, 7), hours.next_change(at(0, 19), 0).value());
    CPPUNIT_ASSERT_EQUAL(at(7, 0), hours.next_change(at(4, 19), 0).value());
    CPPUNIT_ASSERT_EQUAL(at(7, 19), hours.next_change(at(7, 0), 0).value());
  }

  void across_the_end_of_the_week() {
    const Hours hours = Hours::parse("sun 22:00-06:00, sat-mon 03:00-04:00");
    CPPUNIT_ASSERT(hours.open_at(at(0, 5, 59), 0) && hours.open_at(at(6, 23), 0));
    CPPUNIT_ASSERT(!hours.open_at(at(0, 6), 0) && !hours.open_at(at(1, 3), 0));
    CPPUNIT_ASSERT_EQUAL(at(7, 6), hours.next_change(at(6, 22), 0).value());
    CPPUNIT_ASSERT_EQUAL(at(5, 3), hours.next_change(at(0, 6), 0).value());
  }

  void always() {
    for (const char* text : {"mon-sun", "tue-mon", "00:00-24:00", "07:00-19:00, 19:00-07:00"}) {
      const Hours hours = Hours::parse(text);
      CPPUNIT_ASSERT(!hours.next_change(kMonday, 3600) && !hours.last_change(kMonday, 3600));
      for (int hour = 0; hour < 7 * 24; ++hour) CPPUNIT_ASSERT(hours.open_at(at(0, hour), 0));
    }
    CPPUNIT_ASSERT_EQUAL(at(1, 0), Hours::parse("mon").next_change(kMonday, 0).value());
    CPPUNIT_ASSERT_EQUAL(at(7, 0), Hours::parse("mon").next_change(at(1, 0), 0).value());
  }

  void local_time_decides() {
    const Hours hours = Hours::parse("sat 00:00-06:00");
    CPPUNIT_ASSERT(hours.open_at(at(4, 23), 3600) && !hours.open_at(at(5, 5), 3600));
    CPPUNIT_ASSERT_EQUAL(at(5, 5), hours.next_change(at(4, 23), 3600).value());
    CPPUNIT_ASSERT_EQUAL(at(5, 8), hours.next_change(at(5, 5), -8 * 3600).value());
  }

  // Against minute after minute of a week.
  void changes_are_where_it_changes() {
    CPPUNIT_ASSERT(rc::check([](const std::vector<uint16_t>& numbers, int16_t quarters) {
      static constexpr const char* kDays[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
      const auto time = [](uint32_t n) {
        return std::to_string(n / 60 % 24) + ":" + (n % 60 < 10 ? "0" : "") +
               std::to_string(n % 60);
      };
      std::string text = "wed 10:00-12:30";
      for (const uint16_t n : numbers) {
        if (text.size() > kLongestHours / 2) break;
        text += std::string(",") + kDays[n % 7] + "-" + kDays[n / 7 % 7];
        const uint32_t begin = n % 1440u, end = (begin + 1 + n / 50u) % 1440u;
        if (n % 3 != 0) text += " " + time(begin) + "-" + time(end);
      }
      const Hours hours = Hours::parse(text);
      RC_ASSERT(Hours::parse(hours.text()).text() == hours.text());
      const int32_t offset = quarters % 48 * 900;
      int64_t known = kMonday - 7 * kDay;  // of the last change
      bool open = hours.open_at(known, offset), first = true;
      for (int minute = 0; minute < 2 * 7 * 1440; ++minute) {
        const int64_t now = kMonday - 7 * kDay + minute * kMinute;
        if (hours.open_at(now, offset) == open) continue;
        if (!first) RC_ASSERT(hours.next_change(known, offset).value() == now);
        RC_ASSERT(hours.next_change(now - 1, offset).value() == now);
        RC_ASSERT(hours.last_change(now, offset).value() == now);
        if (!first) RC_ASSERT(hours.last_change(now - 1, offset).value() == known);
        known = now;
        open = !open;
        first = false;
      }
      RC_ASSERT(first == !hours.next_change(kMonday, offset).has_value());
    }));
  }

  void wrong_ones() {
    const std::pair<std::string, std::string> kWrong[] = {
        {"", "column 1: a window is missing"},
        {"  ", "column 3: a window is missing"},
        {"mon,", "column 5: a window is missing"},
        {"mon,,tue", "column 5: ',' is not a window"},
        {"tus", "column 1: 'tus' is not a day: mon"},
        {"mon-monday", "column 5: 'monday' is not a day"},
        {"mon-", "column 5: '' is not a day"},
        {"mon tue", "column 5: a comma is missing before 'tue'"},
        {"mon 19", "column 5: '19' is not a time such as 19:00"},
        {"mon 19:00", "column 10: the time at which the window ends is missing"},
        {"mon 19:00-", "column 11: '' is not a time"},
        {"mon 19:00-7", "column 11: '7' is not a time"},
        {"19:60-20:00", "column 1: '19:60' is not a time"},
        {"24:01-20:00", "column 1: '24:01' is not a time"},
        {"019:00-20:00", "column 1: '019:00' is not a time"},
        {"19:000-20:00", "column 1: '19:000' is not a time"},
        {"24:00-20:00", "column 1: a window cannot begin at 24:00"},
        {"sat, 19:00-19:00", "column 6: the window begins and ends at the same time"},
        {"19:00-20:00 mon", "column 13: a comma is missing before 'mon'"},
        {"always", "column 1: 'always' is not a day"},
        {"\xff", "is not a window"},
        {std::string(501, ' '), "more than 500 octets"}};
    for (const auto& [text, said] : kWrong) {
      try {
        Hours::parse(text);
        CPPUNIT_FAIL("accepted: " + text);
      } catch (const HoursError& e) {
        CPPUNIT_ASSERT_MESSAGE(e.what(), std::string(e.what()).find(said) != std::string::npos);
      }
    }
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(HoursTest);
}  // namespace
}  // namespace sublet::rules
