// Text for display: how an attempt ended, and the sizes and spans in sentences.
#ifndef SUBLET_SCHEDULING_QUERIES_TEXT_H_
#define SUBLET_SCHEDULING_QUERIES_TEXT_H_

#include <string>

#include "scheduling/types.h"

namespace sublet::scheduling {

// "evicted: the owner came back"; `detail`, if any, follows in parentheses.
std::string end_text(EndReason ended, const std::string& detail);
// "refused 7 times in a row, last: no room"; followed by again_in.
std::string refusals_text(uint32_t times, const std::string& last);
// "; tried again in 16 s", rounded up.
std::string again_in(Micros wait);
// The sentence without its again_in.
std::string without_again(const std::string& sentence);
// "1 machine", "3 machines".
std::string counted(uint64_t count, const std::string& noun);
// "512 MiB", "1.5 GiB".
std::string bytes_text(uint64_t bytes);
// "40 s", "12 min", "3 h", "2 d": rounded.
std::string span_text(Micros span);
// "2026-12-01 18:00 (UTC+01:00)": in local time, of which UTC is so many seconds behind.
std::string instant_text(Micros instant, int32_t utc_offset);
// "1 share", "2.5 shares".
std::string shares_text(double shares);
// Three significant digits: "3.1", "0.0012".
std::string number_text(double value);

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_QUERIES_TEXT_H_
