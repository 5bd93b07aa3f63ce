// A table as the code sees it: its columns, and how the value of each goes between
// the database and the member of a row that it belongs to. tables.h lists the tables.
//
// Values, which never change. Any thread.
#ifndef SUBLET_SERVER_STORE_TABLE_H_
#define SUBLET_SERVER_STORE_TABLE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace sublet::server {

// How a column is declared; none is ever null. It follows from the member's type.
enum class Type {
  kInteger,   // 32 bits: bool, int32_t, enumerations
  kBigint,    // 64 bits; an unsigned number beyond them is stored as a negative one
  kReal,      // double precision
  kText,      // any bytes
  kNumbered,  // the database gives each new row the next number; it has no member
};

// A value that was read, in what its type needs.
struct Cell {
  long long integer = 0;
  double real = 0;
  std::string text;
};

// The values of one column of rows that are to be written, in what its type needs.
struct Values {
  std::vector<long long> integers;
  std::vector<double> reals;
  std::vector<std::string> texts;
};

struct Column {
  const char* name = "";
  Type type = Type::kNumbered;
  bool key = false;   // belongs to the primary key
  bool adds = false;  // when a row is written again, the new value is added to the old one
  // The integers that may stand there; a row with any other is damaged.
  long long lowest = std::numeric_limits<long long>::min();
  long long highest = std::numeric_limits<long long>::max();
  // Between the member of a row and its value; `row` is of the table's type.
  void (*put)(const void* row, Values& to) = nullptr;
  void (*take)(Cell& from, void* row) = nullptr;
};

struct Index {
  const char* name = nullptr;
  const char* on = nullptr;  // "(column, ...)", and perhaps "where ..."
};

enum class Storage {
  kByKey,  // a row lies in the tree of its key, which is searched once and not twice
  kApart,  // for rows that may be large and are many
};

struct Table {
  const char* name = "";
  Storage storage = Storage::kApart;
  std::array<Column, 40> column_list = {};
  size_t column_count = 0;
  std::array<Index, 3> indexes = {};  // those that have a name

  constexpr std::span<const Column> columns() const { return {column_list.data(), column_count}; }
};

// Statements that make what is not there yet: the table, then each of its indexes.
std::vector<std::string> creation(const Table& table);
// Writes one row over the one of the same key, if there is one. Its parameters are the
// columns in order, but for one that is numbered.
std::string upsert(const Table& table);

// A line of a description; describe.h makes them.
template <typename Row>
struct Line;

// The table whose rows are kept as `Row`.
template <typename Row>
struct TableOf : Table {
  // Does not compile unless each member of `Row` is in one line, no name is there twice, and
  // there is a key.
  consteval TableOf(const char* name, Storage storage, std::initializer_list<Line<Row>> lines,
                    std::initializer_list<Index> indexes = {});
};

// How a value of this C++ type is stored.
template <typename Value>
constexpr Type type_of() {
  constexpr bool is_number = std::is_integral_v<Value> || std::is_enum_v<Value>;
  static_assert(is_number || std::is_same_v<Value, double> || std::is_same_v<Value, std::string>,
                "no column can hold this");
  if (std::is_same_v<Value, std::string>) return Type::kText;
  if (std::is_same_v<Value, double>) return Type::kReal;
  if (std::is_enum_v<Value> || std::is_same_v<Value, bool> || std::is_same_v<Value, int32_t>)
    return Type::kInteger;
  return Type::kBigint;
}

template <typename Value>
void append(Values& to, const Value& value) {
  if constexpr (type_of<Value>() == Type::kText) {
    to.texts.push_back(value);
  } else if constexpr (type_of<Value>() == Type::kReal) {
    to.reals.push_back(value);
  } else {
    to.integers.push_back(static_cast<long long>(value));
  }
}

template <typename Value>
void assign(Cell& from, Value& value) {
  if constexpr (type_of<Value>() == Type::kText) {
    value.swap(from.text);
  } else if constexpr (type_of<Value>() == Type::kReal) {
    value = from.real;
  } else {
    value = static_cast<Value>(from.integer);
  }
}

// A column for values of this type, as yet without a name; what put() and take() are given
// as `row` is the value itself.
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
