// sublet-shepherd ATTEMPT_FOLDER: runs one attempt (docs/shepherd.md). Started
// by the Executing Client, which it survives. Links the C library only.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/shepherd/shepherd.h"

namespace {
// Zero pages cost nothing until they are used.
sublet::shepherd::Shepherd shepherd;
}  // namespace

#ifdef __SANITIZE_ADDRESS__
// The leak checker's own child, at our end, looks like one more process of the
// job: whoever ends the job kills it, and the checker waits for it for ever. There
// is nothing to find: no shepherd allocates memory.
extern "C" int __lsan_is_turned_off() { return 1; }
#endif

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    puts("sublet-shepherd " SUBLET_VERSION);
    return 0;
  }
  if (argc != 2 || argv[1][0] == '-') {
    fprintf(stderr,
            "usage: sublet-shepherd ATTEMPT_FOLDER | --version\n"
            "Runs the attempt that the folder's `order` describes. Started by sublet-client.\n");
    return sublet::shepherd::Shepherd::kUsage;
  }
  if (chdir(argv[1]) != 0) {
    perror(argv[1]);
    return sublet::shepherd::Shepherd::kBadOrder;
  }
  // Standard streams that are closed would be given to the first file opened.
  int null;
  while ((null = open("/dev/null", O_RDWR)) >= 0 && null <= 2) {
  }
  if (null > 2) close(null);
  return shepherd.run();
}
