#include "server/store/pool_id.h"

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include "base/random.h"
#include "base/text.h"
#include "server/commit/store.h"

namespace sublet::server {

std::string pool_id(const std::string& database) {
  try {
    soci::session sql(soci::sqlite3, "db=" + database + " timeout=10");
    sql << "PRAGMA synchronous=FULL";
    const std::string made = hex_encode(random_bytes(16));
    sql << "insert into pool_id (id) select :made where not exists (select 1 from pool_id)",
        soci::use(made, "made");
    std::string id;
    sql << "select id from pool_id", soci::into(id);
    return hex_decode(id).value_or("");
  } catch (const soci::soci_error& e) {
    throw StoreError("cannot read the pool's id in " + database + ": " + e.get_error_message());
  }
}

}  // namespace sublet::server
