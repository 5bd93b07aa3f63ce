// What is kept is compared with what a scan of all jobs finds.
#include "server/store/job_counts.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "server/accounting/usage_testing.h"
#include "server/jobs/history.h"
#include "server/refusal.h"
#include "server/store/archive/finished.h"
#include "server/store/repair.h"

namespace sublet::server {
namespace {

using scheduling::JobState;
using testing::kDay;
using testing::UsedPool;
using Counts = std::vector<std::pair<uint32_t, uint64_t>>;

class JobCountsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(JobCountsTest);
  CPPUNIT_TEST(every_change_of_state_is_counted);
  CPPUNIT_TEST(parts_of_an_array);
  CPPUNIT_TEST(a_large_batch_has_numbers_of_its_own);
  CPPUNIT_TEST(jobs_that_move_to_a_file);
  CPPUNIT_TEST(a_file_that_was_moved_away);
  CPPUNIT_TEST(a_commit_that_fails_changes_nothing);
  CPPUNIT_TEST(jobs_are_counted_if_there_are_no_numbers);
  CPPUNIT_TEST(a_number_that_cannot_be_right);
  CPPUNIT_TEST(a_wrong_number_is_found);
  CPPUNIT_TEST(a_damaged_table_costs_itself_only);
  CPPUNIT_TEST(any_order_gives_what_a_scan_gives);
  CPPUNIT_TEST_SUITE_END();

  static std::string path(const UsedPool& pool) { return pool.folder / "pool.db"; }

  static void execute(const UsedPool& pool, const std::string& statements) {
    sqlite3* db = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open(path(pool).c_str(), &db));
    const int code = sqlite3_exec(db, statements.c_str(), nullptr, nullptr, nullptr);
    const std::string error = sqlite3_errmsg(db);
    sqlite3_close(db);
    CPPUNIT_ASSERT_EQUAL_MESSAGE(error, SQLITE_OK, code);
  }

  // Submits an array as a batch; returns its number, which is also that of its first job's batch.
  static JobId submit(UsedPool& pool, BatchId batch, const std::string& user, uint64_t count) {
    JobId first = 0;
    pool.pipeline.perform([&](Turn& t) {
      scheduling::Submitted event{batch, user, "desk", {}};
      event.jobs.push_back({{}, 0, 0, count});
      first = t.apply(event).answer.first_job;
      BatchRow row;
      row.id = batch;
      row.user = user;
      row.committed = true;
      row.first_job = first;
      row.count = count;
      t.changes().batches[batch] = row;
    });
    return first;
  }
  static void apply(UsedPool& pool, const scheduling::Event& event) {
    pool.pipeline.perform([&](Turn& t) { t.apply(event); });
  }
  static void move(UsedPool& pool) {
    JobHistory(30 * kDay, pool.archive, pool.pipeline).move_old();
  }

  // By looking at all jobs.
  static Counts scanned(Archive& archive, JobQuery query) {
    query.ids = {kAllJobs};
    return archive.count(query);
  }
  static std::string text(const Counts& counts) {
    std::string all;
    for (const auto& [state, count] : counts)
      all += std::to_string(state) + ": " + std::to_string(count) + "\n";
    return all;
  }
  static std::vector<JobQuery> queries() {
    std::vector<JobQuery> all;
    for (const char* user : {"", "a", "b", "ann", "nobody"})
      for (const BatchId batch : {0, 1, 2, 3, 4, 7, 8, 9})
        for (const bool unfinished : {false, true}) {
          JobQuery query;
          query.user = user;
          query.batch = batch;
          query.unfinished_only = unfinished;
          all.push_back(query);
          query.states = {1, 5};
          all.push_back(query);
        }
    return all;
  }
  static void check(Archive& archive) {
    for (const JobQuery& query : queries())
      CPPUNIT_ASSERT_EQUAL_MESSAGE(query.user + " " + std::to_string(query.batch),
                                   text(scanned(archive, query)), text(archive.count(query)));
  }
  // Whether a count of all jobs is answered by what is kept: then it does not notice a row that
  // is added behind the server's back.
  static bool is_kept(UsedPool& pool, const JobQuery& query = {}) {
    const Counts before = pool.archive.count(query);
    execute(pool, "update jobs set count = count + 1 where id = (select max(id) from jobs)");
    const bool kept = pool.archive.count(query) == before;
    execute(pool, "update jobs set count = count - 1 where id = (select max(id) from jobs)");
    return kept;
  }

