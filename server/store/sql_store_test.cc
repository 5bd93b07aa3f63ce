#include "server/store/sql_store.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sqlite3.h>

#include <algorithm>

#include "base/files.h"
#include "base/testing/temporary_folder.h"
#include "job/codec.h"
#include "server/store/archive/archive.h"
#include "server/store/live.h"
#include "server/store/pool_id.h"
#include "server/store/tables.h"

namespace sublet::server {
namespace {

using namespace scheduling;

JobRecord job(JobId id) {
  JobRecord j;
  j.id = id;
  j.batch = 4;
  j.index = 2;
  j.user = "ann";
  j.submit_host = "desk";
  j.state = JobState::kRunning;
  j.attempts = 3;
  j.needs = {"linux", "x86_64", 2, 3ull << 40, 5, "linux/aarch64 linux/x86_64"};
  j.priority = -7;
  j.retries_left = 1;
  j.evictions = 2;
  j.share_priority = 0.125;
  j.share_priority_at = 1'700'000'000'000'000;
  j.generation = 9;
  j.checkpoint_bytes = 19'200;
  j.submitted = 1'700'000'000'000'001;
  j.changed = 1'700'000'000'000'002;
  j.cpu_kept = 10;
  j.cpu_lost = 11;
  j.reason = std::string("a\nb\0c", 5);
  return j;
}

class SqlStoreTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SqlStoreTest);
  CPPUNIT_TEST(what_is_committed_is_loaded);
  CPPUNIT_TEST(any_path_is_opened_as_it_is);
  CPPUNIT_TEST(a_row_is_written_over);
  CPPUNIT_TEST(a_failed_commit_writes_nothing);
  CPPUNIT_TEST(a_damaged_row_costs_itself_only);
  CPPUNIT_TEST(a_database_of_another_version_is_refused);
  CPPUNIT_TEST(arrays_are_counted_and_listed);
  CPPUNIT_TEST(a_damaged_row_does_not_end_a_list);
  CPPUNIT_TEST(archive_answers_from_committed_rows);
  CPPUNIT_TEST(descriptions_are_read_as_they_are_now);
  CPPUNIT_TEST(what_is_old_is_forgotten);
  CPPUNIT_TEST(what_still_needs_its_rows_is_not_deleted);
  CPPUNIT_TEST(unneeded_files_are_found);
  CPPUNIT_TEST(a_content_is_dropped_without_reading_all_files);
  CPPUNIT_TEST(the_brain_is_loaded_without_reading_all_jobs);
  CPPUNIT_TEST(live_jobs_are_loaded_however_many_are_live);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  std::string path() const { return folder_.path() + "/pool.db"; }

