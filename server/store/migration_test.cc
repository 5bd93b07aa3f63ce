// layouts/N.sql is a dump of a small pool of each earlier layout (layouts/dump.py).
#include "server/store/migration.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/testing/faulty_files.h"
#include "base/testing/temporary_folder.h"
#include "server/store/archive/archive.h"
#include "server/store/sql_store.h"
#include "server/store/tables.h"

namespace sublet::server {
namespace {

using scheduling::Snapshot;

class MigrationTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(MigrationTest);
  CPPUNIT_TEST(every_layout_has_its_dump);
  CPPUNIT_TEST(every_layout_becomes_the_present_one);
  CPPUNIT_TEST(nothing_is_lost);
  CPPUNIT_TEST(nothing_of_layout_6_is_lost);
  CPPUNIT_TEST(nothing_of_layout_7_is_lost);
  CPPUNIT_TEST(nothing_of_layout_9_is_lost);
  CPPUNIT_TEST(nothing_of_layout_10_is_lost);
  CPPUNIT_TEST(nothing_of_layout_11_is_lost);
  CPPUNIT_TEST(nothing_of_layout_12_is_lost);
  CPPUNIT_TEST(jobs_of_layout_13_are_counted);
  CPPUNIT_TEST(nothing_of_layout_14_is_lost);
  CPPUNIT_TEST(relations_of_layout_15_go_on);
  CPPUNIT_TEST(damaged_jobs_cost_themselves_only);
  CPPUNIT_TEST(the_old_one_is_kept);
  CPPUNIT_TEST(a_failure_changes_nothing);
  CPPUNIT_TEST(a_database_in_use_is_left_alone);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  FaultyFiles files_;

