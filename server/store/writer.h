// Writes many rows at once: their values are collected in one vector per column, and one
// statement, prepared and bound once, is executed for all of them.
// Includes SOCI, so only the store's own files may include this.
#ifndef SUBLET_SERVER_STORE_WRITER_H_
#define SUBLET_SERVER_STORE_WRITER_H_

#include <soci/soci.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/store/table.h"

namespace sublet::server {

// A statement and the parameters of its pending executions.
class Bulk {
 public:
  // For parameters of these types, in order.
  Bulk(std::string statement, std::vector<Type> types);
  // Writes rows of a table, each replacing the one with the same key.
  explicit Bulk(const Table& table);
  Bulk(const Bulk&) = delete;

  // Executes the statement for everything added since the last flush; throws
  // soci::soci_error.
  void flush(soci::session& session);
  // Discards what was added.
  void clear();

 protected:
  ~Bulk() = default;
  void add_row(const Table& table, const void* row);

  std::vector<Values> parameters_;  // the statement keeps pointers to these
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
