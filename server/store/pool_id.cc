#include "server/store/pool_id.h"

#include <soci/soci.h>

#include <optional>

#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "server/commit/store.h"
#include "server/store/sqlite.h"

namespace sublet::server {
namespace {
constexpr size_t kOctets = 16;
}

std::string pool_id(const std::string& database) {
  try {
    soci::session sql;
    sqlite::open_to_change(sql, database);
    const std::string made = hex_encode(random_bytes(kOctets));
    sql << "insert into pool_id (id) select :made where not exists (select 1 from pool_id)",
        soci::use(made, "made");
    std::string id;
    sql << "select id from pool_id", soci::into(id);
    const std::optional<std::string> known = hex_decode(id);
    if (known && known->size() == kOctets) return *known;
    log(Severity::error) << "the pool's id is damaged in " << database << "; it has a new one";
    sql << "update pool_id set id = :made", soci::use(made, "made");
    return hex_decode(made).value();
  } catch (const soci::soci_error& e) {
    throw StoreError("cannot read the pool's id in " + database + ": " + e.get_error_message());
  }
}

}  // namespace sublet::server
