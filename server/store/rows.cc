#include "server/store/rows.h"

#include "base/log.h"
#include "server/store/packed.h"

namespace sublet::server {
namespace {

bool is_integer(const Column& column) {
  return column.type == Type::kInteger || column.type == Type::kBigint;
}

}  // namespace

void Rows::add(const Table& table, void* row, const std::string& alias, const std::string& without,
               bool may_be_null) {
  if (table_.empty()) table_ = table.name;
  for (const Column& column : table.columns()) {
    if (column.type == Type::kNumbered || column.name == without) continue;
    add(column, (alias.empty() ? "" : alias + ".") + column.name, row, may_be_null, &table);
  }
}

void Rows::add(const Column& column, const std::string& expression, void* variable,
               bool may_be_null, const Table* table) {
  Field& field = fields_.emplace_back(Field{column, expression, variable, may_be_null, table});
  if (column.type == Type::kText || column.type == Type::kPacked) {
    statement_.exchange(soci::into(field.cell.text, field.state));
  } else if (column.type == Type::kReal) {
    statement_.exchange(soci::into(field.cell.real, field.state));
  } else {
    statement_.exchange(soci::into(field.cell.integer, field.state));
  }
}

Rows& Rows::with(const std::string& name, const std::string& value) {
  statement_.exchange(soci::use(parameters_.emplace_back(value), name));
  return *this;
}

void Rows::select(const std::string& rest) {
  std::string list;
  for (const Field& field : fields_) list += (list.empty() ? "" : ", ") + field.expression;
  statement_.alloc();
  statement_.prepare("select " + list + " from " + rest);
  statement_.define_and_bind();
  statement_.execute();
}

bool Rows::next() {
  if (!statement_.fetch()) return false;
  for (const auto& reset : resets_) reset();
  const Field* damaged = nullptr;
  const char* what = "";
  for (Field& field : fields_) {
    if (const char* wrong = take(field)) {
      damaged = &field;
      what = wrong;
    }
  }
  if (damaged) throw protocol::Damaged(damaged->expression + what);
  return true;
}

// Returns what is wrong with the value; null: nothing.
const char* Rows::take(Field& field) {
  const Column& column = field.column;
  const char* wrong = nullptr;
  if (field.state == soci::i_null) {
    if (field.may_be_null) return nullptr;
    field.cell = Cell();
    wrong = " is null";
  } else if (is_integer(column) &&
             (field.cell.integer < column.lowest || field.cell.integer > column.highest)) {
    wrong = " is out of range";
  }
  if (column.type != Type::kPacked) {
    column.take(field.cell, field.variable);
  } else if (!unpack(*field.table, field.cell.text, field.variable) && wrong == nullptr) {
    wrong = " is damaged";
  }
  return wrong;
}

void Rows::each(const std::function<void()>& read) {
  each(read, [](const std::string& what) { log(Severity::error) << what; });
}

void Rows::each(const std::function<void()>& read,
                const std::function<void(const std::string& what)>& damaged) {
  while (true) {
    try {
      if (!next()) return;
      read();
    } catch (const protocol::Damaged& e) {
      damaged("a row of table " + table_ + " was skipped: " + e.what());
    }
  }
}

uint64_t number_of(soci::session& session, const std::string& question) {
  long long value = 0;
  soci::indicator state = soci::i_null;
  session << question, soci::into(value, state);
  return state == soci::i_ok ? static_cast<uint64_t>(value) : 0;
}

}  // namespace sublet::server
