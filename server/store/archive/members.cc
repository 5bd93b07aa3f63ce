// Queries on membership: machines' credentials, members, invitations.
#include "server/store/archive/archive.h"
#include "server/store/archive/connections.h"
#include "server/store/rows.h"
#include "server/store/tables.h"

namespace sublet::server {

std::optional<CredentialRow> Archive::credential(MachineId machine) {
  return connections_->with([&](soci::session& sql) {
    return row_of(sql, tables::kCredentials, "where machine = " + std::to_string(machine));
  });
}

MachineId Archive::machine_of(uint64_t uid) {
  return connections_->with([&](soci::session& sql) -> MachineId {
    return number_of(sql,
                     "select max(machine) from credentials where uid = " + std::to_string(uid));
  });
}

std::vector<MemberRow> Archive::members() {
  return connections_->with(
      [&](soci::session& sql) { return rows_of(sql, tables::kMembers, "order by number"); });
}

std::vector<InvitationRow> Archive::invitations() {
  return connections_->with(
      [&](soci::session& sql) { return rows_of(sql, tables::kInvitations, "order by id"); });
}

MachineId Archive::machine_with(const std::string& secret_digest) {
  return connections_->with([&](soci::session& sql) -> MachineId {
    long long machine = 0;
    sql << "select machine from credentials where secret = :secret", soci::into(machine),
        soci::use(secret_digest);
    return sql.got_data() ? machine : 0;
  });
}

}  // namespace sublet::server
