#include "cli/checkpoint/values.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text.h"

namespace sublet::cli {

namespace {

constexpr size_t kBytesShown = 40;

bool is_text(std::string_view bytes) {
  return is_utf8(bytes) && std::none_of(bytes.begin(), bytes.end(), [](char c) {
           return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
         });
}

template <typename T>
Spread spread_of_numbers(const CheckpointFile& file, const CheckpointSection& section) {
  Spread spread;
  T least{};
  T most{};
  long double sum = 0;
  uint64_t numbers = 0;
  for_each_value(file, section, [&](auto any) {
    const T value = static_cast<T>(any);
    if constexpr (std::floating_point<T>) {
      if (std::isnan(value)) {
        ++spread.not_numbers;
        return;
      }
    }
    least = numbers == 0 ? value : std::min(least, value);
    most = numbers == 0 ? value : std::max(most, value);
    sum += static_cast<long double>(value);
    ++numbers;
  });
  if (numbers == 0) return spread;
  spread.least = value_text(least);
  spread.most = value_text(most);
  spread.mean = value_text(static_cast<double>(sum / static_cast<long double>(numbers)));
  return spread;
}

}  // namespace

std::string value_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return plain_number(value);
}

Spread spread_of(const CheckpointFile& file, const CheckpointSection& section) {
  Spread spread;
  if (section.type == SUBLET_STREAM) return spread;
  with_type(section.type, [&]<typename T>(T) { spread = spread_of_numbers<T>(file, section); });
  return spread;
}

std::vector<std::string> first_values(const CheckpointFile& file, const CheckpointSection& section,
                                      size_t most) {
  std::vector<std::string> texts;
  with_type(section.type, [&]<typename T>(T) {
    std::vector<T> room;
    for (const T value : read_values(file, section, 0, most, room))
      texts.push_back(value_text(value));
  });
  return texts;
}

std::string first_bytes(const CheckpointFile& file, const CheckpointSection& section, size_t most) {
  std::string bytes(std::min<uint64_t>(most, section.bytes), '\0');
  file.read(section, 0, {reinterpret_cast<unsigned char*>(bytes.data()), bytes.size()});
  return bytes;
}

std::string stream_beginning(const CheckpointFile& file, const CheckpointSection& section) {
  const std::string bytes = first_bytes(file, section, kBytesShown);
  const bool cut = bytes.size() < section.bytes;
  std::string whole = bytes;
  // The cut may have parted a character, of at most four bytes.
  for (int i = 0; cut && i < 3 && !is_utf8(whole); ++i) whole.pop_back();
  if (is_text(whole)) return "\"" + whole + "\"" + (cut ? " …" : "");
  const std::string hex = hex_encode(bytes.substr(0, kBytesShown / 2));
  return "hex " + hex + (hex.size() < 2 * section.bytes ? " …" : "");
}

}  // namespace sublet::cli
