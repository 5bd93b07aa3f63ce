#include "loadmon/protection.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/log.h"
#include "base/real_time.h"
#include "base/start_up_memory.h"

namespace sublet::loadmon {
namespace {
constexpr int kNice = -5;
}  // namespace

void protect_process() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  if (geteuid() == 0) std::ofstream("/proc/self/oom_score_adj") << "-500";
  if (!become_real_time(kNice) && setpriority(PRIO_PROCESS, 0, kNice) != 0)
    log(Severity::info) << "runs at normal priority: not permitted to raise it";
  release_start_up_memory();
  // Only pages that are used from now on, and its own code, used or not yet: all of its libraries
  // would be several times as much.
  if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
    log(Severity::info) << "its memory may be swapped out: " << std::strerror(errno);
  keep_own_code();
}

}  // namespace sublet::loadmon