  // The text of this column in all rows, one line per row.
  std::string texts(const std::string& query, int column) {
    sqlite3* db = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open(path().c_str(), &db));
    sqlite3_stmt* statement = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_prepare_v2(db, query.c_str(), -1, &statement, nullptr));
    std::string all;
    while (sqlite3_step(statement) == SQLITE_ROW)
      all +=
          reinterpret_cast<const char*>(sqlite3_column_text(statement, column)) + std::string("\n");
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return all;
  }

  // Runs SQL on the database while the store has it open.
  void sql(const std::string& statement, int expected = SQLITE_OK) {
    sqlite3* db = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open(path().c_str(), &db));
    char* error = nullptr;
    const int rc = sqlite3_exec(db, statement.c_str(), nullptr, nullptr, &error);
    const std::string words = error ? error : "";
    sqlite3_free(error);
    sqlite3_close(db);
    CPPUNIT_ASSERT_EQUAL_MESSAGE(words, expected, rc);
  }

  static Changes some() {
    Changes c;
    c.jobs[17] = job(17);
    c.attempts[{17, 3}] = AttemptRecord{
        {17, 3}, 5, AttemptState::kRunning, EndReason::kNone, "first", 1, 2, 0, 8, 9, 0, 0, 0};
    c.machines[5] =
        MachineRecord{5, "curly", "linux", "x86_64", 2, 1, 1ull << 40, 7, MachineState::kIdle, 3};
    c.machines[5].failures = {3, 4, "lost", 5, 2, "ann", "bob"};
    c.absences[5] = {5, "1 3on6"};
    c.users["ann"] = UserRecord{"ann", 2.5, 1e-3, 17.25};
    c.has_pool = true;
    c.pool = PoolRecord{18, 5, 6, 100, 42, 43, -3600, 44};
    c.stops[4] = BatchRecord{4, {5, 6, "key.txt"}, 3, 2, 0};
    c.relations[17] = relation();
    c.relations[23] = {{23, 1}, scheduling::OnNever::kHold, {{{17, 6}, After::kEnded}}, 0, {},
                       true};
    c.machines[5].speed = 2.5;
    c.programs[{7, "x86_64", -3}] = program();
    c.programs[{8, "x86_64", 0}] = {8, "x86_64", 0, 1, 0, 0, true};
    return c;
  }
  static scheduling::ProgramRecord program() { return {7, "x86_64", -3, 5, 1.5, 99}; }
  static RelationRecord relation() {
    return {
        {17, 6}, scheduling::OnNever::kRemove, {{{1, 9}, After::kDone}, {{12, 1}, After::kStarted}},
        12,      JobState::kRemoved,           false};
  }

  void what_is_committed_is_loaded() {
    { SqlStore(path()).commit(some()); }
    std::vector<std::string> damage;
    const Snapshot s = SqlStore(path()).load(&damage);
    CPPUNIT_ASSERT(damage.empty());
    CPPUNIT_ASSERT_EQUAL(JobId{18}, s.pool.next_job);
    CPPUNIT_ASSERT_EQUAL(Micros{43}, s.pool.now);
    CPPUNIT_ASSERT_EQUAL(Micros{44}, s.pool.indices_due);
    CPPUNIT_ASSERT_EQUAL(-3600, s.pool.utc_offset);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, s.jobs.size());
    const JobRecord j = s.jobs[0], want = job(17);
    CPPUNIT_ASSERT(j.needs == want.needs);
    CPPUNIT_ASSERT_EQUAL(want.reason, j.reason);
    CPPUNIT_ASSERT_EQUAL(want.share_priority, j.share_priority);
    CPPUNIT_ASSERT_EQUAL(want.share_priority_at, j.share_priority_at);
    CPPUNIT_ASSERT_EQUAL(want.generation, j.generation);
    CPPUNIT_ASSERT_EQUAL(want.cpu_lost, j.cpu_lost);
    CPPUNIT_ASSERT_EQUAL(want.priority, j.priority);
    CPPUNIT_ASSERT_EQUAL(uint64_t{8}, s.attempts.at(0).resumed_generation);
    CPPUNIT_ASSERT_EQUAL(17.25, s.users.at(0).charges);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1} << 40, s.machines.at(0).memory);
    CPPUNIT_ASSERT_EQUAL(std::string("1 3on6"), s.absences.at(0).absences);
    CPPUNIT_ASSERT_EQUAL(2.5, s.machines.at(0).speed);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, s.programs.size());
    CPPUNIT_ASSERT(s.programs.at(0) == program());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, s.relations.size());
    CPPUNIT_ASSERT(s.relations.at(0) == relation());
    const BatchRecord batch = s.batches.at(0);
    CPPUNIT_ASSERT((batch.stop_when == scheduling::StopWhen{5, 6, "key.txt"}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{302}, batch.done * 100 + batch.failed);
  }

  void any_path_is_opened_as_it_is() {
    for (const char* name :
         {"a b", "a=b c=d", "\"quoted\" 'so'", "100%41?mode=memory#x", "b\xc3\xbcro"}) {
      const std::string folder = folder_ / name;
      system_files().make_folders(folder);
      const std::string path = folder + "/pool.db";
      { SqlStore(path).commit(some()); }
      CPPUNIT_ASSERT_EQUAL(size_t{1}, Archive("/" + path).jobs({}, 0, 10).rows.size());
      CPPUNIT_ASSERT(!pool_id(path).empty());
      size_t others = 0;
      for (const auto& entry : system_files().list(folder)) others += entry.name != "pool.db";
      CPPUNIT_ASSERT_EQUAL(size_t{0}, others);
      system_files().remove_tree(folder);
      CPPUNIT_ASSERT(system_files().list(folder_.path()).empty());
    }
  }

  void a_row_is_written_over() {
    SqlStore store(path());
    store.commit(some());
    Changes c;
    c.jobs[17] = job(17);
    c.jobs[17].state = JobState::kDone;
    store.commit(c);
    std::vector<std::string> damage;
    CPPUNIT_ASSERT_EQUAL(size_t{1}, store.load(&damage).jobs.size());  // its attempt is live
    c.attempts[{17, 3}].key = {17, 3};
    c.attempts[{17, 3}].state = AttemptState::kEnded;
    c.requests["k"] = RequestRow{"k", "d", "a", 1};
    store.commit(c);
    CPPUNIT_ASSERT(store.load(&damage).jobs.empty());  // final jobs stay in the archive
    CPPUNIT_ASSERT_EQUAL(std::string("a"), store.find_request("k")->answer);
    CPPUNIT_ASSERT(!store.find_request("other"));
  }

  void a_failed_commit_writes_nothing() {
    SqlStore store(path());
    store.commit(some());
    sql("create trigger full before insert on events begin select raise(abort, 'no room'); end");
    Changes c;
    c.jobs[18] = job(18);
    c.events.push_back({1, 2, "x"});
    CPPUNIT_ASSERT_THROW(store.commit(c), StoreError);
    sql("drop trigger full");
    std::vector<std::string> damage;
    CPPUNIT_ASSERT_EQUAL(size_t{1}, store.load(&damage).jobs.size());
    store.commit(c);  // the failed commit left nothing behind
    CPPUNIT_ASSERT_EQUAL(size_t{2}, store.load(&damage).jobs.size());
  }

  void a_damaged_row_costs_itself_only() {
    {
      SqlStore store(path());
      Changes c = some();
      c.jobs[18] = job(18);
      store.commit(c);
    }
    sql("update jobs set state = 'rubbish' where id = 17");
    sql("update jobs set user_name = 12 where id = 18");
    SqlStore store(path());
    std::vector<std::string> damage;
    const Snapshot s = store.load(&damage);
    for (const auto& j : s.jobs) CPPUNIT_ASSERT(j.id != 17);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, damage.size());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, s.machines.size());
  }

  void a_database_of_another_version_is_refused() {
    { SqlStore(path()).commit(some()); }
    for (const char* version : {"99", "3"}) {
      sql(std::string("update pool set version = ") + version);
      // A server of this version would create this table again.
      sql("drop table if exists spent");
      CPPUNIT_ASSERT_THROW(SqlStore{path()}, StoreError);
      sql("select * from spent", SQLITE_ERROR);  // nothing was done to it
    }
    sql("update pool set version = " + std::to_string(kSchemaVersion));
    std::vector<std::string> damage;
    CPPUNIT_ASSERT_EQUAL(some().jobs.size(), SqlStore(path()).load(&damage).jobs.size());
  }

  void arrays_are_counted_and_listed() {
    SqlStore store(path());
    Changes c;
    JobRecord array = job(100);
    array.count = 50;
    array.index = 0;
    array.share_priority_step = 0.125;
    array.state = JobState::kWaiting;
    c.jobs[100] = array;
    for (JobId id : {90, 150}) {
      c.jobs[id] = job(id);
      c.jobs[id].state = JobState::kDone;
    }
    store.commit(c);
    Archive archive(path());
    JobQuery all;
    const auto first = archive.jobs(all, 0, 10).rows;
    CPPUNIT_ASSERT_EQUAL(size_t{10}, first.size());
    CPPUNIT_ASSERT_EQUAL(JobId{108}, first.back().job.id);
    CPPUNIT_ASSERT_EQUAL(8u, first.back().job.index);
    CPPUNIT_ASSERT_EQUAL(0.125 * 9, first.back().job.share_priority);
    const auto rest = archive.jobs(all, 108, 1000).rows;
    CPPUNIT_ASSERT_EQUAL(size_t{42}, rest.size());
    CPPUNIT_ASSERT_EQUAL(JobId{109}, rest.front().job.id);
    CPPUNIT_ASSERT_EQUAL(JobId{150}, rest.back().job.id);
    CPPUNIT_ASSERT_EQUAL(JobId{149}, archive.job(149)->job.id);
    CPPUNIT_ASSERT(!archive.job(99) && !archive.job(151) && !archive.job(0));
    using Counts = std::vector<std::pair<uint32_t, uint64_t>>;
    CPPUNIT_ASSERT((archive.count(all) == Counts{{1, 50}, {5, 2}}));
    JobQuery some_of;
    some_of.ids = {{140, 100}, {95, 10}, {98, 3}};
    CPPUNIT_ASSERT((archive.count(some_of) == Counts{{1, 15}, {5, 1}}));
    const auto runs = archive.runs(some_of, 0, 10).rows;
    CPPUNIT_ASSERT_EQUAL(size_t{3}, runs.size());
    CPPUNIT_ASSERT_EQUAL(JobId{100}, runs[0].job.id);
    CPPUNIT_ASSERT_EQUAL(uint64_t{5}, runs[0].job.count);
    CPPUNIT_ASSERT_EQUAL(JobId{140}, runs[1].job.id);
    CPPUNIT_ASSERT_EQUAL(uint64_t{10}, runs[1].job.count);
    some_of.ids = {{0, ~uint64_t{0}}};
    CPPUNIT_ASSERT((archive.count(some_of) == Counts{{1, 50}, {5, 2}}));
    std::vector<std::string> damage;
    CPPUNIT_ASSERT_EQUAL(JobId{150}, store.load(&damage).last_job);
  }

  void archive_answers_from_committed_rows() {
    SqlStore store(path());
    Changes c = some();
    JobDescription spec;
    spec.name = "named";
    spec.arguments = {"{index}"};
    const SpecRange array{spec, true, 100, 10};
    c.specs.push_back(SpecRow{10, 10, "named", encode({&array, 1})});
    c.changes.push_back(
        ChangeRecord{99, 1, 17, 6, 4, "ann", JobState::kRunning, 3, EndReason::kNone});
    c.uses.push_back(UseRecord{{17, 2}, "ann", 5, 4, EndReason::kOwner, 1'000'000, 9, 8, 5, 3, 5});
    c.batches[4] = BatchRow{4, 1000, "ann", "b", "desk", false, 77, 0, 0, {1, 2, "out"}};
    c.parts.push_back(PartRow{4, 0, 1, std::string("x\0y", 3)});
    store.commit(c);

    Archive archive(path());
    JobQuery query;
    query.user = "ann";
    auto rows = archive.jobs(query, 0, 10).rows;
    CPPUNIT_ASSERT_EQUAL(size_t{1}, rows.size());
    CPPUNIT_ASSERT_EQUAL(std::string("named"), rows[0].name);
    CPPUNIT_ASSERT_EQUAL(MachineId{5}, rows[0].machine);
    CPPUNIT_ASSERT(archive.jobs(query, 17, 10).rows.empty());
    query.user = "bob' or 1=1 --";
    CPPUNIT_ASSERT(archive.jobs(query, 0, 10).rows.empty());
    CPPUNIT_ASSERT_EQUAL(std::string("107"), archive.spec(17)->arguments[0]);
    CPPUNIT_ASSERT(!archive.spec(20));
    CPPUNIT_ASSERT_EQUAL(std::string("curly"), archive.attempts(17).at(0).machine_name);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, archive.attempts(17, 2, 10).size());
    CPPUNIT_ASSERT(archive.attempts(17, 3, 10).empty());
    CPPUNIT_ASSERT_EQUAL(uint64_t{99}, archive.last_change());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, archive.changes(98, "ann", 10).size());
    CPPUNIT_ASSERT_EQUAL(size_t{0}, archive.changes(99, "", 10).size());
    CPPUNIT_ASSERT_EQUAL(std::string("x\0y", 3), archive.part(4, 0).value().body);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, archive.open_batches_before(78).size());
    CPPUNIT_ASSERT((archive.batch(4)->stop_when == sublet::StopWhen{1, 2, "out"}));
    UsageQuery usage;
    usage.until = 2'000'000;
    usage.by = {GroupBy::kUser, GroupBy::kMachine, GroupBy::kDay};
    auto lines = archive.usage(usage);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, lines.size());
    CPPUNIT_ASSERT_EQUAL(std::string("curly"), lines[0].group.at(1).second);
    CPPUNIT_ASSERT_EQUAL(int64_t{8}, lines[0].used);
    CPPUNIT_ASSERT_EQUAL(lines[0].used, lines[0].kept + lines[0].lost);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, lines[0].evictions);
    auto counts = archive.count(JobQuery{});
    CPPUNIT_ASSERT_EQUAL(size_t{1}, counts.size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, counts[0].second);
  }

  void what_is_old_is_forgotten() {
    SqlStore store(path());
    Changes c;
    for (uint64_t i = 1; i <= 9; ++i) {
      const auto at = static_cast<Micros>(10 * i);
      c.events.push_back({at, 2, "x"});
      c.changes.emplace_back();
      c.changes.back().number = i;
      c.changes.back().at = at;
      const std::string key(1, static_cast<char>('a' + i));
      c.requests[key] = RequestRow{key, "d", "a", at};
    }
    store.commit(c);
    Changes forget;
    forget.forget_events = 3;
    forget.forget_changes = 55;
    forget.forget_requests = 81;
    store.commit(forget);
    CPPUNIT_ASSERT_EQUAL(std::string("40 6\n"),
                         texts("select min(at) || ' ' || count(*) from events", 0));
    CPPUNIT_ASSERT_EQUAL(std::string("60 4\n"),
                         texts("select min(at) || ' ' || count(*) from changes", 0));
    CPPUNIT_ASSERT_EQUAL(std::string("90 1\n"),
                         texts("select min(at) || ' ' || count(*) from requests", 0));
    // The numbers of events go on after the newest.
    forget.forget_events = 100;
    store.commit(forget);
    CPPUNIT_ASSERT_EQUAL(std::string("9\n"), texts("select number from events", 0));
    std::vector<std::string> damage;
    CPPUNIT_ASSERT_EQUAL(Micros{90}, store.load(&damage).pool.now);
  }

  // The archive keeps one prepared statement for this query.
  void descriptions_are_read_as_they_are_now() {
    SqlStore store(path());
    Archive archive(path());
    const auto add = [&](JobId id, const std::string& name) {
      SpecRange one;
      one.spec.name = one.spec.program = name;
      Changes c;
      c.specs.push_back({id, 1, name, encode(std::vector{one})});
      store.commit(c);
    };
    for (JobId id : {7, 8, 9}) {
      CPPUNIT_ASSERT(!archive.spec(id));
      const std::string name = "job " + std::to_string(id);
      add(id, name);
      // First from the database, then from the cache of decoded descriptions.
      for (int i = 0; i < 2; ++i) CPPUNIT_ASSERT_EQUAL(name, archive.spec(id)->name);
      // An open read transaction would prevent this checkpoint.
      CPPUNIT_ASSERT_EQUAL(std::string("0\n"), texts("PRAGMA wal_checkpoint(TRUNCATE)", 0));
    }
  }

  void a_damaged_row_does_not_end_a_list() {
    SqlStore store(path());
    Changes c;
    for (JobId id = 1; id <= 7; ++id) c.jobs[id] = job(id);
    c.jobs[10] = job(10);
    c.jobs[10].count = 30;
    c.jobs[10].state = JobState::kWaiting;
    c.jobs[50] = job(50);
    store.commit(c);
    sql("update jobs set state = 99 where id in (3, 4, 10)");
    Archive archive(path());
    const auto ids = [&](JobQuery query, bool runs, uint32_t limit) {
      std::vector<JobId> found;
      JobId after = 0;
      do {
        const JobPage page =
            runs ? archive.runs(query, after, limit) : archive.jobs(query, after, limit);
        for (const JobRow& row : page.rows) found.push_back(row.job.id);
        CPPUNIT_ASSERT(page.next == 0 || after == 0 ||
                       (query.newest_first ? page.next < after : page.next > after));
        after = page.next;
      } while (after != 0);
      return found;
    };
    std::vector<JobId> readable{1, 2, 5, 6, 7, 50};
    for (const bool newest_first : {false, true}) {
      JobQuery query;
      query.newest_first = newest_first;
      for (uint32_t limit : {1u, 2u, 3u, 9u, 100u})
        for (const bool runs : {false, true}) CPPUNIT_ASSERT(ids(query, runs, limit) == readable);
      std::reverse(readable.begin(), readable.end());
    }
  }

  static std::vector<uint64_t> unneeded(Archive& archive) {
    std::vector<uint64_t> ids;
    uint64_t after = 0;
    do {
      for (const FileRow& row : archive.unneeded_files(after, 2)) ids.push_back(row.id);
    } while (after != 0);
    return ids;
  }

  // Of jobs that were copied to a file of history, on another connection, a moment before.
  void what_still_needs_its_rows_is_not_deleted() {
    SqlStore store(path());
    Changes c;
    for (JobId id = 1; id <= 5; ++id) {
      c.jobs[id] = job(id);
      c.jobs[id].state = id == 1 ? JobState::kRunning : JobState::kDone;
      c.attempts[{id, 1}].key = {id, 1};
      c.attempts[{id, 1}].state = id == 2 ? AttemptState::kRunning : AttemptState::kEnded;
    }
    c.files[9].id = 9;
    c.files[9].job = 3;
    store.commit(c);
    Changes moved;
    moved.moved_jobs.jobs = {1, 2, 3, 4, 5};
    store.commit(moved);
    CPPUNIT_ASSERT_EQUAL(std::string("1\n2\n3\n5\n"), texts("select id from jobs order by id", 0));
    CPPUNIT_ASSERT_EQUAL(std::string("1\n2\n3\n5\n"),
                         texts("select job from attempts order by job", 0));
  }

  void unneeded_files_are_found() {
    SqlStore store(path());
    Changes c = some();
    c.batches[4] = BatchRow{4, 1000, "ann", "b", "desk", true, 77, 17, 1};
    auto file = [&c](uint64_t id, FileKind kind, uint64_t generation) {
      FileRow f;
      f.id = id;
      f.kind = kind;
      f.batch = kind == FileKind::kInput ? 4 : 0;
      f.job = kind == FileKind::kInput ? 0 : 17;
      f.attempt = 3;
      f.generation = generation;
      c.files[id] = f;
    };
    file(1, FileKind::kInput, 0);
    file(2, FileKind::kCheckpoint, 1);
    file(3, FileKind::kCheckpoint, 2);
    file(4, FileKind::kCheckpoint, 3);
    file(5, FileKind::kOutput, 0);
    store.commit(c);
    Archive archive(path());
    // While the job runs, only checkpoints older than the two newest are unneeded.
    CPPUNIT_ASSERT(unneeded(archive) == std::vector<uint64_t>{2});
    // Even if the batch's row was lost to a damaged page.
    sql("delete from batches where id = 4");
    CPPUNIT_ASSERT(unneeded(archive) == std::vector<uint64_t>{2});
    Changes done;
    done.jobs[17] = job(17);
    done.jobs[17].state = JobState::kDone;
    done.attempts[{17, 3}] = c.attempts[{17, 3}];
    done.attempts[{17, 3}].state = AttemptState::kEnded;
    done.counted_files.push_back({5, {17, 3}});
    store.commit(done);
    CPPUNIT_ASSERT((unneeded(archive) == std::vector<uint64_t>{1, 2, 3, 4}));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, archive.outputs(17).size());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, archive.outputs(17, 4, 10).size());
    CPPUNIT_ASSERT(archive.outputs(17, 5, 10).empty());
  }

  // Otherwise a transaction with a thousand deletions would take minutes.
  void a_content_is_dropped_without_reading_all_files() {
    SqlStore store(path());
    const std::string plan = texts("explain query plan " + std::string(kDropContent), 3);
    CPPUNIT_ASSERT_MESSAGE(plan, plan.find("files_content") != std::string::npos);
  }

  void live_jobs_are_loaded_however_many_are_live() {
    SqlStore store(path());
    std::vector<std::string> damage;
    CPPUNIT_ASSERT(store.load(&damage).jobs.empty());
    for (const JobId ended : {9, 7, 5, 4, 3, 2}) {
      Changes changes;
      for (JobId id = 1; id <= 10; ++id) {
        changes.jobs[id] = job(id);
        if (id <= ended && id > 1) changes.jobs[id].state = JobState::kDone;
      }
      store.commit(changes);
      std::vector<JobId> expected = {1}, loaded;
      for (JobId id = ended + 1; id <= 10; ++id) expected.push_back(id);
      for (const auto& row : store.load(&damage).jobs) loaded.push_back(row.id);
      CPPUNIT_ASSERT(loaded == expected);
    }
    CPPUNIT_ASSERT(damage.empty());
  }

  // Otherwise a restart would take longer with every job that ever ended.
  void the_brain_is_loaded_without_reading_all_jobs() {
    SqlStore store(path());
    std::vector<std::string> questions;
    for (const auto& some : {live_jobs(), live_attempts(), live_stops()})
      questions.insert(questions.end(), some.begin(), some.end());
    for (const std::string& question : questions) {
      const std::string plan = texts("explain query plan select * from " + question, 3);
      CPPUNIT_ASSERT_MESSAGE(plan, plan.find("_live") != std::string::npos);
      CPPUNIT_ASSERT_MESSAGE(plan,
                             plan.find("SEARCH jobs USING PRIMARY KEY (id>") == std::string::npos);
      for (size_t at = 0; (at = plan.find("SCAN ", at)) != std::string::npos; ++at)
        CPPUNIT_ASSERT_MESSAGE(plan, plan.find("_live", at) < plan.find('\n', at));
    }
    // Unless most are live.
    const std::string all = texts("explain query plan select * from " + live_jobs(true).front(), 3);
    CPPUNIT_ASSERT_MESSAGE(all, all.find("SCAN jobs") != std::string::npos);
    CPPUNIT_ASSERT_MESSAGE(all, all.find("INDEX") == std::string::npos);
    for (const std::string& question : live_stops(true)) {
      const std::string plan = texts("explain query plan select * from " + question, 3);
      CPPUNIT_ASSERT_MESSAGE(plan, plan.find("jobs_batch (batch=? AND state=?)") != plan.npos);
    }
    // The condition used to list unfinished jobs.
    const std::string plan = texts(
        "explain query plan select * from jobs where id >= 3 and id <= 9 and jobs.state not in (5, "
        "6, 7) order by id",
        3);
    CPPUNIT_ASSERT_MESSAGE(plan, plan.find("jobs_live") != std::string::npos);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(SqlStoreTest);

}  // namespace
}  // namespace sublet::server
