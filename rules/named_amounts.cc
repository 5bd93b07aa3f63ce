#include "rules/named_amounts.h"

#include <algorithm>
#include <charconv>

namespace sublet::rules {
namespace {

constexpr std::string_view kBetween = ", \t\r\n";

bool is_name(std::string_view name) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto allowed = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kLongestName && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), allowed);
}

// These have a form of their own everywhere.
bool is_built_in(std::string_view name) {
  return name == "cores" || name == "memory" || name == "disk" || name == "slots";
}

NamedAmounts::Pair pair_of(std::string_view word) {
  const size_t equals = word.find('=');
  uint64_t amount = 0;
  const std::string_view number = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  const char* const last = number.data() + number.size();
  const auto [end, error] = std::from_chars(number.data(), last, amount);
  if (number.empty() || error != std::errc() || end != last)
    throw AmountError("'" + std::string(word.substr(0, 100)) +
                      "' is not of the form NAME=AMOUNT, such as gpu=1; amounts are whole numbers");
  return {std::string(word.substr(0, equals)), amount};
}

auto before = [](const NamedAmounts::Pair& pair, std::string_view name) {
  return pair.first < name;
};

// Goes through both in order: merge(name, in a, in b).
template <typename Merge>
void merged(const NamedAmounts& a, const NamedAmounts& b, Merge merge) {
  auto i = a.begin(), j = b.begin();
  while (i != a.end() || j != b.end()) {
    const bool from_a = j == b.end() || (i != a.end() && i->first <= j->first);
    const bool from_b = i == a.end() || (j != b.end() && j->first <= i->first);
    merge(from_a ? i->first : j->first, from_a ? i->second : 0, from_b ? j->second : 0);
    if (from_a) ++i;
    if (from_b) ++j;
  }
}

}  // namespace

NamedAmounts::NamedAmounts(std::vector<Pair> pairs) : pairs_(std::move(pairs)) {
  std::sort(pairs_.begin(), pairs_.end());
}

NamedAmounts NamedAmounts::parse(std::string_view text) {
  std::vector<Pair> pairs;
  for (size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos;
       at = text.find_first_not_of(kBetween, at)) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    pairs.push_back(pair_of(text.substr(at, end - at)));
    at = end;
  }
  NamedAmounts amounts(std::move(pairs));
  if (const std::string problem = amounts.problem(); !problem.empty()) throw AmountError(problem);
  return amounts;
}

NamedAmounts NamedAmounts::stored(std::string_view text, bool* damaged) {
  try {
    return parse(text);
  } catch (const AmountError&) {
    if (damaged != nullptr) *damaged = true;
    return {};
  }
}

std::string NamedAmounts::problem() const {
  if (pairs_.size() > kMostNames) return "more than " + std::to_string(kMostNames) + " names";
  const std::string* previous = nullptr;
  for (const auto& [name, amount] : pairs_) {
    const std::string shown = "'" + name.substr(0, 100) + "'";
    if (!is_name(name))
      return shown + " is not a name: it must begin with a letter a to z, and have at most " +
             std::to_string(kLongestName) + " of a to z, 0 to 9, _ and -";
    if (is_built_in(name)) return shown + " is not a named amount: it is said apart from these";
    if (previous != nullptr && *previous == name) return shown + " is there twice";
    if (amount > kMostOfOne)
      return shown + ": the amount must be at most " + std::to_string(kMostOfOne);
    previous = &name;
  }
  return "";
}

std::string NamedAmounts::text() const {
  std::string text;
  for (const auto& [name, amount] : pairs_)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(amount);
  return text;
}

bool NamedAmounts::has(std::string_view name) const {
  const auto it = std::lower_bound(pairs_.begin(), pairs_.end(), name, before);
  return it != pairs_.end() && it->first == name;
}

uint64_t NamedAmounts::of(std::string_view name) const {
  const auto it = std::lower_bound(pairs_.begin(), pairs_.end(), name, before);
  return it != pairs_.end() && it->first == name ? it->second : 0;
}

bool NamedAmounts::within(const NamedAmounts& room) const {
  return std::all_of(pairs_.begin(), pairs_.end(),
                     [&](const Pair& pair) { return pair.second <= room.of(pair.first); });
}

void NamedAmounts::set(const std::string& name, uint64_t amount) {
  const auto it = std::lower_bound(pairs_.begin(), pairs_.end(), name, before);
  if (it != pairs_.end() && it->first == name)
    it->second = amount;
  else
    pairs_.insert(it, {name, amount});
}

void NamedAmounts::add(const NamedAmounts& more) {
  for (const auto& [name, amount] : more) set(name, of(name) + amount);
}

void NamedAmounts::take(const NamedAmounts& less) {
  for (const auto& [name, amount] : less)
    if (has(name)) set(name, of(name) - std::min(of(name), amount));
  forget_zeros();
}

void NamedAmounts::forget_zeros() {
  std::erase_if(pairs_, [](const Pair& pair) { return pair.second == 0; });
}

NamedAmounts most(const NamedAmounts& a, const NamedAmounts& b) {
  std::vector<NamedAmounts::Pair> pairs;
  merged(a, b, [&](const std::string& name, uint64_t in_a, uint64_t in_b) {
    pairs.emplace_back(name, std::max(in_a, in_b));
  });
  return NamedAmounts(std::move(pairs));
}

}  // namespace sublet::rules
