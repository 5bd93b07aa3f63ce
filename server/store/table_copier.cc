#include "server/store/table_copier.h"

#include <soci/soci.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "server/store/rows.h"
#include "server/store/sqlite.h"

namespace sublet::server {
namespace {

// Rows copied by one statement. One that fails copies nothing.
constexpr uint64_t kChunk = 1 << 16;
// Statements that may fail for one table. Those for small pieces take some microseconds.
constexpr int kFailures = 20'000;

// Gaps in the rows of one table that are leapt over, and how long texts are compared for it.
constexpr int kLeaps = 1'000;
constexpr size_t kComparedBytes = 64;

// Any bytes, as a text of SQL.
std::string text_literal(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return "cast(x'" + hex + "' as text)";
}

std::string printable(std::string text) {
  std::erase_if(text, [](char c) { return c < ' ' || c > '~'; });
  return text;
}

void add_word(std::string& list, const std::string& word) {
  list += (list.empty() ? "" : ", ") + word;
}

}  // namespace

TableCopier::TableCopier(soci::session& sql, const Table& table, std::string source)
    : sql_(sql), name_(table.name), source_(std::move(source)) {
  bool numbered = false;
  for (const Column& column : table.columns()) {
    add_word(columns_, column.name);
    numbered = numbered || column.type == Type::kNumbered;
    if (table.storage != Storage::kByKey || !column.key) continue;
    if (first_key_.empty()) {
      first_key_ = column.name;
      numeric_ = column.type != Type::kText;
    } else {
      one_key_ = false;
    }
    add_word(ascending_, column.name);
    add_word(descending_, std::string(column.name) + " desc");
  }
  if (table.storage != Storage::kByKey) {
    first_key_ = ascending_ = sqlite::kRowNumber;
    descending_ = first_key_ + " desc";
    if (!numbered) add_word(columns_, sqlite::kRowNumber);
  }
  keys_ = "(" + ascending_ + ")";
}

bool TableCopier::try_copy(const std::string& rest) {
  try {
    soci::statement insertion =
        (sql_.prepare << "insert or ignore into main." << name_ << " (" << columns_ << ") select "
                      << columns_ << " from " << source_ << " " << rest);
    insertion.execute(true);
    copied_ = insertion.get_affected_rows();
    return true;
  } catch (const soci::soci_error& e) {
    if (!sqlite::is_damage(e)) throw;
    return false;
  }
}

std::string TableCopier::reached(const std::string& condition, const std::string& order) const {
  return "(select " + ascending_ + " from main." + name_ + condition + " order by " + order +
         " limit 1)";
}

// The end that is copied first is not to be confused with the other one: its rows are those
// from the keys in temp.mark on.
void TableCopier::set_mark() {
  sql_ << "drop table if exists temp.mark";
  sql_ << "create temp table mark as select " << ascending_ << " from main." << name_
       << " order by " << ascending_ << " limit 1";
  if (first_key("")) {
    before_mark_ = " where " + keys_ + " < (select * from temp.mark)";
    from_mark_ = " where " + keys_ + " >= (select * from temp.mark)";
  } else {
    from_mark_ = " where false";
  }
}

bool TableCopier::walk(bool backwards) {
  const std::string order = backwards ? descending_ : ascending_;
  std::string begun;
  uint64_t chunk = kChunk;
  while (chunk > 0) {
    if (!try_copy(begun + " order by " + order + " limit " + std::to_string(chunk))) {
      chunk /= 16;
      continue;
    }
    // The last row that a small chunk ended with may be one that the new table refuses.
    if (copied_ == 0) return chunk == kChunk;
    begun = "where " + keys_ + (backwards ? " < " : " > ") +
            reached(before_mark_, backwards ? ascending_ : descending_);
  }
  return false;
}

std::optional<long long> TableCopier::first_key(const std::string& rest) {
  long long key = 0;
  soci::indicator found = soci::i_null;
  sql_ << "select " << first_key_ << " from main." << name_ << rest << " limit 1",
      soci::into(key, found);
  if (!sql_.got_data() || found != soci::i_ok) return std::nullopt;
  return key;
}

std::optional<std::string> TableCopier::first_text(const std::string& rest) {
  std::string key;
  soci::indicator found = soci::i_null;
  sql_ << "select " << first_key_ << " from main." << name_ << rest << " limit 1",
      soci::into(key, found);
  if (!sql_.got_data() || found != soci::i_ok) return std::nullopt;
  return key;
}

void TableCopier::note_unreadable(const Range& range) {
  if (!unreadable_) unreadable_ = range;
  unreadable_ =
      Range{std::min(unreadable_->first, range.first), std::max(unreadable_->last, range.last)};
}

bool TableCopier::can_reach(const std::string& key) {
  try {
    long long found = 0;
    sql_ << "select 1 from " << source_ << " where " << first_key_ << " >= " << key << " order by "
         << first_key_ << " limit 1",
        soci::into(found);
    return true;
  } catch (const soci::soci_error& e) {
    if (!sqlite::is_damage(e)) throw;
    return false;
  }
}

// The range to be divided: between the rows copied from the two ends. Where there are none,
// from the last key that leads to a damaged page to the first that does not; nullopt: none does.
std::optional<TableCopier::Range> TableCopier::between() {
  Range range{0, std::numeric_limits<long long>::max()};
  std::vector<long long> keys;
  for (int bits = 4; bits < 63; ++bits)
    for (long long part = 16; part < 32; ++part) keys.push_back(part << (bits - 4));
  const auto first = first_key(before_mark_ + " order by " + descending_);
  const auto last = first_key(from_mark_ + " order by " + ascending_);
  const auto reach = [&](long long key) { return can_reach(std::to_string(key)); };
  if (first) {
    range.first = *first;
  } else {
    const auto found = std::find_if(keys.begin(), keys.end(), reach);
    if (found == keys.end()) return std::nullopt;
    if (found != keys.begin()) range.first = *(found - 1);
  }
  if (last) {
    range.last = *last;
  } else {
    const auto found = std::find_if(keys.rbegin(), keys.rend(), reach);
    if (found == keys.rend()) return std::nullopt;
    if (found != keys.rbegin()) range.last = *(found - 1);
  }
  return range;
}

bool TableCopier::copy_range(const Range& range) {
  const std::string rows = "where " + first_key_ + " between " + std::to_string(range.first) +
                           " and " + std::to_string(range.last);
  if (range.width() > 0 || !one_key_) return try_copy(rows);
  // Without a limit, SQLite would look on the next page for more rows. A row beside a damaged
  // page may be found from one side only.
  return try_copy(rows + " limit 1") ||
         try_copy(rows + " order by " + first_key_ + " desc limit 1");
}

void TableCopier::divide(const Range& whole) {
  std::priority_queue<Range> ranges;
  ranges.push(whole);
  for (int failures = 0; !ranges.empty();) {
    const Range range = ranges.top();
    ranges.pop();
    if (copy_range(range)) continue;
    if (range.width() == 0 || ++failures > kFailures) {
      note_unreadable(range);
      continue;
    }
    const long long middle = range.first + static_cast<long long>(range.width() / 2);
    ranges.push({range.first, middle});
    ranges.push({middle + 1, range.last});
  }
}

// The first text behind this one from which on a row can be found; nullopt: there is none. Tries
// the texts that differ from it in their last byte only, then those that differ earlier, and
// makes the first that leads to a row smaller, byte by byte.
std::optional<std::string> TableCopier::reachable_after(const std::string& key) {
  const auto search = [&](const std::string& before, int from) {
    for (int byte = from; byte < 256; ++byte)
      if (can_reach(text_literal(before + static_cast<char>(byte)))) return byte;
    return 0;
  };
  std::string before = key.substr(0, kComparedBytes);
  int found = search(before, 1);
  int least = 1;  // of the byte that was found
  while (found == 0 && !before.empty()) {
    least = static_cast<unsigned char>(before.back()) + 1;
    before.pop_back();
    found = search(before, least);
  }
  if (found == 0) return std::nullopt;
  std::string reached = before + static_cast<char>(found);
  while (found > least && before.size() < kComparedBytes) {
    before += static_cast<char>(found - 1);
    least = 1;
    found = search(before, least);
    if (found != 0) reached = before + static_cast<char>(found);
  }
  return reached;
}

// Copies rows from this key on, up to the next damage or the rows copied backwards, and returns
// the last key copied; nullopt: that was the end.
std::optional<std::string> TableCopier::copy_from(const std::string& key,
                                                  const std::optional<std::string>& end) {
  const std::string below = end ? first_key_ + " < " + text_literal(*end) : "true";
  std::string at = key, condition = " >= ";
  for (uint64_t chunk = kChunk; chunk > 0;) {
    const std::string rows = "where " + first_key_ + condition + text_literal(at) + " and " + below;
    if (!try_copy(rows + " order by " + ascending_ + " limit " + std::to_string(chunk))) {
      chunk /= 16;
      continue;
    }
    const auto last = first_text(" where " + below + " order by " + descending_);
    if (!last || *last <= at) return std::nullopt;
    at = *last;
    condition = " > ";
  }
  return at;
}

// Texts cannot be divided as numbers are: an empty range within a damaged page cannot be told
// from a full one.
void TableCopier::leap() {
  const auto first = first_text(before_mark_ + " order by " + descending_);
  const auto end = first_text(from_mark_ + " order by " + ascending_);
  std::optional<std::string> at = first ? first : "";
  const std::string gap = first_key_ + " " + printable(*at) + " to ";
  for (int i = 0; at && i < kLeaps; ++i) {
    const auto next = reachable_after(*at);
    gap_ = gap + printable(next && (!end || *next < *end) ? *next : end.value_or("the end"));
    if (!next || (end && *next >= *end)) return;
    at = copy_from(*next, end);
  }
}

SalvagedTable TableCopier::copy() {
  SalvagedTable result;
  result.name = name_;
  uint64_t old = 0;
  if (walk(true)) {
    old = number_of(sql_, "select count(*) from " + source_ + " not indexed");
  } else {
    result.complete = false;
    set_mark();
    walk(false);
    if (!numeric_) {
      leap();
    } else if (const auto range = between()) {
      divide(*range);
    }
  }
  result.rows = number_of(sql_, "select count(*) from main." + name_);
  if (result.complete && old > result.rows) result.refused = old - result.rows;
  result.unreadable = gap_;
  if (unreadable_)
    result.unreadable = first_key_ + " " + std::to_string(unreadable_->first) + " to " +
                        std::to_string(unreadable_->last);
  return result;
}

}  // namespace sublet::server
