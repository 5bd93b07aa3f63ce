// The id of the pool: 16 random octets, made with its database and kept there.
#ifndef SUBLET_SERVER_STORE_POOL_ID_H_
#define SUBLET_SERVER_STORE_POOL_ID_H_

#include <string>

namespace sublet::server {

// database: the path; SqlStore has made its tables. Throws StoreError.
std::string pool_id(const std::string& database);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_POOL_ID_H_
