#include "job/array_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "job/check.h"
#include "job/output_name.h"

namespace sublet {
namespace {

constexpr size_t kMaxAxes = 64;
constexpr size_t kMaxNames = 1000;  // of all axes
constexpr uint64_t kMaxCombinations = 1'000'000;
constexpr size_t kMaxValueBytes = 2 * kJobBytes;
constexpr uint64_t kMaxPlaces = 1000;  // where values are filled in

void check_axis(const Axis& axis, const std::string& subject, std::set<std::string>& names) {
  for (const auto& name : axis.names) {
    if (!is_parameter_name(name))
      invalid(subject, "`" + name + "` is not a parameter name",
              "Use letters, digits and _; `index` is reserved.");
    if (!names.insert(name).second)
      invalid(subject, "two parameters are called `" + name + "`", "Give each its own name.");
  }
  const std::string what = axis.names.empty() ? "an axis" : "the parameter `" + axis.names[0] + "`";
  const bool is_range = axis.range_count > 0;
  if (axis.count() == 0 || (is_range && (axis.names.size() != 1 || !axis.values.empty())) ||
      axis.values.size() % axis.names.size() != 0)
    invalid(subject, what + " has no values, or rows of different length",
            "Give values or a range, with one value per name in each row.");
  for (const auto& value : axis.values)
    if (value.find('\0') != std::string::npos)
      invalid(subject, what + " has a value with a NUL octet", "Remove it.");
  int64_t last = 0;
  if (is_range && (axis.range_count > kMaxCombinations ||
                   __builtin_mul_overflow(axis.step, int64_t(axis.range_count - 1), &last) ||
                   __builtin_add_overflow(axis.first, last, &last)))
    invalid(subject, what + " has too many or too large values", "Give a smaller range.");
}

size_t length(const std::string& value) { return value.size(); }
size_t depth(const std::string& value) { return std::count(value.begin(), value.end(), '/'); }
size_t quoted_length(const std::string& value) { return quote_output(value).size(); }

// Quoted for an output's name, so that no character makes a pattern.
Values quoted(Values values) {
  for (auto& [name, value] : values) value = quote_output(value);
  return values;
}

}  // namespace

std::string ArrayCheck::value(const Axis& axis, uint64_t row, size_t name) {
  ++values_read_;
  return axis.value(row, name);
}

// The value of each name with the largest measure; of a range only the ends are compared.
Values ArrayCheck::greatest(size_t (*measure)(const std::string&)) {
  Values greatest = {{"index", std::string(20, '9')}};
  for (const auto& axis : range_.axes)
    for (size_t i = 0; i < axis.names.size(); ++i) {
      std::string best = value(axis, 0, i);
      size_t most = measure(best);
      const uint64_t rows = axis.range_count > 0 ? 2 : axis.count();
      for (uint64_t row = 1; row < rows; ++row) {
        std::string other = value(axis, axis.range_count > 0 ? axis.range_count - 1 : row, i);
        const size_t measured = measure(other);
        if (measured <= most) continue;
        most = measured;
        best = std::move(other);
      }
      greatest.emplace_back(axis.names[i], std::move(best));
    }
  return greatest;
}

void ArrayCheck::check_filled_size() {
  const Values longest = greatest(length);
  Places places;
  const auto add = [&](const std::string& text) {
    const Places more = places_of(text, longest);
    places.count += more.count;
    places.bytes += more.bytes;
  };
  for (const auto& argument : range_.spec.arguments) add(argument);
  for (const auto& variable : range_.spec.environment) add(variable);
  for (const auto& output : range_.spec.outputs) add(output.name);
  if (places.count > kMaxPlaces || octets_of(range_.spec) + places.bytes > kJobBytes)
    over_limit("field.too_many", subject_,
               "parameters are used in more than 1,000 places, or a job's texts have "
               "more than 1 MiB",
               "Use them less often, or put long values into an input file.");
}

// Each value must be a relative name by itself: then no combination of values can leave
// the folder, and only the length and depth remain to be checked.
void ArrayCheck::check_rows(const Axis& axis, size_t name, const std::string& output) {
  for (uint64_t row = 0; row < axis.count(); ++row)
    if (const std::string bad = value(axis, row, name); !is_inside(bad))
      invalid(subject_,
              "the output name `" + output + "` with `" + bad.substr(0, 100) +
                  "` could leave the job's folder",
              "Use values that are relative names, without `.` or `..` as a part.");
}

void ArrayCheck::check_outputs() {
  Values any = values_at(range_.axes, 0);
  any.emplace_back("index", "");
  std::map<std::string, std::string> where;  // the first output that uses each name
  for (const auto& output : range_.spec.outputs)
    for (const auto& name : names_in(output.name, any)) {
      if (!wrong_with_output(fill(output.name, {{name, "x/x"}})).empty())
        invalid(subject_, "the output name `" + output.name + "` has a parameter in [...]",
                "Write the characters literally.");
      where.emplace(name, output.name);
    }
  if (where.empty()) return;
  for (const auto& axis : range_.axes)
    for (size_t i = 0; i < axis.names.size() && axis.range_count == 0; ++i)
      if (const auto found = where.find(axis.names[i]); found != where.end())
        check_rows(axis, i, found->second);
  for (const auto& most : {quoted(greatest(quoted_length)), quoted(greatest(depth))})
    for (const auto& output : range_.spec.outputs)
      if (!wrong_with_output(fill(output.name, most)).empty())
        invalid(subject_, "the output name `" + output.name + "` becomes too long or too deep",
                "Use shorter values: at most 4,096 octets and 63 `/`.");
}

void ArrayCheck::check_axes() {
  std::set<std::string> names;
  size_t bytes = 0;
  if (!range_.axes.empty()) range_.count = 1;
  if (range_.axes.size() > kMaxAxes)
    over_limit("field.too_many", subject_, "more than 64 parameters", "Use a table.");
  for (const auto& axis : range_.axes) {
    check_axis(axis, subject_, names);
    if (names.size() > kMaxNames)
      over_limit("field.too_many", subject_, "more than 1,000 columns of values",
                 "Put them into an input file.");
    for (const auto& value : axis.values) bytes += value.size() + 8;
    if (__builtin_mul_overflow(range_.count, axis.count(), &range_.count) ||
        range_.count > kMaxCombinations)
      over_limit("batch.jobs", subject_, "more than 1,000,000 combinations", "Split it.");
  }
  if (bytes > kMaxValueBytes)
    over_limit("field.too_large", subject_, "more than 2 MiB of values", "Split it.");
}

void ArrayCheck::run() {
  check_axes();
  if (!range_.is_array) return;
  if (range_.count == 0 || range_.first_index + range_.count < range_.first_index)
    invalid(subject_, "an array has no jobs, or its index is too large",
            "Give a count of at least 1.");
  check_filled_size();
  check_outputs();
}

void check_axes(SpecRange& range, const std::string& subject) { ArrayCheck(range, subject).run(); }

}  // namespace sublet
