// What all lists have in common: cursors that are a number, and that a page is
// bounded in octets too, whatever its items hold.
#ifndef SUBLET_SERVER_SERVANTS_PAGE_H_
#define SUBLET_SERVER_SERVANTS_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "accounting.hh"
#include "job_scheduler.hh"
#include "machine_allocator.hh"
#include "membership.hh"

namespace sublet::server {

// 0 of an empty one. Throws Refusal kInvalid "cursor.bad" unless it is a number.
uint64_t number_from(const Sublet::v1::Bytes& cursor);

// Octets of an item in a message, about: not less than there are.
size_t octets_of(const Sublet::v1::JobSummary& item);
size_t octets_of(const Sublet::v1::AttemptInfo& item);
size_t octets_of(const Sublet::v1::OutputInfo& item);
size_t octets_of(const Sublet::v1::Change& item);
size_t octets_of(const Sublet::v1::MachineInfo& item);
size_t octets_of(const Sublet::v1::MemberInfo& item);
size_t octets_of(const Sublet::v1::UsageLine& item);
size_t octets_of(const Sublet::v1::Standing& item);

// How many of the items, from the first, fit on a page: at least one, if there is one.
template <typename Items>
CORBA::ULong fitting(const Items& items) {
  size_t octets = 0;
  for (CORBA::ULong i = 0; i < items.length(); ++i) {
    octets += octets_of(items[i]);
    if (i > 0 && octets > Sublet::v1::PAGE_BYTES) return i;
  }
  return items.length();
}

// Leaves of `items` what fits on a page. Returns where the next one begins: `next`
// if all fit, else what `after` says of the index of the last that is left.
template <typename Items, typename After>
std::string end_page(Items& items, const std::string& next, After after) {
  const CORBA::ULong count = fitting(items);
  if (count == items.length()) return next;
  items.length(count);
  return after(count - 1);
}

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SERVANTS_PAGE_H_
