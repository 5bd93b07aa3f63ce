#include <cppunit/extensions/HelperMacros.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/testing/temporary_folder.h"
#include "protocol/codec.h"
#include "server/commit/store.h"
#include "server/refusal.h"
#include "server/store/archive/archive.h"
#include "server/store/archive/finished.h"
#include "server/store/sql_store.h"

namespace sublet::server {
namespace {

using namespace scheduling;

struct Listed {
  JobId id;
  std::string name;
  bool operator==(const Listed&) const = default;
};
using List = std::vector<Listed>;

// Single jobs and a record of 50 jobs with three descriptions.
class ArchiveJobsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ArchiveJobsTest);
  CPPUNIT_TEST(both_orders_list_the_same);
  CPPUNIT_TEST(only_jobs_of_a_name);
  CPPUNIT_TEST(only_jobs_changed_since);
  CPPUNIT_TEST(ids_are_listed_newest_first);
  CPPUNIT_TEST(a_file_is_not_blamed_for_the_database);
  CPPUNIT_TEST(a_row_that_cannot_be_right_costs_its_file);
  CPPUNIT_TEST(questions_do_not_wait_for_each_other);
  CPPUNIT_TEST(a_question_that_takes_too_long_is_ended);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  std::unique_ptr<Archive> archive_;

 public:
  void setUp() override {
    const std::string path = folder_.path() + "/pool.db";
    SqlStore store(path);
    Changes changes;
    for (const auto& [id, count] : {std::pair{90, 1}, {100, 50}, {150, 1}, {200, 1}}) {
      JobRecord job;
      job.id = static_cast<JobId>(id);
      job.count = static_cast<uint64_t>(count);
      job.batch = 4;
      job.user = "ann";
      job.state = count > 1 ? JobState::kWaiting : JobState::kDone;
      job.changed = 1000 + id;
      changes.jobs[job.id] = job;
    }
    for (const auto& [first, count, name] : {std::tuple{90, 1, "alone"},
                                             {100, 20, "count-1"},
                                             {120, 10, "sum"},
                                             {130, 20, "count-2"},
                                             {150, 1, "alone"},
                                             {200, 1, "sum"}})
      changes.specs.push_back(
          SpecRow{static_cast<JobId>(first), static_cast<uint64_t>(count), name, "body"});
    store.commit(changes);
    archive_ = std::make_unique<Archive>(path);
  }

 private:
  static List listed(const std::vector<JobRow>& rows, bool newest_first) {
    List list;
    for (const JobRow& row : rows) {
      List run;
      for (uint64_t k = 0; k < row.job.count; ++k) run.push_back({row.job.id + k, row.name});
      if (newest_first) std::reverse(run.begin(), run.end());
      list.insert(list.end(), run.begin(), run.end());
    }
    return list;
  }

  // All pages; `runs`: described_runs() instead of jobs().
  List pages(const JobQuery& query, uint32_t limit, bool runs) {
    List list;
    JobId after = 0;
    do {
      const JobPage page = runs ? archive_->described_runs(query, after, limit)
                                : archive_->jobs(query, after, limit);
      CPPUNIT_ASSERT(page.rows.size() <= limit);
      for (const Listed& one : listed(page.rows, query.newest_first)) list.push_back(one);
      CPPUNIT_ASSERT(page.next == 0 || after == 0 ||
                     (query.newest_first ? page.next < after : page.next > after));
      after = page.next;
    } while (after != 0);
    return list;
  }

  static List everything() {
    List all{{90, "alone"}};
    for (JobId id = 100; id < 150; ++id)
      all.push_back({id, id < 120 ? "count-1" : id < 130 ? "sum" : "count-2"});
    all.push_back({150, "alone"});
    all.push_back({200, "sum"});
    return all;
  }

  // Compares the lists of both orders, page by page, with what is expected.
  void check(JobQuery query, const std::function<bool(const Listed&)>& expected) {
    List all = everything();
    std::erase_if(all, [&](const Listed& one) { return !expected(one); });
    for (const bool newest_first : {false, true}) {
      query.newest_first = newest_first;
      for (uint32_t limit : {1u, 2u, 3u, 7u, 1000u})
        for (const bool runs : {false, true}) CPPUNIT_ASSERT(pages(query, limit, runs) == all);
      std::reverse(all.begin(), all.end());
    }
  }

  void both_orders_list_the_same() {
    check({}, [](const Listed&) { return true; });
  }

