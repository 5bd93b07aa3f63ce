// Questions about table uses, and their answers: who used which machine, and
// what became of the work. Values.
#ifndef SUBLET_SERVER_USAGE_H_
#define SUBLET_SERVER_USAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "scheduling/types.h"

namespace sublet::server {

using scheduling::Micros;

struct UsageQuery {
  Micros since = 0;
  Micros until = 0;
  std::vector<uint32_t> by;
  std::string user;
};
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
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_USAGE_H_
