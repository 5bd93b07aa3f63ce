// Output of workstations: a table, and JSON (formats in docs/json.md). Pure functions.
#ifndef SUBLET_CLI_VIEWS_MACHINES_H_
#define SUBLET_CLI_VIEWS_MACHINES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/pool/pool.h"

namespace sublet::cli {

std::string machines_table(const std::vector<MachineInfo>& machines, int64_t now_us, size_t width,
                           bool colour);
// A line for each that rests after failures: until when, by the local clock, and why.
std::string rests_text(const std::vector<MachineInfo>& machines);
void write_json(JsonWriter& json, const MachineInfo& machine);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_MACHINES_H_
