// Reads what an attempt has written to its standard streams so far, from its folder,
// while shepherd and job may still be writing. Any thread; waits only for the disk.
#ifndef SUBLET_CLIENT_ATTEMPTS_OUTPUT_TEXT_H_
#define SUBLET_CLIENT_ATTEMPTS_OUTPUT_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "attempt/folder.h"
#include "client/link/server_calls.h"

namespace sublet::client {

// At most `limit` bytes of the stream (kStdout or kStderr) from `offset`; empty if
// there is no more yet; nullopt if the attempt is not here. The shepherd makes the
// files, but without root the job has the same account and may have replaced them:
// no link is followed, and only a regular file of this account is read. Throws
// WorkFolderError or FileError.
std::optional<std::string> read_attempt_text(const std::string& state_folder,
                                             const AttemptName& name, FileKind stream,
                                             uint64_t offset, uint32_t limit);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_OUTPUT_TEXT_H_
