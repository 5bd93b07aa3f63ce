#include "attempt/loopback.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sublet {

bool start_loopback() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return errno == EAFNOSUPPORT;  // then there are no such addresses
  struct ifreq loopback = {};
  strcpy(loopback.ifr_name, "lo");
  bool started = ioctl(socket, SIOCGIFFLAGS, &loopback) == 0;
  loopback.ifr_flags = static_cast<short>(loopback.ifr_flags | IFF_UP);
  started = started && ioctl(socket, SIOCSIFFLAGS, &loopback) == 0;
  const int error = errno;
  close(socket);
  errno = error;
  return started;
}

}  // namespace sublet
