// Writing many rows of one table at once: columns gathered in vectors, one
// prepared statement executed for all of them. Includes SOCI: for sql_store.cc
// only.
#ifndef SUBLET_SERVER_SQL_TABLE_H_
#define SUBLET_SERVER_SQL_TABLE_H_

#include <soci/soci.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace sublet::server {

class SqlTable {
 public:
  // statement: with one ":name" for each of `kinds` ('i', 'r', 't': integer,
  // real, text), in order. Prepared at the first flush.
  SqlTable(std::string statement, std::string kinds)
      : statement_text_(std::move(statement)), kinds_(std::move(kinds)) {
    for (char kind : kinds_) {
      if (kind == 'i') integers_.emplace_back();
      if (kind == 'r') reals_.emplace_back();
      if (kind == 't') texts_.emplace_back();
    }
  }

  // One row; the arguments' types follow `kinds`.
  template <typename... Values>
  void add(const Values&... values) {
    size_t i = 0, r = 0, t = 0;
    (put(values, i, r, t), ...);
    ++rows_;
  }

  // Writes what was added; throws soci::soci_error.
  void flush(soci::session& session) {
    if (rows_ == 0) return;
    if (!statement_) prepare(session);
    statement_->execute(true);
    clear();
  }

  void clear() {
    rows_ = 0;
    for (auto& c : integers_) c.clear();
    for (auto& c : reals_) c.clear();
    for (auto& c : texts_) c.clear();
  }

 private:
  template <typename V>
  void put(const V& value, size_t& i, size_t& r, size_t& t) {
    if constexpr (std::is_floating_point_v<V>) {
      reals_[r++].push_back(value);
    } else if constexpr (std::is_integral_v<V> || std::is_enum_v<V>) {
      integers_[i++].push_back(static_cast<long long>(value));
    } else {
      texts_[t++].push_back(value);
    }
  }

  void prepare(soci::session& session) {
    statement_ = std::make_unique<soci::statement>(session);
    size_t i = 0, r = 0, t = 0;
    for (char kind : kinds_) {
      if (kind == 'i') statement_->exchange(soci::use(integers_[i++]));
      if (kind == 'r') statement_->exchange(soci::use(reals_[r++]));
      if (kind == 't') statement_->exchange(soci::use(texts_[t++]));
    }
    statement_->alloc();
    statement_->prepare(statement_text_);
    statement_->define_and_bind();
  }

  std::string statement_text_;
  std::string kinds_;
  size_t rows_ = 0;
  // Deques: the statement keeps the vectors' addresses.
  std::deque<std::vector<long long>> integers_;
  std::deque<std::vector<double>> reals_;
  std::deque<std::vector<std::string>> texts_;
  std::unique_ptr<soci::statement> statement_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SQL_TABLE_H_
