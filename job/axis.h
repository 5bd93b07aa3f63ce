// A parameter of an array (idl/types.idl, Axis), and the substitution of its values.
#ifndef SUBLET_JOB_AXIS_H_
#define SUBLET_JOB_AXIS_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sublet {

// At most 64 letters, digits and _, not starting with a digit; not "index", which is
// predefined.
bool is_parameter_name(std::string_view name);

struct Axis {
  std::vector<std::string> names;
  std::vector<std::string> values;
  uint64_t range_count = 0;  // 0: `values` is used instead of a range
  int64_t first = 0;
  int64_t step = 1;
  bool operator==(const Axis&) const = default;

  uint64_t count() const;  // of its rows
  std::string value(uint64_t row, size_t name) const;
};

// Names and their values.
using Values = std::vector<std::pair<std::string, std::string>>;

// The values of the combination with this number; the last axis changes fastest.
Values values_at(const std::vector<Axis>& axes, uint64_t number);

// Replaces every "{NAME}" of a name in `values`, in one pass: replaced text is not
// searched again. Other braces are kept.
std::string fill(std::string_view text, const Values& values);
// The names that occur in the text.
std::set<std::string> names_in(std::string_view text, const Values& values);
// The number of "{NAME}" in a text, and the total size of their values in octets.
struct Places {
  uint64_t count = 0;
  uint64_t bytes = 0;
};
Places places_of(std::string_view text, const Values& values);

}  // namespace sublet

#endif  // SUBLET_JOB_AXIS_H_
