// Copies what can be read of a damaged table.
#ifndef SUBLET_SERVER_STORE_TABLE_COPIER_H_
#define SUBLET_SERVER_STORE_TABLE_COPIER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "server/store/table.h"

namespace soci {
class session;
}

namespace sublet::server {

struct SalvagedTable {
  std::string name;
  uint64_t rows = 0;       // in the new database
  uint64_t refused = 0;    // could be read, but not be stored: a value or its key cannot be right
  bool complete = true;    // every row could be read
  std::string unreadable;  // where rows are missing: "number 17 to 40"; empty: not known
};

// Copies a table to the empty one of its name in the database `main`. `source`: from where, for
// example "old.jobs" of an attached database.
//
// A damaged page cannot be read, nor can an order that passes it be followed. So rows are read
// from both ends up to the first damage there, and what remains between is divided by its key
// again and again, or, where that is a text, searched for the next row behind each damage.
class TableCopier {
 public:
  TableCopier(soci::session& sql, const Table& table, std::string source);
  SalvagedTable copy();

 private:
  struct Range {  // of the first key, both ends included
    long long first;
    long long last;
    bool operator<(const Range& other) const { return width() < other.width(); }
    uint64_t width() const { return static_cast<uint64_t>(last) - static_cast<uint64_t>(first); }
  };

  // False: a page is damaged; nothing was copied. Else copied_ rows were.
  bool try_copy(const std::string& rest);
  // The key of the first row in the new database that fulfils the condition, in this order.
  std::string reached(const std::string& condition, const std::string& order) const;
  // True: the whole table was read.
  bool walk(bool backwards);
  void set_mark();
  // Whether the first row from this key on, in SQL, can be found.
  bool can_reach(const std::string& key);
  std::optional<Range> between();
  bool copy_range(const Range& range);
  void divide(const Range& whole);
  std::optional<long long> first_key(const std::string& rest);
  std::optional<std::string> first_text(const std::string& rest);
  std::optional<std::string> reachable_after(const std::string& key);
  std::optional<std::string> copy_from(const std::string& key,
                                       const std::optional<std::string>& end);
  void leap();
  void note_unreadable(const Range& range);

  soci::session& sql_;
  const std::string name_;
  const std::string source_;
  std::string columns_;
  std::string keys_;        // "(job, attempt)"
  std::string ascending_;   // "job, attempt"
  std::string descending_;  // "job desc, attempt desc"
  std::string first_key_;
  bool numeric_ = true;      // the first key is an integer
  bool one_key_ = true;      // and there is no other
  std::string before_mark_;  // condition for rows not copied backwards
  std::string from_mark_;
  long long copied_ = 0;
  std::optional<Range> unreadable_;
  std::string gap_;  // the same of a text: "id abc to abd"
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_TABLE_COPIER_H_
