// A checkpoint file, opened and verified as docs/checkpoint-format.md says. The file may be
// damaged or hostile: memory depends on the number of sections (at most 4,096) and not on
// sizes found in the file. One thread.
#ifndef SUBLET_CLI_CHECKPOINT_FILE_H_
#define SUBLET_CLI_CHECKPOINT_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "checkpoint-api/file_format.h"
#include "cli/pool/pool.h"

namespace sublet::cli {

// Larger files are refused before they are read: a sparse one of any size takes no disk space.
inline constexpr uint64_t kLargestCheckpoint = uint64_t{16} << 30;

// Why a file cannot be used. The codes: checkpoint.unreadable, checkpoint.damaged,
// checkpoint.version.
class CheckpointFault : public PoolError {
 public:
  CheckpointFault(ErrorKind kind, const std::string& code, const std::string& path,
                  const std::string& what, int64_t at = -1, const std::string& checksum = "");
  std::string what_is_wrong;
  int64_t at;            // the offset in the file of what is wrong; -1: the file as a whole
  std::string checksum;  // the field that does not match: head_crc, payload_crc, or ""
};

struct CheckpointSection {
  std::string name;
  uint32_t type = 0;    // enum sublet_checkpoint_type or SUBLET_STREAM
  uint64_t count = 0;   // elements
  uint64_t bytes = 0;   // of all its elements
  uint64_t offset = 0;  // in the file
};

class CheckpointFile {
 public:
  // Reads the whole file once. Throws CheckpointFault.
  explicit CheckpointFile(const std::string& path);

  const std::string& path() const { return path_; }
  const sublet_header& header() const { return header_; }
  uint64_t bytes() const { return bytes_; }
  // In the order of the file.
  const std::vector<CheckpointSection>& sections() const { return sections_; }
  // nullptr: there is none of this name.
  const CheckpointSection* find(std::string_view name) const;

  // Fills `into` with bytes of the section from `from` on. Both lie within it. Throws
  // CheckpointFault if the file has become shorter meanwhile.
  void read(const CheckpointSection& section, uint64_t from, std::span<unsigned char> into) const;

 private:
  void open_file();
  void read_head();
  void read_sections(const std::vector<unsigned char>& head);
  void check_payload() const;
  void read_at(uint64_t from, std::span<unsigned char> into) const;
  [[noreturn]] void damaged(const std::string& what, int64_t at,
                            const std::string& checksum = "") const;

  std::string path_;
  UniqueFd fd_;
  uint64_t bytes_ = 0;
  sublet_header header_ = {};
  std::vector<CheckpointSection> sections_;
};

// "int8", …, "float64"; "stream" for a section written by callbacks.
const char* checkpoint_type_name(uint32_t type);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_CHECKPOINT_FILE_H_
