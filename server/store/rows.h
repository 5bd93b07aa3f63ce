// Reads rows: a query's results are stored in variables that are bound to it once.
// Includes SOCI, so only the store's own files may include this.
#ifndef SUBLET_SERVER_STORE_ROWS_H_
#define SUBLET_SERVER_STORE_ROWS_H_

#include <soci/soci.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/codec.h"
#include "server/store/table.h"

namespace sublet::server {

// One query. Call into() and with(), then select(), then either each() or next() until it
// returns false. All throw soci::soci_error if the database fails. The variables must outlive
// this object. Not thread-safe.
class Rows {
 public:
  explicit Rows(soci::session& session) : statement_(session) {}

  // Selects all columns of the table except `without`; `alias`: the table's name in the query.
  template <typename Row>
  Rows& into(const TableOf<Row>& table, Row& row, const std::string& alias = "",
             const std::string& without = "") {
    add(table, &row, alias, without, false);
    return *this;
  }
  // The same for the right side of a left join: where it has no row, `row` is
  // default-constructed.
  template <typename Row>
  Rows& into_joined(const TableOf<Row>& table, Row& row, const std::string& alias) {
    add(table, &row, alias, "", true);
    resets_.push_back([&row] { row = Row(); });
    return *this;
  }
  // Selects an expression that is never null.
  template <typename Value>
  Rows& into(const std::string& expression, Value& value) {
    add(column_for<Value>(), expression, &value, false);
    return *this;
  }

  // Binds the query's parameter `:name`.
  Rows& with(const std::string& name, const std::string& value);

  // Executes "select COLUMNS from " followed by `rest`.
  void select(const std::string& rest);

  // Reads the next row into the variables; false: there are no more. Throws Damaged for this
  // row only; the columns that can be read are set.
  bool next();

  // Reads the remaining rows. Skips damaged ones, and logs them or passes them to `damaged`.
  void each(const std::function<void()>& read);
  void each(const std::function<void()>& read,
            const std::function<void(const std::string& what)>& damaged);

 private:
  struct Field {
    Column column;
    std::string expression;
    void* variable;
    bool may_be_null;
    const Table* table = nullptr;  // of a column of Type::kPacked
    Cell cell = {};
    soci::indicator state = soci::i_ok;
  };
  void add(const Table& table, void* row, const std::string& alias, const std::string& without,
           bool may_be_null);
  void add(const Column& column, const std::string& expression, void* variable, bool may_be_null,
           const Table* table = nullptr);
  static const char* take(Field& field);

  // Deques, because the statement keeps pointers to the elements.
  std::deque<Field> fields_;
  std::deque<std::string> parameters_;
  std::vector<std::function<void()>> resets_;
  std::string table_;  // the first, for messages
  soci::statement statement_;
};

// Rows of one table; `rest` follows its name in the query. Damaged rows are logged and skipped.
template <typename Row>
std::vector<Row> rows_of(soci::session& session, const TableOf<Row>& table,
                         const std::string& rest) {
  std::vector<Row> result;
  Row row;
  Rows rows(session);
  rows.into(table, row).select(table.name + (" " + rest));
  rows.each([&] { result.push_back(std::move(row)); });
  return result;
}

// The first such row. Throws Damaged.
template <typename Row>
std::optional<Row> row_of(soci::session& session, const TableOf<Row>& table,
                          const std::string& rest) {
  Row row;
  Rows rows(session);
  rows.into(table, row).select(table.name + (" " + rest));
  if (!rows.next()) return std::nullopt;
  return row;
}

// The first column of the first row; 0 if there is none.
uint64_t number_of(soci::session& session, const std::string& question);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_ROWS_H_
