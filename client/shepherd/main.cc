// sublet-shepherd --slot STATE_FOLDER: runs the attempts of one slot (docs/shepherd.md). Started by
// the executing client; if that exits, an attempt that runs goes on. Links only the C library. With
// --demoted it runs a program of the client's that works for a job.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/shepherd/demoted.h"
#include "client/shepherd/shepherd.h"
#include "client/shepherd/slot.h"

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
  if (argc != 3 || strcmp(argv[1], "--slot") != 0) {
    fprintf(stderr,
            "usage: sublet-shepherd --slot STATE_FOLDER | --version\n"
            "       sublet-shepherd --demoted UNIFIED_CGROUP CPU_CGROUP PROGRAM ARGUMENT...\n"
            "Runs the attempts that sublet-client names. Started by sublet-client.\n");
    return sublet::shepherd::Shepherd::kUsage;
  }
  // Otherwise the first files opened would take the numbers of closed standard streams.
  while (fcntl(0, F_GETFD) < 0 || fcntl(1, F_GETFD) < 0 || fcntl(2, F_GETFD) < 0)
    if (open("/dev/null", O_RDWR) < 0) return sublet::shepherd::Shepherd::kUsage;
  auto* const slot = sublet::shepherd::Slot::make();
  if (!slot) perror("sublet-shepherd");
  return slot ? slot->run(argv[2]) : sublet::shepherd::Shepherd::kUsage;
}
