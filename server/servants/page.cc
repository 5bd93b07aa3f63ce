#include "server/servants/page.h"

#include <cstring>

#include "server/page_limit.h"
#include "server/refusal.h"
#include "server/servants/translate.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;

static_assert(v1::PAGE_ITEMS == kPageItems && v1::SHOWN == kShown);

constexpr size_t kNumbers = 256;  // at least the octets of any item's numbers and string lengths

template <typename... Texts>
size_t octets_of_texts(const Texts&... texts) {
  return (std::strlen(texts.in()) + ... + kNumbers);
}

size_t octets_of(const v1::Details& details) {
  size_t octets = 0;
  for (CORBA::ULong i = 0; i < details.length(); ++i)
    octets += 16 + std::strlen(details[i].name.in()) + std::strlen(details[i].value.in());
  return octets;
}

}  // namespace

uint64_t number_from(const v1::Bytes& cursor) {
  const std::string at = from_octets(cursor);
  if (at.size() > 19 || at.find_first_not_of("0123456789") != std::string::npos)
    throw Refusal(Refusal::Kind::kInvalid, "cursor.bad", "this cursor is not from this server",
                  "Start with an empty cursor.", "cursor");
  return at.empty() ? 0 : std::stoull(at);
}

size_t octets_of(const v1::JobSummary& item) {
  return octets_of_texts(item.name, item.user, item.machine, item.reason) + octets_of(item.more);
}

size_t octets_of(const v1::AttemptInfo& item) {
  return octets_of_texts(item.machine_name, item.reason) + octets_of(item.more);
}

size_t octets_of(const v1::OutputInfo& item) {
  return kNumbers + item.name.length() + octets_of(item.more);
}

size_t octets_of(const v1::Change& item) { return kNumbers / 2 + octets_of(item.more); }

size_t octets_of(const v1::MachineInfo& item) {
  constexpr size_t kAttemptKey = 16;
  return octets_of_texts(item.description.name, item.description.os, item.description.architecture,
                         item.description.version) +
         kNumbers + kAttemptKey * item.running.length() + octets_of(item.more);
}

size_t octets_of(const v1::MemberInfo& item) {
  return octets_of_texts(item.name, item.invited_by) + octets_of(item.more);
}

size_t octets_of(const v1::UserShares& item) {
  return octets_of_texts(item.user) + octets_of(item.more);
}

size_t octets_of(const v1::Quota& item) {
  return octets_of_texts(item.user) + octets_of(item.more);
}

size_t octets_of(const v1::UsageLine& item) {
  return kNumbers + octets_of(item.group) + octets_of(item.more);
}

size_t octets_of(const v1::Standing& item) {
  return octets_of_texts(item.user, item.reason) + octets_of(item.more);
}

}  // namespace sublet::server
