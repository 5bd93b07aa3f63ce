// The loops that move the contents of files between the disk and the server, chunk by chunk. They
// run on a worker's thread of the client, or in a process of their own (mover.h). No state.
#ifndef SUBLET_CLIENT_MOVER_CONTENTS_H_
#define SUBLET_CLIENT_MOVER_CONTENTS_H_

#include <cstdint>

#include "base/hash.h"
#include "client/link/content_calls.h"

namespace sublet::client {

// What surrounds the work on each chunk. Both may throw, which ends the loop.
class ChunkTurns {
 public:
  virtual ~ChunkTurns() = default;
  virtual void begin() = 0;
  virtual void end(uint64_t bytes) = 0;
};

// A file of the server's, of which the first `offset` bytes are here already.
struct WantedContent {
  FilePlace place;
  uint64_t size = 0;
  Digest digest = {};
  uint64_t offset = 0;
};

struct ReceivedContent {
  bool intact = false;  // it has the size and the digest
  bool copied = false;  // the copy is complete, too
};

// Receives the rest into `file`, which is open for reading and writing, and into `copy` (-1: none);
// what either has beyond the offset is overwritten. *offset: how much there is, also after an
// exception. A copy that cannot be written, or has less than the offset, is given up. Throws
// ServerError, FileError.
ReceivedContent receive_content(ContentCalls& server, const WantedContent& wanted, int file,
                                int copy, ChunkTurns& turns, uint64_t* offset);

// Copies the rest of a file. False: it does not have that size and digest, or cannot be read.
// Throws FileError if it cannot be written.
bool copy_content(int from, int to, uint64_t size, const Digest& digest, ChunkTurns& turns);

// Of its first `size` bytes, or fewer if it is shorter. Throws FileError.
Digest content_digest(int file, uint64_t size, ChunkTurns& turns);

// Sends the bytes from `offset` to `size`. Throws ServerError; FileError, also if it is shorter.
void send_content(ContentCalls& server, int file, uint64_t size, uint64_t upload, uint64_t offset,
                  ChunkTurns& turns);

// Up to `count` bytes. Throws FileError.
std::string read_content(int file, uint64_t offset, size_t count);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MOVER_CONTENTS_H_
