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
  bool of_users = false;  // includes the users' standings
  bool of_steps = false;  // how long the steps of evictions took
  std::vector<StepSpread> total_steps;
  std::vector<Standing> standings;
  Policies policies;  // if of_users
};

// CPU time per wall-clock time in ppm; -1 if nothing ran.
int64_t cpu_ppm(const UsageLine& line);
// Kept CPU time per CPU time of the server; 0: not known.
double leverage(const UsageLine& line);

// Each line, and their sum if there are several.
std::string usage_table(const std::vector<UsageLine>& lines, size_t width, bool colour);
// How long the steps of evictions took: for each line, and for all of them (`total`) if there are
// several.
std::string steps_table(const std::vector<UsageLine>& lines, const std::vector<StepSpread>& total,
                        size_t width, bool colour);
std::string standings_table(const std::vector<Standing>& standings, size_t width, bool colour);
void write_json(JsonWriter& json, const Report& report);
void write_json(JsonWriter& json, const Standing& standing);
// A heading and a line for each line of usage; RFC 4180, but with \n as line end. `by`: the
// names of the groups. If grouped by user, standings are added; a user without usage has
// empty cells there.
std::string report_csv(const Report& report, const std::vector<std::string>& by);
// A line for each step of each line.
std::string steps_csv(const Report& report, const std::vector<std::string>& by);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_REPORTS_H_
