#include "server/store/repair.h"

#include <cppunit/extensions/HelperMacros.h>
#include <soci/soci.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <utility>

#include "base/testing/faulty_files.h"
#include "base/testing/temporary_folder.h"
#include "server/commit/crash_point.h"
#include "server/store/archive/archive.h"
#include "server/store/set_aside.h"
#include "server/store/sql_store.h"
#include "server/store/sqlite.h"
#include "server/store/tables.h"

namespace sublet::server {
namespace {

using namespace scheduling;

// A disk that cannot read some pages of the files opened from now on.
class UnreadablePages {
 public:
  explicit UnreadablePages(std::set<int> pages) {
    pages_ = std::move(pages);
    real_ = sqlite3_vfs_find(nullptr);
    shim_ = *real_;
    shim_.zName = "unreadable";
    shim_.pNext = nullptr;
    shim_.xOpen = open;
    sqlite3_vfs_register(&shim_, 1);
  }
  ~UnreadablePages() {
    sqlite3_vfs_unregister(&shim_);
    sqlite3_vfs_register(real_, 1);
  }
  UnreadablePages(const UnreadablePages&) = delete;

 private:
  static int open(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out) {
    const int code = real_->xOpen(real_, name, file, flags, out);
    if (code != SQLITE_OK || name == nullptr || !std::string(name).ends_with("/pool.db"))
      return code;
    real_methods_ = file->pMethods;
    methods_ = *real_methods_;
    methods_.xRead = read;
    methods_.xFetch = nullptr;
    methods_.iVersion = 2;
    file->pMethods = &methods_;
    return code;
  }
  static int read(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
    if (pages_.contains(static_cast<int>(offset / 4096) + 1)) return SQLITE_IOERR_READ;
    return real_methods_->xRead(file, to, size, offset);
  }

  static inline std::set<int> pages_;
  static inline sqlite3_vfs* real_ = nullptr;
  static inline sqlite3_vfs shim_;
  static inline const sqlite3_io_methods* real_methods_ = nullptr;
  static inline sqlite3_io_methods methods_;
};

// Pages of the database file are overwritten, as by a failing disk.
class RepairTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(RepairTest);
  CPPUNIT_TEST(nothing_is_found_in_a_good_database);
  CPPUNIT_TEST(a_damaged_page_costs_its_rows);
  CPPUNIT_TEST(two_damaged_pages_cost_their_rows);
  CPPUNIT_TEST(rows_between_damaged_pages_of_texts);
  CPPUNIT_TEST(both_ends_may_be_damaged);
  CPPUNIT_TEST(any_page_may_be_damaged);
  CPPUNIT_TEST(a_damaged_description_of_the_tables);
  CPPUNIT_TEST(a_file_that_was_cut_off);
  CPPUNIT_TEST(pages_that_the_disk_cannot_read);
  CPPUNIT_TEST(rows_that_cannot_be_kept_are_counted);
  CPPUNIT_TEST(a_layout_that_cannot_be);
  CPPUNIT_TEST(ids_are_never_given_again);
  CPPUNIT_TEST(ids_of_finished_jobs_count);
  CPPUNIT_TEST(one_impossible_value_costs_its_row);
  CPPUNIT_TEST(what_was_set_aside_comes_back);
  CPPUNIT_TEST(the_spool_agrees_afterwards);
  CPPUNIT_TEST(the_link_is_synced_before_the_replacement);
  CPPUNIT_TEST(the_store_goes_on_without_what_it_need_not_read);
  CPPUNIT_TEST(what_can_be_read_of_it_stays_in_use);
  CPPUNIT_TEST(answers_survive_a_crash_while_they_are_copied);
  CPPUNIT_TEST(no_time_or_room_to_copy_is_no_obstacle);
  CPPUNIT_TEST(an_instant_in_the_future_does_not_move_the_clock);
  CPPUNIT_TEST(finished_jobs_cost_themselves);
  CPPUNIT_TEST(what_cannot_be_deleted_stays);
  CPPUNIT_TEST(the_store_stops_at_what_it_needs);
  CPPUNIT_TEST(the_old_one_is_kept);
  CPPUNIT_TEST(what_is_no_database_is_left_alone);
  CPPUNIT_TEST_SUITE_END();

