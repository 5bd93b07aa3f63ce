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
    return held_.of(asked.first) + asked.second <= offered_.of(asked.first);
  });
}

void LicenceBook::release(const NamedAmounts& amounts) {
  held_.take(amounts);
  released_.add(licences_in(amounts));
}

}  // namespace sublet::scheduling
