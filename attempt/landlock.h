// Which Landlock this kernel has. Any thread.
#ifndef SUBLET_ATTEMPT_LANDLOCK_H_
#define SUBLET_ATTEMPT_LANDLOCK_H_

#include <linux/landlock.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sublet {

// Versions of its interface: from kFirstLandlock on it can keep a job from others' memory,
// from kScopingLandlock (Linux 6.12) on also from signalling them and from their abstract sockets.
constexpr int kFirstLandlock = 2;
constexpr int kScopingLandlock = 6;

// 0: none, or it is switched off.
inline int landlock_version() {
  const long version =
      syscall(SYS_landlock_create_ruleset, NULL, size_t{0}, LANDLOCK_CREATE_RULESET_VERSION);
  return version < 0 ? 0 : static_cast<int>(version);
}

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_LANDLOCK_H_
