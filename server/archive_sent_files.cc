#include "server/archive.h"
#include "server/archive_connections.h"
#include "server/sql_row.h"

namespace sublet::server {

std::map<uint64_t, SentFile> Archive::sent_files(scheduling::AttemptKey key) {
  return connections_->with([&](soci::session& sql) {
    std::map<uint64_t, SentFile> sent;
    soci::rowset<soci::row> rows = (sql.prepare << "select id, kind, name from files where job > 0 "
                                                   "and job = "
                                                << key.job << " and attempt = " << key.attempt);
    for (const auto& r : rows)
      sent[integer(r, 0)] = {static_cast<FileKind>(integer(r, 1)), r.get<std::string>(2)};
    return sent;
  });
}

}  // namespace sublet::server
