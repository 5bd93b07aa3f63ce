// The policies in force, as text and JSON. Pure functions.
#ifndef SUBLET_CLI_VIEWS_POLICIES_H_
#define SUBLET_CLI_VIEWS_POLICIES_H_

#include <string>

#include "base/json.h"
#include "cli/pool/pool.h"

namespace sublet::cli {

// "policy fifo, set by root 3 min ago", cut off at this width (0: no limit).
std::string policy_line(const Policies& policies, int64_t now_us, size_t width);
// All parameters, one on a line.
std::string policies_table(const Policies& policies, size_t width, bool colour);
void write_json(JsonWriter& json, const Policies& policies);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_POLICIES_H_
