// What `sublet metrics` prints: OpenMetrics text. Pure.
#ifndef SUBLET_CLI_VIEWS_METRICS_H_
#define SUBLET_CLI_VIEWS_METRICS_H_

#include <string>
#include <vector>

#include "cli/pool/pool.h"

namespace sublet::cli {

struct PoolMetrics {
  JobCounts jobs;  // that have not ended
  std::vector<MachineInfo> machines;
  UsageLine last_hour;  // with steps
};

std::string metrics_text(const PoolMetrics& metrics);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_METRICS_H_
