#include "server/store/live.h"

#include "server/store/sqlite.h"

// A job is final in states 5, 6 and 7, an attempt in state 5. Conditions on `state` must be
// those of the indexes (tables.cc).
namespace sublet::server {

using sqlite::through;

std::vector<std::string> live_jobs() {
  return {"jobs" + through("jobs_live") + " where state not in (5, 6, 7)",
          "jobs where state in (5, 6, 7) and id in (select job from attempts" +
              through("attempts_live") + " where state <> 5)"};
}

std::vector<std::string> live_attempts() {
  return {"attempts" + through("attempts_live") + " where state <> 5",
          "jobs j" + through("jobs_live") +
              " cross join attempts where attempts.job = j.id and attempts.attempt = j.attempts "
              "and j.state not in (5, 6, 7) and j.attempts > 0 and attempts.state = 5"};
}

std::vector<std::string> live_stops() {
  return {"stops where batch in (select batch from jobs" + through("jobs_live") +
          " where state not in (5, 6, 7))"};
}

}  // namespace sublet::server
