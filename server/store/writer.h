// Writing many rows at once: their values are gathered in vectors, one for each column,
// and one statement is executed for all of them. It is prepared and bound once.
// Includes SOCI: for the store's own files.
#ifndef SUBLET_SERVER_STORE_WRITER_H_
#define SUBLET_SERVER_STORE_WRITER_H_

#include <soci/soci.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/store/table.h"

namespace sublet::server {

// A statement and the parameters of many executions.
class Bulk {
 public:
  // For parameters of these types, in order.
  Bulk(std::string statement, std::vector<Type> types);
  // To write rows of a table, each over the one of the same key.
  explicit Bulk(const Table& table);
  Bulk(const Bulk&) = delete;

  // Executes it for all that was added since; throws soci::soci_error.
  void flush(soci::session& session);
  // Forgets what was added.
  void clear();

 protected:
  ~Bulk() = default;
  void add_row(const Table& table, const void* row);

  std::vector<Values> parameters_;  // the statement keeps their addresses
  size_t rows_ = 0;

 private:
  void prepare(soci::session& session);

  const std::string text_;
  const std::vector<Type> types_;
  std::unique_ptr<soci::statement> statement_;
};

template <typename... Parameters>
class Statement : public Bulk {
 public:
  explicit Statement(std::string text) : Bulk(std::move(text), {type_of<Parameters>()...}) {}
  void add(const Parameters&... values) {
    size_t i = 0;
    (append(parameters_[i++], values), ...);
    ++rows_;
  }
};

template <typename Row>
class Writer : public Bulk {
 public:
  explicit Writer(const TableOf<Row>& table) : Bulk(table), table_(table) {}
  void add(const Row& row) { add_row(table_, &row); }

 private:
  const TableOf<Row>& table_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_WRITER_H_
