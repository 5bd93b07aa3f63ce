// Finished jobs move to files; whatever happens meanwhile, every query gives what it gave before.
#include "server/jobs/history.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/files.h"
#include "job/codec.h"
#include "server/accounting/usage_testing.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {
using testing::kDay;
using testing::UsedPool;

class JobHistoryTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(JobHistoryTest);
  CPPUNIT_TEST(old_jobs_move_and_stay_readable);
  CPPUNIT_TEST(a_crash_between_file_and_rows);
  CPPUNIT_TEST(a_range_with_several_descriptions);
  CPPUNIT_TEST(jobs_with_files_stay);
  CPPUNIT_TEST(ids_are_not_used_again);
  CPPUNIT_TEST(a_damaged_file_costs_itself_only);
  CPPUNIT_TEST(a_file_that_cannot_be_written_costs_its_month);
  CPPUNIT_TEST(each_job_is_counted_once_while_they_move);
  CPPUNIT_TEST(for_ever);
  CPPUNIT_TEST(any_order_gives_the_same_list);
  CPPUNIT_TEST_SUITE_END();

  static std::string path(const UsedPool& pool) { return pool.folder.path() + "/pool.db"; }
  static std::string file(const UsedPool& pool, const std::string& month) {
    return pool.folder.path() + "/history/jobs-" + month + ".db";
  }

  // A job that has ended, with its description and its batch.
  static JobId finish(UsedPool& pool) {
    pool.use("ann", 10);
    const JobId id = pool.last_job();
    const auto row = pool.archive.job(id);
    CPPUNIT_ASSERT(row);
    describe(pool, id, 1, "job-" + std::to_string(id));
    pool.pipeline.perform([&](Turn& t) {
      BatchRow batch;
      batch.id = row->job.batch;
      batch.committed = true;
      batch.first_job = id;
      batch.count = 1;
      batch.name = "batch-" + std::to_string(id);
      t.changes().batches[batch.id] = batch;
      EndRow end;
      end.key = {id, 1};
      end.exit_status = static_cast<int64_t>(id);
      t.changes().ends.push_back(end);
    });
    return id;
  }
  static void describe(UsedPool& pool, JobId first, uint64_t count, const std::string& name) {
    SpecRange range;
    range.spec.name = name;
    range.count = count;
    range.is_array = count > 1;
    pool.pipeline.perform([&](Turn& t) {
      t.changes().specs.push_back({first, count, name, encode(std::vector{range})});
    });
  }
  static void wait_days(UsedPool& pool, int days) { pool.clock.advance_ms(days * kDay / 1000); }
  static void move(UsedPool& pool) { move(pool, pool.archive); }
  static void move(UsedPool& pool, Archive& archive) {
    JobHistory(30 * kDay, archive, pool.pipeline).move_old();
  }

  static uint64_t in_database(UsedPool& pool, const std::string& table) {
    sqlite3* db = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open(path(pool).c_str(), &db));
    sqlite3_stmt* statement = nullptr;
    CPPUNIT_ASSERT_EQUAL(
        SQLITE_OK,
        sqlite3_prepare_v2(db, ("select count(*) from " + table).c_str(), -1, &statement, nullptr));
    CPPUNIT_ASSERT_EQUAL(SQLITE_ROW, sqlite3_step(statement));
    const auto count = static_cast<uint64_t>(sqlite3_column_int64(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return count;
  }

  // One line per job and row of a list, and what is known of each job.
  static std::string line(const JobRow& row) {
    return std::to_string(row.job.id) + "+" + std::to_string(row.job.count) + " " + row.name + " " +
           std::to_string(row.machine) + " " + row.job.user + " " +
           std::to_string(static_cast<int>(row.job.state));
  }
  static std::vector<std::string> list(Archive& archive, bool newest_first, uint32_t limit,
                                       const std::string& name = "") {
    JobQuery query;
    query.newest_first = newest_first;
    query.name = name;
    std::vector<std::string> all;
    JobId after = 0;
    do {
      const JobPage page = archive.jobs(query, after, limit);
      CPPUNIT_ASSERT(page.rows.size() <= limit);
      for (const JobRow& row : page.rows) all.push_back(line(row));
      after = page.next;
    } while (after != 0);
    return all;
  }
  static std::vector<std::string> everything(Archive& archive) {
    std::vector<std::string> all = list(archive, false, 1000);
    for (uint32_t limit : {1u, 2u, 3u, 7u}) {
      CPPUNIT_ASSERT(list(archive, false, limit) == all);
      auto backwards = list(archive, true, limit);
      std::reverse(backwards.begin(), backwards.end());
      CPPUNIT_ASSERT(backwards == all);
    }
    for (const std::string& text : std::vector<std::string>(all)) {
      const JobId id = std::stoull(text);
      const auto row = archive.job(id);
      CPPUNIT_ASSERT(row);
      std::string known = line(*row);
      for (const AttemptRow& a : archive.attempts(id))
        known += " " + a.machine_name + " " + std::to_string(a.end.exit_status);
      if (const auto spec = archive.spec(id)) known += " " + spec->name;
      if (const auto batch = archive.batch(row->job.batch)) known += " " + batch->name;
      all.push_back(known);
    }
    for (const auto& [state, count] : archive.count({}))
      all.push_back(std::to_string(state) + ": " + std::to_string(count));
    return all;
  }

  static void check_same(const std::vector<std::string>& expected, Archive& archive) {
    const auto text = [](const std::vector<std::string>& lines) {
      std::string all;
      for (const std::string& one : lines) all += one + "\n";
      return all;
    };
    CPPUNIT_ASSERT_EQUAL(text(expected), text(everything(archive)));
  }

  // Six jobs, in two months, all but two of them old.
  static void old_and_new(UsedPool& pool) {
    for (int i = 0; i < 2; ++i) finish(pool);
    wait_days(pool, 5);  // the next month
    for (int i = 0; i < 2; ++i) finish(pool);
    wait_days(pool, 31);
    for (int i = 0; i < 2; ++i) finish(pool);
  }

  void old_jobs_move_and_stay_readable() {
    UsedPool pool;
    old_and_new(pool);
    const auto before = everything(pool.archive);
    move(pool);
    CPPUNIT_ASSERT(system_files().exists(file(pool, "2026-12")));
    CPPUNIT_ASSERT(system_files().exists(file(pool, "2027-01")));
    for (const char* table : {"jobs", "attempts", "ends", "specs"})
      CPPUNIT_ASSERT_EQUAL_MESSAGE(table, uint64_t{2}, in_database(pool, table));
    check_same(before, pool.archive);
    Archive restarted(path(pool));
    check_same(before, restarted);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, list(pool.archive, true, 2, "job-3").size());
    move(pool);  // there is nothing else
    check_same(before, pool.archive);
  }

  void a_crash_between_file_and_rows() {
    UsedPool pool;
    old_and_new(pool);
    const auto before = everything(pool.archive);
    pool.fail_commits(1);
    CPPUNIT_ASSERT_THROW(move(pool), Refusal);
    CPPUNIT_ASSERT_EQUAL(uint64_t{6}, in_database(pool, "jobs"));
    CPPUNIT_ASSERT(system_files().exists(file(pool, "2026-12")));
    check_same(before, pool.archive);
    Archive restarted(path(pool));
    check_same(before, restarted);
    move(pool);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, in_database(pool, "jobs"));
    check_same(before, pool.archive);
    Archive again(path(pool));
    check_same(before, again);
  }

  // Removed jobs of an array stay one record; its descriptions move with it.
  void a_range_with_several_descriptions() {
    UsedPool pool;
    finish(pool);
    pool.pipeline.perform([&](Turn& t) {
      scheduling::JobRecord removed;
      removed.id = 10;
      removed.count = 20;
      removed.batch = 1;
      removed.user = "bob";
      removed.state = scheduling::JobState::kRemoved;
      removed.changed = t.now();
      t.changes().jobs[10] = removed;
      removed.id = 40;
      removed.count = 1;
      t.changes().jobs[40] = removed;
    });
    describe(pool, 10, 5, "first");
    describe(pool, 15, 10, "second");
    describe(pool, 25, 5, "third");
    describe(pool, 40, 1, "last");
    wait_days(pool, 40);
    const auto before = everything(pool.archive);
    move(pool);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, in_database(pool, "jobs"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, in_database(pool, "specs"));
    check_same(before, pool.archive);
    CPPUNIT_ASSERT_EQUAL(size_t{10}, list(pool.archive, true, 3, "second").size());
  }

  void jobs_with_files_stay() {
    UsedPool pool;
    const JobId with_output = finish(pool), with_none = finish(pool);
    finish(pool);
    const auto put = [&](uint64_t id, JobId job, BatchId batch) {
      pool.pipeline.perform([&](Turn& t) {
        FileRow row;
        row.id = id;
        row.kind = batch != 0 ? FileKind::kInput : FileKind::kOutput;
        row.job = job;
        row.batch = batch;
        row.in_row = true;
        t.changes().files[id] = row;
      });
    };
    put(1, with_output, 0);
    put(2, 0, pool.archive.job(with_none)->job.batch);
    wait_days(pool, 40);
    move(pool);  // all are of this batch
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, in_database(pool, "jobs"));
    pool.pipeline.perform([](Turn& t) { t.changes().dropped_files = {2}; });
    move(pool);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, in_database(pool, "jobs"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0},
                         in_database(pool, "jobs where id = " + std::to_string(with_none)));
    pool.pipeline.perform([](Turn& t) { t.changes().dropped_files = {1}; });
    move(pool);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, in_database(pool, "jobs"));
  }

  void ids_are_not_used_again() {
    UsedPool pool;
    old_and_new(pool);
    wait_days(pool, 60);
    const JobId last = pool.last_job();
    move(pool);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, in_database(pool, "jobs"));
    SqlStore again(path(pool));
    std::vector<std::string> damage;
    const auto snapshot = again.load(&damage);
    CPPUNIT_ASSERT_EQUAL(last, snapshot.last_job);
    CPPUNIT_ASSERT_EQUAL(pool.archive.job(last)->job.batch, snapshot.last_batch);
  }

  void a_damaged_file_costs_itself_only() {
    UsedPool pool;
    old_and_new(pool);
    auto expected = list(pool.archive, false, 10);
    move(pool);
    std::ofstream(file(pool, "2026-12"), std::ios::trunc) << std::string(8192, 'x');
    std::filesystem::remove(file(pool, "2026-12") + "-wal");
    Archive restarted(path(pool));
    expected.erase(expected.begin(), expected.begin() + 2);
    for (uint32_t limit : {1u, 2u, 10u}) CPPUNIT_ASSERT(list(restarted, false, limit) == expected);
    CPPUNIT_ASSERT(!restarted.job(1));
  }

  void a_file_that_cannot_be_written_costs_its_month() {
    UsedPool pool;
    old_and_new(pool);
    const auto before = everything(pool.archive);
    std::filesystem::create_directories(file(pool, "2026-12"));  // no database can be there
    JobHistory history(30 * kDay, pool.archive, pool.pipeline);
    history.move_old();
    CPPUNIT_ASSERT_EQUAL(uint64_t{4}, in_database(pool, "jobs"));
    CPPUNIT_ASSERT(system_files().exists(file(pool, "2027-01")));
    check_same(before, pool.archive);
    std::filesystem::remove(file(pool, "2026-12"));
    history.move_old();  // the next pass is not due yet
    CPPUNIT_ASSERT_EQUAL(uint64_t{4}, in_database(pool, "jobs"));
    pool.clock.advance_ms(3600 * 1000);
    history.move_old();
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, in_database(pool, "jobs"));
    check_same(before, pool.archive);
  }

  void each_job_is_counted_once_while_they_move() {
    constexpr uint64_t kJobs = 60;
    UsedPool pool;
    for (uint64_t i = 0; i < kJobs; ++i) {
      finish(pool);
      wait_days(pool, 1);
    }
    wait_days(pool, 29);
    std::atomic<bool> moved{false};
    std::set<uint64_t> counts;
    std::thread counting([&] {
      while (!moved) {
        uint64_t all = 0;
        for (const auto& [state, count] : pool.archive.count({})) all += count;
        counts.insert(all);
      }
    });
    for (uint64_t i = 0; i < kJobs; ++i) {
      wait_days(pool, 1);
      move(pool);
    }
    moved = true;
    counting.join();
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, in_database(pool, "jobs"));
    CPPUNIT_ASSERT(counts == std::set<uint64_t>{kJobs});
  }

  void for_ever() {
    UsedPool pool;
    old_and_new(pool);
    JobHistory(0, pool.archive, pool.pipeline).move_old();
    CPPUNIT_ASSERT_EQUAL(uint64_t{6}, in_database(pool, "jobs"));
  }

  // Finishing, waiting, moving, moving that fails and restarting, in any order.
  void any_order_gives_the_same_list() {
    const bool holds = rc::check([](const std::vector<uint8_t>& steps) {
      UsedPool pool;
      std::vector<JobId> finished;
      std::unique_ptr<Archive> restarted;
      for (const uint8_t step : steps) {
        Archive& archive = restarted ? *restarted : pool.archive;
        switch (step % 5) {
          case 0:
            finished.push_back(finish(pool));
            break;
          case 1:
            wait_days(pool, step / 5);
            break;
          case 2:
            move(pool, archive);
            break;
          case 3:
            pool.fail_commits(1);
            try {
              move(pool, archive);
            } catch (const Refusal&) {
              move(pool, archive);
            }
            pool.fail_commits(0);
            break;
          default:
            restarted = std::make_unique<Archive>(path(pool));
        }
        const auto all = list(restarted ? *restarted : pool.archive, false, 1 + step % 4);
        RC_ASSERT(all.size() == finished.size());
        for (size_t i = 0; i < all.size(); ++i) RC_ASSERT(std::stoull(all[i]) == finished[i]);
      }
    });
    CPPUNIT_ASSERT(holds);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(JobHistoryTest);

}  // namespace
}  // namespace sublet::server
