// What the server does by itself about a damaged table that it can do without: history, numbers
// of jobs, and answers to repeated requests. Such a table costs itself only (design rule 9).
#ifndef SUBLET_SERVER_STORE_SET_ASIDE_H_
#define SUBLET_SERVER_STORE_SET_ASIDE_H_

#include <chrono>
#include <string>
#include <vector>

#include "server/store/table.h"

namespace soci {
class session;
}

namespace sublet::server {

// Whether serving can go on with an empty table in its place.
bool can_be_set_aside(const Table& table);

// Renames the damaged table to NAME_damaged_NUMBER, puts what can be read of it in its place
// (events: nothing, because there may be very many; numbers of jobs: nothing, because all or none
// are right), and logs what was lost. Nothing is deleted, and if the process ends meanwhile, the
// damaged table is still in its place. Call it outside a transaction; throws soci::soci_error. The
// committer's thread, which all wait for: after `longest`, or when the disk is full, the other rows
// wait for a salvage (a second is half a million rows).
void set_aside(soci::session& session, const Table& table,
               std::chrono::microseconds longest = std::chrono::seconds(2));

// The names of the tables that were set aside.
std::vector<std::string> tables_set_aside(soci::session& session);
// Whether this is the name of a part of the table that was set aside.
bool is_aside_of(const Table& table, const std::string& name);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_SET_ASIDE_H_
