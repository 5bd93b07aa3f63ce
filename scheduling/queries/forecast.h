// Forecasts when a waiting job will start from the rate at which slots became free
// recently on the machines that fit it. Deliberately simple; the sentence includes the
// data it is based on. Pure functions.
#ifndef SUBLET_SCHEDULING_QUERIES_FORECAST_H_
#define SUBLET_SCHEDULING_QUERIES_FORECAST_H_

#include <optional>
#include <string>
#include <vector>

#include "scheduling/pool.h"

namespace sublet::scheduling {

// A slot became free for another job: the job was done, failed, removed or held.
// (After an eviction the job itself needs a slot again, so none was gained.)
struct Freed {
  MachineId machine = 0;
  Micros started = 0;
  Micros finished = 0;
};
bool frees_a_place(EndReason ended);

struct Forecast {
  std::optional<Micros> starts_at;  // none: too little data, or too far in the future
  std::string sentence;             // includes the data it is based on
};

// With fewer freed slots there is too little data.
inline constexpr uint64_t kLeastFreed = 3;

// `recent`: all slots freed after `since`, on any machine. The job is expected to start
// when one slot more has become free than there are jobs ahead. The rate is measured
// from `since`, or from the first start of these and the running jobs if that is later.
Forecast forecast(const Outlook& outlook, const std::vector<Freed>& recent, Micros since,
                  Micros now);

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_QUERIES_FORECAST_H_
