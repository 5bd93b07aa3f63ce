#include "scheduling/queries/text.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "rules/hours.h"

namespace sublet::scheduling {
namespace {
std::string words_for(EndReason ended) {
  switch (ended) {
    case EndReason::kNone:
      return "not ended";
    case EndReason::kDone:
      return "done";
    case EndReason::kExit:
      return "failed: exit status other than 0";
    case EndReason::kSignal:
      return "failed: killed by a signal";
    case EndReason::kStart:
      return "failed: the program could not be started";
    case EndReason::kStaging:
      return "failed: an input could not be fetched";
    case EndReason::kOutput:
      return "failed: a required output is missing or too large";
    case EndReason::kLimit:
      return "failed: exceeded one of its own limits";
    case EndReason::kOwner:
      return "evicted: the owner came back";
    case EndReason::kBlind:
      return "evicted: the load monitor failed";
    case EndReason::kLease:
      return "evicted: out of touch with the server";
    case EndReason::kPreempted:
      return "pre-empted: gave way";
    case EndReason::kDrained:
      return "evicted: the machine withdrew";
    case EndReason::kRefused:
      return "the machine refused it";
    case EndReason::kLost:
      return "lost";
    case EndReason::kRemoved:
      return "removed";
    case EndReason::kHeld:
      return "held";
    case EndReason::kSuperseded:
      return "given up";
    case EndReason::kAdministrator:
      return "evicted: by an administrator";
    case EndReason::kSaved:
      return "saved to go on";
  }
  return "ended for reason " + std::to_string(static_cast<uint32_t>(ended));
}
}  // namespace

std::string end_text(EndReason ended, const std::string& detail) {
  std::string text = words_for(ended);
  if (!detail.empty()) text.append(" (").append(detail).append(")");
  return text;
}

namespace {
constexpr const char* kAgain = "; tried again in ";
}

std::string refusals_text(uint32_t times, const std::string& last) {
  return "refused " + counted(times, "time") + " in a row" +
         (last.empty() ? "" : ", last: " + last);
}

std::string again_in(Micros wait) {
  return kAgain + std::to_string((wait + 999'999) / 1'000'000) + " s";
}

std::string without_again(const std::string& sentence) {
  return sentence.substr(0, sentence.rfind(kAgain));
}

std::string counted(uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string bytes_text(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return number_text(value) + " " + kUnits[unit];
}

std::string span_text(Micros span) {
  const auto rounded = [span](Micros unit) { return (span + unit / 2) / unit; };
  constexpr Micros kSecond = 1'000'000;
  if (rounded(kSecond) < 100) return std::to_string(rounded(kSecond)) + " s";
  if (rounded(60 * kSecond) < 100) return std::to_string(rounded(60 * kSecond)) + " min";
  if (rounded(3600 * kSecond) < 48) return std::to_string(rounded(3600 * kSecond)) + " h";
  return std::to_string(rounded(86'400 * kSecond)) + " d";
}

std::string instant_text(Micros instant, int32_t utc_offset) {
  using namespace std::chrono;
  constexpr Micros kLatest = 253'402'300'799'999'999;  // the end of the year 9999
  instant = std::clamp<Micros>(instant, 0, kLatest);
  const sys_time<microseconds> local{microseconds(instant) + seconds(utc_offset)};
  const year_month_day date{floor<days>(local)};
  const rules::LocalTime time = rules::local_time(instant, utc_offset);
  const int ahead = std::abs(utc_offset) / 60;
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02u:%02u (UTC%c%02d:%02d)", int{date.year()},
                unsigned{date.month()}, unsigned{date.day()}, time.hour, time.minute,
                utc_offset < 0 ? '-' : '+', ahead / 60, ahead % 60);
  return text;
}

std::string number_text(double value) {
  if (value >= 1 && value < 1000 && value == std::floor(value))
    return std::to_string(static_cast<int>(value));  // shares mostly are, and it takes a tenth
  char text[32];
  const int digits = value >= 1000 ? 6 : 3;
  return {text,
          std::to_chars(std::begin(text), std::end(text), value, std::chars_format::general, digits)
              .ptr};
}

std::string shares_text(double shares) {
  return number_text(shares) + (shares == 1 ? " share" : " shares");
}

}  // namespace sublet::scheduling
