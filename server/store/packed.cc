#include "server/store/packed.h"

#include <algorithm>

#include "scheduling/hashed.h"

namespace sublet::server {
namespace {

constexpr char kVersion = 1;
constexpr size_t kHead = 5;      // the version and the set of bits
constexpr size_t kChecksum = 4;  // at the end

// Written out, so that the compiler makes one load or store of it.
uint64_t number_at(const char* at, size_t octets) {
  uint64_t number = 0;
  for (size_t i = 0; i < octets; ++i) number |= uint64_t{static_cast<uint8_t>(at[i])} << (8 * i);
  return number;
}

void write_number(uint64_t number, size_t octets, char* to) {
  for (size_t i = 0; i < octets; ++i) to[i] = static_cast<char>(number >> (8 * i));
}

// Of the bytes in words of eight, the last one filled up with zeros: each word, and first the
// length, scatters the bits anew.
uint32_t checksum_of(std::string_view bytes) {
  uint64_t sum = scheduling::hashed(bytes.size());
  while (!bytes.empty()) {
    const size_t octets = std::min<size_t>(8, bytes.size());
    const uint64_t word =
        octets == 8 ? number_at(bytes.data(), 8) : number_at(bytes.data(), octets);
    sum = scheduling::hashed(sum ^ word);
    bytes.remove_prefix(octets);
  }
  return static_cast<uint32_t>(sum);
}

}  // namespace

void put_integer(uint64_t value, std::string& to) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

void put_real(double value, std::string& to) {
  char octets[8];
  write_number(std::bit_cast<uint64_t>(value), sizeof octets, octets);
  to.append(octets, sizeof octets);
}

bool PackedReader::unsigned_integer(uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < rest_.size() && i < 10; ++i) {
    const uint64_t bits = static_cast<uint8_t>(rest_[i]) & 0x7fu;
    value |= bits << (7 * i);
    if ((rest_[i] & 0x80) != 0) continue;
    rest_.remove_prefix(i + 1);
    const bool is_shortest = i == 0 || bits != 0;
    return is_shortest && (i < 9 || bits <= 1);
  }
  return false;
}

bool PackedReader::integer(long long& value) {
  uint64_t number = 0;
  if (!unsigned_integer(number)) return false;
  value = static_cast<long long>((number >> 1) ^ (0 - (number & 1)));
  return true;
}

bool PackedReader::real(double& value) {
  if (rest_.size() < 8) return false;
  value = std::bit_cast<double>(number_at(rest_.data(), 8));
  rest_.remove_prefix(8);
  return true;
}

bool PackedReader::text(std::string_view& value) {
  uint64_t size = 0;
  if (!unsigned_integer(size) || size > rest_.size()) return false;
  value = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

std::string pack(const Table& table, const void* row) {
  std::string bytes(kHead, kVersion);
  uint64_t present = 0, bit = 1;
  for (const Column& column : table.packed()) {
    if (column.pack(row, bytes)) present |= bit;
    bit <<= 1;
  }
  write_number(present, kHead - 1, &bytes[1]);
  const uint32_t sum = checksum_of(bytes);
  bytes.resize(bytes.size() + kChecksum);
  write_number(sum, kChecksum, &bytes[bytes.size() - kChecksum]);
  return bytes;
}

bool unpack(const Table& table, std::string_view bytes, void* row) {
  if (bytes.size() < kHead + kChecksum || bytes[0] != kVersion) return false;
  const std::string_view summed = bytes.substr(0, bytes.size() - kChecksum);
  if (number_at(summed.data() + summed.size(), kChecksum) != checksum_of(summed)) return false;
  uint64_t present = number_at(&bytes[1], kHead - 1);
  PackedReader reader(summed.substr(kHead));
  for (const Column& column : table.packed()) {
    if (!column.unpack((present & 1) != 0 ? &reader : nullptr, column, row)) return false;
    present >>= 1;
  }
  return present == 0 && reader.at_end();
}

}  // namespace sublet::server
