// The server's durable state. Store is an interface: the implementation is SQLite
// through SOCI (sql_store.h); tests wrap it to inject failures.
//
// Threads: the committer only. Read-only queries are in Archive, which sees only
// committed rows and so never returns what is not on disk.
#ifndef SUBLET_SERVER_COMMIT_STORE_H_
#define SUBLET_SERVER_COMMIT_STORE_H_

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "scheduling/records.h"
#include "server/commit/changes.h"

namespace sublet::server {

// The store could not read or write; the message says what to do.
class StoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Store {
 public:
  virtual ~Store() = default;
  // The state the brain is rebuilt from: pool, users, machines, live jobs and
  // attempts. A row that cannot be read is skipped and reported in `damage`.
  virtual scheduling::Snapshot load(std::vector<std::string>* damage) = 0;
  // Atomic, and on disk when this returns. Throws StoreError; nothing was written
  // then.
  virtual void commit(const Changes& changes) = 0;
  virtual std::optional<RequestRow> find_request(const std::string& key) = 0;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_COMMIT_STORE_H_
