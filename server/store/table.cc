#include "server/store/table.h"

#include "server/store/sqlite.h"

namespace sublet::server {
namespace {

std::string declaration(const Column& column) {
  const std::string name = column.name;
  switch (column.type) {
    case Type::kInteger:
      return name + " integer not null";
    case Type::kBigint:
      return name + " bigint not null";
    case Type::kReal:
      return name + " double precision not null";
    case Type::kText:
    case Type::kPacked:
      return name + " text not null";
    case Type::kNumbered:
      return name + sqlite::kNumbered;
  }
  return name;
}

void add_word(std::string& list, const std::string& word) {
  list += (list.empty() ? "" : ", ") + word;
}

}  // namespace

std::vector<std::string> creation(const Table& table) {
  std::string columns, key;
  for (const Column& column : table.columns()) {
    add_word(columns, declaration(column));
    if (column.key && column.type != Type::kNumbered) add_word(key, column.name);
  }
  if (!key.empty()) columns += ", primary key (" + key + ")";
  std::vector<std::string> statements{
      std::string("create table if not exists ") + table.name + " (" + columns + ")" +
      (table.storage == Storage::kByKey ? sqlite::kStoredByKey : "")};
  for (const Index& index : table.indexes)
    if (index.name)
      statements.push_back(std::string("create index if not exists ") + index.name + " on " +
                           table.name + " " + index.on);
  return statements;
}

std::string upsert(const Table& table) {
  std::string names, values, key, updates;
  for (const Column& column : table.columns()) {
    if (column.type == Type::kNumbered) continue;
    const std::string name = column.name;
    add_word(names, name);
    add_word(values, ":" + name);
    if (column.key) {
      add_word(key, name);
    } else {
      const std::string old = column.adds ? std::string(table.name) + "." + name + " + " : "";
      add_word(updates, name + " = " + old + "excluded." + name);
    }
  }
  std::string statement =
      std::string("insert into ") + table.name + " (" + names + ") values (" + values + ")";
  if (!key.empty())
    statement +=
        " on conflict (" + key + ") do " + (updates.empty() ? "nothing" : "update set " + updates);
  return statement;
}

}  // namespace sublet::server
