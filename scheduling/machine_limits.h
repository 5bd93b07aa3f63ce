// How many jobs may be on a machine at a time by the pool's word, beside what its owner allows.
//
// Immutable values. Any thread.
#ifndef SUBLET_SCHEDULING_MACHINE_LIMITS_H_
#define SUBLET_SCHEDULING_MACHINE_LIMITS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace sublet::scheduling {

struct MachineLimits {
  uint64_t all = 0;                       // of any machine that is not named; 0: any number
  std::map<std::string, uint64_t> named;  // by the machine's name

  uint64_t of(const std::string& machine) const;
  // As parse_machine_limits reads it: "4 curly=2"; "": no limits.
  std::string text() const;
};

// Of words separated by blanks, in any order: a number for all, and NAME=NUMBER for single
// machines, each once and each number 1 to kLargestLimit. std::nullopt: it is none.
inline constexpr uint64_t kLargestLimit = 1'000'000;
std::optional<MachineLimits> parse_machine_limits(const std::string& text);

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MACHINE_LIMITS_H_
