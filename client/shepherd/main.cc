// sublet-shepherd ATTEMPT_FOLDER: runs one attempt (docs/shepherd.md). Started by the
// executing client, but keeps running if that exits. Links only the C library. With --demoted it
// runs a program of the client's that works for a job.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/shepherd/demoted.h"
#include "client/shepherd/shepherd.h"

namespace {
// Static, because zero pages take no memory until they are used.
sublet::shepherd::Shepherd shepherd;
}  // namespace

#ifdef __SANITIZE_ADDRESS__
// At exit, the leak checker starts a child, which looks like a process of the job and
// is killed with it, and the checker waits for it forever. There are no leaks to find:
// the shepherd allocates no memory.
extern "C" int __lsan_is_turned_off() { return 1; }
#endif

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    puts("sublet-shepherd " SUBLET_VERSION);
    return 0;
  }
  if (argc >= 5 && strcmp(argv[1], "--demoted") == 0)
    return sublet::shepherd::run_demoted(argv[2], argv[3], argv + 4);
  if (argc != 2 || argv[1][0] == '-') {
    fprintf(stderr,
            "usage: sublet-shepherd ATTEMPT_FOLDER | --version\n"
            "       sublet-shepherd --demoted UNIFIED_CGROUP CPU_CGROUP PROGRAM ARGUMENT...\n"
            "Runs the attempt that the folder's `order` describes. Started by sublet-client.\n");
    return sublet::shepherd::Shepherd::kUsage;
  }
  if (chdir(argv[1]) != 0) {
    perror(argv[1]);
    return sublet::shepherd::Shepherd::kBadOrder;
  }
  // Otherwise the first files opened would take the numbers of closed standard streams.
  int null;
  while ((null = open("/dev/null", O_RDWR)) >= 0 && null <= 2) {
  }
  if (null > 2) close(null);
  return shepherd.run();
}
