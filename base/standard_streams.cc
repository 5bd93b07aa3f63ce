#include "base/standard_streams.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sublet {
namespace {

// Runs before any library's constructors, when the state of the sanitizers does not exist
// either; so it uses neither them nor the C library's wrappers.
__attribute__((no_sanitize("address", "thread", "undefined"))) void open_closed_streams(int, char**,
                                                                                        char**) {
  long opened = 0;
  while (opened >= 0 && opened <= STDERR_FILENO)
    opened = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
  if (opened > STDERR_FILENO) syscall(SYS_close, opened);
}

using BeforeLibraries = void (*)(int, char**, char**);
__attribute__((section(".preinit_array"), used)) BeforeLibraries before_libraries =
    open_closed_streams;

}  // namespace

void keep_standard_streams() { open_closed_streams(0, nullptr, nullptr); }

}  // namespace sublet
