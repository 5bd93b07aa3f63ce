#include "client/machine/missing_walls.h"

#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "attempt/call_filters.h"
#include "attempt/landlock.h"

namespace sublet::client {
namespace {

// What jobs see. A client without root then does not start, unless its owner has set `weak`.
void add_missing_places(const WallsTrial& walls, bool root, std::vector<std::string>* missing) {
  if (walls.possible()) return;
  missing->push_back(
      std::string("Jobs see home folders and all processes and devices, and share /tmp, /var/tmp "
                  "and /dev/shm with everybody on this machine") +
      (root ? "" : ", and processes that they leave may outlive them for a moment") + ": " +
      walls.failed + " cannot be created (" + std::strerror(walls.error) + ").");
}

void add_missing_network(const WallsTrial& walls, std::vector<std::string>* missing) {
  if (walls.possible() && !walls.can_cut_network())
    missing->push_back(
        std::string("Jobs that are to have no network (--network none) are refused here: ") +
        walls.network_failed + " cannot be created (" + std::strerror(walls.network_error) + ").");
}

// What Landlock keeps jobs from. `apart`: another account, or a namespace, protects all processes.
void add_missing_domain(bool apart, int version, std::vector<std::string>* missing) {
  if (!apart && version < kFirstLandlock)
    missing->push_back(
        "Jobs can read and change the memory of this account's other processes: this kernel has no "
        "Landlock (from Linux 5.19 on, if it is switched on).");
  if (version >= kScopingLandlock) return;
  missing->push_back(
      apart
          ? "Jobs can connect to abstract sockets of the sessions on this machine: this kernel's "
            "Landlock cannot prevent it (before Linux 6.12)."
          : "Jobs can signal this account's other processes, the client's too, and connect to its "
            "abstract sockets: this kernel's Landlock cannot prevent it (before Linux 6.12).");
}

// Nobody can leave groups without root.
void add_groups(std::vector<std::string>* missing) {
  std::vector<gid_t> groups(static_cast<size_t>(std::max(0, getgroups(0, nullptr))));
  groups.resize(
      static_cast<size_t>(std::max(0, getgroups(static_cast<int>(groups.size()), groups.data()))));
  std::string names;
  for (const gid_t group : groups) {
    if (group == getegid()) continue;
    const struct group* known = getgrgid(group);
    names += (names.empty() ? "" : ", ") +
             (known != nullptr ? std::string(known->gr_name) : std::to_string(group));
  }
  if (!names.empty())
    missing->push_back("Jobs also have the rights of this account's supplementary groups (" +
                       names + "): use an account that is in none of them.");
}

}  // namespace

std::vector<std::string> missing_walls(const WallsTrial& walls) {
  std::vector<std::string> missing;
  const bool root = geteuid() == 0;
  add_missing_places(walls, root, &missing);
  add_missing_network(walls, &missing);
  if (!root) add_groups(&missing);
  add_missing_domain(root || walls.possible(), landlock_version(), &missing);
  if (!kernel_filters_calls())
    missing.push_back(
        "Jobs may use every system call, also for keys and namespaces: this kernel "
        "cannot filter them (CONFIG_SECCOMP_FILTER).");
  return missing;
}

}  // namespace sublet::client