  void every_change_of_state_is_counted() {
    UsedPool pool;
    const auto state = [&](JobState expected) {
      const auto row = pool.archive.job(1);
      CPPUNIT_ASSERT(row && row->job.state == expected);
      check(pool.archive);
      CPPUNIT_ASSERT_EQUAL(std::to_string(static_cast<int>(expected)) + ": 1\n",
                           text(pool.archive.count({})));
    };
    pool.pipeline.perform([](Turn& t) { UsedPool::owners(t, 0); });
    submit(pool, 1, "ann", 1);
    state(JobState::kWaiting);
    apply(pool, scheduling::JobsHeld{{1}});
    state(JobState::kHeld);
    apply(pool, scheduling::JobsReleased{{1}});
    state(JobState::kWaiting);
    pool.pipeline.perform([](Turn& t) { UsedPool::owners(t, 1); });
    state(JobState::kPlaced);
    apply(pool, scheduling::AttemptStarted{{1, 1}, 1});
    state(JobState::kRunning);
    pool.pipeline.perform([](Turn& t) { UsedPool::owners(t, 0); });
    apply(pool, scheduling::AttemptEnded{{1, 1}, 1, scheduling::EndReason::kOwner, "", 1, -1, 1});
    state(JobState::kWaiting);
    apply(pool, scheduling::JobsRemoved{{1}});
    state(JobState::kRemoved);
    pool.use("ann", 1);
    CPPUNIT_ASSERT_EQUAL(std::string("5: 1\n7: 1\n"), text(pool.archive.count({})));
    check(pool.archive);
    CPPUNIT_ASSERT(is_kept(pool));
  }

  void parts_of_an_array() {
    UsedPool pool;
    pool.pipeline.perform([](Turn& t) { UsedPool::owners(t, 0); });
    const JobId first = submit(pool, 7, "a", 1000);
    apply(pool, scheduling::JobsRemoved{{{first + 100, 50}}});
    apply(pool, scheduling::JobsHeld{{{first + 140, 100}}});
    check(pool.archive);
    CPPUNIT_ASSERT_EQUAL(std::string("1: 860\n4: 90\n7: 50\n"), text(pool.archive.count({})));
    // Both in one transaction.
    pool.pipeline.perform([&](Turn& t) {
      t.apply(scheduling::JobsReleased{{{first, 1000}}});
      t.apply(scheduling::JobsRemoved{{{first, 1000}}});
    });
    check(pool.archive);
    CPPUNIT_ASSERT_EQUAL(std::string("7: 1000\n"), text(pool.archive.count({})));
  }

  void a_large_batch_has_numbers_of_its_own() {
    UsedPool pool;
    pool.pipeline.perform([](Turn& t) { UsedPool::owners(t, 0); });
    submit(pool, 7, "a", kLargeBatch);
    submit(pool, 8, "b", kLargeBatch - 1);
    check(pool.archive);
    JobQuery large, small;
    large.batch = 7;
    small.batch = 8;
    CPPUNIT_ASSERT(!is_kept(pool, small));
    submit(pool, 9, "b", kLargeBatch);
    large.batch = 9;
    CPPUNIT_ASSERT(is_kept(pool, large));
    large.user = "a";
    CPPUNIT_ASSERT(pool.archive.count(large).empty());
  }

  // Two large batches, of which the first has ended, and some jobs.
  static void finish(UsedPool& pool) {
    pool.pipeline.perform([](Turn& t) { UsedPool::owners(t, 0); });
    submit(pool, 7, "a", 150);
    apply(pool, scheduling::JobsRemoved{{{1, 150}}});
    pool.use("ann", 5);
    pool.clock.advance_ms(40 * kDay / 1000);
    pool.use("ann", 5);
    submit(pool, 8, "b", 120);
  }

