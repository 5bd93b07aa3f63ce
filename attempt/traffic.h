// The network traffic of an attempt, as programs see it that the kernel runs for every packet of
// its control group (version 2). Loopback does not count. Needs root: CAP_NET_ADMIN, and CAP_BPF or
// CAP_SYS_ADMIN. Compiled into the shepherd without the C++ library; allocates nothing. One thread.
#ifndef SUBLET_ATTEMPT_TRAFFIC_H_
#define SUBLET_ATTEMPT_TRAFFIC_H_

#include <stdint.h>

#include "base/unique_fd.h"

namespace sublet {

struct TrafficTerms {
  // Bytes per second that may be sent, and as many that may be received; 0: any number. Packets
  // over it are dropped, so that TCP slows down; after a pause as many may pass at once as in a
  // quarter of a second, or 64 KiB.
  uint64_t bandwidth = 0;
  // Only TCP with `server`, "1.2.3.4:9740" or "[::1]:9740"; "": with nobody. Who connects or
  // sends to others gets EPERM.
  bool only_server = false;
  const char* server = "";
};

// For all sockets that the processes of this folder create from now on, until the folder is
// removed, even if this process ends. Returns what counts them, a map of the kernel's; invalid with
// errno.
UniqueFd watch_traffic(const char* cgroup, const TrafficTerms& terms);

// Bytes that have passed since then in both directions, with the headers of IP. -1: not known.
int64_t traffic_in(int counts);

// The same of the programs that another process has started for this folder. -1: not known, or
// there are none. Any thread.
int64_t traffic_of(const char* cgroup);

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_TRAFFIC_H_
