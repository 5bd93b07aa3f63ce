// Files of a job packed into one, in the checkpoint format (docs/checkpoint-format.md, "Packed
// files"), so that they are one generation for the server like any other. Worker threads; no shared
// state.
#ifndef SUBLET_CLIENT_STAGING_PACKED_FILES_H_
#define SUBLET_CLIENT_STAGING_PACKED_FILES_H_

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/unique_fd.h"

namespace sublet::client {

inline constexpr char kPackedProgram[] = "sublet.files";

struct PackedFile {
  std::string name;  // relative to the job's working folder
  uint64_t size = 0;
  uint32_t mode = 0600;  // permissions
  int64_t mtime_ns = 0;  // since 1970 UTC
  uint64_t offset = 0;   // of its contents in the pack
};

struct Pack {
  UniqueFd file;  // without a name
  uint64_t size = 0;
  uint64_t generation = 0;
  std::vector<PackedFile> files;  // sorted by name
  int64_t changed_us = 0;         // UTC; of a new one: when the newest of its new files changed
  Digest contents = {};           // of names, permissions and contents, but not of times
  const PackedFile* find(const std::string& name) const;
};

class DamagedPack : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Called before each chunk of a megabyte; may throw.
using Turn = std::function<void()>;

// Whether it is a checkpoint of packed files, by its header.
bool is_pack(int file, uint64_t size);
// Reads a pack of at most 4,096 files. Throws DamagedPack if anything in it is wrong: its
// checksums, sizes, a name that leaves the working folder.
Pack read_pack(UniqueFd file, uint64_t size, const Turn& turn);
// Copies the contents of one of its files. Throws FileError.
void copy_from(const Pack& pack, const PackedFile& file, int to, const Turn& turn);

// Writes a pack. Every operation throws FileError.
class PackWriter {
 public:
  static constexpr size_t kMostFiles = 4096;

  // `folder`: on whose disk.
  explicit PackWriter(const std::string& folder);
  // Adds `info.size` bytes of a file from `offset` on. False: it has fewer; nothing is added.
  bool add(const PackedFile& info, int from, uint64_t offset, const Turn& turn);
  // Takes back what was added last.
  void drop_last();
  bool is_empty() const { return pack_.files.empty(); }
  Pack finish(uint64_t generation, const Turn& turn);

 private:
  Pack pack_;
  std::vector<Digest> digests_;  // of each file's contents
  uint64_t crc_ = 0;
  uint64_t crc_before_ = 0;  // of the payload without what was added last
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_STAGING_PACKED_FILES_H_
