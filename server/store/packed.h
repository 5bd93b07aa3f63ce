// Packed columns: the values of a row that no query names, in one column (Table::packed()). Most
// values of a job are 0 or empty; these take no room.
//
//   1 octet   the version, 1
//   4 octets  a set of bits, little-endian like all numbers here: bit I: the value of packed
//             column I follows; the others are 0 or empty
//   values    in the order of the columns; integers: zigzag, then 7 bits an octet, lowest first,
//             the top bit set in all but the last octet; reals: 8 octets; texts: the length as such
//             an unsigned integer, then the octets
//   4 octets  a checksum of all that comes before
//
// Each row has one form: anything else is damage, and so is a value that its member cannot hold.
//
// Threads: any.
#ifndef SUBLET_SERVER_STORE_PACKED_H_
#define SUBLET_SERVER_STORE_PACKED_H_

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/store/table.h"

namespace sublet::server {

std::string pack(const Table& table, const void* row);
// False: the bytes are damaged; some members of the row may have been set.
bool unpack(const Table& table, std::string_view bytes, void* row);

// Of a row that could not be packed when the database was brought to layout 15: its values follow
// as text. For unpack() it is damaged.
inline constexpr char kUnpackable = '!';

// Reads values; each function returns false if there is none.
class PackedReader {
 public:
  explicit PackedReader(std::string_view bytes) : rest_(bytes) {}
  bool unsigned_integer(uint64_t& value);
  bool integer(long long& value);
  bool real(double& value);
  bool text(std::string_view& value);
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

void put_integer(uint64_t value, std::string& to);
void put_real(double value, std::string& to);

// Column::pack and unpack, by the member's type.
template <typename Value>
bool put_packed(const Value& value, std::string& to) {
  if constexpr (type_of<Value>() == Type::kText) {
    const std::string& text = text_of(value);
    if (text.empty()) return false;
    put_integer(text.size(), to);
    to += text;
  } else if constexpr (type_of<Value>() == Type::kReal) {
    if (std::bit_cast<uint64_t>(value) == 0) return false;
    put_real(value, to);
  } else {
    const auto number = static_cast<uint64_t>(value);
    if (number == 0) return false;
    put_integer((number << 1) ^ (0 - (number >> 63)), to);
  }
  return true;
}

template <typename Value>
bool take_packed(PackedReader* from, const Column& column, Value& value) {
  if (from == nullptr) {
    value = Value();
    return true;
  }
  if constexpr (type_of<Value>() == Type::kText) {
    std::string_view text;
    if (!from->text(text) || text.empty()) return false;
    value = std::string(text);
  } else if constexpr (type_of<Value>() == Type::kReal) {
    if (!from->real(value) || std::bit_cast<uint64_t>(value) == 0) return false;
  } else {
    long long number = 0;
    if (!from->integer(number) || number == 0) return false;
    if (number < column.lowest || number > column.highest) return false;
    value = static_cast<Value>(number);
  }
  return true;
}

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_PACKED_H_
