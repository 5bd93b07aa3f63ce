// What a job waits for, as users write it: names of jobs of the same batch, elements of arrays,
// and ids. Pure.
#ifndef SUBLET_CLI_BATCH_REFERENCES_H_
#define SUBLET_CLI_BATCH_REFERENCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/batch/plan.h"

namespace sublet::cli {

struct WrongReference {
  std::string error;  // empty: all references were found
  uint32_t line = 0;  // where it is written; 0: on the command line
  uint32_t column = 0;
};

// Turns PlannedJob::references of the whole batch into references by index and id:
//   "mesh"     all jobs of the batch that are called so
//   "mesh[3]"  the one of them with that number, from 0; of an array, that {index}
//   "17", "17-20"  ids, unless a job of the batch is called so
WrongReference find_references(BatchPlan* plan);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_BATCH_REFERENCES_H_
