// A small binary format for job descriptions and events in the store. Little-endian,
// lengths before contents. The decoder checks every length before use, so a damaged
// row affects only itself.
#ifndef SUBLET_PROTOCOL_CODEC_H_
#define SUBLET_PROTOCOL_CODEC_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sublet::protocol {

class Damaged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Encoder {
 public:
  void number(uint64_t value) {
    char octets[8];
    for (int i = 0; i < 8; ++i) octets[i] = static_cast<char>(value >> (8 * i));
    bytes_.append(octets, sizeof octets);
  }
  void number(int64_t value) { number(static_cast<uint64_t>(value)); }
  void number(uint32_t value) { number(static_cast<uint64_t>(value)); }
  void number(int32_t value) { number(static_cast<int64_t>(value)); }
  void flag(bool value) { bytes_.push_back(value ? 1 : 0); }
  void real(double value) { number(std::bit_cast<uint64_t>(value)); }
  void text(std::string_view value) {
    number(static_cast<uint64_t>(value.size()));
    bytes_.append(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}

  uint64_t number() {
    need(8);
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= uint64_t{static_cast<uint8_t>(rest_[i])} << (8 * i);
    rest_.remove_prefix(8);
    return value;
  }
  int64_t signed_number() { return static_cast<int64_t>(number()); }
  uint32_t number32() { return static_cast<uint32_t>(number()); }
  int32_t signed_number32() { return static_cast<int32_t>(signed_number()); }
  bool flag() {
    need(1);
    bool value = rest_[0] != 0;
    rest_.remove_prefix(1);
    return value;
  }
  double real() { return std::bit_cast<double>(number()); }
  std::string text() {
    uint64_t size = number();
    need(size);
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  // The number of elements that follow; each takes at least `least` bytes.
  uint64_t count(uint64_t least) {
    uint64_t value = number();
    if (value > rest_.size() / least) throw Damaged("a count is larger than its row");
    return value;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  void need(uint64_t size) const {
    if (rest_.size() < size) throw Damaged("a row is cut short");
  }
  std::string_view rest_;
};

}  // namespace sublet::protocol

#endif  // SUBLET_PROTOCOL_CODEC_H_
