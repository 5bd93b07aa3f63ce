// What `submit --dry-run` shows of a plan. Pure functions.
#ifndef SUBLET_CLI_VIEWS_PLAN_H_
#define SUBLET_CLI_VIEWS_PLAN_H_

#include <string>

#include "cli/batch/plan.h"
#include "cli/transfer/transfer.h"
#include "cli/views/output.h"

namespace sublet::cli {

// A line for each job or array, one for the first and last values of each sweep, one for
// each program for a platform, and the sum.
std::string plan_text(const BatchPlan& plan, const InputFiles& files, const Terminal& terminal);
// The format is in docs/json.md.
std::string plan_json(const BatchPlan& plan, const InputFiles& files);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_PLAN_H_
