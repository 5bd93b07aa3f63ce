// The elements of a section as numbers, read in parts of a fixed size. One thread.
#ifndef SUBLET_CLI_CHECKPOINT_VALUES_H_
#define SUBLET_CLI_CHECKPOINT_VALUES_H_

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/checkpoint/file.h"

namespace sublet::cli {

// Exact: the shortest text that reads back as this number; float32 is shown as the double of
// the same value. "nan", "inf", "-inf".
std::string value_text(double value);
template <std::integral T>
std::string value_text(T value) {
  return std::to_string(value);
}

// Calls `use` with a value of the section's element type; a stream's elements are bytes.
template <typename Use>
void with_type(uint32_t type, Use&& use) {
  switch (type) {
    case SUBLET_INT8:
      return use(int8_t{});
    case SUBLET_INT16:
      return use(int16_t{});
    case SUBLET_UINT16:
      return use(uint16_t{});
    case SUBLET_INT32:
      return use(int32_t{});
    case SUBLET_UINT32:
      return use(uint32_t{});
    case SUBLET_INT64:
      return use(int64_t{});
    case SUBLET_UINT64:
      return use(uint64_t{});
    case SUBLET_FLOAT32:
      return use(float{});
    case SUBLET_FLOAT64:
      return use(double{});
    default:
      return use(uint8_t{});
  }
}

// The elements from `from` on, fewer than asked for at the section's end.
template <typename T>
std::span<const T> read_values(const CheckpointFile& file, const CheckpointSection& section,
                               uint64_t from, size_t most, std::vector<T>& room) {
  room.resize(std::min<uint64_t>(most, section.count - from));
  const std::span<unsigned char> bytes(reinterpret_cast<unsigned char*>(room.data()),
                                       room.size() * sizeof(T));
  file.read(section, from * sizeof(T), bytes);
  if (sublet_host_swaps())
    for (size_t at = 0; at < bytes.size(); at += sizeof(T))
      std::reverse(bytes.data() + at, bytes.data() + at + sizeof(T));
  return room;
}

inline constexpr size_t kValuesAtOnce = 8192;

// Calls `use` with each element, in order, as its own type.
template <typename Use>
void for_each_value(const CheckpointFile& file, const CheckpointSection& section, Use&& use) {
  with_type(section.type, [&]<typename T>(T) {
    std::vector<T> room;
    for (uint64_t at = 0; at < section.count; at += kValuesAtOnce)
      for (const T value : read_values(file, section, at, kValuesAtOnce, room)) use(value);
  });
}

// What is worth knowing of many numbers.
struct Spread {
  // Exact texts; missing if there is no number.
  std::optional<std::string> least, most, mean;
  uint64_t not_numbers = 0;  // NaNs; they are left out of the others
};
// Of a stream: nothing, since only its program knows what the bytes mean.
Spread spread_of(const CheckpointFile& file, const CheckpointSection& section);

// The first elements, as exact texts.
std::vector<std::string> first_values(const CheckpointFile& file, const CheckpointSection& section,
                                      size_t most);
// The first bytes.
std::string first_bytes(const CheckpointFile& file, const CheckpointSection& section, size_t most);

// The first bytes of a stream for a person: in quotes if they are text, else in hexadecimal.
std::string stream_beginning(const CheckpointFile& file, const CheckpointSection& section);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_CHECKPOINT_VALUES_H_
