#include "client/staging/packed_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/files.h"
#include "base/text.h"
#include "checkpoint-api/crc64.h"
#include "checkpoint-api/file_format.h"
#include "client/mover/contents.h"
#include "client/staging/work_folder.h"

namespace sublet::client {
namespace {

constexpr char kContents[] = "contents";
constexpr char kIndex[] = "index";
constexpr uint32_t kLayout = 1;
constexpr size_t kChunk = 1 << 20;
constexpr uint64_t kMostIndexBytes = 4 << 20;
constexpr size_t kHeadBytes = SUBLET_HEADER_BYTES + 2 * SUBLET_ENTRY_BYTES;

[[noreturn]] void write_failed() {
  throw FileError(errno, "write", "a job's packed checkpoint files");
}

void write_at(int file, const char* bytes, size_t count, uint64_t offset) {
  while (count > 0) {
    const ssize_t n = pwrite(file, bytes, count, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) write_failed();
    bytes += n;
    offset += static_cast<uint64_t>(n);
    count -= static_cast<size_t>(n);
  }
}

// Calls take(chunk) for `size` bytes from `offset` on. False: there are fewer.
template <typename Take>
bool each_chunk(int file, uint64_t offset, uint64_t size, const Turn& turn, Take take) {
  while (size > 0) {
    turn();
    const std::string chunk = read_content(file, offset, std::min<uint64_t>(kChunk, size));
    if (chunk.empty()) return false;
    take(chunk, offset);
    offset += chunk.size();
    size -= chunk.size();
  }
  return true;
}

std::string print_index(const std::vector<PackedFile>& files) {
  std::string index;
  for (const PackedFile& file : files)
    index += std::to_string(file.size) + " " + std::to_string(file.mode) + " " +
             std::to_string(file.mtime_ns) + " " + percent_encode(file.name) + "\n";
  return index;
}

template <typename Number>
Number take_number(std::string_view& line) {
  const size_t space = line.find(' ');
  Number number = 0;
  const std::string_view word = line.substr(0, space);
  const auto end = std::from_chars(word.data(), word.data() + word.size(), number);
  if (space == std::string_view::npos || end.ec != std::errc() ||
      end.ptr != word.data() + word.size())
    throw DamagedPack("a line of its index is not of the form SIZE MODE TIME NAME");
  line.remove_prefix(space + 1);
  return number;
}

PackedFile parse_line(std::string_view line) {
  PackedFile file;
  file.size = take_number<uint64_t>(line);
  file.mode = take_number<uint32_t>(line);
  file.mtime_ns = take_number<int64_t>(line);
  const auto name = percent_decode(line);
  if (!name || file.mode > 0777) throw DamagedPack("a line of its index has wrong values");
  file.name = *name;
  try {
    split_name(file.name);
  } catch (const WorkFolderError& error) {
    throw DamagedPack(error.what());
  }
  return file;
}

// The contents follow each other in the order of the index, and are all of the section.
std::vector<PackedFile> parse_index(std::string_view index, uint64_t contents) {
  std::vector<PackedFile> files;
  uint64_t offset = kHeadBytes, left = contents;
  while (!index.empty()) {
    const size_t end = index.find('\n');
    if (end == std::string_view::npos) throw DamagedPack("the last line of its index is cut");
    PackedFile file = parse_line(index.substr(0, end));
    index.remove_prefix(end + 1);
    if (file.size > left) throw DamagedPack("its index has more than its contents");
    if (!files.empty() && files.back().name >= file.name)
      throw DamagedPack("the names in its index are not in order");
    if (files.size() == PackWriter::kMostFiles) throw DamagedPack("it has more than 4,096 files");
    file.offset = offset;
    offset += file.size;
    left -= file.size;
    files.push_back(std::move(file));
  }
  if (left != 0) throw DamagedPack("its contents have more than its index");
  return files;
}

Digest digest_of_all(const std::vector<PackedFile>& files, const std::vector<Digest>& digests) {
  Hasher hash;
  for (size_t i = 0; i < files.size(); ++i) {
    hash.update(std::to_string(files[i].size) + " " + std::to_string(files[i].mode) + " " +
                percent_encode(files[i].name) + "\n");
    hash.update(digests[i].data(), digests[i].size());
  }
  return hash.finish();
}

const unsigned char* bytes_of(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Bytes of its section with this name, the one at `number`.
uint64_t section_bytes(const std::string& head, size_t number, const char* name) {
  sublet_entry entry;
  const unsigned char* const at =
      bytes_of(head) + SUBLET_HEADER_BYTES + number * SUBLET_ENTRY_BYTES;
  if (sublet_entry_decode(at, &entry) != nullptr || entry.type != SUBLET_UINT8 ||
      std::strcmp(entry.name, name) != 0)
    throw DamagedPack("its sections are not those of packed files");
  return entry.count;
}

sublet_entry entry_of(const char* name, uint64_t bytes) {
  sublet_entry entry = {};
  entry.count = bytes;
  entry.type = SUBLET_UINT8;
  std::strcpy(entry.name, name);
  return entry;
}

}  // namespace

const PackedFile* Pack::find(const std::string& name) const {
  const auto found = std::lower_bound(
      files.begin(), files.end(), name,
      [](const PackedFile& file, const std::string& wanted) { return file.name < wanted; });
  return found != files.end() && found->name == name ? &*found : nullptr;
}

bool is_pack(int file, uint64_t size) {
  const std::string head = read_content(file, 0, SUBLET_HEADER_BYTES);
  sublet_header header;
  return head.size() == SUBLET_HEADER_BYTES &&
         sublet_header_decode(bytes_of(head), size, &header) == nullptr &&
         std::strcmp(header.program, kPackedProgram) == 0;
}

Pack read_pack(UniqueFd file, uint64_t size, const Turn& turn) {
  const std::string head = read_content(file.get(), 0, kHeadBytes);
  sublet_header header;
  if (head.size() < kHeadBytes) throw DamagedPack("it is too short");
  if (const char* wrong = sublet_header_decode(bytes_of(head), size, &header))
    throw DamagedPack(wrong);
  if (header.sections != 2 || header.layout != kLayout ||
      sublet_head_sealed(bytes_of(head), header.sections) == 0)
    throw DamagedPack("its head is damaged, or of a later version");
  const uint64_t contents = section_bytes(head, 0, kContents);
  const uint64_t index = section_bytes(head, 1, kIndex);
  if (index > kMostIndexBytes || contents > size || kHeadBytes + contents + index != size)
    throw DamagedPack("its size is not that of its sections");
  uint64_t crc = 0;
  const bool whole = each_chunk(file.get(), kHeadBytes, size - kHeadBytes, turn,
                                [&](const std::string& chunk, uint64_t) {
                                  crc = sublet_crc64(crc, chunk.data(), chunk.size());
                                });
  if (!whole || crc != header.payload_crc) throw DamagedPack("its contents are damaged");
  Pack pack;
  pack.files = parse_index(
      read_content(file.get(), kHeadBytes + contents, static_cast<size_t>(index)), contents);
  std::vector<Digest> digests;
  for (const PackedFile& one : pack.files) {
    Hasher hash;
    each_chunk(file.get(), one.offset, one.size, turn,
               [&](const std::string& chunk, uint64_t) { hash.update(chunk); });
    digests.push_back(hash.finish());
  }
  pack.contents = digest_of_all(pack.files, digests);
  pack.size = size;
  pack.generation = header.generation;
  pack.file = std::move(file);
  return pack;
}

void copy_from(const Pack& pack, const PackedFile& file, int to, const Turn& turn) {
  const bool whole = each_chunk(pack.file.get(), file.offset, file.size, turn,
                                [&](const std::string& chunk, uint64_t offset) {
                                  write_at(to, chunk.data(), chunk.size(), offset - file.offset);
                                });
  errno = EIO;
  if (!whole) throw FileError(EIO, "read", "a job's packed checkpoint files");
}

PackWriter::PackWriter(const std::string& folder) {
  pack_.file.reset(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!pack_.file.valid() && (errno == EOPNOTSUPP || errno == EISDIR)) {
    std::string name = folder + "/packed-XXXXXX";
    pack_.file.reset(mkostemp(name.data(), O_CLOEXEC));
    if (pack_.file.valid()) unlink(name.c_str());
  }
  if (!pack_.file.valid()) throw FileError(errno, "create a file in", folder);
  pack_.size = kHeadBytes;
}

bool PackWriter::add(const PackedFile& info, int from, uint64_t offset, const Turn& turn) {
  uint64_t at = pack_.size;
  crc_before_ = crc_;
  Hasher hash;
  const bool whole =
      each_chunk(from, offset, info.size, turn, [&](const std::string& chunk, uint64_t) {
        write_at(pack_.file.get(), chunk.data(), chunk.size(), at);
        crc_ = sublet_crc64(crc_, chunk.data(), chunk.size());
        hash.update(chunk);
        at += chunk.size();
      });
  if (!whole) {
    crc_ = crc_before_;
    return false;
  }
  pack_.files.push_back(info);
  pack_.files.back().offset = pack_.size;
  digests_.push_back(hash.finish());
  pack_.size = at;
  return true;
}

void PackWriter::drop_last() {
  crc_ = crc_before_;
  pack_.size = pack_.files.back().offset;
  pack_.files.pop_back();
  digests_.pop_back();
}

Pack PackWriter::finish(uint64_t generation, const Turn& turn) {
  turn();
  const std::string index = print_index(pack_.files);
  if (index.size() > kMostIndexBytes || pack_.files.size() > kMostFiles)
    throw FileError(EFBIG, "pack", "a job's checkpoint files");
  const uint64_t contents = pack_.size - kHeadBytes;
  pack_.contents = digest_of_all(pack_.files, digests_);
  write_at(pack_.file.get(), index.data(), index.size(), pack_.size);
  pack_.size += index.size();
  sublet_header header = {};
  header.version = SUBLET_FORMAT_VERSION;
  header.sections = 2;
  header.generation = pack_.generation = generation;
  header.payload_bytes = contents + index.size();
  // Of its newest file, so that the same files make the same bytes.
  for (const PackedFile& file : pack_.files)
    header.saved_utc_us = std::max(header.saved_utc_us, file.mtime_ns / 1000);
  header.progress_ppm = -1;
  header.layout = kLayout;
  std::strcpy(header.program, kPackedProgram);
  header.payload_crc = sublet_crc64(crc_, index.data(), index.size());
  unsigned char head[kHeadBytes];
  const sublet_entry entries[] = {entry_of(kContents, contents), entry_of(kIndex, index.size())};
  sublet_entry_encode(&entries[0], head + SUBLET_HEADER_BYTES);
  sublet_entry_encode(&entries[1], head + SUBLET_HEADER_BYTES + SUBLET_ENTRY_BYTES);
  sublet_head_encode(&header, head);
  write_at(pack_.file.get(), reinterpret_cast<const char*>(head), sizeof head, 0);
  // A file that was dropped may have been longer.
  if (ftruncate(pack_.file.get(), static_cast<off_t>(pack_.size)) != 0) write_failed();
  return std::move(pack_);
}

}  // namespace sublet::client
