// The description of a table: its columns, and how each value is converted between the
// database and the member of a row. tables.h lists the tables.
//
// Immutable values. Any thread.
#ifndef SUBLET_SERVER_STORE_TABLE_H_
#define SUBLET_SERVER_STORE_TABLE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "scheduling/sentence.h"
#include "scheduling/shared_string.h"

namespace sublet::server {

// The declared type of a column, derived from the member's type. No column is nullable.
enum class Type {
  kInteger,   // 32 bits: bool, int32_t, enumerations
  kBigint,    // 64 bits; an unsigned number of 2^63 or more is stored as a negative one
  kReal,      // double precision
  kText,      // any bytes
  kNumbered,  // the database assigns the next number to each new row; not in the struct
  kPacked,    // the values of all packed columns (packed.h)
};

// A value that was read, in the member for its type.
struct Cell {
  long long integer = 0;
  double real = 0;
  std::string text;
};

// One column's values of the rows to be written, in the member for its type.
struct Values {
  std::vector<long long> integers;
  std::vector<double> reals;
  std::vector<std::string> texts;
};

class PackedReader;

struct Column {
  const char* name = "";
  Type type = Type::kNumbered;
  bool key = false;   // part of the primary key
  bool adds = false;  // when a row is written again, the new value is added to the old one
  // The range of valid integers; a row with any other is damaged.
  long long lowest = std::numeric_limits<long long>::min();
  long long highest = std::numeric_limits<long long>::max();
  // Convert between the member of a row and its value; `row` points to the table's row type.
  void (*put)(const void* row, Values& to) = nullptr;
  void (*take)(Cell& from, void* row) = nullptr;
  // The same for a packed column. pack() returns false, and appends nothing, if the value is 0 or
  // empty; unpack() is then called without a reader. It returns false if the value is damaged.
  bool (*pack)(const void* row, std::string& to) = nullptr;
  bool (*unpack)(PackedReader* from, const Column& column, void* row) = nullptr;
};

struct Index {
  const char* name = nullptr;
  const char* on = nullptr;  // "(column, ...)", and perhaps "where ..."
};

enum class Storage {
  kByKey,  // rows are stored in the key's B-tree: one search instead of two
  kApart,  // for tables with many, possibly large rows
};

struct Table {
  const char* name = "";
  Storage storage = Storage::kApart;
  std::array<Column, 40> column_list = {};
  size_t column_count = 0;
  // What no query names is in the column of Type::kPacked, if there is one: reading and writing one
  // column takes less time than many. New ones come last, so that old rows can be read.
  std::array<Column, 32> packed_list = {};
  size_t packed_count = 0;
  std::array<Index, 3> indexes = {};  // unused ones have no name

  constexpr std::span<const Column> columns() const { return {column_list.data(), column_count}; }
  constexpr std::span<const Column> packed() const { return {packed_list.data(), packed_count}; }
};

// Statements that create the table and its indexes where they do not exist.
std::vector<std::string> creation(const Table& table);
// Inserts a row or replaces the one with the same key. Its parameters are the columns in
// order, without kNumbered ones.
std::string upsert(const Table& table);

// A line of a description; describe.h makes them.
template <typename Row>
struct Line;

// A table whose rows are represented by `Row`.
template <typename Row>
struct TableOf : Table {
  // Compiles only if each member of `Row` is in exactly one line, all names are different, and
  // there is a key.
  consteval TableOf(const char* name, Storage storage, std::initializer_list<Line<Row>> lines,
                    std::initializer_list<Index> indexes = {});
};

// How a value of this C++ type is stored.
template <typename Value>
constexpr Type type_of() {
  constexpr bool is_number = std::is_integral_v<Value> || std::is_enum_v<Value>;
  constexpr bool is_text = std::is_same_v<Value, std::string> ||
                           std::is_same_v<Value, scheduling::SharedString> ||
                           std::is_same_v<Value, scheduling::Sentence>;
  static_assert(is_number || std::is_same_v<Value, double> || is_text, "no column can hold this");
  if (is_text) return Type::kText;
  if (std::is_same_v<Value, double>) return Type::kReal;
  if (std::is_enum_v<Value> || std::is_same_v<Value, bool> || std::is_same_v<Value, int32_t>)
    return Type::kInteger;
  return Type::kBigint;
}

inline const std::string& text_of(const std::string& text) { return text; }
inline const std::string& text_of(const scheduling::SharedString& text) { return text.str(); }
inline std::string text_of(const scheduling::Sentence& sentence) { return sentence.text(); }

template <typename Value>
void append(Values& to, const Value& value) {
  if constexpr (type_of<Value>() == Type::kText) {
    to.texts.push_back(text_of(value));
  } else if constexpr (type_of<Value>() == Type::kReal) {
    to.reals.push_back(value);
  } else {
    to.integers.push_back(static_cast<long long>(value));
  }
}

template <typename Value>
void assign(Cell& from, Value& value) {
  if constexpr (type_of<Value>() == Type::kText) {
    value = std::exchange(from.text, {});
  } else if constexpr (type_of<Value>() == Type::kReal) {
    value = from.real;
  } else {
    value = static_cast<Value>(from.integer);
  }
}

// An unnamed column for values of this type; the `row` of put() and take() is the value itself.
template <typename Value>
constexpr Column column_for() {
  Column column;
  column.type = type_of<Value>();
  if constexpr (std::is_enum_v<Value>) {
    column.lowest = 0;
    column.highest = std::numeric_limits<int32_t>::max();
  } else if constexpr (std::is_integral_v<Value> && sizeof(Value) < sizeof(long long)) {
    column.lowest = std::numeric_limits<Value>::min();
    column.highest = std::numeric_limits<Value>::max();
  }
  column.put = [](const void* row, Values& to) { append(to, *static_cast<const Value*>(row)); };
  column.take = [](Cell& from, void* row) { assign(from, *static_cast<Value*>(row)); };
  return column;
}

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_TABLE_H_
