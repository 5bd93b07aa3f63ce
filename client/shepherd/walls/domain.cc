#include "client/shepherd/walls/domain.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attempt/landlock.h"

namespace sublet::shepherd {
namespace {

// The kernel's struct landlock_ruleset_attr. The headers may be older than the kernel.
struct Ruleset {
  uint64_t files;
  uint64_t network;
  uint64_t scoped;
};
constexpr uint64_t kAbstractSockets = 1;
constexpr uint64_t kSignals = 2;

// Moving files between folders, which a domain forbids unless it is allowed: everywhere.
bool allow_moves(int ruleset) {
  landlock_path_beneath_attr everywhere = {};
  everywhere.allowed_access = LANDLOCK_ACCESS_FS_REFER;
  everywhere.parent_fd = open("/", O_PATH | O_CLOEXEC);
  if (everywhere.parent_fd < 0) return false;
  const bool added =
      syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &everywhere, 0) == 0;
  close(everywhere.parent_fd);
  return added;
}

}  // namespace

bool enter_domain(int version) {
  if (version < kFirstLandlock) return true;
  const bool scopes = version >= kScopingLandlock;
  // A domain has to handle something. Without scopes: what is then allowed.
  Ruleset wanted = {};
  size_t size = sizeof wanted.files;
  if (scopes) {
    wanted.scoped = kAbstractSockets | kSignals;
    size = sizeof wanted;
  } else {
    wanted.files = LANDLOCK_ACCESS_FS_REFER;
  }
  const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &wanted, size, 0));
  if (ruleset < 0) return false;
  const bool entered =
      (scopes || allow_moves(ruleset)) && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  close(ruleset);
  return entered;
}

}  // namespace sublet::shepherd
