// Checkpoint files for this folder's tests, also ones that no program would write.
#ifndef SUBLET_CLI_CHECKPOINT_TESTING_H_
#define SUBLET_CLI_CHECKPOINT_TESTING_H_

#include <cppunit/TestAssert.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "checkpoint-api/crc64.h"
#include "checkpoint-api/file_format.h"
#include "checkpoint-api/testing.h"
#include "cli/checkpoint/file.h"

namespace sublet::cli {

struct MadeSection {
  std::string name;
  uint32_t type;
  uint64_t count;
  std::string bytes;
};

// A section of these numbers, in the machine's byte order: the tests run on little-endian ones.
template <typename T>
MadeSection numbers(const std::string& name, uint32_t type, const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return {name, type, values.size(), bytes};
}

inline MadeSection stream(const std::string& name, const std::string& bytes) {
  return {name, SUBLET_STREAM, bytes.size(), bytes};
}

struct MadeFile {
  std::vector<MadeSection> sections = {};
  std::string program = "p";
  uint32_t layout = 1;
  uint64_t generation = 1;
  uint32_t version = SUBLET_FORMAT_VERSION;
  uint64_t sparse_bytes = 0;  // payload that the header counts and bytes() leaves out

  // With correct checksums, whatever the sections say.
  std::string bytes() const {
    std::string payload;
    std::string head(sublet_head_bytes(static_cast<uint32_t>(sections.size())), '\0');
    auto* at = reinterpret_cast<unsigned char*>(head.data());
    for (size_t i = 0; i < sections.size(); ++i) {
      sublet_entry entry = {};
      entry.count = sections[i].count;
      entry.type = sections[i].type;
      strncpy(entry.name, sections[i].name.c_str(), sizeof entry.name - 1);
      sublet_entry_encode(&entry, at + sublet_head_bytes(static_cast<uint32_t>(i)));
      payload += sections[i].bytes;
    }
    sublet_header header = {};
    header.version = version;
    header.sections = static_cast<uint32_t>(sections.size());
    header.generation = generation;
    header.payload_bytes = payload.size() + sparse_bytes;
    header.progress_ppm = -1;
    header.layout = layout;
    strncpy(header.program, program.c_str(), sizeof header.program - 1);
    header.payload_crc = sublet_crc64(0, payload.data(), payload.size());
    sublet_head_encode(&header, at);
    return head + payload;
  }
};

class CheckpointFolder : public testing::TempFolder {
 public:
  std::string put(const std::string& name, const std::string& bytes) const {
    testing::write_file(*this / name, bytes);
    return *this / name;
  }
  std::string put(const std::string& name, const MadeFile& file) const {
    return put(name, file.bytes());
  }
  CheckpointFile file(const MadeFile& made) const { return CheckpointFile(put("file", made)); }
  // What is wrong with a file; fails if nothing is.
  static CheckpointFault fault(const std::string& path) {
    try {
      const CheckpointFile file(path);
    } catch (const CheckpointFault& fault) {
      return fault;
    }
    CPPUNIT_FAIL(path + " was accepted");
    throw;
  }
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_CHECKPOINT_TESTING_H_
