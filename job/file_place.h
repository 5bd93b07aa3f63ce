// The location of a job's file in the server's spool, as in idl/spool.idl. Values.
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

// Users set batch (put) or job (get); workstations set session, job and attempt. Other
// fields are 0 or empty.
struct FilePlace {
  FileKind kind = FileKind::kInput;
  uint64_t batch = 0;
  std::string session;
  uint64_t job = 0;
  uint32_t attempt = 0;
  uint64_t file = 0;  // of an input that a workstation gets
  std::string name;
  uint64_t generation = 0;  // of a checkpoint; stat ignores it
  bool suspect = false;     // stat: the received data did not match its digest

  bool operator==(const FilePlace&) const = default;
};

}  // namespace sublet

#endif  // SUBLET_JOB_FILE_PLACE_H_
