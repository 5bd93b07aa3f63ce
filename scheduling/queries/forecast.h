// When a waiting job will start, told from how fast places have come free lately
// on the machines that fit it. Simple on purpose, and it says what it rests on.
// Pure.
#ifndef SUBLET_SCHEDULING_QUERIES_FORECAST_H_
#define SUBLET_SCHEDULING_QUERIES_FORECAST_H_

#include <optional>
#include <string>
#include <vector>

#include "scheduling/pool.h"

namespace sublet::scheduling {

// A job left its place to another: done, failed, removed or held. (After an
// eviction the job itself wants a place again, and none has come free.)
struct Freed {
  MachineId machine = 0;
  Micros started = 0;
  Micros finished = 0;
};
bool frees_a_place(EndReason ended);

struct Forecast {
  std::optional<Micros> starts_at;  // none: there is no basis, or it is too far off
  std::string sentence;             // with the basis
};

// With fewer there is no basis.
inline constexpr uint64_t kLeastFreed = 3;

// `recent`: all that came free after `since`, on any machine. The job starts when
// as many places have come free as jobs are ahead, and one more, at the rate since
// `since`, or since the first of those jobs and of what runs now has started.
Forecast forecast(const Outlook& outlook, const std::vector<Freed>& recent, Micros since,
                  Micros now);

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_QUERIES_FORECAST_H_