  std::string path() const { return folder_ / "pool.db"; }
  static std::string dump_of(int layout) {
    std::ifstream in(std::string(SUBLET_LAYOUTS "/") + std::to_string(layout) + ".sql");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static void execute(const std::string& database, const std::string& statements,
                      bool keep_log = false) {
    sqlite3* handle = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open(database.c_str(), &handle));
    sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep_log ? 1 : 0, nullptr);
    const int code = sqlite3_exec(handle, statements.c_str(), nullptr, nullptr, nullptr);
    const std::string error = sqlite3_errmsg(handle);
    sqlite3_close(handle);
    CPPUNIT_ASSERT_EQUAL_MESSAGE(error, SQLITE_OK, code);
  }
  // One line for each row, its values separated by "|".
  static std::string rows(const std::string& database, const std::string& query) {
    sqlite3* handle = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open(database.c_str(), &handle));
    std::string found;
    const auto add = [](void* to, int count, char** values, char**) {
      for (int i = 0; i < count; ++i)
        *static_cast<std::string*>(to) += std::string(values[i]) + "|";
      *static_cast<std::string*>(to) += "\n";
      return 0;
    };
    const int code = sqlite3_exec(handle, query.c_str(), add, &found, nullptr);
    const std::string error = sqlite3_errmsg(handle);
    sqlite3_close(handle);
    CPPUNIT_ASSERT_EQUAL_MESSAGE(error, SQLITE_OK, code);
    return found;
  }
  static std::string layout(const std::string& database) {
    return rows(database, "select version from pool");
  }
  static std::string line(int number) { return std::to_string(number) + "|\n"; }

  // A server that was killed leaves its newest rows in the log.
  void make(int layout) {
    for (const auto& entry : files_.list(folder_.path())) files_.remove_file(folder_ / entry.name);
    execute(path(), "pragma journal_mode=wal; begin;" + dump_of(layout) + "commit", true);
    CPPUNIT_ASSERT(std::filesystem::file_size(path() + "-wal") > 0);
  }

 public:
  void every_layout_has_its_dump() {
    for (int number = kEarliestLayout; number < kSchemaVersion; ++number)
      CPPUNIT_ASSERT_MESSAGE(std::to_string(number), !dump_of(number).empty());
  }

  void every_layout_becomes_the_present_one() {
    { SqlStore made(folder_ / "new.db"); }
    // SQLite does not distinguish integer from bigint, and real from double precision.
    const std::string description =
        "select m.name, c.name, c.pk, case when c.type like '%int%' then 'integer' when c.type "
        "like 'doub%' then 'real' else lower(c.type) end from sqlite_master m, "
        "pragma_table_info(m.name) c where m.type = 'table' and m.name not like 'sqlite_%' order "
        "by m.name, c.name";
    const std::string indexes =
        "select name, sql from sqlite_master where type = 'index' and sql is not null order by "
        "name";
    const std::string columns = rows(folder_ / "new.db", description);
    const std::string made = rows(folder_ / "new.db", indexes);
    for (int number = kEarliestLayout; number < kSchemaVersion; ++number) {
      make(number);
      { SqlStore store(path()); }
      CPPUNIT_ASSERT_EQUAL(line(kSchemaVersion), layout(path()));
      CPPUNIT_ASSERT_EQUAL(columns, rows(path(), description));
      CPPUNIT_ASSERT_EQUAL(made, rows(path(), indexes));
      CPPUNIT_ASSERT_EQUAL(std::string("ok|\n"), rows(path(), "pragma integrity_check"));
    }
  }

  void nothing_is_lost() {
    make(5);
    SqlStore store(path());
    std::vector<std::string> damage;
    const Snapshot snapshot = store.load(&damage);
    CPPUNIT_ASSERT(damage.empty());
    std::string live;
    for (const auto& job : snapshot.jobs) live += std::to_string(job.id) + " ";
    CPPUNIT_ASSERT_EQUAL(std::string("3 4 5 6 8 10 "), live);
    CPPUNIT_ASSERT_EQUAL(JobId{11}, snapshot.pool.next_job);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, snapshot.attempts.size());
    Archive archive(path());
    for (JobId id = 1; id <= 10; ++id) {
      const auto spec = archive.spec(id);
      CPPUNIT_ASSERT_MESSAGE(std::to_string(id), spec && !spec->program.empty());
    }
    CPPUNIT_ASSERT_EQUAL(size_t{10}, archive.jobs({}, 0, 100).rows.size());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, archive.content_ids().size());
  }

  void nothing_of_layout_6_is_lost() {
    make(6);
    SqlStore store(path());
    std::vector<std::string> damage;
    const Snapshot snapshot = store.load(&damage);
    CPPUNIT_ASSERT(damage.empty());
    std::string live;
    for (const auto& job : snapshot.jobs)
      live += std::to_string(job.id) + "+" + std::to_string(job.count) + " ";
    CPPUNIT_ASSERT_EQUAL(std::string("3+1 4+1 6+5 "), live);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, snapshot.machines.size());
    for (const auto& machine : snapshot.machines) CPPUNIT_ASSERT(!machine.draining);
    CPPUNIT_ASSERT_EQUAL(2.0, snapshot.users.at(0).shares);
    CPPUNIT_ASSERT(!snapshot.users.at(0).by_administrator);
    // Events have kept their form.
    CPPUNIT_ASSERT_EQUAL(line(44), rows(path(), "select count(*) from events"));
  }

  void nothing_of_layout_7_is_lost() {
    make(7);
    SqlStore store(path());
    std::vector<std::string> damage;
    const Snapshot snapshot = store.load(&damage);
    CPPUNIT_ASSERT(damage.empty());
    CPPUNIT_ASSERT(snapshot.machines.at(0).draining);
    CPPUNIT_ASSERT_EQUAL(std::string("bob|1073741824|\n"),
                         rows(path(), "select user_name, bytes from quotas"));
    Archive archive(path());
    const auto held = archive.attempts(3), done = archive.attempts(1);
    CPPUNIT_ASSERT((protocol::EvictionSteps{.gone = 30720}) == held.at(0).end.steps);
    CPPUNIT_ASSERT(protocol::EvictionSteps() == done.at(0).end.steps);
  }

  // Users get numbers in the order of their names.
  void nothing_of_layout_10_is_lost() {
    make(10);
    SqlStore store(path());
    std::vector<std::string> damage;
    const Snapshot snapshot = store.load(&damage);
    CPPUNIT_ASSERT(damage.empty());
    std::string users;
    for (const auto& user : snapshot.users)
      users += user.name + " " + std::to_string(user.number) + " " +
               std::to_string(user.last_grant) + (user.owed == 0 ? "\n" : " owed\n");
    CPPUNIT_ASSERT_EQUAL(std::string("root 2 0\nbob 1 0\n"), users);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, snapshot.attempts.at(0).charged);
  }

  // The policies are those of the settings.
  void nothing_of_layout_11_is_lost() {
    make(11);
    SqlStore store(path());
    std::vector<std::string> damage;
    const Snapshot snapshot = store.load(&damage);
    CPPUNIT_ASSERT(damage.empty());
    CPPUNIT_ASSERT(!snapshot.policy);
    std::string live;
    for (const auto& job : snapshot.jobs)
      live += std::to_string(job.id) + "+" + std::to_string(job.count) + " " +
              std::to_string(job.priority) + "\n";
    CPPUNIT_ASSERT_EQUAL(std::string("2+1 0\n3+2 0\n5+1 7\n6+1 0\n"), live);
    std::string started;
    Archive archive(path());
    for (const JobRow& row : archive.runs({}, 0, 1000).rows)
      if (row.job.has_started) started += line(static_cast<int>(row.job.id));
    CPPUNIT_ASSERT_EQUAL(rows(path(), "select distinct job from attempts where started > 0"),
                         started);
    CPPUNIT_ASSERT_EQUAL(line(0), rows(path(), "select count(*) from relations"));
    for (const auto& job : snapshot.jobs) CPPUNIT_ASSERT(job.needs.resources.empty());
    for (const auto& machine : snapshot.machines) CPPUNIT_ASSERT(machine.resources.empty());
    CPPUNIT_ASSERT(snapshot.machines.at(0).failures == scheduling::MachineFailures());
  }

  // Local time is told by the server's next start; jobs may be started at any time. Speeds of
  // machines and programs of jobs are not known.
  void nothing_of_layout_12_is_lost() {
    make(12);
    SqlStore store(path());
    std::vector<std::string> damage;
    const Snapshot snapshot = store.load(&damage);
    CPPUNIT_ASSERT(damage.empty());
    CPPUNIT_ASSERT_EQUAL(std::string("ansys=3"), snapshot.policy.value().choice.licences);
    CPPUNIT_ASSERT_EQUAL(0, snapshot.pool.utc_offset);
    CPPUNIT_ASSERT_EQUAL(JobId{7}, snapshot.pool.next_job);
    CPPUNIT_ASSERT_EQUAL(size_t{4}, snapshot.jobs.size());
    for (const auto& job : snapshot.jobs)
      CPPUNIT_ASSERT(job.needs.hours.empty() && job.earliest == 0 && job.program == 0);
    // Attempts were charged at each tick.
    CPPUNIT_ASSERT_EQUAL(rows(path(), "select last_tick from pool"),
                         rows(path(), "select charged_until from attempts where state <> 5"));
    CPPUNIT_ASSERT_EQUAL(0.0, snapshot.machines.at(0).speed);
    CPPUNIT_ASSERT(snapshot.programs.empty());
  }

  void jobs_of_layout_13_are_counted() {
    make(13);
    SqlStore store(path());
    CPPUNIT_ASSERT_EQUAL(
        std::string("0||1|109|\n0||3|1|\n0||4|1|\n0||5|1|\n0||7|10|\n0|root|1|109|\n"
                    "0|root|3|1|\n0|root|4|1|\n0|root|5|1|\n0|root|7|10|\n3|root|1|109|\n"
                    "3|root|4|1|\n3|root|7|10|\n"),
        rows(path(), "select batch, user_name, state, jobs from job_counts"));
  }

  void nothing_of_layout_9_is_lost() {
    make(9);
    SqlStore store(path());
    Archive archive(path());
    const EndRow end = archive.attempts(2).at(0).end;
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, end.processes_peak);
    CPPUNIT_ASSERT_EQUAL(uint64_t{40960}, end.disk_peak);
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, end.network_bytes);
  }

  // Each value of each job, by its name in layout 14; reals in thousandths.
  void nothing_of_layout_14_is_lost() {
    make(14);
    std::vector<Column> columns(tables::kJobs.packed().begin(), tables::kJobs.packed().end());
    for (const Column& column : tables::kJobs.columns())
      if (column.type != Type::kPacked) columns.push_back(column);
    std::string names, found;
    for (const Column& column : columns) {
      const std::string name = column.name;
      const bool real = column.type == Type::kReal;
      names += (names.empty() ? "" : ", ") + (real ? "cast(1000 * " + name + " as integer)" : name);
    }
    const std::string expected = rows(path(), "select " + names + " from jobs order by id");
    { SqlStore store(path()); }
    Archive archive(path());
    for (const JobRow& row : archive.runs({}, 0, 1000).rows) {
      for (const Column& column : columns) {
        Values values;
        column.put(&row.job, values);
        for (const long long value : values.integers) found += std::to_string(value);
        for (const double value : values.reals)
          found += std::to_string(static_cast<long long>(1000 * value));
        for (const std::string& value : values.texts) found += value;
        found += "|";
      }
      found += "\n";
    }
    CPPUNIT_ASSERT(std::count(found.begin(), found.end(), '\n') >= 8);
    CPPUNIT_ASSERT_EQUAL(expected, found);
  }

  void relations_of_layout_15_go_on() {
    make(15);
    SqlStore store(path());
    std::vector<std::string> damage;
    const Snapshot snapshot = store.load(&damage);
    CPPUNIT_ASSERT(damage.empty());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, snapshot.relations.size());
    const scheduling::RelationRecord& relation = snapshot.relations[0];
    CPPUNIT_ASSERT(relation.jobs == (scheduling::JobRange{7, 1}));
    CPPUNIT_ASSERT(relation.on ==
                   (std::vector<scheduling::Dependence>{{{6, 1}, scheduling::After::kDone}}));
    CPPUNIT_ASSERT(relation.gate == scheduling::Gate::kOpen);
  }

  // Texts among numbers, numbers that are too large, values that are missing.
  void damaged_jobs_cost_themselves_only() {
    make(14);
    const std::string named =
        "select id, batch, user_name, state, attempts, changed, count from jobs order by id";
    const std::string all = rows(path(), "select id from jobs order by id");
    // Without the conditions that values are there.
    execute(path(),
            "create table j as select * from jobs; drop table jobs; alter table j rename to jobs; "
            "create index jobs_live on jobs (id, attempts) where state not in (5, 6, 7);"
            "create index jobs_batch on jobs (batch, state);"
            "update jobs set state = 'rubbish' where id = 2;"
            "update jobs set state = 99 where id = 3;"
            "update jobs set cores = 1 << 33 where id = 4;"
            "update jobs set submitted = 'x' where id = 5;"
            "update jobs set memory = null, attempts = null where id = 6;"
            "update jobs set share_priority = 'y' where id = 26");
    const std::string before = rows(path(),
                                    "select id, batch, user_name, state, coalesce(attempts, ''), "
                                    "changed, count from jobs order by id");
    SqlStore store(path());
    CPPUNIT_ASSERT_EQUAL(line(kSchemaVersion), layout(path()));
    CPPUNIT_ASSERT_EQUAL(before, rows(path(), named));
    CPPUNIT_ASSERT_EQUAL(std::string("ok|\n"), rows(path(), "pragma integrity_check"));
    CPPUNIT_ASSERT_EQUAL(std::string("2|\n3|\n4|\n5|\n6|\n26|\n"),
                         rows(path(), "select id from jobs where packed like '!%' order by id"));
    CPPUNIT_ASSERT_EQUAL(line(1),
                         rows(path(),
                              "select packed like '! % submit_host = ''vm'' % cores = 8589934592 "
                              "%' from jobs where id = 4"));
    std::vector<std::string> damage;
    const Snapshot snapshot = store.load(&damage);
    CPPUNIT_ASSERT(!damage.empty());
    std::vector<JobId> listed;
    for (const JobRow& row : Archive(path()).runs({}, 0, 1000).rows) listed.push_back(row.job.id);
    for (const JobId id : listed) CPPUNIT_ASSERT(id < 2 || id > 26);
    CPPUNIT_ASSERT_EQUAL(std::count(all.begin(), all.end(), '\n'),
                         static_cast<std::ptrdiff_t>(listed.size() + 6));
    for (const auto& job : snapshot.jobs) CPPUNIT_ASSERT(job.id < 2 || job.id > 26);
  }

  void the_old_one_is_kept() {
    make(5);
    files_.write_atomic(path() + ".layout-5", "an even older one");
    files_.write_atomic(path() + ".new", "from a start that was killed");
    const std::string before = rows(path(), "select * from jobs order by id");
    CPPUNIT_ASSERT_EQUAL(path() + ".layout-5", migrate(files_, path(), 5));
    CPPUNIT_ASSERT_EQUAL(line(5), layout(path() + ".layout-5"));
    CPPUNIT_ASSERT_EQUAL(before, rows(path() + ".layout-5", "select * from jobs order by id"));
    CPPUNIT_ASSERT(!files_.exists(path() + ".new"));
  }

  // Of each step on the disk; the next start then succeeds.
  void a_failure_changes_nothing() {
    for (int failing = 0;; ++failing) {
      make(5);
      files_.fail_from(static_cast<uint64_t>(failing), EIO);
      std::string error;
      try {
        migrate(files_, path(), 5);
      } catch (const StoreError& e) {
        error = e.what();
      }
      files_.fail_from(0, 0);
      const std::string now = layout(path());
      if (error.empty()) {
        CPPUNIT_ASSERT_EQUAL(line(kSchemaVersion), now);
        CPPUNIT_ASSERT(failing >= 5);
        break;
      }
      CPPUNIT_ASSERT(error.starts_with("cannot bring the database " + path() +
                                       " from layout 5 to " + std::to_string(kSchemaVersion) +
                                       ": "));
      // Only the last step, the sync of the folder, comes after the exchange.
      CPPUNIT_ASSERT(now == line(5) || now == line(kSchemaVersion));
      if (now == line(5)) migrate(files_, path(), 5);
      CPPUNIT_ASSERT_EQUAL(line(kSchemaVersion), layout(path()));
      CPPUNIT_ASSERT_EQUAL(line(10), rows(path(), "select max(id) from jobs"));
    }
  }

  void a_database_in_use_is_left_alone() {
    make(5);
    sqlite3* other = nullptr;
    sqlite3_open(path().c_str(), &other);
    sqlite3_exec(other, "begin; select * from jobs", nullptr, nullptr, nullptr);
    execute(path(), "update jobs set reason = 'changed'");
    CPPUNIT_ASSERT_THROW(migrate(files_, path(), 5), StoreError);
    sqlite3_close(other);
    CPPUNIT_ASSERT_EQUAL(line(5), layout(path()));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(MigrationTest);

}  // namespace
}  // namespace sublet::server
