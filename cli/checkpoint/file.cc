#include "cli/checkpoint/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <set>

#include "base/text.h"
#include "checkpoint-api/crc64.h"

namespace sublet::cli {

namespace {

constexpr size_t kPart = size_t{1} << 20;
// Offsets in the header and in an entry: docs/checkpoint-format.md.
constexpr int64_t kAtVersion = 8;
constexpr int64_t kAtSections = 12;
constexpr int64_t kAtGeneration = 16;
constexpr int64_t kAtPayloadBytes = 24;
constexpr int64_t kAtProgress = 40;
constexpr int64_t kAtProgram = 48;
constexpr int64_t kAtPayloadCrc = 112;
constexpr int64_t kAtHeadCrc = 120;
constexpr int64_t kAtEntryName = 16;

ErrorKind kind_of(int error) {
  if (error == ENOENT || error == ENOTDIR) return ErrorKind::not_found;
  return error == EACCES || error == EPERM ? ErrorKind::not_permitted : ErrorKind::invalid;
}

[[noreturn]] void unreadable(const std::string& path, int error) {
  throw CheckpointFault(kind_of(error), "checkpoint.unreadable", path,
                        std::string("cannot be read: ") + strerror(error));
}

[[noreturn]] void unreadable(const std::string& path, const std::string& what) {
  throw CheckpointFault(ErrorKind::invalid, "checkpoint.unreadable", path, what);
}

// Which field sublet_header_decode() did not accept. It checks in this order, and sets the
// fields only when it has found the magic: `header` was filled with ones before.
int64_t refused_field(const sublet_header& header, uint64_t file_bytes) {
  if (header.version == UINT32_MAX && header.sections == UINT32_MAX) return 0;
  if (header.sections > SUBLET_CHECKPOINT_MAX_SECTIONS) return kAtSections;
  const uint64_t head_bytes = sublet_head_bytes(header.sections);
  if (file_bytes < head_bytes || header.payload_bytes != file_bytes - head_bytes)
    return kAtPayloadBytes;
  const size_t length = strnlen(header.program, sizeof header.program);
  const bool padded = std::all_of(header.program + length, std::end(header.program),
                                  [](char c) { return c == '\0'; });
  if (length == 0 || length == sizeof header.program || !padded) return kAtProgram;
  const bool counted = header.generation != 0 && header.generation <= INT64_MAX;
  return counted ? kAtProgress : kAtGeneration;
}

std::string crc_text(uint64_t crc) {
  char text[20];
  snprintf(text, sizeof text, "%016" PRIx64, crc);
  return text;
}

}  // namespace

CheckpointFault::CheckpointFault(ErrorKind kind, const std::string& code, const std::string& path,
                                 const std::string& what, int64_t at, const std::string& checksum)
    : PoolError(kind, code,
                path + (code == "checkpoint.damaged" ? " is damaged: " : ": ") + what +
                    (at < 0 ? "" : " (at byte " + std::to_string(at) + ")"),
                "", path),
      what_is_wrong(what),
      at(at),
      checksum(checksum) {}

CheckpointFile::CheckpointFile(const std::string& path) : path_(path) {
  open_file();
  read_head();
  check_payload();
  if (header_.version != SUBLET_FORMAT_VERSION)
    throw CheckpointFault(ErrorKind::invalid, "checkpoint.version", path_,
                          "it has format version " + std::to_string(header_.version) +
                              ", this command reads version " +
                              std::to_string(SUBLET_FORMAT_VERSION),
                          kAtVersion);
}

void CheckpointFile::damaged(const std::string& what, int64_t at,
                             const std::string& checksum) const {
  throw CheckpointFault(ErrorKind::invalid, "checkpoint.damaged", path_, what, at, checksum);
}

void CheckpointFile::open_file() {
  // Non-blocking, since it might be a pipe that nobody writes.
  fd_ = UniqueFd(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status = {};
  if (!fd_.valid() || fstat(fd_.get(), &status) != 0) unreadable(path_, errno);
  if (S_ISDIR(status.st_mode)) unreadable(path_, "it is a folder; name a file in it");
  if (!S_ISREG(status.st_mode)) unreadable(path_, "it is not a regular file");
  bytes_ = static_cast<uint64_t>(status.st_size);
  if (bytes_ > kLargestCheckpoint)
    unreadable(path_, "it has " + format_bytes(bytes_) + "; the limit is " +
                          format_bytes(kLargestCheckpoint));
}

void CheckpointFile::read_head() {
  if (bytes_ < SUBLET_HEADER_BYTES)
    damaged("it ends before the end of its header", static_cast<int64_t>(bytes_));
  std::vector<unsigned char> head(SUBLET_HEADER_BYTES);
  read_at(0, head);
  memset(&header_, 0xff, sizeof header_);
  if (const char* wrong = sublet_header_decode(head.data(), bytes_, &header_))
    damaged(wrong, refused_field(header_, bytes_));
  head.resize(sublet_head_bytes(header_.sections));
  read_at(0, head);
  if (!sublet_head_sealed(head.data(), header_.sections))
    damaged("its header and entries do not match their checksum, head_crc", kAtHeadCrc, "head_crc");
  // What a later version has in its entries is not known.
  if (header_.version == SUBLET_FORMAT_VERSION) read_sections(head);
}

void CheckpointFile::read_sections(const std::vector<unsigned char>& head) {
  std::set<std::string> names;
  uint64_t offset = head.size();
  for (uint32_t i = 0; i < header_.sections; ++i) {
    const size_t at = sublet_head_bytes(i);
    const auto where = static_cast<int64_t>(at);
    sublet_entry entry;
    if (const char* wrong = sublet_entry_decode(head.data() + at, &entry)) damaged(wrong, where);
    uint64_t size = 0;
    sublet_entry_bytes(&entry, &size);
    if (size > bytes_ - offset) damaged("its sections are larger than the file", where);
    if (!names.insert(entry.name).second)
      damaged("two of its sections have the same name", where + kAtEntryName);
    sections_.push_back({entry.name, entry.type, entry.count, size, offset});
    offset += size;
  }
  if (offset != bytes_) damaged("its sections do not fill it", static_cast<int64_t>(offset));
}

void CheckpointFile::check_payload() const {
  std::vector<unsigned char> part(std::min<uint64_t>(kPart, header_.payload_bytes));
  uint64_t crc = 0;
  for (uint64_t at = sublet_head_bytes(header_.sections); at < bytes_;) {
    const std::span<unsigned char> now(part.data(), std::min<uint64_t>(part.size(), bytes_ - at));
    read_at(at, now);
    crc = sublet_crc64(crc, now.data(), now.size());
    at += now.size();
  }
  if (crc != header_.payload_crc)
    damaged("its contents, bytes " + std::to_string(sublet_head_bytes(header_.sections)) + " to " +
                std::to_string(bytes_) + ", have the checksum " + crc_text(crc) +
                ", and payload_crc is " + crc_text(header_.payload_crc),
            kAtPayloadCrc, "payload_crc");
}

void CheckpointFile::read_at(uint64_t from, std::span<unsigned char> into) const {
  while (!into.empty()) {
    const ssize_t n = pread(fd_.get(), into.data(), into.size(), static_cast<off_t>(from));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) unreadable(path_, errno);
    if (n == 0) unreadable(path_, "it became shorter while it was read");
    from += static_cast<uint64_t>(n);
    into = into.subspan(static_cast<size_t>(n));
  }
}

void CheckpointFile::read(const CheckpointSection& section, uint64_t from,
                          std::span<unsigned char> into) const {
  read_at(section.offset + from, into);
}

const CheckpointSection* CheckpointFile::find(std::string_view name) const {
  for (const CheckpointSection& section : sections_)
    if (section.name == name) return &section;
  return nullptr;
}

const char* checkpoint_type_name(uint32_t type) {
  switch (type) {
    case SUBLET_INT8:
      return "int8";
    case SUBLET_UINT8:
      return "uint8";
    case SUBLET_INT16:
      return "int16";
    case SUBLET_UINT16:
      return "uint16";
    case SUBLET_INT32:
      return "int32";
    case SUBLET_UINT32:
      return "uint32";
    case SUBLET_INT64:
      return "int64";
    case SUBLET_UINT64:
      return "uint64";
    case SUBLET_FLOAT32:
      return "float32";
    case SUBLET_FLOAT64:
      return "float64";
    default:
      return "stream";
  }
}

}  // namespace sublet::cli
