// The id of the pool: 16 random octets, generated with the database and stored in it.
#ifndef SUBLET_SERVER_STORE_POOL_ID_H_
#define SUBLET_SERVER_STORE_POOL_ID_H_

#include <string>

namespace sublet::server {

// database: its path; SqlStore must have created the tables. Throws StoreError.
std::string pool_id(const std::string& database);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_POOL_ID_H_
