// The store in SQLite (WAL, synchronous=FULL), accessed through SOCI so that a
// PostgreSQL pair can replace SQLite. Only this folder includes SOCI, and only
// sqlite.{h,cc} is specific to SQLite.
#ifndef SUBLET_SERVER_STORE_SQL_STORE_H_
#define SUBLET_SERVER_STORE_SQL_STORE_H_

#include <memory>
#include <string>

#include "server/commit/store.h"
#include "server/store/log_mover.h"

namespace sublet::server {

class SqlStore : public Store {
 public:
  // Opens or creates the database at `path`. Throws StoreError, also for a
  // database of another version.
  explicit SqlStore(const std::string& path, const LogSizes& log = {});
  ~SqlStore() override;

  scheduling::Snapshot load(std::vector<std::string>* damage) override;
  void commit(const Changes& changes) override;
  std::optional<RequestRow> find_request(const std::string& key) override;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_SQL_STORE_H_
