#include "scheduling/books/licence_book.h"

#include <algorithm>

namespace sublet::scheduling {

using rules::NamedAmounts;

NamedAmounts LicenceBook::licences_in(const NamedAmounts& amounts) const {
  NamedAmounts found;
  for (const auto& [name, amount] : amounts)
    if (offered_.has(name)) found.set(name, amount);
  return found;
}

NamedAmounts LicenceBook::others_in(const NamedAmounts& amounts) const {
  NamedAmounts found;
  for (const auto& [name, amount] : amounts)
    if (!offered_.has(name)) found.set(name, amount);
  return found;
}

bool LicenceBook::has_left(const NamedAmounts& licences) const {
  return std::all_of(licences.begin(), licences.end(), [&](const NamedAmounts::Pair& asked) {
    const auto& [name, amount] = asked;
    return held_.of(name) + kept_.of(name) + amount <= offered_.of(name);
  });
}

bool LicenceBook::has_left_of_kept(const NamedAmounts& licences) const {
  return std::all_of(licences.begin(), licences.end(), [&](const NamedAmounts::Pair& asked) {
    return held_.of(asked.first) + asked.second <= offered_.of(asked.first);
  });
}

bool LicenceBook::may_keep(const NamedAmounts& licences) const {
  uint64_t all = 0;
  for (const auto& [name, amount] : licences) {
    if (kept_.of(name) > 0 || amount > offered_.of(name)) return false;
    all += amount;
  }
  return all > 1;
}

void LicenceBook::give_up(const NamedAmounts& licences) {
  kept_.take(licences);
  released_.add(licences);
}

void LicenceBook::release(const NamedAmounts& amounts) {
  held_.take(amounts);
  released_.add(licences_in(amounts));
}

}  // namespace sublet::scheduling
