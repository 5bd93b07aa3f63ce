// Every table matches its description, and returns the rows that were written.
#include "server/store/tables.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "server/store/rows.h"
#include "server/store/sqlite.h"
#include "server/store/writer.h"

namespace sublet::server {
namespace {

// A database in memory with all tables.
struct Database {
  Database() {
    sqlite::open_to_write(sql, ":memory:");
    for (const Table* table : tables::all())
      for (const std::string& statement : creation(*table)) sql << statement;
  }
  soci::session sql;
};

// One column of one row.
Cell value_of(const Column& column, const void* row) {
  Values values;
  column.put(row, values);
  Cell cell;
  if (!values.integers.empty()) cell.integer = values.integers[0];
  if (!values.reals.empty()) cell.real = values.reals[0];
  if (!values.texts.empty()) cell.text = values.texts[0];
  return cell;
}

// All columns that are members, packed ones among them.
std::vector<Column> members_of(const Table& table) {
  std::vector<Column> members;
  for (const Column& column : table.columns())
    if (column.put != nullptr) members.push_back(column);
  members.insert(members.end(), table.packed().begin(), table.packed().end());
  return members;
}

// The primary key and all columns; the key of rows that the database numbers is empty.
using Key = std::vector<std::pair<long long, std::string>>;
using Whole = std::vector<std::tuple<long long, double, std::string>>;
Key key_of(const Table& table, const void* row) {
  Key key;
  for (const Column& column : table.columns()) {
    if (!column.key || column.put == nullptr) continue;
    const Cell cell = value_of(column, row);
    key.emplace_back(cell.integer, cell.text);
  }
  return key;
}
Whole whole_of(const Table& table, const void* row) {
  Whole whole;
  for (const Column& column : members_of(table)) {
    const Cell cell = value_of(column, row);
    whole.emplace_back(cell.integer, cell.real, cell.text);
  }
  return whole;
}

long long any_integer(const Column& column) {
  // A sum must not overflow.
  if (column.adds) return *rc::gen::inRange<long long>(0, 1ll << 40);
  const auto any = static_cast<uint64_t>(*rc::gen::noShrink(rc::gen::arbitrary<int64_t>()));
  const uint64_t span = static_cast<uint64_t>(column.highest) - column.lowest + 1;
  const auto some = column.lowest + static_cast<long long>(span == 0 ? any : any % span);
  return *rc::gen::weightedElement<long long>({{8, some}, {1, column.lowest}, {1, column.highest}});
}

template <typename Row>
Row any_row(const TableOf<Row>& table) {
  Row row;
  for (const Column& column : members_of(table)) {
    Cell cell;
    cell.text = *rc::gen::arbitrary<std::string>();
    cell.real = *rc::gen::arbitrary<double>();
    cell.integer = any_integer(column);
    column.take(cell, &row);
  }
  return row;
}

// The row expected in the database after `row` is written over `old`.
template <typename Row>
Row written_over(const TableOf<Row>& table, const Row& old, Row row) {
  for (const Column& column : table.columns()) {
    if (!column.adds) continue;
    Cell sum;
    sum.integer = value_of(column, &old).integer + value_of(column, &row).integer;
    column.take(sum, &row);
  }
  return row;
}

template <typename Row>
void set_key(const TableOf<Row>& table, const Row& from, Row* to) {
  for (const Column& column : table.columns()) {
    if (!column.key || column.put == nullptr) continue;
    Cell cell = value_of(column, &from);
    column.take(cell, to);
  }
}

// Calls f(table) for each table, with its own type.
template <typename F>
void for_each_table(F f) {
  using namespace tables;
  const auto each = [&f](const auto&... table) {
    CPPUNIT_ASSERT_EQUAL(all().size(), sizeof...(table));
    (f(table), ...);
  };
  each(kPool, kUsers, kMachines, kCredentials, kBatches, kStops, kParts, kSpecs, kJobs, kAttempts,
       kEnds, kUses, kSpent, kChanges, kFiles, kContents, kSpoolUse, kRemovedOutputs, kMembers,
       kInvitations, kQuotas, kRequests, kEvents, kPoolId, kPolicy, kRelations, kFeeds, kAbsences,
       kPrograms, kJobCounts, kDrafts);
}

class TablesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(TablesTest);
  CPPUNIT_TEST(tables_are_as_described);
  CPPUNIT_TEST(rows_come_back_as_they_were_written);
  CPPUNIT_TEST(each_value_is_under_its_name);
  CPPUNIT_TEST(what_a_member_cannot_hold_is_damage);
  CPPUNIT_TEST(a_joined_row_may_be_missing);
  CPPUNIT_TEST_SUITE_END();

 public:
  void tables_are_as_described() {
    Database database;
    for (const Table* table : tables::all()) {
      std::string name, type, described, found, key;
      bool is_key = false;
      for (const Column& column : table->columns()) {
        constexpr const char* kTypes[] = {"integer", "bigint",  "double precision",
                                          "text",    "integer", "text"};
        described += std::string(column.name) + " " + kTypes[static_cast<size_t>(column.type)] +
                     (column.key ? " key\n" : "\n");
      }
      Rows columns(database.sql);
      columns.into("name", name).into("lower(type)", type).into("pk > 0", is_key);
      columns.select("pragma_table_info('" + std::string(table->name) +
                     "') where \"notnull\" = 1 or pk > 0 order by cid");
      columns.each([&] { found += name + " " + type + (is_key ? " key\n" : "\n"); });
      CPPUNIT_ASSERT_EQUAL(described, found);
      for (const Index& index : table->indexes) {
        if (index.name == nullptr) continue;
        std::string statement;
        Rows rows(database.sql);
        rows.into("sql", statement).with("name", index.name);
        rows.select("sqlite_master where type = 'index' and name = :name");
        CPPUNIT_ASSERT(rows.next());
        CPPUNIT_ASSERT(statement.ends_with(table->name + (" " + std::string(index.on))));
      }
    }
  }

