#include "client/link/joining.h"

#include <iostream>

#include "base/options/arguments.h"
#include "transport/membership_file.h"

namespace sublet::client {
namespace {

constexpr int kTimeoutMs = 20'000;

}  // namespace

std::string membership_path(const std::string& state_folder) {
  return state_folder + "/membership";
}

int join_pool_with(const std::string& text, const std::string& state_folder) {
  const auto token = join_token_from(text);
  if (!token) {
    std::cerr << "sublet-client: this is not a join token: an administrator creates one with "
                 "'sublet admin invite NAME'\n";
    return kExitUsage;
  }
  if (token->role != Role::kMachine) {
    std::cerr << "sublet-client: this token is for a user, not for a machine: use 'sublet join'\n";
    return kExitUsage;
  }
  try {
    system_files().make_folders(state_folder, 0711);
    const Membership made =
        join_and_keep(system_files(), membership_path(state_folder), *token, kTimeoutMs);
    const auto member = read_certificate(made.credentials.certificate).member;
    std::cout << "machine " << member.value().name << " is a member of the pool '" << member->pool
              << "' at " << to_text(made.server) << "\n";
    return 0;
  } catch (const DialError& e) {
    std::cerr << "sublet-client: " << e.what() << "\n  " << e.advice() << "\n";
  } catch (const std::exception& e) {
    std::cerr << "sublet-client: " << e.what() << "\n";
  }
  return 1;
}

}  // namespace sublet::client
