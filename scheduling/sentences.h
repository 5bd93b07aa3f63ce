// The brain's sentences for people: how an attempt ended, and sizes and spans
// inside other sentences.
#ifndef SUBLET_SCHEDULING_SENTENCES_H_
#define SUBLET_SCHEDULING_SENTENCES_H_

#include <string>

#include "scheduling/types.h"

namespace sublet::scheduling {

// "evicted: the owner came back"; with `detail`, that follows in parentheses.
std::string end_sentence(EndReason ended, const std::string& detail);
// "1 machine", "3 machines".
std::string counted(uint64_t count, const std::string& noun);
// "512 MiB", "1.5 GiB".
std::string bytes_text(uint64_t bytes);
// Three significant digits: "3.1", "0.0012".
std::string number_text(double value);

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_SENTENCES_H_
