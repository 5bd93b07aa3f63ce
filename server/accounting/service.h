// Accounting without the ORB: reports and standings. Users see only their own lines,
// but the standings of all users, so that they can compare; administrators see
// everything.
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
  std::string next;  // cursor of the next page; "": this is the last page
  Micros until = 0;  // end of the reported period, on all pages
};

struct UserStanding {
  scheduling::Standing standing;
  std::optional<Micros> cpu_day;  // of attempts that ended in the last day, if visible to caller
  std::string reason;
  std::vector<std::string> users = {};  // who share this account; none: it is a user
};

// In order of user.
struct StandingLines {
  std::vector<UserStanding> standings;
  std::string next;  // the last user of this page; "": this is the last page
};

// The cursor of the page that begins after this row: "UNTIL:VALUE:VALUE...", with the
// values of its groups percent-encoded.
std::string cursor_after(Micros until, const UsageRow& row);

class UsageService {
 public:
  UsageService(Pipeline& pipeline, Archive& archive, Access& access)
      : pipeline_(pipeline), archive_(archive), access_(access) {}

  // query.until 0: everything committed until now, the same for all pages. Throws
  // Refusal: kInvalid for a bad cursor or grouping, kNotPermitted for another user's
  // usage, kLimitExceeded when it takes too long.
  UsageLines report(const Caller& caller, UsageQuery query, const std::string& cursor,
                    uint32_t limit);
  // The standings of at most `limit` users after `after`.
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
