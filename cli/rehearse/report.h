// A rehearsal's report, for a person and as data.
#ifndef SUBLET_CLI_REHEARSE_REPORT_H_
#define SUBLET_CLI_REHEARSE_REPORT_H_

#include <string>

#include "cli/rehearse/rehearsal.h"
#include "cli/views/output.h"

namespace sublet::cli {

std::string report_text(const RehearsalReport& report, const Terminal& terminal);
std::string report_json(const RehearsalReport& report);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_REHEARSE_REPORT_H_
