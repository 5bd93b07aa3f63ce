#include "server/store/repair.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/testing/faulty_files.h"
#include "base/testing/temporary_folder.h"
#include "server/store/archive/archive.h"
#include "server/store/sql_store.h"
#include "server/store/tables.h"

namespace sublet::server {
namespace {

using namespace scheduling;

// Pages of the database file are overwritten, as by a failing disk.
class RepairTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(RepairTest);
  CPPUNIT_TEST(nothing_is_found_in_a_good_database);
  CPPUNIT_TEST(a_damaged_page_costs_its_rows);
  CPPUNIT_TEST(two_damaged_pages_cost_their_rows);
  CPPUNIT_TEST(both_ends_may_be_damaged);
  CPPUNIT_TEST(any_page_may_be_damaged);
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
