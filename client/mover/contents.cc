#include "client/mover/contents.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/files.h"

namespace sublet::client {
namespace {

// False, with errno, on failure.
bool write_all(int fd, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t n = write(fd, bytes, count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes += n;
    count -= static_cast<size_t>(n);
  }
  return true;
}

bool write_all(int fd, const std::string& bytes) {
  return write_all(fd, bytes.data(), bytes.size());
}

// Ends the file there. False, with errno: it has less, or cannot be written.
bool go_to(int file, uint64_t offset) {
  const auto at = static_cast<off_t>(offset);
  struct stat info {};
  if (fstat(file, &info) != 0) return false;
  errno = EIO;
  return info.st_size >= at && ftruncate(file, at) == 0 && lseek(file, at, SEEK_SET) == at;
}

// The next chunk of `size` bytes.
size_t chunk_at(uint64_t offset, uint64_t size) {
  return static_cast<size_t>(std::min<uint64_t>(kChunkLimit, size - offset));
}

// Adds the first `size` bytes, or what there is of them. Returns their number.
uint64_t hash_file(Hasher& hash, int file, uint64_t size, ChunkTurns& turns) {
  for (uint64_t offset = 0; offset < size;) {
    turns.begin();
    const std::string chunk = read_content(file, offset, chunk_at(offset, size));
    hash.update(chunk);
    offset += chunk.size();
    turns.end(chunk.size());
    if (chunk.empty()) return offset;
  }
  return size;
}

}  // namespace

std::string read_content(int file, uint64_t offset, size_t count) {
  std::string out(count, '\0');
  size_t done = 0;
  while (done < count) {
    ssize_t n = pread(file, out.data() + done, count - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw FileError(errno, "read", "a file of the job");
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  out.resize(done);
  return out;
}

ReceivedContent receive_content(ContentCalls& server, const WantedContent& wanted, int file,
                                int copy, ChunkTurns& turns, uint64_t* offset) {
  if (!go_to(file, wanted.offset)) throw FileError(errno, "write", wanted.place.name);
  bool copied = copy >= 0 && go_to(copy, wanted.offset);
  Hasher hash;
  *offset = hash_file(hash, file, wanted.offset, turns);
  while (*offset < wanted.size) {
    turns.begin();
    const std::string chunk =
        server.get(wanted.place, *offset, static_cast<uint32_t>(chunk_at(*offset, wanted.size)));
    if (chunk.empty() || chunk.size() > wanted.size - *offset) return {false, false};
    if (!write_all(file, chunk)) throw FileError(errno, "write", wanted.place.name);
    copied = copied && write_all(copy, chunk);
    hash.update(chunk);
    *offset += chunk.size();
    turns.end(chunk.size());
  }
  const bool intact = hash.finish() == wanted.digest;
  return {intact, intact && copied};
}

bool copy_content(int from, int to, uint64_t size, const Digest& digest, ChunkTurns& turns) {
  std::string chunk(std::clamp<uint64_t>(size, 1, kChunkLimit), '\0');
  Hasher hash;
  uint64_t done = 0;
  for (;;) {
    turns.begin();
    const ssize_t n = read(from, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) break;
    done += static_cast<uint64_t>(n);
    if (done > size) return false;
    hash.update(chunk.data(), static_cast<size_t>(n));
    if (!write_all(to, chunk.data(), static_cast<size_t>(n)))
      throw FileError(errno, "write", "an input of a job");
    turns.end(static_cast<uint64_t>(n));
  }
  return done == size && hash.finish() == digest;
}

Digest content_digest(int file, uint64_t size, ChunkTurns& turns) {
  Hasher hash;
  hash_file(hash, file, size, turns);
  return hash.finish();
}

void send_content(ContentCalls& server, int file, uint64_t size, uint64_t upload, uint64_t offset,
                  ChunkTurns& turns) {
  while (offset < size) {
    turns.begin();
    const std::string chunk = read_content(file, offset, chunk_at(offset, size));
    if (chunk.empty()) throw FileError(EIO, "read", "a file that was truncated during the upload");
    offset = server.put(upload, offset, chunk.data(), chunk.size());
    turns.end(chunk.size());
  }
}

}  // namespace sublet::client
