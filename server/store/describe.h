// The functions with which tables.cc describes tables, and the compile-time checks of these
// descriptions. For tables.cc only.
#ifndef SUBLET_SERVER_STORE_DESCRIBE_H_
#define SUBLET_SERVER_STORE_DESCRIBE_H_

#include <string_view>
#include <type_traits>
#include <utility>

#include "server/store/packed.h"
#include "server/store/table.h"

namespace sublet::server {

// A member of a row; with a second pointer, a member of that member.
template <auto kFirst, auto... kRest>
constexpr auto& member_of(auto& row) {
  if constexpr (sizeof...(kRest) == 0) {
    return row.*kFirst;
  } else {
    return member_of<kRest...>(row.*kFirst);
  }
}

template <typename Row, auto... kPath>
struct Member {
  using Value = std::remove_cvref_t<decltype(member_of<kPath...>(std::declval<Row&>()))>;
  static void put(const void* row, Values& to) {
    append(to, member_of<kPath...>(*static_cast<const Row*>(row)));
  }
  static void take(Cell& from, void* row) {
    assign(from, member_of<kPath...>(*static_cast<Row*>(row)));
  }
  static bool pack(const void* row, std::string& to) {
    return put_packed(member_of<kPath...>(*static_cast<const Row*>(row)), to);
  }
  static bool unpack(PackedReader* from, const Column& column, void* row) {
    return take_packed(from, column, member_of<kPath...>(*static_cast<Row*>(row)));
  }
};

template <typename Row, typename Value>
Row row_with(Value Row::*);
template <auto kMember>
using RowOf = decltype(row_with(kMember));

// The number of members of a struct: the most values that can initialize it.
struct Anything {
  template <typename T>
  operator T() const;
};
template <typename Struct, typename... Some>
constexpr int count_members() {
  if constexpr (requires { Struct{Some{}..., Anything{}}; }) {
    return count_members<Struct, Some..., Anything>();
  } else {
    return sizeof...(Some);
  }
}

// Identifies a member, or a member of that member. (Not by address: with
// -fsanitize=undefined addresses cannot be compared in a constant expression.)
template <auto... kPath>
constexpr std::string_view mark() {
  return __PRETTY_FUNCTION__;
}

template <typename Row>
struct Line {
  Column column;
  bool is_stored = true;
  bool is_packed = false;        // stored in the column of Type::kPacked
  std::string_view path = {};    // mark of the stored member; empty: the database numbers it
  std::string_view member = {};  // mark of the row's member that is or contains it
  int parts = 1;                 // number of members of that member

  // When a row is written again, the new value is added to the old one.
  constexpr Line adding() const {
    Line line = *this;
    line.column.adds = true;
    return line;
  }
  // For an enumeration: the valid values are 1 to `last`.
  template <typename Enum>
  constexpr Line up_to(Enum last) const {
    Line line = *this;
    line.column.lowest = 1;
    line.column.highest = static_cast<long long>(last);
    return line;
  }
};

// A column for a member of the row, or for a member of that member.
template <auto kFirst, auto... kRest>
constexpr auto column(const char* name) {
  using Row = RowOf<kFirst>;
  using Path = Member<Row, kFirst, kRest...>;
  Line<Row> line{column_for<typename Path::Value>()};
  line.column.name = name;
  line.column.put = &Path::put;
  line.column.take = &Path::take;
  line.path = mark<kFirst, kRest...>();
  line.member = mark<kFirst>();
  if constexpr (sizeof...(kRest) > 0)
    line.parts = count_members<typename Member<Row, kFirst>::Value>();
  return line;
}

// The same, as part of the primary key.
template <auto... kPath>
constexpr auto key(const char* name) {
  auto line = column<kPath...>(name);
  line.column.key = true;
  return line;
}

// A member whose value is one of those in the table's packed_column().
template <auto kFirst, auto... kRest>
constexpr auto packed(const char* name) {
  using Path = Member<RowOf<kFirst>, kFirst, kRest...>;
  auto line = column<kFirst, kRest...>(name);
  line.column.pack = &Path::pack;
  line.column.unpack = &Path::unpack;
  line.is_packed = true;
  return line;
}

// The column of the packed members.
template <typename Row>
constexpr Line<Row> packed_column(const char* name) {
  Line<Row> line;
  line.column.name = name;
  line.column.type = Type::kPacked;
  return line;
}

// The key of a table whose rows the database numbers.
template <typename Row>
constexpr Line<Row> numbered(const char* name) {
  Line<Row> line;
  line.column.name = name;
  line.column.key = true;
  return line;
}

// A member that this table does not store.
template <auto kMember>
constexpr auto no_column(const char* name) {
  auto line = column<kMember>(name);
  line.is_stored = false;
  return line;
}

template <typename Row>
consteval TableOf<Row>::TableOf(const char* table, Storage how,
                                std::initializer_list<Line<Row>> lines,
                                std::initializer_list<Index> index_list) {
  name = table;
  storage = how;
  bool has_key = false, has_packed = false;
  int members = count_members<Row>();
  for (const Line<Row>* line = lines.begin(); line != lines.end(); ++line) {
    const Column& column = line->column;
    bool is_first_part = true;
    for (const Line<Row>* other = lines.begin(); other != line; ++other) {
      if (std::string_view(other->column.name) == column.name) throw "two columns of one name";
      if (!line->path.empty() && other->path == line->path) throw "two columns for one member";
      if (other->member == line->member) is_first_part = false;
    }
    has_key |= column.key;
    if (is_first_part) members += line->parts - 1;
    if (!line->path.empty()) --members;
    has_packed |= column.type == Type::kPacked;
    if (line->is_packed)
      packed_list[packed_count++] = column;
    else if (line->is_stored)
      column_list[column_count++] = column;
  }
  if (!has_key) throw "no key";
  if (has_packed != (packed_count > 0)) throw "packed members without their column, or it alone";
  if (members != 0) throw "a member of the row is in no column";
  size_t count = 0;
  for (const Index& index : index_list) indexes[count++] = index;
}

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_DESCRIBE_H_
