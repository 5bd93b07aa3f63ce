// What jobs wait for, as the database keeps it.
#ifndef SUBLET_SERVER_STORE_RELATION_ROW_H_
#define SUBLET_SERVER_STORE_RELATION_ROW_H_

#include "server/store/tables.h"

namespace sublet::server {

RelationRow row_of(const scheduling::RelationRecord& record);
// Throws protocol::Damaged.
scheduling::RelationRecord record_of(const RelationRow& row);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_RELATION_ROW_H_
