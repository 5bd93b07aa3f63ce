// What Accounting tells, without the ORB: reports and standings, each caller what
// that caller may see: users their own lines and everybody's standing, without
// which they cannot compare themselves; administrators all.
//
// Threads: any.
#ifndef SUBLET_SERVER_ACCOUNTING_SERVICE_H_
#define SUBLET_SERVER_ACCOUNTING_SERVICE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduling/queries/user_order.h"
#include "server/access.h"
#include "server/commit/pipeline.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

struct UsageLines {
  std::vector<UsageRow> rows;
  std::string next;  // "": the end
  Micros until = 0;  // of the uses that are told, on all pages
};

struct UserStanding {
  scheduling::Standing standing;
  std::optional<Micros> cpu_day;  // of attempts that ended in the last day; the caller's to see
  std::string sentence;
};

// In order of user.
struct StandingLines {
  std::vector<UserStanding> standings;
  std::string next;  // the last user of the page; "": the end
};

// Where the page after this row begins. "UNTIL:VALUE:VALUE...", the values of its
// groups percent-encoded.
std::string cursor_after(Micros until, const UsageRow& row);

class UsageService {
 public:
  UsageService(Pipeline& pipeline, Archive& archive, Access& access)
      : pipeline_(pipeline), archive_(archive), access_(access) {}

  // query.until 0: up to what is committed now, the same for all pages. Throws
  // Refusal: a bad cursor or grouping; kNotPermitted when another user is asked for;
  // kLimitExceeded when it takes too long.
  UsageLines report(const Caller& caller, UsageQuery query, const std::string& cursor,
                    uint32_t limit);
  // Of the users after `after`, at most `limit` of them.
  StandingLines standings(const Caller& caller, const std::string& after, uint32_t limit);

 private:
  Micros now();
  std::optional<std::map<std::string, Micros>> cpu_of_the_day(const Caller& caller, Micros now);

  Pipeline& pipeline_;
  Archive& archive_;
  Access& access_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_ACCOUNTING_SERVICE_H_
