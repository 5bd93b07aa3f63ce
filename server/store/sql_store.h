// The store in SQLite (WAL, synchronous=FULL) through SOCI. SOCI is used so
// that a PostgreSQL pair can take SQLite's place; only this folder includes it,
// and only sqlite.{h,cc} holds what is SQLite's own.
#ifndef SUBLET_SERVER_STORE_SQL_STORE_H_
#define SUBLET_SERVER_STORE_SQL_STORE_H_

#include <memory>
#include <string>

#include "server/commit/store.h"

namespace sublet::server {

class SqlStore : public Store {
 public:
  // Opens or makes the database at `path`. Throws StoreError, also for a
  // database of a newer version.
  explicit SqlStore(const std::string& path);
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
