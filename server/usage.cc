// Who used what: sums over table uses.
#include "server/archive_connections.h"
#include "server/sql_row.h"

namespace sublet::server {
namespace {

std::string group_column(uint32_t by) {
  switch (by) {
    case 1:
      return "uses.user_name";
    case 2:
      return "coalesce((select name from machines where machines.id = uses.machine), 'gone')";
    case 3:
      return "cast(uses.batch as text)";
    case 4:
      return "date(uses.finished / 1000000, 'unixepoch')";
    default:
      return "strftime('%Y-W%W', uses.finished / 1000000, 'unixepoch')";
  }
}
const char* group_name(uint32_t by) {
  constexpr const char* kNames[] = {"user", "machine", "batch", "day", "week"};
  return kNames[by - 1];
}

}  // namespace

std::vector<UsageRow> Archive::usage(const UsageQuery& query) {
  return connections_->with([&](soci::session& sql) {
    std::string columns, groups;
    for (uint32_t by : query.by) {
      columns += group_column(by) + ", ";
      groups += (groups.empty() ? " group by " : ", ") + group_column(by);
    }
    soci::rowset<soci::row> rows =
        (sql.prepare << "select " << columns
                     << "sum(ended = 1), count(*), sum(ended >= 16 and ended <= 20), sum(used), "
                        "sum(kept), sum(lost), sum(wall), sum(charged) from uses where finished >= "
                     << query.since << " and finished < " << query.until
                     << " and (:user = '' or user_name = :user)" << groups
                     << " having count(*) > 0",
         soci::use(query.user, "user"));
    std::vector<UsageRow> result;
    for (const auto& r : rows) {
      UsageRow row;
      size_t at = 0;
      for (uint32_t by : query.by) row.group.emplace_back(group_name(by), r.get<std::string>(at++));
      auto next = [&] { return integer(r, at++); };
      row.jobs_done = next();
      row.attempts = next();
      row.evictions = next();
      row.used = next();
      row.kept = next();
      row.lost = next();
      row.wall = next();
      row.charged = next();
      result.push_back(row);
    }
    return result;
  });
}

}  // namespace sublet::server