  void jobs_that_move_to_a_file() {
    UsedPool pool;
    finish(pool);
    const std::string before = text(pool.archive.count({}));
    move(pool);
    CPPUNIT_ASSERT(std::filesystem::exists(pool.folder / "history"));
    CPPUNIT_ASSERT_EQUAL(before, text(pool.archive.count({})));
    check(pool.archive);
    CPPUNIT_ASSERT(is_kept(pool));
    JobQuery large;
    large.batch = 7;
    CPPUNIT_ASSERT_EQUAL(std::string("7: 150\n"), text(pool.archive.count(large)));
    Archive restarted(path(pool));
    check(restarted);
  }

  void a_file_that_was_moved_away() {
    UsedPool pool;
    finish(pool);
    move(pool);
    std::filesystem::rename(pool.folder / "history", pool.folder / "elsewhere");
    Archive restarted(path(pool));
    check(restarted);
    CPPUNIT_ASSERT_EQUAL(std::string("1: 120\n5: 1\n"), text(restarted.count({})));
    std::filesystem::rename(pool.folder / "elsewhere", pool.folder / "history");
    Archive again(path(pool));
    CPPUNIT_ASSERT_EQUAL(std::string("1: 120\n5: 2\n7: 150\n"), text(again.count({})));
  }

  // The last statement of the transaction fails.
  void a_commit_that_fails_changes_nothing() {
    UsedPool pool;
    submit(pool, 7, "a", 150);
    const std::string before = text(pool.archive.count({}));
    execute(pool,
            "create trigger full before insert on events begin select raise(abort, 'full'); end");
    CPPUNIT_ASSERT_THROW(apply(pool, scheduling::JobsRemoved{{{1, 150}}}), Refusal);
    CPPUNIT_ASSERT_EQUAL(before, text(pool.archive.count({})));
    check(pool.archive);
    execute(pool, "drop trigger full");
    pool.clock.advance_ms(2000);
    apply(pool, scheduling::JobsRemoved{{{1, 150}}});
    check(pool.archive);
    CPPUNIT_ASSERT_EQUAL(std::string("7: 150\n"), text(pool.archive.count({})));
  }

  // As after the migration of an earlier layout, and after a salvage.
  void jobs_are_counted_if_there_are_no_numbers() {
    UsedPool pool;
    finish(pool);
    move(pool);
    execute(pool, "delete from job_counts");
    CPPUNIT_ASSERT(!is_kept(pool));
    check(pool.archive);
    { SqlStore again(path(pool)); }
    CPPUNIT_ASSERT(is_kept(pool));
    check(pool.archive);
    JobQuery large;
    large.batch = 7;
    CPPUNIT_ASSERT_EQUAL(std::string("7: 150\n"), text(pool.archive.count(large)));
    std::filesystem::remove_all(pool.folder / "history");
    Archive without(path(pool));
    check(without);
  }

  void a_number_that_cannot_be_right() {
    UsedPool pool;
    finish(pool);
    execute(pool, "update job_counts set jobs = -3 where batch = 0 and user_name = 'a'");
    check(pool.archive);
    execute(pool, "update job_counts set state = 99 where batch = 7 and state = 7");
    check(pool.archive);
    CPPUNIT_ASSERT(is_kept(pool));
  }

