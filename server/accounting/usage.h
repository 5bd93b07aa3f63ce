// Queries on the uses of machines, and their results: who used which machine, and how
// much work was kept or lost. Value types; server/store/archive/uses.cc runs the queries.
#ifndef SUBLET_SERVER_ACCOUNTING_USAGE_H_
#define SUBLET_SERVER_ACCOUNTING_USAGE_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduling/records.h"

namespace sublet::server {

using scheduling::Micros;

// idl/accounting.idl, BY_...
enum class GroupBy : uint32_t {
  kUser = 1,
  kMachine = 2,
  kBatch = 3,
  kDay = 4,   // UTC: "2026-11-20"
  kWeek = 5,  // ISO 8601, UTC: "2026-W47"
  kJob = 6
};

// "user", "machine", ...
const char* name_of(GroupBy by);
// Whether groups are identified by numbers and not names: batches and jobs by their ids, days
// and weeks counted from 1970.
bool is_numbered(GroupBy by);
// The text in reports for the group with this number.
std::string group_text(GroupBy by, int64_t number);
// The inverse; std::nullopt for a text that group_text() never returns.
std::optional<int64_t> group_number(GroupBy by, const std::string& text);

// How long a report may take.
inline constexpr Micros kLongestReport = 8'000'000;

// Selects the uses that finished in since <= t < until. A use counts as a whole at its
// end.
struct UsageQuery {
  Micros since = 0;
  Micros until = 0;
  std::vector<GroupBy> by;
  std::string user;          // "": all users
  bool with_steps = false;   // also how long the steps of evictions took
  bool with_server = false;  // also the server's CPU time; `by` must have only days and weeks
  // Only groups after this one: a value for each of `by`. Empty: from the first.
  std::vector<std::string> after;
  uint32_t limit = 0;  // lines; 0: all
  Micros may_take = kLongestReport;
};
// How long a step of evictions took, in microseconds after the cause was sensed. Percentiles by
// nearest rank: each was measured.
struct StepSpread {
  uint32_t step = 0;   // STEP_... of idl/types.idl
  uint64_t count = 0;  // evictions in which it was measured; > 0
  int64_t p50 = 0;
  int64_t p95 = 0;
  int64_t p99 = 0;
  int64_t most = 0;
};
// Of values in any order; at least one.
StepSpread spread_of(uint32_t step, std::vector<int64_t>& values);

struct UsageRow {
  std::vector<std::pair<std::string, std::string>> group;
  uint64_t jobs_done = 0;
  uint64_t attempts = 0;
  uint64_t evictions = 0;
  int64_t used = 0;
  int64_t kept = 0;
  int64_t lost = 0;
  int64_t wall = 0;
  int64_t charged = 0;
  int64_t waited = 0;
  std::optional<int64_t> server_cpu;  // with_server
  // with_steps; of the attempts whose ends are in the database, see history.keep_jobs.
  std::vector<StepSpread> steps;
};

struct OldUse {
  scheduling::UseRecord use;
  std::string machine_name;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_ACCOUNTING_USAGE_H_
