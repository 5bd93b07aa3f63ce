// Old uses are moved to files without losses or duplicates, whenever the disk fails or
// the server crashes.
#include "server/accounting/history.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sqlite3.h>

#include <algorithm>
#include <sstream>

#include "base/testing/faulty_files.h"
#include "server/accounting/usage_testing.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {
using testing::kDay;
using testing::kSecond;
using testing::kStart;
using testing::UsedPool;

class UsageHistoryTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(UsageHistoryTest);
  CPPUNIT_TEST(whole_days_go);
  CPPUNIT_TEST(a_death_between_file_and_rows);
  CPPUNIT_TEST(a_disk_that_fails_anywhere);
  CPPUNIT_TEST(a_damaged_use_costs_itself_only);
  CPPUNIT_TEST(a_day_of_the_server_alone);
  CPPUNIT_TEST(for_ever);
  CPPUNIT_TEST_SUITE_END();

  FaultyFiles files_;

  static std::string folder(const UsedPool& pool) { return pool.folder.path() + "/history"; }
  UsageHistory history(UsedPool& pool, Micros keep = 2 * kDay) {
    return UsageHistory(folder(pool), keep, files_, pool.archive, pool.pipeline);
  }

  // Two uses on each of five days, the last of which is today.
  static void use_days(UsedPool& pool) {
    for (int day = 0; day < 5; ++day) {
      if (day > 0) pool.clock.advance_ms(kDay / 1000);
      pool.use("ann", 10 + day);
      pool.use("bob", 1000 * (1 + day), scheduling::EndReason::kOwner);
      const Micros now = pool.clock.utc_us();
      pool.pipeline.perform([&](Turn& t) {
        t.changes().spent = {{now - now % (60 * kSecond), 7}};
      });
    }
  }

  // Every line of every file, sorted.
  static std::vector<std::string> lines(const UsedPool& pool) {
    std::vector<std::string> all;
    if (!system_files().exists(folder(pool))) return all;
    for (const auto& entry : system_files().list(folder(pool))) {
      CPPUNIT_ASSERT(entry.name.ends_with(".jsonl"));
      std::istringstream in(system_files().read_file(folder(pool) + "/" + entry.name, 1 << 20));
      for (std::string line; std::getline(in, line);) all.push_back(line);
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  static UsageRow in_the_report(UsedPool& pool) {
    UsageQuery query;
    query.until = pool.clock.utc_us() + kDay;
    query.with_server = true;
    return pool.archive.usage(query).at(0);
  }
  // The files and the report together contain everything exactly once.
  static void check_all_there(UsedPool& pool) {
    const auto written = lines(pool);
    CPPUNIT_ASSERT(std::adjacent_find(written.begin(), written.end()) == written.end());
    const auto is_use = [](const std::string& l) { return l.find("\"use\"") != l.npos; };
    const auto uses = static_cast<uint64_t>(std::count_if(written.begin(), written.end(), is_use));
    const UsageRow rest = in_the_report(pool);
    CPPUNIT_ASSERT_EQUAL(uint64_t{10}, uses + rest.attempts);
    CPPUNIT_ASSERT_EQUAL(int64_t{35},
                         7 * static_cast<int64_t>(written.size() - uses) + *rest.server_cpu);
  }

  void whole_days_go() {
    UsedPool pool;
    use_days(pool);
    history(pool).write_old();
    CPPUNIT_ASSERT_EQUAL(size_t{6}, lines(pool).size());  // days 0 and 1
    CPPUNIT_ASSERT_EQUAL(uint64_t{6}, in_the_report(pool).attempts);
    CPPUNIT_ASSERT_EQUAL(int64_t{21}, *in_the_report(pool).server_cpu);
    check_all_there(pool);
    const auto names = system_files().list(folder(pool));
    CPPUNIT_ASSERT_EQUAL(std::string("uses-2026-12-29-1.1.jsonl"), names.at(0).name);
    CPPUNIT_ASSERT_EQUAL(std::string("uses-2026-12-30-3.1.jsonl"), names.at(1).name);
    const std::string first = system_files().read_file(folder(pool) + "/" + names[0].name, 1 << 20);
    CPPUNIT_ASSERT_EQUAL(
        std::string(R"({"kind":"use","job":1,"attempt":1,"user":"ann","machine":"m1",)"
                    R"("machine_number":1,"batch":1,"ended":1,"started_us":1798514745678901,)"
                    R"("finished_us":1798514745678901,"wall_us":20,"cpu_us":10,"kept_us":10,)"
                    R"("lost_us":0,"charged_us":20,"waited_us":0})"),
        first.substr(0, first.find('\n')));
    history(pool).write_old();  // there is nothing else to move
    CPPUNIT_ASSERT_EQUAL(size_t{6}, lines(pool).size());
    pool.clock.advance_ms(kDay / 1000);
    history(pool).write_old();
    CPPUNIT_ASSERT_EQUAL(size_t{9}, lines(pool).size());
    check_all_there(pool);
  }

  void a_death_between_file_and_rows() {
    UsedPool pool;
    use_days(pool);
    pool.fail_commits(1);
    CPPUNIT_ASSERT_THROW(history(pool).write_old(), Refusal);
    CPPUNIT_ASSERT_EQUAL(size_t{3}, lines(pool).size());               // written
    CPPUNIT_ASSERT_EQUAL(uint64_t{10}, in_the_report(pool).attempts);  // and not deleted
    history(pool).write_old();
    CPPUNIT_ASSERT_EQUAL(size_t{6}, lines(pool).size());
    check_all_there(pool);
  }

  void a_disk_that_fails_anywhere() {
    for (uint64_t step = 0;; ++step) {
      UsedPool pool;
      use_days(pool);
      const uint64_t before = files_.steps();
      files_.fail_at(step, ENOSPC);
      bool failed = false;
      try {
        history(pool).write_old();
      } catch (const FileError&) {
        failed = true;
      }
      const bool was_last = files_.steps() - before <= step;
      if (failed) history(pool).write_old();
      CPPUNIT_ASSERT_EQUAL(size_t{6}, lines(pool).size());
      check_all_there(pool);
      if (was_last) return;
    }
  }

  // Runs SQL on the database while the server has it open.
  static void sql(const UsedPool& pool, const std::string& statements) {
    sqlite3* db = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open((pool.folder.path() + "/pool.db").c_str(), &db));
    sqlite3_busy_timeout(db, 10'000);
    const int done = sqlite3_exec(db, statements.c_str(), nullptr, nullptr, nullptr);
    const std::string error = sqlite3_errmsg(db);
    sqlite3_close(db);
    CPPUNIT_ASSERT_EQUAL_MESSAGE(error, SQLITE_OK, done);
  }

  // The damaged rows, bob's, are the last ones of each day, and in the end the only ones left.
  void a_damaged_use_costs_itself_only() {
    UsedPool pool;
    use_days(pool);
    sql(pool,
        "pragma writable_schema = on; update sqlite_master set sql = replace(sql, 'user_name text "
        "not null', 'user_name text') where name = 'uses'");
    sql(pool, "update uses set user_name = null where user_name = 'bob'");
    history(pool).write_old();
    CPPUNIT_ASSERT_EQUAL(size_t{4}, lines(pool).size());  // ann's and the server's
    CPPUNIT_ASSERT(pool.archive.oldest_history() >= pool.clock.utc_us() - 2 * kDay - 60 * kSecond);
    pool.clock.advance_ms(10 * kDay / 1000);
    history(pool).write_old();
    history(pool).write_old();
    CPPUNIT_ASSERT_EQUAL(size_t{10}, lines(pool).size());
    CPPUNIT_ASSERT_EQUAL(Micros{0}, pool.archive.oldest_history());
  }

  void a_day_of_the_server_alone() {
    UsedPool pool;
    pool.pipeline.perform([&](Turn& t) { t.changes().spent = {{kStart, 5}}; });
    pool.clock.advance_ms(4 * kDay / 1000);
    history(pool).write_old();
    CPPUNIT_ASSERT_EQUAL(std::string("uses-2026-12-29-0.0.jsonl"),
                         system_files().list(folder(pool)).at(0).name);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, lines(pool).size());
    CPPUNIT_ASSERT(pool.archive.oldest_history() == 0);
  }

  void for_ever() {
    UsedPool pool;
    use_days(pool);
    history(pool, 0).write_old();
    CPPUNIT_ASSERT(lines(pool).empty());
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(UsageHistoryTest);

}  // namespace
}  // namespace sublet::server