  void only_jobs_of_a_name() {
    JobQuery query;
    query.name = "sum";
    check(query, [](const Listed& one) { return one.name == "sum"; });
    query.name = "count-?";
    check(query, [](const Listed& one) { return one.name.starts_with("count"); });
    query.name = "*1";
    check(query, [](const Listed& one) { return one.name == "count-1"; });
    query.name = "SUM";
    check(query, [](const Listed&) { return false; });
  }

  void only_jobs_changed_since() {
    JobQuery query;
    query.since = 1150;
    check(query, [](const Listed& one) { return one.id >= 150; });
  }

  void ids_are_listed_newest_first() {
    JobQuery query;
    query.ids = {{90, 1}, {110, 5}, {112, 15}, {140, 100}};
    check(query, [](const Listed& one) {
      return one.id == 90 || (one.id >= 110 && one.id < 127) || one.id >= 140;
    });
  }

  std::unique_ptr<FinishedFiles> with_moved_job() {
    auto files = std::make_unique<FinishedFiles>(folder_ / "pool.db", folder_ / "history");
    Changes::MovedJobs moved;
    moved.jobs = {90};
    files->write("2026-01", moved);
    return files;
  }

  void a_file_is_not_blamed_for_the_database() {
    const auto files = with_moved_job();
    const auto fail = [&] {
      files->each(kAllJobs, [](soci::session& sql) { sql << "select * from live.nothing"; });
    };
    CPPUNIT_ASSERT_THROW(fail(), StoreError);
    CPPUNIT_ASSERT_THROW(fail(), StoreError);
    int asked = 0;
    files->each(kAllJobs, [&](soci::session&) { ++asked; });
    CPPUNIT_ASSERT_EQUAL(1, asked);
  }

  // Such as bytes that a member cannot hold: SQLite finds nothing wrong with the file.
  void a_row_that_cannot_be_right_costs_its_file() {
    const auto files = with_moved_job();
    Changes::MovedJobs moved;
    moved.jobs = {200};
    files->write("2026-02", moved);
    int asked = 0;
    files->each(kAllJobs, [&](soci::session&) {
      if (++asked == 1) throw protocol::Damaged("jobs.state is out of range");
    });
    CPPUNIT_ASSERT_EQUAL(2, asked);
  }

  void questions_do_not_wait_for_each_other() {
    const auto files = with_moved_job();
    int asked = 0;
    files->each(kAllJobs, [&](soci::session& one) {
      files->each(kAllJobs, [&](soci::session& other) { asked += &one != &other; });
    });
    CPPUNIT_ASSERT_EQUAL(1, asked);
  }

  // Whether the archive ends this question within no time.
  bool is_ended(const std::function<void()>& question) {
    try {
      archive_->within(std::chrono::microseconds(0), question);
    } catch (const Refusal& refusal) {
      CPPUNIT_ASSERT_EQUAL(std::string("question.too_long"), refusal.code);
      return true;
    }
    return false;
  }

  void a_question_that_takes_too_long_is_ended() {
    SqlStore store(folder_ / "pool.db");
    Changes changes;
    for (JobId id = 1000; id < 6000; ++id) {
      changes.jobs[id].id = id;
      changes.jobs[id].user = "ben";
      changes.jobs[id].state = JobState::kDone;
    }
    store.commit(changes);
    JobQuery all;
    all.ids = {kAllJobs};
    const auto count = [&] { archive_->count(all); };
    CPPUNIT_ASSERT(is_ended(count));
    CPPUNIT_ASSERT(is_ended([&] { archive_->within(std::chrono::hours(1), count); }));
    count();
    // In a file of history, which is not blamed.
    Changes::MovedJobs moved;
    for (JobId id = 1000; id < 5000; ++id) moved.jobs.push_back(id);
    FinishedFiles files(folder_ / "pool.db", folder_ / "history");
    files.write("2026-01", moved);
    CPPUNIT_ASSERT(is_ended([&] {
      files.each(kAllJobs, [](soci::session& sql) {
        long long sum = 0;
        sql << "select sum(a.count + b.count) from jobs a, jobs b", soci::into(sum);
      });
    }));
    int asked = 0;
    files.each(kAllJobs, [&](soci::session&) { ++asked; });
    CPPUNIT_ASSERT_EQUAL(1, asked);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(ArchiveJobsTest);

}  // namespace
}  // namespace sublet::server
