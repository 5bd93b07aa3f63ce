// The server's status for its supervisor: a page of memory shared by the two
// processes. Written by the server, read by the supervisor; only atomics, so a
// crashed or faulty server can do no more harm than write wrong numbers.
#ifndef SUBLET_SERVER_VITAL_SIGNS_H_
#define SUBLET_SERVER_VITAL_SIGNS_H_

#include <atomic>
#include <cstdint>

namespace sublet::server {

struct VitalSigns {
  std::atomic<uint64_t> beats{0};      // of the committer: grows at least once a second
  std::atomic<uint64_t> performed{0};  // work items done
  std::atomic<bool> serving{false};    // startup is complete
  uint32_t life = 1;                   // number of this start, from 1; set by the supervisor
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_VITAL_SIGNS_H_
