#include "job/axis.h"

#include <algorithm>

namespace sublet {
namespace {

// Finds the next "{NAME}" of a known name from `from` on; nullptr: there is none.
const std::pair<std::string, std::string>* next_place(std::string_view text, const Values& values,
                                                      size_t from, size_t* at) {
  for (*at = text.find('{', from); *at != std::string_view::npos; *at = text.find('{', *at + 1)) {
    const size_t end = text.find_first_of("{}", *at + 1);
    if (end == std::string_view::npos || text[end] != '}') continue;
    const std::string_view name = text.substr(*at + 1, end - *at - 1);
    const auto found =
        std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == name; });
    if (found != values.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

bool is_parameter_name(std::string_view name) {
  const auto letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  const auto fits = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 64 && name != "index" && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), fits);
}

uint64_t Axis::count() const {
  if (range_count > 0) return range_count;
  return names.empty() ? 0 : values.size() / names.size();
}

std::string Axis::value(uint64_t row, size_t name) const {
  if (range_count == 0) return values[row * names.size() + name];
  // Valid ranges do not overflow; unsigned in case a stored row is damaged.
  return std::to_string(
      static_cast<int64_t>(static_cast<uint64_t>(first) + row * static_cast<uint64_t>(step)));
}

Values values_at(const std::vector<Axis>& axes, uint64_t number) {
  Values values;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const uint64_t row = number % axis->count();
    number /= axis->count();
    for (size_t i = 0; i < axis->names.size(); ++i)
      values.emplace_back(axis->names[i], axis->value(row, i));
  }
  return values;
}

std::string fill(std::string_view text, const Values& values) {
  std::string filled;
  size_t done = 0, at = 0;
  while (const auto* place = next_place(text, values, done, &at)) {
    filled += text.substr(done, at - done);
    filled += place->second;
    done = at + place->first.size() + 2;
  }
  filled += text.substr(done);
  return filled;
}

std::set<std::string> names_in(std::string_view text, const Values& values) {
  std::set<std::string> names;
  size_t done = 0, at = 0;
  while (const auto* place = next_place(text, values, done, &at)) {
    names.insert(place->first);
    done = at + place->first.size() + 2;
  }
  return names;
}

Places places_of(std::string_view text, const Values& values) {
  Places places;
  size_t done = 0, at = 0;
  while (const auto* place = next_place(text, values, done, &at)) {
    ++places.count;
    places.bytes += place->second.size();
    done = at + place->first.size() + 2;
  }
  return places;
}

}  // namespace sublet
