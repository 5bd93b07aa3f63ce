#include "scheduling/queries/forecast.h"

#include <algorithm>

#include "scheduling/queries/text.h"

namespace sublet::scheduling {
namespace {
// A forecast beyond this gives no time.
constexpr double kFarthest = 365 * 86'400e6;
}  // namespace

bool frees_a_place(EndReason ended) {
  return ended == EndReason::kDone || is_failure(ended) || ended == EndReason::kRemoved ||
         ended == EndReason::kHeld;
}

Forecast forecast(const Outlook& outlook, const std::vector<Freed>& recent, Micros since,
                  Micros now) {
  // One slot that becomes free may be enough, or all.
  if (outlook.promised)
    return {std::nullopt,
            "not known: as soon as others have made room where it is promised a place"};
  // What became free before their owners came back says nothing of when they leave.
  if (outlook.lent == 0)
    return {
        std::nullopt,
        "not known: the machines that fit are used by their owners, silent, drained or promised "
        "to other jobs"};
  uint64_t freed = 0;
  Micros first = outlook.at_work_since != 0 ? outlook.at_work_since : now;
  for (const Freed& f : recent) {
    if (!std::binary_search(outlook.machines.begin(), outlook.machines.end(), f.machine)) continue;
    ++freed;
    first = std::min(first, f.started != 0 ? f.started : f.finished);
  }
  const Micros span = std::max<Micros>(now - std::max(first, since), 1);
  const auto basis = [freed](Micros in_the_last) {
    return counted(freed, "slot") + " became free in the last " + span_text(in_the_last) +
           " on the machines that fit";
  };
  if (freed < kLeastFreed) return {std::nullopt, "too little data yet: " + basis(now - since)};
  const double wait = static_cast<double>(outlook.ahead + 1) * static_cast<double>(span) /
                      static_cast<double>(freed);
  const std::string because = std::string(": ") + (outlook.ahead_is_all ? "" : "at least ") +
                              counted(outlook.ahead, "job") +
                              (outlook.ahead == 1 ? " is" : " are") + " ahead, and " + basis(span);
  if (wait > kFarthest) return {std::nullopt, "not within a year" + because};
  const Micros rounded = static_cast<Micros>(wait);
  const std::string when = outlook.ahead_is_all ? "in about " + span_text(rounded)
                                                : "not before " + span_text(rounded) + " from now";
  return {now + rounded, when + because};
}

}  // namespace sublet::scheduling
