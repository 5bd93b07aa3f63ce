// Reading rows: what a question selects goes into variables that are bound to it once.
// Includes SOCI: for the store's own files.
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

// One question. First into() and with(), then select(), then next() until it is false or
// each(). All throw soci::soci_error where the database fails. The variables must live as
// long as this. Not shared between threads.
class Rows {
 public:
  explicit Rows(soci::session& session) : statement_(session) {}

  // Selects all columns of the table, but for `without`; `alias`: its name in the question.
  template <typename Row>
  Rows& into(const TableOf<Row>& table, Row& row, const std::string& alias = "",
             const std::string& without = "") {
    add(table, &row, alias, without, false);
    return *this;
  }
  // The same of a table that the question joins to the left: where it has no row, `row` is
  // as made.
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

  // The parameter `:name` of the question.
  Rows& with(const std::string& name, const std::string& value);

  // Asks "select COLUMNS from " and the rest of the question.
  void select(const std::string& rest);

  // Sets the variables to those of the next row; false: that was the last. Throws Damaged for
  // this row only; what can be read of it is set.
  bool next();

  // The rows that are left. A damaged one costs itself only: it is named in the log, or told
  // to `damaged`.
  void each(const std::function<void()>& read);
  void each(const std::function<void()>& read,
            const std::function<void(const std::string& what)>& damaged);

 private:
  struct Field {
    Column column;
    std::string expression;
    void* variable;
    bool may_be_null;
    Cell cell = {};
    soci::indicator state = soci::i_ok;
  };
  void add(const Table& table, void* row, const std::string& alias, const std::string& without,
           bool may_be_null);
  void add(const Column& column, const std::string& expression, void* variable, bool may_be_null);

  // Deques: the statement keeps their elements' addresses.
  std::deque<Field> fields_;
  std::deque<std::string> parameters_;
  std::vector<std::function<void()>> resets_;
  std::string table_;  // the first, for messages
  soci::statement statement_;
};

// Rows of one table; `rest` is what follows its name in the question. Damaged ones are named
// in the log and left out.
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

// The first of them. Throws Damaged.
template <typename Row>
std::optional<Row> row_of(soci::session& session, const TableOf<Row>& table,
                          const std::string& rest) {
  Row row;
  Rows rows(session);
  rows.into(table, row).select(table.name + (" " + rest));
  if (!rows.next()) return std::nullopt;
  return row;
}

// The first column of the first row; 0: there is none.
uint64_t number_of(soci::session& session, const std::string& question);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_ROWS_H_
