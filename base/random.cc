#include "base/random.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "base/os_error.h"

namespace sublet {

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t done = 0; done < count;) {
    ssize_t n = getrandom(bytes.data() + done, count - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw OsError(errno, "read", "the kernel's random numbers");
    done += static_cast<size_t>(n);
  }
  return bytes;
}

RequestId random_id() {
  RequestId id;
  std::string bytes = random_bytes(id.size());
  std::copy(bytes.begin(), bytes.end(), id.begin());
  return id;
}

}  // namespace sublet
