// What `sublet report` prints: tables, JSON, CSV. Pure.
#ifndef SUBLET_CLI_VIEWS_REPORTS_H_
#define SUBLET_CLI_VIEWS_REPORTS_H_

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/pool/pool.h"

namespace sublet::cli {

struct Report {
  std::vector<UsageLine> usage;
  bool of_users = false;  // how users stand belongs to it
  std::vector<Standing> standings;
};

// CPU per wall-clock time, ppm; -1 where nothing ran.
int64_t cpu_ppm(const UsageLine& line);
// Kept CPU per CPU that the server spent; 0: not known.
double leverage(const UsageLine& line);

// Each line, and their sum below where there are several.
std::string usage_table(const std::vector<UsageLine>& lines, size_t width, bool colour);
std::string standings_table(const std::vector<Standing>& standings, size_t width, bool colour);
void write_json(JsonWriter& json, const Report& report);
void write_json(JsonWriter& json, const Standing& standing);
// One heading and a line for each of usage; RFC 4180, but for line ends of \n.
// `by`: the names of the groups. Where they are the users, their standing stands
// beside; one without a line of usage has empty cells there.
std::string report_csv(const Report& report, const std::vector<std::string>& by);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_REPORTS_H_