  static constexpr JobId kJobs = 3000;

  TemporaryFolder folder_;
  FaultyFiles files_;
  std::string path() const { return folder_ / "pool.db"; }

  void execute(const std::string& statement) {
    sqlite3* db = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open(path().c_str(), &db));
    const int code = sqlite3_exec(db, statement.c_str(), nullptr, nullptr, nullptr);
    sqlite3_close(db);
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, code);
  }
  std::vector<int> numbers(const std::string& query) {
    sqlite3* db = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open(path().c_str(), &db));
    std::vector<int> found;
    const auto add = [](void* to, int, char** values, char**) {
      static_cast<std::vector<int>*>(to)->push_back(std::stoi(values[0]));
      return 0;
    };
    const int code = sqlite3_exec(db, query.c_str(), add, &found, nullptr);
    sqlite3_close(db);
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, code);
    return found;
  }
  // The numbers of the leaf pages of this table's own tree, in the order of its rows.
  std::vector<int> leaves(const std::string& table) {
    return numbers("select pageno from dbstat where name = '" + table +
                   "' and pagetype = 'leaf' order by path");
  }
  std::vector<int> pages() { return numbers("select pageno from dbstat"); }

  void damage(int page) {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp((page - 1) * 4096L);
    file << std::string(4096, '\xa5');
    CPPUNIT_ASSERT(file.flush().good());
  }

  void make() {
    for (const auto& entry : files_.list(folder_.path())) files_.remove_file(folder_ / entry.name);
    SqlStore store(path());
    Changes c;
    c.has_pool = true;
    for (JobId id = 1; id <= kJobs; ++id) {
      JobRecord job;
      job.id = id;
      job.user = "ann";
      job.state = JobState::kDone;
      job.reason = std::string("done\0\xff", 6);
      job.needs.require = "memory_mb >= 2000";
      c.jobs[id] = job;
      c.specs.push_back(SpecRow{id, 1, "name", std::string("\0\xfe body", 7)});
      const std::string request = "request " + std::to_string(id);
      c.requests[request] = RequestRow{request, "digest", "answer", 5};
      c.events.push_back(EventRow{1000, 3, std::string("\0\xff event", 8)});
    }
    store.commit(c);
  }
  void finish_log() { execute("pragma journal_mode=delete"); }

  static const SalvagedTable& table(const Salvage& salvage, const std::string& name) {
    for (const SalvagedTable& one : salvage.tables)
      if (one.name == name) return one;
    CPPUNIT_FAIL("no table " + name);
    return salvage.tables[0];
  }
  std::set<JobId> jobs() {
    Archive archive(path());
    std::set<JobId> ids;
    JobId after = 0;
    do {
      const JobPage page = archive.jobs({}, after, 1000);
      for (const JobRow& row : page.rows) {
        CPPUNIT_ASSERT_EQUAL(std::string("done\0\xff", 6), row.job.reason);
        ids.insert(row.job.id);
      }
      after = page.next;
    } while (after != 0);
    return ids;
  }

 public:
  void setUp() override {
    make();
    finish_log();
  }

 private:
  void nothing_is_found_in_a_good_database() {
    CPPUNIT_ASSERT(find_damage(path()).empty());
    SqlStore running(path());
    CPPUNIT_ASSERT(find_damage(path()).empty());
  }

  // Salvages after damage to these leaves; returns how many jobs are missing.
  size_t lost(const std::vector<size_t>& damaged) {
    make();
    finish_log();
    const std::vector<int> all = leaves("jobs");
    CPPUNIT_ASSERT(all.size() > 10);
    for (const size_t n : damaged) damage(all.at(n < all.size() ? n : all.size() - 1));
    const auto found = find_damage(path());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, found.size());
    CPPUNIT_ASSERT_EQUAL(std::string("jobs"), found[0].name);
    const Salvage result = salvage(files_, path(), "1");
    const SalvagedTable& jobs_table = table(result, "jobs");
    CPPUNIT_ASSERT(!jobs_table.complete);
    CPPUNIT_ASSERT_EQUAL(jobs_table.rows, uint64_t{jobs().size()});
    for (const char* name : {"specs", "requests", "events"}) {
      CPPUNIT_ASSERT(table(result, name).complete);
      CPPUNIT_ASSERT_EQUAL(kJobs, table(result, name).rows);
    }
    CPPUNIT_ASSERT(find_damage(path()).empty());
    std::vector<std::string> skipped;
    SqlStore(path()).load(&skipped);
    CPPUNIT_ASSERT(skipped.empty());
    return kJobs - jobs().size();
  }

  void a_damaged_page_costs_its_rows() {
    const size_t one = lost({5});
    CPPUNIT_ASSERT(one > 0 && one < 100);
  }
  void two_damaged_pages_cost_their_rows() {
    const size_t one = lost({5}), other = lost({10}), both = lost({5, 10});
    CPPUNIT_ASSERT_EQUAL(one + other, both);
  }
  // Requests, whose key is a text.
  void rows_between_damaged_pages_of_texts() {
    const std::vector<int> all = leaves("requests");
    CPPUNIT_ASSERT(all.size() > 20);
    for (const size_t leaf : {size_t{4}, size_t{5}, all.size() / 2, all.size() - 1})
      damage(all.at(leaf));
    const Salvage salvaged = salvage(files_, path(), "1");
    const SalvagedTable& requests = table(salvaged, "requests");
    CPPUNIT_ASSERT(!requests.complete);
    CPPUNIT_ASSERT(requests.unreadable.starts_with("id "));
    // Leaves have different numbers of rows, but nearly the same.
    CPPUNIT_ASSERT_GREATER(kJobs - 5 * kJobs / all.size() - 8, requests.rows);
    CPPUNIT_ASSERT(find_damage(path()).empty());
  }

  void both_ends_may_be_damaged() {
    const size_t first = lost({0}), last = lost({SIZE_MAX}), both = lost({0, SIZE_MAX});
    CPPUNIT_ASSERT(first > 0 && first < 100 && last > 0 && last < 100);
    CPPUNIT_ASSERT_EQUAL(first + last, both);
  }

  // Whatever page it is (ten of them): all other tables are complete, or nothing was changed.
  void any_page_may_be_damaged() {
    const size_t count = pages().size();
    for (size_t n = 0; n < count; n += count / 10) {
      make();
      finish_log();
      damage(pages().at(n));
      try {
        const Salvage result = salvage(files_, path(), "1");
        int incomplete = 0;
        for (const SalvagedTable& one : result.tables) incomplete += one.complete ? 0 : 1;
        CPPUNIT_ASSERT(incomplete <= 1);
        CPPUNIT_ASSERT(find_damage(path()).empty());
      } catch (const StoreError&) {
        CPPUNIT_ASSERT_EQUAL(size_t{0}, n);  // the schema
      }
    }
  }

  static std::string error_of(const std::function<void()>& act) {
    try {
      act();
    } catch (const StoreError& e) {
      return e.what();
    }
    return "";
  }

  void a_damaged_description_of_the_tables() {
    const std::vector<int> described =
        numbers("select pageno from dbstat where name = 'sqlite_schema'");
    CPPUNIT_ASSERT(described.size() > 2);
    for (const int page : described) {
      make();
      finish_log();
      damage(page);
      CPPUNIT_ASSERT(error_of([&] { SqlStore{path()}; }).find("check") != std::string::npos ||
                     page == 1);
      for (const auto& act : std::vector<std::function<void()>>{
               [&] { find_damage(path()); }, [&] { salvage(files_, path(), "1"); }}) {
        const std::string error = error_of(act);
        CPPUNIT_ASSERT_MESSAGE(error,
                               error.find("restore a backup") != std::string::npos || page == 1);
        CPPUNIT_ASSERT(!error.empty());
      }
    }
  }

  void a_file_that_was_cut_off() {
    for (const unsigned parts : {3u, 5u, 6u, 7u}) {
      make();
      finish_log();
      const auto size = std::filesystem::file_size(path()) / 4096;
      std::filesystem::resize_file(path(), size * parts / 8 * 4096 + 100);
      CPPUNIT_ASSERT(!find_damage(path()).empty());
      const Salvage result = salvage(files_, path(), "1");
      uint64_t rows = 0;
      for (const SalvagedTable& one : result.tables) rows += one.rows;
      CPPUNIT_ASSERT(rows > kJobs * parts / 4 && rows < 4 * kJobs * parts / 8 + kJobs);
      CPPUNIT_ASSERT(find_damage(path()).empty());
      std::vector<std::string> skipped;
      SqlStore(path()).load(&skipped);
      CPPUNIT_ASSERT(skipped.empty());
    }
  }

  void pages_that_the_disk_cannot_read() {
    const std::vector<int> all = leaves("jobs");
    UnreadablePages disk({all.at(5), all.at(9)});
    const auto found = find_damage(path());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, found.size());
    CPPUNIT_ASSERT_EQUAL(std::string("jobs"), found[0].name);
    const Salvage result = salvage(files_, path(), "1");
    const SalvagedTable& jobs_table = table(result, "jobs");
    CPPUNIT_ASSERT(!jobs_table.complete);
    CPPUNIT_ASSERT(jobs_table.rows > kJobs - 200 && jobs_table.rows < kJobs);
    CPPUNIT_ASSERT(table(result, "specs").complete);
  }

  void rows_that_cannot_be_kept_are_counted() {
    execute(
        "pragma writable_schema=on; update sqlite_master set sql = replace(sql, 'name text not "
        "null', 'name text') where name = 'specs'");
    execute("update specs set name = null where first_job in (7, 8)");
    const SalvagedTable specs = table(salvage(files_, path(), "1"), "specs");
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, specs.refused);
    CPPUNIT_ASSERT_EQUAL(uint64_t{kJobs - 2}, specs.rows);
  }

  void a_layout_that_cannot_be() {
    for (const char* layout : {"1000006", "-6", "0"}) {
      make();
      execute(std::string("update pool set version = ") + layout);
      finish_log();
      const auto found = find_damage(path());
      CPPUNIT_ASSERT_EQUAL(size_t{1}, found.size());
      CPPUNIT_ASSERT_EQUAL(std::string("no database has layout ") + layout, found[0].findings[0]);
      salvage(files_, path(), "1");
      CPPUNIT_ASSERT(find_damage(path()).empty());
      CPPUNIT_ASSERT_EQUAL(size_t{kJobs}, jobs().size());
    }
    execute("update pool set version = 4");
    CPPUNIT_ASSERT_THROW(find_damage(path()), StoreError);
  }

  // Even if table pool and the newest jobs are lost.
  void ids_are_never_given_again() {
    execute(
        "delete from pool; delete from jobs where id > 10; delete from specs; "
        "insert into outputs_removed (job, at) values (7000, 1); "
        "insert into credentials (machine, secret, uid) values (30, 's', 0); "
        "insert into stops (batch, stop_done, stop_failed, stop_output, done, failed, stopped_by, "
        "at_most, to_come) values (60, 1, 0, '', 0, 0, '', 0, 0)");
    salvage(files_, path(), "1");
    const std::vector<int> next = numbers(
        "select next_job from pool union all select next_machine from pool union all "
        "select next_batch from pool union all select now from pool");
    CPPUNIT_ASSERT((next == std::vector<int>{7001, 31, 61, 1000}));
  }

  void the_spool_agrees_afterwards() {
    execute(
        "insert into files (id, kind, batch, job, attempt, generation, name, size, digest, in_row, "
        "body, counts, user_name, content) values (1, 1, 4, 0, 0, 0, 'a', 100, 'd', 0, '', 0, "
        "'ann', 5), (2, 2, 0, 3, 1, 1, 'b', 30, 'e', 1, '', 0, 'ann', 0);"
        "insert into contents (id, digest, size, identity, damaged) values (5, 'd', 100, '', 0), "
        "(6, 'f', 50, '', 0);"
        "insert into spool_use (user_name, kind, bytes) values ('ann', 0, 999999), "
        "('ben', 1, 5)");
    salvage(files_, path(), "1");
    CPPUNIT_ASSERT(numbers("select id from contents") == std::vector<int>{5});
    CPPUNIT_ASSERT(
        (numbers("select bytes from spool_use order by kind") == std::vector<int>{100, 30}));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, numbers("select bytes from spool_use").size());
  }

  // Else a loss of power might leave the new database without the old one beside it.
  void the_link_is_synced_before_the_replacement() {
    damage(leaves("events").at(3));
    files_.fail_step(FileStep::sync_folder, EIO);
    CPPUNIT_ASSERT_THROW(salvage(files_, path(), "1"), StoreError);
    files_.fail_step(FileStep::sync_folder, 0);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, find_damage(path()).size());
  }

  // What a server writes for one more job.
  static Changes one_more(JobId id) {
    Changes c;
    c.has_pool = true;
    JobRecord job;
    job.id = id;
    job.user = "ann";
    job.state = JobState::kWaiting;
    c.jobs[id] = job;
    const std::string request = "request " + std::to_string(id);
    c.requests[request] = RequestRow{request, "digest", "answer", 5};
    c.events.push_back(EventRow{2000, 3, "event"});
    c.changes.push_back(ChangeRecord{.number = id, .at = 2000, .job = id, .user = "ann"});
    return c;
  }

  void the_store_goes_on_without_what_it_need_not_read() {
    for (const std::string table : {"events", "requests", "changes"}) {
      make();
      Changes changes;
      for (JobId id = 1; id <= kJobs; ++id)
        changes.changes.push_back(ChangeRecord{.number = id, .at = 1000, .job = id, .user = "ann"});
      SqlStore(path()).commit(changes);
      finish_log();
      for (const int page : leaves(table)) damage(page);
      SqlStore store(path());
      std::vector<std::string> skipped;
      CPPUNIT_ASSERT_EQUAL(Micros{1000}, store.load(&skipped).pool.now);
      CPPUNIT_ASSERT(!store.find_request("request 7").has_value() || table != "requests");
      for (const JobId id : {kJobs + 1, kJobs + 2}) store.commit(one_more(id));
      CPPUNIT_ASSERT(store.find_request("request " + std::to_string(kJobs + 2)).has_value());
      CPPUNIT_ASSERT_EQUAL(size_t{2}, store.load(&skipped).jobs.size());
      CPPUNIT_ASSERT(skipped.empty());
      const auto found = find_damage(path());
      CPPUNIT_ASSERT_EQUAL(size_t{1}, found.size());
      CPPUNIT_ASSERT_EQUAL(table + "_damaged_1", found[0].name);
      // The new table has its indexes.
      const std::string indexes =
          "select count(*) from sqlite_schema where type = 'index' and sql "
          "is not null and tbl_name = '";
      CPPUNIT_ASSERT(numbers(indexes + table + "'") == numbers(indexes + table + "_damaged_1'"));
    }
  }

  void ids_of_finished_jobs_count() {
    files_.make_folders(folder_ / "history");
    execute("attach '" + (folder_ / "history/jobs-2026-01.db") +
            "' as f; create table f.jobs (id, count); insert into f.jobs values (8000, 5); create "
            "table f.batches (id); insert into f.batches values (77); delete from pool");
    std::ofstream(folder_ / "history/jobs-2026-02.db") << "no database";
    salvage(files_, path(), "1");
    const std::vector<int> next =
        numbers("select next_job from pool union all select next_batch from pool");
    CPPUNIT_ASSERT((next == std::vector<int>{8005, 78}));
  }

  // It would be the highest id, or the newest instant, for ever.
  void one_impossible_value_costs_its_row() {
    execute(
        "delete from specs; "
        "insert into outputs_removed (job, at) values (9223372036854775807, 1); "
        "insert into events (number, at, kind, body) values (100000, 9000000000000000000, 1, ''); "
        "insert into changes select 4611686018427387904, at, job, batch, user_name, state, "
        "attempt, "
        "ended, count from changes limit 1; update pool set next_machine = 9223372036854775807");
    const Salvage salvaged = salvage(files_, path(), "1");
    uint64_t refused = 0;
    for (const SalvagedTable& table : salvaged.tables) refused += table.refused;
    CPPUNIT_ASSERT(refused >= 2);
    const std::vector<int> next = numbers(
        "select next_job <= 4000 from pool union all select next_change <= 1000000 from pool union "
        "all select next_machine from pool union all select now < 2000 from pool");
    CPPUNIT_ASSERT((next == std::vector<int>{1, 1, 1, 1}));
  }

  // The server died before it had copied what can be read of it.
  void what_was_set_aside_comes_back() {
    const std::vector<int> all = leaves("requests");
    damage(all.at(5));
    {
      SqlStore store(path());
      for (JobId id = 1; id <= kJobs; ++id) store.find_request("request " + std::to_string(id));
    }
    execute("delete from requests where id <> 'request 1'");
    execute("update requests set answer = 'newer'");
    salvage(files_, path(), "1");
    const std::vector<int> found = numbers(
        "select count(*) from requests union all select count(*) from requests where answer = "
        "'newer'");
    CPPUNIT_ASSERT(found.at(0) > static_cast<int>(kJobs - 3 * kJobs / all.size()));
    CPPUNIT_ASSERT_EQUAL(1, found.at(1));
    CPPUNIT_ASSERT(find_damage(path()).empty());
  }

  size_t known_requests(SqlStore& store) {
    size_t count = 0;
    for (JobId id = 1; id <= kJobs; ++id)
      count += store.find_request("request " + std::to_string(id)).has_value();
    return count;
  }

  void what_can_be_read_of_it_stays_in_use() {
    const std::vector<int> all = leaves("requests");
    damage(all.at(5));
    SqlStore store(path());
    known_requests(store);  // meets the damaged page
    const size_t left = known_requests(store);
    CPPUNIT_ASSERT(left < kJobs && left > kJobs - 3 * kJobs / all.size());
    store.commit(one_more(kJobs + 1));
  }

  void answers_survive_a_crash_while_they_are_copied() {
    const std::vector<int> all = leaves("requests");
    damage(all.at(5));
    const pid_t child = fork();
    if (child == 0) {
      set_crash_point("set_aside:1");
      SqlStore store(path());
      known_requests(store);
      _exit(0);
    }
    int status = 0;
    CPPUNIT_ASSERT_EQUAL(child, waitpid(child, &status, 0));
    CPPUNIT_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    SqlStore store(path());
    CPPUNIT_ASSERT(known_requests(store) > kJobs - 3 * kJobs / all.size());
  }

  // Everybody waits for the committer meanwhile, and a full disk is no reason to stop.
  void no_time_or_room_to_copy_is_no_obstacle() {
    for (const bool room : {true, false}) {
      make();
      finish_log();
      const std::vector<int> all = leaves("requests");
      damage(all.at(5));
      soci::session session;
      sqlite::open_to_write(session, path());
      if (!room) {
        const int pages = numbers("pragma page_count").at(0);
        session << "pragma max_page_count = " << pages + 4;
      }
      set_aside(session, tables::kRequests, std::chrono::seconds(room ? 0 : 600));
      session.close();
      {
        SqlStore store(path());
        CPPUNIT_ASSERT(known_requests(store) < kJobs / 2);
        store.commit(one_more(kJobs + 1));
        CPPUNIT_ASSERT(store.find_request("request " + std::to_string(kJobs + 1)).has_value());
      }
      salvage(files_, path(), room ? "1" : "2");
      CPPUNIT_ASSERT(numbers("select count(*) from requests").at(0) >
                     static_cast<int>(kJobs - 3 * kJobs / all.size()));
    }
  }

  void an_instant_in_the_future_does_not_move_the_clock() {
    SqlStore store(path());
    std::vector<std::string> damage;
    const Micros now = store.load(&damage).pool.now;
    execute(
        "update events set at = 4611686018427387904 where number > (select max(number) - 2 from "
        "events)");
    execute(
        "insert into changes (number, at, job, batch, user_name, state, attempt, ended, count) "
        "values (7, 4611686018427387904, 1, 1, 'ann', 1, 0, 0, 1)");
    CPPUNIT_ASSERT_EQUAL(now, store.load(&damage).pool.now);
  }

  // A page of an index that the copy to a file of history did not need.
  void what_cannot_be_deleted_stays() {
    for (const int page : leaves("jobs_batch")) damage(page);
    SqlStore store(path());
    Changes changes;
    changes.users["zoe"] = {.name = "zoe"};
    changes.moved_jobs.jobs = {1, 2};
    changes.moved_jobs.specs = {1};
    changes.moved_jobs.batches = {1};
    store.commit(changes);
    CPPUNIT_ASSERT(
        (numbers("select count(*) from users where name = 'zoe'") == std::vector<int>{1}));
    CPPUNIT_ASSERT((numbers("select count(*) from jobs not indexed where id in (1, 2)") ==
                    std::vector<int>{2}));
  }

  // The page in the middle has finished jobs only.
  void finished_jobs_cost_themselves() {
    const std::vector<int> all = leaves("jobs");
    damage(all.at(all.size() / 2));
    SqlStore store(path());
    std::vector<std::string> skipped;
    store.load(&skipped);
    for (const JobId id : {kJobs + 1, kJobs + 2}) store.commit(one_more(id));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, store.load(&skipped).jobs.size());
    CPPUNIT_ASSERT(skipped.empty());
    Archive archive(path());
    for (const JobId id : {JobId{1}, kJobs, kJobs + 2}) CPPUNIT_ASSERT(archive.job(id).has_value());
    JobQuery query;
    query.newest_first = true;
    CPPUNIT_ASSERT_EQUAL(size_t{100}, archive.jobs(query, 0, 100).rows.size());
    CPPUNIT_ASSERT_THROW(jobs(), StoreError);
  }

  void the_store_stops_at_what_it_needs() {
    damage(leaves("jobs").back());
    bool advised = false;
    try {
      SqlStore store(path());
      store.commit(one_more(kJobs + 1));
    } catch (const StoreError& e) {
      advised = std::string(e.what()).find("`sublet-server check`") != std::string::npos;
    }
    CPPUNIT_ASSERT(advised);
    CPPUNIT_ASSERT_EQUAL(std::string("jobs"), find_damage(path()).at(0).name);
  }

  void the_old_one_is_kept() {
    damage(leaves("events").at(3));
    const Salvage result = salvage(files_, path(), "then");
    CPPUNIT_ASSERT_EQUAL(path() + ".damaged-then", result.kept);
    std::filesystem::rename(result.kept, path());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, find_damage(path()).size());
  }

  void what_is_no_database_is_left_alone() {
    std::ofstream(path(), std::ios::trunc) << std::string(100'000, 'x');
    CPPUNIT_ASSERT_THROW(find_damage(path()), StoreError);
    CPPUNIT_ASSERT_THROW(salvage(files_, path(), "1"), StoreError);
    CPPUNIT_ASSERT_EQUAL(uintmax_t{100'000}, std::filesystem::file_size(path()));
    CPPUNIT_ASSERT(!std::filesystem::exists(path() + ".damaged-1"));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(RepairTest);

}  // namespace
}  // namespace sublet::server
