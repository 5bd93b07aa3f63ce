// What the server shows its supervisor: a page of memory shared between the
// two processes. Written by the server, read by the supervisor; plain atomics,
// so a dead or mad server can do no more than write nonsense numbers.
#ifndef SUBLET_SERVER_VITAL_SIGNS_H_
#define SUBLET_SERVER_VITAL_SIGNS_H_

#include <atomic>
#include <cstdint>

namespace sublet::server {

struct VitalSigns {
  std::atomic<uint64_t> beats{0};      // of the committer: grows at least once a second
  std::atomic<uint64_t> performed{0};  // pieces of work done
  std::atomic<bool> serving{false};    // started up, answering
  uint32_t life = 1;                   // which start of the server this is; the supervisor's
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_VITAL_SIGNS_H_
