// What was committed gets from the log into the database while commits go on.
#include "server/store/log_mover.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sqlite3.h>

#include <chrono>
#include <climits>
#include <filesystem>
#include <fstream>

#include "base/testing/temporary_folder.h"
#include "server/store/sql_store.h"

namespace sublet::server {
namespace {

constexpr auto kPatience = std::chrono::seconds(100);

class LogMoverTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LogMoverTest);
  CPPUNIT_TEST(it_begins_anew_while_commits_go_on);
  CPPUNIT_TEST(a_reader_only_keeps_it_longer);
  CPPUNIT_TEST(a_reader_keeps_nobody_waiting);
  CPPUNIT_TEST(once_it_is_too_long_commits_wait);
  CPPUNIT_TEST(large_commits_keep_it_short);
  CPPUNIT_TEST(what_cannot_be_moved_keeps_nobody_waiting);
  CPPUNIT_TEST_SUITE_END();

  // Commits never wait for all of it.
  static constexpr LogSizes kByThread{20, 10, INT_MAX};

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "pool.db";
  scheduling::JobId last_ = 0;

  void commit_one(SqlStore& store) {
    Changes changes;
    scheduling::JobRecord job;
    job.id = ++last_;
    job.user = "ann";
    changes.jobs[job.id] = job;
    store.commit(changes);
  }

  // Two numbers in the log's header, which are others when it has begun anew.
  std::string salts() const {
    std::ifstream log(path_ + "-wal", std::ios::binary);
    std::string bytes(8, '\0');
    log.seekg(16);
    log.read(bytes.data(), 8);
    return bytes;
  }
  // The most that there ever were.
  uint64_t pages() const { return std::filesystem::file_size(path_ + "-wal") / 4096; }
  void commit_until_it_begins_anew(SqlStore& store) {
    commit_one(store);
    const std::string before = salts();
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (salts() == before) {
      CPPUNIT_ASSERT(std::chrono::steady_clock::now() < end);
      commit_one(store);
    }
  }
  // Through a connection of its own.
  long long jobs() const {
    sqlite3* reader = open();
    const long long count = number(reader, "select count(*) from jobs");
    sqlite3_close(reader);
    return count;
  }
  sqlite3* open() const {
    sqlite3* handle = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open(path_.c_str(), &handle));
    return handle;
  }
  static long long number(sqlite3* handle, const char* query) {
    sqlite3_stmt* statement = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_prepare_v2(handle, query, -1, &statement, nullptr));
    CPPUNIT_ASSERT_EQUAL(SQLITE_ROW, sqlite3_step(statement));
    const long long found = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return found;
  }
  static void run(sqlite3* handle, const char* statement) {
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_exec(handle, statement, nullptr, nullptr, nullptr));
  }

 public:
  void it_begins_anew_while_commits_go_on() {
    {
      SqlStore store(path_, kByThread);
      for (int i = 0; i < 3; ++i) commit_until_it_begins_anew(store);
      CPPUNIT_ASSERT_EQUAL(static_cast<long long>(last_), jobs());
    }
    CPPUNIT_ASSERT(!std::ifstream(path_ + "-wal"));  // the last to close moves the rest
    CPPUNIT_ASSERT_EQUAL(static_cast<long long>(last_), jobs());
  }

  void a_reader_only_keeps_it_longer() {
    SqlStore store(path_, kByThread);
    commit_until_it_begins_anew(store);
    sqlite3* reader = open();
    run(reader, "begin");
    const long long seen = number(reader, "select count(*) from jobs");
    const std::string before = salts();
    for (int i = 0; i < 200; ++i) commit_one(store);
    CPPUNIT_ASSERT(salts() == before);
    CPPUNIT_ASSERT_EQUAL(seen, number(reader, "select count(*) from jobs"));
    run(reader, "commit");
    commit_until_it_begins_anew(store);
    sqlite3_close(reader);
    CPPUNIT_ASSERT_EQUAL(static_cast<long long>(last_), jobs());
  }

  // Once it is as long as may be, too.
  void a_reader_keeps_nobody_waiting() {
    SqlStore store(path_, {20, 10, 50});
    commit_one(store);
    sqlite3* reader = open();
    run(reader, "begin");
    CPPUNIT_ASSERT_EQUAL(1ll, number(reader, "select count(*) from jobs"));
    for (int i = 0; i < 200; ++i) commit_one(store);
    CPPUNIT_ASSERT(pages() > 200);
    CPPUNIT_ASSERT_EQUAL(1ll, number(reader, "select count(*) from jobs"));
    run(reader, "commit");
    sqlite3_close(reader);
    commit_until_it_begins_anew(store);
  }

  void once_it_is_too_long_commits_wait() {
    SqlStore store(path_, {1'000'000, 10, 200});
    commit_one(store);
    const std::string before = salts();
    while (pages() < 190) {
      CPPUNIT_ASSERT(salts() == before);
      commit_one(store);
    }
    for (int i = 0; i < 20; ++i) commit_one(store);
    CPPUNIT_ASSERT(salts() != before);
  }

  // Each has more pages than a commit waits for: it is let grow to its limit.
  void large_commits_keep_it_short() {
    SqlStore store(path_, {5, 1, 100});
    for (int i = 0; i < 300; ++i) {
      Changes changes;
      const std::string key = std::to_string(i);
      changes.requests[key] = {key, "", std::string(30'000, 'x'), 1};
      store.commit(changes);
      CPPUNIT_ASSERT(pages() < 150);
    }
  }

  void what_cannot_be_moved_keeps_nobody_waiting() {
    LogMover mover(folder_ / "none/pool.db", {10, 2, 100});
    for (const int pages : {9, 10, 99, 100, 101, 5000, 3, 200}) mover.noted(pages);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(LogMoverTest);

}  // namespace
}  // namespace sublet::server