  template <typename Row>
  static void check_round_trip(soci::session& sql, Writer<Row>& writer, const TableOf<Row>& table) {
    std::vector<Row> model;
    const auto count = *rc::gen::inRange<size_t>(1, 8);
    for (size_t i = 0; i < count; ++i) {
      Row row = any_row(table);
      if (!model.empty() && *rc::gen::arbitrary<bool>())
        set_key(table, *rc::gen::elementOf(model), &row);
      writer.add(row);
      if (*rc::gen::arbitrary<bool>()) writer.flush(sql);
      const Key key = key_of(table, &row);
      const auto same = std::find_if(model.begin(), model.end(), [&](const Row& other) {
        return !key.empty() && key_of(table, &other) == key;
      });
      if (same == model.end()) {
        model.push_back(row);
      } else {
        *same = written_over(table, *same, row);
      }
    }
    writer.flush(sql);
    std::multiset<Whole> expected, found;
    for (const Row& row : model) expected.insert(whole_of(table, &row));
    for (const Row& row : rows_of(sql, table, "")) found.insert(whole_of(table, &row));
    RC_ASSERT(expected == found);
    sql << "delete from " << table.name;
  }

  void rows_come_back_as_they_were_written() {
    Database database;
    for_each_table([&]<typename Row>(const TableOf<Row>& table) {
      Writer<Row> writer(table);
      CPPUNIT_ASSERT(rc::check(std::string("table ") + table.name,
                               [&] { check_round_trip(database.sql, writer, table); }));
    });
  }

  // Reads this column alone.
  static Cell read(soci::session& sql, const Table& table, const Column& column) {
    Cell cell;
    Rows rows(sql);
    if (column.type == Type::kText) {
      rows.into(column.name, cell.text);
    } else if (column.type == Type::kReal) {
      rows.into(column.name, cell.real);
    } else {
      rows.into(column.name, cell.integer);
    }
    rows.select(table.name);
    CPPUNIT_ASSERT(rows.next());
    return cell;
  }

  // Each value is in the column of its name, not just where Rows reads it by position.
  void each_value_is_under_its_name() {
    Database database;
    for_each_table([&]<typename Row>(const TableOf<Row>& table) {
      CPPUNIT_ASSERT(rc::check(std::string("table ") + table.name, [&] {
        const Row row = any_row(table);
        Writer<Row> writer(table);
        writer.add(row);
        writer.flush(database.sql);
        for (const Column& column : table.columns()) {
          if (column.put == nullptr) continue;
          const Cell expected = value_of(column, &row), found = read(database.sql, table, column);
          RC_ASSERT(expected.integer == found.integer);
          RC_ASSERT(expected.real == found.real);
          RC_ASSERT(expected.text == found.text);
        }
        database.sql << "delete from " << table.name;
      }));
    });
  }

  // Writes three rows with the keys 1, 2 and 3, corrupts the second and reads them back.
  template <typename Row>
  static void check_damage(soci::session& sql, const TableOf<Row>& table, const Column& column) {
    Writer<Row> writer(table);
    std::string key;
    for (long long i = 1; i <= 3; ++i) {
      Row row;
      for (const Column& other : table.columns()) {
        if (other.key && key.empty()) key = other.name;
        Cell cell{other.key ? std::min(i, other.highest) : other.highest, 0, std::to_string(i)};
        if (other.take) other.take(cell, &row);
      }
      writer.add(row);
    }
    writer.flush(sql);
    sql << "update " << table.name << " set " << column.name << " = " << column.highest + 1
        << " where " << key << " = '2'";
    Row row;
    int read = 0;
    std::string damage;
    Rows rows(sql);
    rows.into(table, row).select(table.name);
    rows.each([&] { ++read; }, [&](const std::string& what) { damage += what; });
    CPPUNIT_ASSERT_EQUAL(2, read);
    CPPUNIT_ASSERT_EQUAL("a row of table " + std::string(table.name) +
                             " was skipped: " + column.name + " is out of range",
                         damage);
    sql << "delete from " << table.name;
  }

  void what_a_member_cannot_hold_is_damage() {
    Database database;
    int columns = 0;
    for_each_table([&](const auto& table) {
      for (const Column& column : table.columns()) {
        if (column.key || column.highest == std::numeric_limits<long long>::max()) continue;
        check_damage(database.sql, table, column);
        ++columns;
      }
    });
    CPPUNIT_ASSERT(columns > 20);
  }

  void a_joined_row_may_be_missing() {
    Database database;
    Writer<scheduling::AttemptRecord> attempts(tables::kAttempts);
    Writer<EndRow> ends(tables::kEnds);
    scheduling::AttemptRecord attempt;
    EndRow end;
    for (uint32_t i = 1; i <= 3; ++i) {
      attempt.key = end.key = {7, i};
      attempts.add(attempt);
      end.exit_status = 40 + i;
      if (i == 2) ends.add(end);
    }
    attempts.flush(database.sql);
    ends.flush(database.sql);
    std::vector<int64_t> found;
    Rows rows(database.sql);
    rows.into(tables::kAttempts, attempt, "a").into_joined(tables::kEnds, end, "e");
    rows.select(
        "attempts a left join ends e on e.job = a.job and e.attempt = a.attempt order by "
        "a.attempt");
    rows.each([&] { found.push_back(end.exit_status); });
    CPPUNIT_ASSERT((found == std::vector<int64_t>{-1, 42, -1}));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(TablesTest);

}  // namespace
}  // namespace sublet::server
