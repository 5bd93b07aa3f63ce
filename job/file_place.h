// Where a job's file is in the server's spool, in the numbers of idl/spool.idl. Values.
#ifndef SUBLET_JOB_FILE_PLACE_H_
#define SUBLET_JOB_FILE_PLACE_H_

#include <cstdint>
#include <string>

namespace sublet {

enum class FileKind : uint32_t {
  kInput = 1,
  kCheckpoint = 2,
  kOutput = 3,
  kStdout = 4,
  kStderr = 5
};

inline constexpr uint32_t kChunkLimit = 1u << 20;  // octets in one put or get

}  // namespace sublet

#endif  // SUBLET_JOB_FILE_PLACE_H_
