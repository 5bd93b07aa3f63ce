// Common code of all lists: numeric cursors, and the limit of a page in octets.
#ifndef SUBLET_SERVER_SERVANTS_PAGE_H_
#define SUBLET_SERVER_SERVANTS_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "accounting.hh"
#include "administration.hh"
#include "job_scheduler.hh"
#include "machine_allocator.hh"
#include "membership.hh"

namespace sublet::server {

// 0 for an empty cursor. Throws Refusal kInvalid "cursor.bad" unless it is a number.
uint64_t number_from(const Sublet::v1::Bytes& cursor);

// An upper estimate of the octets of an item in a message.
size_t octets_of(const Sublet::v1::JobSummary& item);
size_t octets_of(const Sublet::v1::AttemptInfo& item);
size_t octets_of(const Sublet::v1::OutputInfo& item);
size_t octets_of(const Sublet::v1::Change& item);
size_t octets_of(const Sublet::v1::MachineInfo& item);
size_t octets_of(const Sublet::v1::MemberInfo& item);
size_t octets_of(const Sublet::v1::UserShares& item);
size_t octets_of(const Sublet::v1::Quota& item);
size_t octets_of(const Sublet::v1::UsageLine& item);
size_t octets_of(const Sublet::v1::Standing& item);

// The number of items that fit on a page: at least one, unless there are none.
template <typename Items>
CORBA::ULong fitting(const Items& items) {
  size_t octets = 0;
  for (CORBA::ULong i = 0; i < items.length(); ++i) {
    octets += octets_of(items[i]);
    if (i > 0 && octets > Sublet::v1::PAGE_BYTES) return i;
  }
  return items.length();
}

// Truncates `items` to what fits on a page. Returns the cursor of the next page: `next`
// if all fit, else `after` of the index of the last remaining item.
template <typename Items, typename After>
std::string end_page(Items& items, const std::string& next, After after) {
  const CORBA::ULong count = fitting(items);
  if (count == items.length()) return next;
  items.length(count);
  return after(count - 1);
}

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SERVANTS_PAGE_H_
