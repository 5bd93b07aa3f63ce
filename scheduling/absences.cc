#include "scheduling/absences.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

namespace sublet::scheduling {
namespace {

constexpr Micros kSecond = 1'000'000, kMinute = 60 * kSecond, kDay = 24 * 60 * kMinute;
constexpr Micros kLeastGuess = 10 * kMinute;
constexpr double kWeightOfLessSimilar = 4;

constexpr uint16_t kMostOfCell = 63;
constexpr uint32_t kMostTogether = 1000;

constexpr uint32_t kHours = 7 * 24, kWeekend = 5;
constexpr uint16_t kKeys = kHours * 16;

uint16_t key_of(const rules::LocalTime& began, size_t length) {
  return static_cast<uint16_t>((began.weekday * 24 + began.hour) * 16 + length);
}

size_t length_of(Micros span) {
  const auto minutes = static_cast<uint64_t>(std::max<Micros>(span, 0) / kMinute);
  return std::min<size_t>(std::bit_width(minutes), kLengths - 1);
}
// The absences counted as of this length, [begin, end).
Micros begin_of(size_t length) { return length == 0 ? 0 : (Micros{1} << (length - 1)) * kMinute; }
Micros end_of(size_t length) { return (Micros{1} << length) * kMinute; }

// Of some absences, those that lasted longer than `away_for`, and how much longer together.
struct Longer {
  double count = 0;
  double more = 0;
};
Longer longer_than(const Lengths& lengths, Micros away_for) {
  Longer longer;
  for (size_t length = 0; length < kLengths; ++length) {
    const Micros begin = begin_of(length), end = end_of(length);
    if (lengths[length] == 0 || end <= away_for) continue;
    const Micros from = std::max(begin, away_for);
    const double part = static_cast<double>(end - from) / static_cast<double>(end - begin);
    const double mean = static_cast<double>((from - away_for) + (end - away_for)) / 2;
    const double count = part * lengths[length];
    longer.count += count;
    longer.more += count * std::min(mean, static_cast<double>(kDay));
  }
  return longer;
}

}  // namespace

Micros expected_more(const SimilarAbsences& similar, Micros away_for) {
  away_for = std::max<Micros>(away_for, 0);
  auto expected = static_cast<double>(std::clamp(away_for, kLeastGuess, kDay));
  for (const Lengths* lengths : {&similar.all, &similar.same_kind, &similar.same_hour}) {
    const Longer longer = longer_than(*lengths, away_for);
    expected =
        (longer.more + kWeightOfLessSimilar * expected) / (longer.count + kWeightOfLessSimilar);
  }
  return std::llround(expected / static_cast<double>(kSecond)) * kSecond;
}

void Absences::add(const rules::LocalTime& began, Micros length) {
  const uint16_t key = key_of(began, length_of(length));
  auto it = std::lower_bound(cells_.begin(), cells_.end(), key,
                             [](const Cell& cell, uint16_t wanted) { return cell.key < wanted; });
  if (it == cells_.end() || it->key != key) it = cells_.insert(it, Cell{key, 0});
  ++it->count;
  ++sum_;
  if (it->count > kMostOfCell || sum_ > kMostTogether) halve();
}

// What has occurred once only is forgotten if there is too much else.
void Absences::halve() {
  const auto half_of_all = [this](uint32_t least) {
    sum_ = 0;
    for (Cell& cell : cells_) {
      if (cell.count >= least) cell.count /= 2;
      sum_ += cell.count;
    }
  };
  half_of_all(2);
  if (sum_ > kMostTogether * 3 / 4) half_of_all(0);
  std::erase_if(cells_, [](const Cell& cell) { return cell.count == 0; });
}

SimilarAbsences Absences::similar_to(const rules::LocalTime& began) const {
  SimilarAbsences similar;
  for (const Cell& cell : cells_) {
    const uint32_t hour = cell.key / 16 % 24, weekday = cell.key / 16 / 24;
    const size_t length = cell.key % 16;
    similar.all[length] += cell.count;
    similar.count += cell.count;
    if (hour != began.hour || (weekday < kWeekend) != (began.weekday < kWeekend)) continue;
    similar.same_kind[length] += cell.count;
    if (weekday == began.weekday) similar.same_hour[length] += cell.count;
  }
  return similar;
}

std::string Absences::text() const {
  std::string text;
  for (const Cell& cell : cells_) {
    char digits[16];
    const auto [end, error] =
        std::to_chars(digits, digits + sizeof digits, uint32_t{cell.key} * 64 + cell.count, 36);
    text += (text.empty() ? "" : " ") + std::string(digits, end);
  }
  return text;
}

std::optional<Absences> Absences::parse(std::string_view text) {
  Absences absences;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, 36);
    const uint32_t key = number / 64, count = number % 64;
    const bool good = error == std::errc() && end == word.data() + word.size() && key < kKeys &&
                      key % 16 < kLengths && count > 0 &&
                      (absences.cells_.empty() || absences.cells_.back().key < key);
    if (!good) return std::nullopt;
    absences.cells_.push_back({static_cast<uint16_t>(key), static_cast<uint16_t>(count)});
    absences.sum_ += count;
    text.remove_prefix(word.size());
    if (text == " ") return std::nullopt;
    if (!text.empty()) text.remove_prefix(1);
  }
  if (absences.sum_ > kMostTogether) return std::nullopt;
  return absences;
}

}  // namespace sublet::scheduling
