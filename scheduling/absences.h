// How long a machine's owner stays away: the lengths of his absences, counted by the weekday and
// hour, in local time, at which each began. From them follows how much longer he will probably stay
// away now.
//
// Values; pure.
#ifndef SUBLET_SCHEDULING_ABSENCES_H_
#define SUBLET_SCHEDULING_ABSENCES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/hours.h"
#include "scheduling/types.h"

namespace sublet::scheduling {

// Lengths are told apart as powers of two: below a minute, of 1, of 2 and 3, of 4 to 7 minutes, and
// so on; the last is of 8,192 minutes (5.7 days) and more.
inline constexpr size_t kLengths = 15;
using Lengths = std::array<uint32_t, kLengths>;

// The absences that say something of one that began at some weekday and hour, from the most similar
// ones to all.
struct SimilarAbsences {
  Lengths same_hour = {};  // that began at this hour of this weekday
  Lengths same_kind = {};  // at this hour of a working day, or of a day of the weekend
  Lengths all = {};
  uint64_t count = 0;  // of all
  bool operator==(const SimilarAbsences&) const = default;
};

// How much longer an owner will stay away who has been away for so long; a day at most, in whole
// seconds. Of n absences that lasted longer, with r more on average (each a day at most), and an
// expectation e by less similar ones, the expectation is (n*r + 4*e) / (n + 4). It begins with e =
// `away_for` (10 min at least, a day at most), of which the expectation by all absences is made, of
// that the one by those of the same hour of such days, and of that the one by those of the same
// hour of this weekday. So a few absences mislead little. Within a length that is counted as one,
// absences are taken to be spread evenly.
Micros expected_more(const SimilarAbsences& similar, Micros away_for);

class Absences {
 public:
  // Of text(). std::nullopt: it is damaged.
  static std::optional<Absences> parse(std::string_view text);
  // For each weekday, hour and length that have occurred one number, which says these and how
  // often, to the base of 36.
  std::string text() const;

  // An absence that began at this time has ended. When a count or their sum becomes too large, all
  // are halved, so that the past is forgotten, too.
  void add(const rules::LocalTime& began, Micros length);
  SimilarAbsences similar_to(const rules::LocalTime& began) const;
  bool empty() const { return cells_.empty(); }
  bool operator==(const Absences&) const = default;

 private:
  // Ordered by `key`, which says weekday, hour and length.
  struct Cell {
    uint16_t key = 0;
    uint16_t count = 0;
    bool operator==(const Cell&) const = default;
  };
  void halve();

  std::vector<Cell> cells_;
  uint32_t sum_ = 0;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_ABSENCES_H_
