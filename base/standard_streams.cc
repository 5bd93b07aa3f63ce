#include "base/standard_streams.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sublet {
namespace {

// Before any library's constructors: the sanitizers' own state is not there
// either, so neither they nor the C library's wrappers take part.
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
