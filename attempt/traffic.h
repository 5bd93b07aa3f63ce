// The network traffic of an attempt, as programs see it that the kernel runs for every packet of
// its control group (version 2). Loopback does not count. Needs root: CAP_NET_ADMIN, and CAP_BPF or
// CAP_SYS_ADMIN. Compiled into the shepherd without the C++ library; allocates nothing. One thread.
#ifndef SUBLET_ATTEMPT_TRAFFIC_H_
#define SUBLET_ATTEMPT_TRAFFIC_H_

#include <stdint.h>

#include "base/unique_fd.h"

namespace sublet {

class Traffic {
 public:
  // For all sockets that the processes of this folder create from now on, until the folder is
  // removed, even if this process ends. False with errno.
  // bandwidth: bytes per second that they may send, and as many that they may receive; 0: any
  // number. Packets over it are dropped, so that TCP slows down; after a pause as many may pass at
  // once as in a quarter of a second, or 64 KiB.
  bool start(const char* cgroup, uint64_t bandwidth);
  // Bytes that have passed since then in both directions, with the headers of IP. -1: not known.
  int64_t bytes() const;

 private:
  bool attach(int cgroup, bool outgoing, uint64_t bandwidth) const;

  UniqueFd counts_;  // a map of the kernel's
};

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_TRAFFIC_H_
