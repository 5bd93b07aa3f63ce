// What each sense sees, in words, for `sublet owner status`.
#ifndef SUBLET_LOADMON_SENSE_LINES_H_
#define SUBLET_LOADMON_SENSE_LINES_H_

#include <string>
#include <vector>

#include "protocol/presence.h"

namespace sublet::loadmon {

struct SenseLine {
  std::string name;   // "input"
  std::string value;  // "3 s ago (terminals)"
  bool keeps_jobs_away = false;
};

// What the sample shows. Senses that this rule does not use, or that do not exist here, have no
// line.
std::vector<SenseLine> sense_lines(const protocol::PresenceSample& sample,
                                   const protocol::OwnerPresence& presence,
                                   const protocol::PresenceRule& rule);

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSE_LINES_H_