  void a_wrong_number_is_found() {
    UsedPool pool;
    finish(pool);
    move(pool);
    CPPUNIT_ASSERT(find_damage(path(pool)).empty());
    execute(pool, "update job_counts set jobs = jobs + 1 where batch = 8 and state = 1");
    const auto damaged = find_damage(path(pool));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, damaged.size());
    CPPUNIT_ASSERT_EQUAL(std::string("job_counts"), damaged[0].name);
    CPPUNIT_ASSERT_EQUAL(std::string("its numbers of jobs are wrong: 1"),
                         damaged[0].findings.at(0));
    pool.pipeline.stop();
    const std::string copy = pool.folder / "copy.db";
    execute(pool, "vacuum into '" + copy + "'");
    salvage(system_files(), copy, "1");
    { SqlStore again(copy); }
    CPPUNIT_ASSERT(find_damage(copy).empty());
    Archive archive(copy);
    check(archive);
  }

  // The last number that the statement gives.
  static int number(const std::string& path, const std::string& statement) {
    sqlite3* db = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open(path.c_str(), &db));
    int last = 0;
    const auto take = [](void* to, int, char** values, char**) {
      *static_cast<int*>(to) = std::stoi(values[0]);
      return 0;
    };
    const int code = sqlite3_exec(db, statement.c_str(), take, &last, nullptr);
    sqlite3_close(db);
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, code);
    return last;
  }
  static void add_job(SqlStore& store, JobId id) {
    Changes changes;
    scheduling::JobRecord job;
    job.id = id;
    job.user = "ann";
    changes.jobs[id] = job;
    store.commit(changes);
  }
  // Overwrites the table's only page; what an open database remembers of it is forgotten.
  static void damage(const std::string& path) {
    number(path, "pragma wal_checkpoint(truncate)");
    const int page = number(path, "select rootpage from sqlite_schema where name = 'job_counts'");
    {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp((page - 1) * 4096l);
      file << std::string(4096, 'x');
    }
    number(path, "create table if not exists other (n); insert into other values (1)");
  }

  // The server goes on, jobs are counted one by one, and its next start makes new numbers.
  void a_damaged_table_costs_itself_only() {
    TemporaryFolder folder;
    const std::string path = folder / "pool.db";
    const std::string rows = "select count(*) from job_counts";
    {
      SqlStore store(path);
      add_job(store, 1);
      damage(path);
      Archive archive(path);
      CPPUNIT_ASSERT_EQUAL(std::string("1: 1\n"), text(archive.count({})));
      for (const JobId id : {2, 3}) {
        add_job(store, id);
        CPPUNIT_ASSERT_EQUAL(0, number(path, rows));
        CPPUNIT_ASSERT_EQUAL("1: " + std::to_string(id) + "\n", text(archive.count({})));
      }
    }
    { SqlStore again(path); }
    CPPUNIT_ASSERT_EQUAL(2, number(path, rows));
    damage(path);
    { SqlStore again(path); }
    CPPUNIT_ASSERT_EQUAL(2, number(path, rows));
    Archive archive(path);
    check(archive);
  }

  // Jobs of all kinds come, change their states, fail to be committed and move to files.
  void any_order_gives_what_a_scan_gives() {
    const bool holds = rc::check([](const std::vector<uint32_t>& choices) {
      UsedPool pool;
      BatchId batch = 7;
      for (size_t i = 0; i < choices.size(); ++i) {
        const uint32_t choice = choices[i];
        switch (choice % 8) {
          case 0:
            if (batch <= 9) submit(pool, batch++, choice % 3 == 0 ? "a" : "b", 90 + choice % 30);
            break;
          case 1:
            pool.fail_commits(1);
            RC_ASSERT_THROWS_AS(apply(pool, scheduling::JobsRemoved{{{1, 9}}}), Refusal);
            pool.fail_commits(0);
            pool.clock.advance_ms(2000);
            break;
          case 2:
            pool.clock.advance_ms(20 * kDay / 1000);
            move(pool);
            break;
          case 3:
            apply(pool, scheduling::JobsRemoved{{{1 + choice % 100, 1 + choice % 200}}});
            break;
          case 4:
            apply(pool, scheduling::JobsHeld{{{1 + choice % 100, 1 + choice % 50}}});
            break;
          default:
            pool.live({choice, choice / 3, choice / 7});
        }
      }
      for (const JobQuery& query : queries())
        RC_ASSERT(text(pool.archive.count(query)) == text(scanned(pool.archive, query)));
      RC_ASSERT(find_damage(path(pool)).empty());
    });
    CPPUNIT_ASSERT(holds);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(JobCountsTest);

}  // namespace
}  // namespace sublet::server
