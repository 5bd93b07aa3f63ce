// Who belongs to the pool: machines' credentials, members, invitations.
#include "base/log.h"
#include "server/store/archive/archive.h"
#include "server/store/archive/connections.h"
#include "server/store/row.h"

namespace sublet::server {
namespace {

Role role_at(const soci::row& row, size_t i) {
  const auto role = role_from(static_cast<uint32_t>(integer(row, i)));
  if (!role) throw std::runtime_error("an unknown role");
  return *role;
}

// A table's rows; a damaged one is named and left out.
template <typename Row, typename Read>
std::vector<Row> rows_of(soci::session& sql, const std::string& table, const std::string& order,
                         Read read) {
  std::vector<Row> result;
  soci::rowset<soci::row> rows = (sql.prepare << "select * from " + table + " order by " + order);
  for (const soci::row& row : rows) {
    try {
      result.push_back(read(row));
    } catch (const std::exception& e) {
      log(Severity::error) << "a row of " << table << " was left out: " << e.what();
    }
  }
  return result;
}

}  // namespace

std::optional<CredentialRow> Archive::credential(MachineId machine) {
  return connections_->with([&](soci::session& sql) -> std::optional<CredentialRow> {
    CredentialRow row;
    long long uid = 0;
    sql << "select secret, uid from credentials where machine = " << machine,
        soci::into(row.secret_digest), soci::into(uid);
    if (!sql.got_data()) return std::nullopt;
    row.machine = machine;
    row.uid = static_cast<uint64_t>(uid);
    return row;
  });
}

MachineId Archive::machine_of(uint64_t uid) {
  return connections_->with([&](soci::session& sql) -> MachineId {
    return number_of(sql,
                     "select max(machine) from credentials where uid = " + std::to_string(uid));
  });
}

std::vector<MemberRow> Archive::members() {
  return connections_->with([&](soci::session& sql) {
    return rows_of<MemberRow>(sql, "members", "number", [](const soci::row& r) -> MemberRow {
      return {static_cast<uint64_t>(integer(r, 0)),
              role_at(r, 1),
              r.get<std::string>(2),
              r.get<std::string>(3),
              r.get<std::string>(4),
              r.get<std::string>(5),
              integer(r, 6),
              integer(r, 7),
              r.get<std::string>(8),
              integer(r, 9)};
    });
  });
}

std::vector<InvitationRow> Archive::invitations() {
  return connections_->with([&](soci::session& sql) {
    return rows_of<InvitationRow>(
        sql, "invitations", "id", [](const soci::row& r) -> InvitationRow {
          return {r.get<std::string>(0), r.get<std::string>(1), role_at(r, 2),
                  r.get<std::string>(3), r.get<std::string>(4), integer(r, 5),
                  r.get<std::string>(6), integer(r, 7)};
        });
  });
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
