// The server's durable state. Store is a seam: the real one is SQLite through
// SOCI (sql_store.h); tests put failures in front of it.
//
// Threads: load, commit, find_request, parts: the committer's. The read-only
// questions live in Archive, which sees committed rows only and so can never
// tell what is not on disk.
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

// The store could not read or write; the text says what and what to do.
class StoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Store {
 public:
  virtual ~Store() = default;
  // What the brain is rebuilt from: pool, users, machines, live jobs and
  // attempts. A row that cannot be read is left out and named in `damage`.
  virtual scheduling::Snapshot load(std::vector<std::string>* damage) = 0;
  // All or nothing, and on disk when this returns. Throws StoreError: nothing
  // was written.
  virtual void commit(const Changes& changes) = 0;
  virtual std::optional<RequestRow> find_request(const std::string& key) = 0;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_COMMIT_STORE_H_
