// A parameter of an array (idl/types.idl, Axis), and texts with values put in.
#ifndef SUBLET_JOB_AXIS_H_
#define SUBLET_JOB_AXIS_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sublet {

// Letters, digits and _, no digit first, at most 64; not "index", which every array
// has.
bool is_parameter_name(std::string_view name);

struct Axis {
  std::vector<std::string> names;
  std::vector<std::string> values;
  uint64_t range_count = 0;  // 0: there are values
  int64_t first = 0;
  int64_t step = 1;
  bool operator==(const Axis&) const = default;

  uint64_t count() const;  // of its rows
  std::string value(uint64_t row, size_t name) const;
};

// What stands for each name.
using Values = std::vector<std::pair<std::string, std::string>>;

// Of the combination with this number, the last axis changing fastest.
Values values_at(const std::vector<Axis>& axes, uint64_t number);

// Every "{NAME}" of a name in `values` replaced, in one pass: values are not
// looked through. Other braces stay.
std::string fill(std::string_view text, const Values& values);
// Which of the names stand in it, each once.
std::set<std::string> names_in(std::string_view text, const Values& values);
// How many "{NAME}" there are, and the octets that they take.
struct Places {
  uint64_t count = 0;
  uint64_t bytes = 0;
};
Places places_of(std::string_view text, const Values& values);

}  // namespace sublet

#endif  // SUBLET_JOB_AXIS_H_
