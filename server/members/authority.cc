#include "server/members/authority.h"

#include "base/clock.h"
#include "base/files.h"

namespace sublet::server {
namespace {

constexpr uint64_t kMostPem = 16384;
// The clocks of members may be slow by this much.
constexpr int64_t kSlack = 3'600'000'000;

std::string folder_in(const std::string& state_folder) { return state_folder + "/authority"; }

}  // namespace

bool make_authority_files(const std::string& state_folder, const std::string& pool,
                          int64_t valid_us) {
  Files& files = system_files();
  const std::string folder = folder_in(state_folder);
  if (const auto there = read_authority(state_folder)) {
    if (there->pool == pool) return false;
    throw TlsError(folder + " contains the authority of the pool '" + there->pool + "', not of '" +
                   pool +
                   "': set pool.name, or move that folder away (its members must then join "
                   "again)");
  }
  const int64_t now = system_clock().utc_us();
  const Validity validity{now - kSlack, now + valid_us};
  const CertificateAndKey authority = make_authority(pool, validity);
  const std::string key = make_key();
  const std::string certificate =
      issue_certificate(authority, make_request(key), {pool, Role::kServer, kServerName}, validity);
  // Create the folder atomically.
  const std::string made = folder + ".new";
  files.remove_tree(made);
  files.make_folders(made, 0700);
  files.write_atomic(made + "/authority.key", authority.key, 0600);
  files.write_atomic(made + "/authority.pem", authority.certificate, 0600);
  files.write_atomic(made + "/server.key", key, 0600);
  files.write_atomic(made + "/server.pem", certificate, 0600);
  files.move(made, folder);
  return true;
}

std::optional<Authority> read_authority(const std::string& state_folder) {
  Files& files = system_files();
  const std::string folder = folder_in(state_folder);
  if (!files.exists(folder)) return std::nullopt;
  const auto read = [&](const char* name) {
    return files.read_file(folder + "/" + name, kMostPem);
  };
  Authority out;
  out.own = {read("authority.pem"), read("authority.key")};
  out.server = {out.own.certificate, read("server.pem"), read("server.key")};
  const CertificateFacts server = read_certificate(out.server.certificate);
  if (!server.member || server.member->role != Role::kServer)
    throw TlsError(folder + "/server.pem is not a server's certificate");
  out.pool = server.member->pool;
  out.fingerprint = read_certificate(out.own.certificate).fingerprint;
  TlsContext::of_server(out.server);  // throws unless the key matches the certificate
  return out;
}

}  // namespace sublet::server
