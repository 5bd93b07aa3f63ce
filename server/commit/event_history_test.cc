// Moves the events of a real brain to files, and replays them.
#include "server/commit/event_history.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "base/testing/faulty_files.h"
#include "base/testing/temporary_folder.h"
#include "server/commit/replay.h"
#include "server/store/sql_store.h"

namespace sublet::server {
namespace {

using namespace scheduling;

constexpr int64_t kSecondMs = 1000;
constexpr int64_t kDayMs = 24 * 3600 * kSecondMs;

class EventHistoryTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(EventHistoryTest);
  CPPUNIT_TEST(each_file_leads_to_the_next);
  CPPUNIT_TEST(a_young_file_goes_on_after_a_start);
  CPPUNIT_TEST(another_lease_ends_a_replay);
  CPPUNIT_TEST(other_policies_take_over);
  CPPUNIT_TEST(few_events_wait);
  CPPUNIT_TEST(events_of_an_older_version_are_dropped);
  CPPUNIT_TEST(a_crash_loses_and_repeats_nothing);
  CPPUNIT_TEST(a_failure_leaves_events_in_the_database);
  CPPUNIT_TEST(missing_events_begin_a_new_file);
  CPPUNIT_TEST(a_damaged_file_stops_nothing);
  CPPUNIT_TEST(old_and_large_files_go);
  CPPUNIT_TEST(damage_is_named);
  CPPUNIT_TEST(many_events_are_moved_in_slices);
  CPPUNIT_TEST(large_events_are_moved_in_smaller_slices);
  CPPUNIT_TEST_SUITE_END();

  std::unique_ptr<TemporaryFolder> folder_;
  FaultyFiles files_;
  ManualClock clock_{1'700'000'000'000'000, 1'000'000'000};
  EventHistorySettings settings_;
  PipelineSettings policies_;
  std::unique_ptr<SqlStore> store_;
  std::unique_ptr<EventFiles> event_files_;
  std::unique_ptr<EventHistory> history_;
  std::unique_ptr<Pipeline> pipeline_;
  MachineId machine_ = 0;
  uint64_t rounds_ = 0;

  std::string path() const { return *folder_ / "pool.db"; }
  std::string history() const { return *folder_ / "history"; }

  void start() {
    stop();
    store_ = std::make_unique<SqlStore>(path());
    event_files_ = std::make_unique<EventFiles>(path(), history(), files_);
    history_ = std::make_unique<EventHistory>(settings_, *event_files_, clock_.utc_us());
    pipeline_ = std::make_unique<Pipeline>(policies_, *store_, clock_, Pipeline::Listener{});
    pipeline_->start();
  }
  void stop() {
    if (pipeline_) pipeline_->stop();
    pipeline_.reset();
    history_.reset();
    event_files_.reset();
    store_.reset();
  }
  void move() { history_->move_events(*pipeline_); }
  void apply(const Event& event) {
    pipeline_->perform([&](Turn& turn) { turn.apply(event); });
  }

  // A job of somebody's starts, saves, ends or is evicted; another one waits.
  void play(int count) {
    if (machine_ == 0) {
      apply(BatchOpened{"ann"});
      apply(MachineJoined{0, "curly", "linux", "x86_64", 2, 2, 1 << 30, 1 << 30});
      machine_ = 1;
    }
    for (int i = 0; i < count; ++i, ++rounds_) {
      clock_.advance_ms(700);
      apply(MachineReported{machine_, rounds_ % 7 != 3, 1 << 30, 1 << 30});
      pipeline_->perform([&](Turn& turn) {
        const auto user = rounds_ % 3 == 0 ? "bob" : "ann";
        Submitted event{1, user, "desk" + std::to_string(rounds_ % 2), {{}}};
        event.jobs.front().count = 1 + rounds_ % 4;
        turn.apply(event);
        const auto view = turn.pool().machine(machine_);
        if (view->running.empty()) return;
        const AttemptKey key = view->running.front();
        turn.apply(AttemptStarted{key, machine_});
        turn.apply(CheckpointStored{key, machine_, 1 + rounds_, 10});
        if (rounds_ % 5 == 4) return;
        turn.apply(AttemptEnded{key, machine_, rounds_ % 4 ? EndReason::kDone : EndReason::kOwner,
                                "", 5000, 1000, 6'000'000});
      });
    }
  }

  Books books_now() {
    std::vector<std::string> damage;
    return Books(store_->load(&damage));
  }
  // Every file can be replayed, and leads to the next one; the last one to what is stored now.
  void check_history(size_t count) {
    const auto files = event_files_->list();
    CPPUNIT_ASSERT_EQUAL(count, files.size());
    for (size_t i = 0; i < count; ++i) {
      const Replay played = replay(files[i].path);
      CPPUNIT_ASSERT_EQUAL(std::string(), played.stopped);
      CPPUNIT_ASSERT_EQUAL(files[i].begins, played.from);
      const Books next = i + 1 < count ? books_at_head(files[i + 1].path) : books_now();
      CPPUNIT_ASSERT_EQUAL_MESSAGE(files[i].path, std::string(), played.end.difference(next));
    }
  }

  static std::string query(const std::string& database, const std::string& statements) {
    sqlite3* handle = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open(database.c_str(), &handle));
    std::string found;
    const auto add = [](void* to, int count, char** values, char**) {
      for (int i = 0; i < count; ++i)
        *static_cast<std::string*>(to) += std::string(values[i] ? values[i] : "null") + "|";
      return 0;
    };
    const int code = sqlite3_exec(handle, statements.c_str(), add, &found, nullptr);
    const std::string error = sqlite3_errmsg(handle);
    sqlite3_close(handle);
    CPPUNIT_ASSERT_EQUAL_MESSAGE(error, SQLITE_OK, code);
    return found;
  }
  std::string newest() { return event_files_->newest()->path; }

 public:
  void setUp() override {
    folder_ = std::make_unique<TemporaryFolder>();
    settings_ = {};
    settings_.most_bytes = 1ull << 40;
    settings_.move_at = 1;
    policies_ = {};
    machine_ = rounds_ = 0;
    start();
  }
  void tearDown() override { stop(); }

  void each_file_leads_to_the_next() {
    play(20);
    move();
    check_history(1);
    play(30);
    move();
    check_history(1);
    // A day passes, then another one in which nothing is moved.
    clock_.advance_ms(kDayMs);
    play(10);
    move();
    check_history(2);
    clock_.advance_ms(kDayMs);
    play(10);
    clock_.advance_ms(kDayMs);
    move();
    check_history(3);
    // A restart, and one with events that have not been moved.
    clock_.advance_ms(1200 * kSecondMs);
    start();
    play(10);
    move();
    check_history(4);
    play(10);
    clock_.advance_ms(kDayMs);
    start();
    play(10);
    move();
    check_history(5);
    // The events are in the files only, but for the newest.
    CPPUNIT_ASSERT_EQUAL(std::string("1|"), query(path(), "select count(*) from events"));
  }

  void a_young_file_goes_on_after_a_start() {
    play(5);
    move();
    start();
    play(5);
    move();
    check_history(1);
  }

  // Of the settings at a start; of an administrator; then those of the settings again.
  void other_policies_take_over() {
    const auto policy = [&] { return books_now().policy.value(); };
    play(5);
    move();
    policies_.policies.job_policy = "fifo";
    start();
    play(10);
    CPPUNIT_ASSERT_EQUAL(std::string("fifo"), policy().choice.job_policy);
    apply(PolicySet{{.job_policy = "umol", .charge_all = true}, "root"});
    play(10);
    policies_.policies.job_policy = "random";
    start();
    CPPUNIT_ASSERT_EQUAL(std::string("umol"), policy().choice.job_policy);
    play(10);
    move();
    check_history(1);
    clock_.advance_ms(kDayMs);
    apply(PolicySet{policies_.policies, ""});
    play(10);
    move();
    check_history(2);
    CPPUNIT_ASSERT((PolicyChoice(policies_.policies) == policy().choice));
  }

  void another_lease_ends_a_replay() {
    play(5);
    move();
    policies_.policies.lease *= 2;
    start();
    play(5);
    move();
    const Replay played = replay(newest());
    CPPUNIT_ASSERT(played.events > 5);
    CPPUNIT_ASSERT(played.stopped.ends_with(
        "the server was started with a different lease, tick, pause, default_shares or accounts"));
    clock_.advance_ms(kDayMs);
    move();
    CPPUNIT_ASSERT_EQUAL(std::string(), replay(newest()).stopped);
  }

  void few_events_wait() {
    settings_.move_at = 1'000'000;
    start();
    play(5);
    move();
    const std::string only_first = query(newest(), "select count(*) from events");
    CPPUNIT_ASSERT_EQUAL(std::string("1|"), only_first);
    clock_.advance_ms(11 * 60 * kSecondMs);
    move();
    check_history(1);
  }

  // Without records from which they could be replayed.
  void events_of_an_older_version_are_dropped() {
    play(5);
    stop();
    std::filesystem::remove_all(history());
    start();
    move();
    check_history(1);
    CPPUNIT_ASSERT_EQUAL(std::string("1|"), query(path(), "select count(*) from events"));
  }

  // After each step, as if the server had been killed: rows are copied, and not deleted.
  void a_crash_loses_and_repeats_nothing() {
    play(5);
    move();
    play(5);
    event_files_->copy_events(0);
    CPPUNIT_ASSERT_EQUAL(std::string("1|"), query(path(), "select count(*) > 5 from events"));
    start();
    play(5);
    event_files_->copy_events(0);
    event_files_->copy_events(0);
    play(1);
    move();
    check_history(1);
    CPPUNIT_ASSERT_EQUAL(std::string("1|"), query(path(), "select count(*) from events"));
    // A file that was not finished.
    std::ofstream(history() + "/events.new") << "half a file";
    clock_.advance_ms(kDayMs);
    move();
    check_history(2);
    CPPUNIT_ASSERT(!files_.exists(history() + "/events.new"));
  }

  // Each step on the disk fails once while a new file begins.
  void a_failure_leaves_events_in_the_database() {
    play(5);
    move();
    size_t count = 1;
    bool failed = true;
    for (uint64_t failing = 0; failed; ++failing) {
      CPPUNIT_ASSERT(failing < 100);
      clock_.advance_ms(kDayMs);
      play(2);
      files_.fail_at(failing, EIO);
      const uint64_t before = files_.steps();
      move();
      failed = files_.steps() > before + failing;
      files_.fail_at(1'000'000, EIO);
      CPPUNIT_ASSERT(!event_files_->holds());
      play(2);
      move();
      count = event_files_->list().size();
      check_history(count);
    }
    CPPUNIT_ASSERT(count > 5);
  }

  // As when the table was damaged and set aside.
  void missing_events_begin_a_new_file() {
    play(5);
    move();
    play(5);
    query(path(), "delete from events");
    play(5);
    move();
    CPPUNIT_ASSERT_EQUAL(size_t{2}, event_files_->list().size());
    play(5);
    move();
    const Replay played = replay(newest());
    CPPUNIT_ASSERT_EQUAL(std::string(), played.stopped);
    CPPUNIT_ASSERT_EQUAL(std::string(), played.end.difference(books_now()));
    // One that is missing among those that wait.
    play(5);
    query(path(), "delete from events where number = (select min(number) + 2 from events)");
    move();
    CPPUNIT_ASSERT(replay(newest()).stopped.starts_with("events are missing after number "));
  }

  // The newest file cannot be read, or not be written.
  void a_damaged_file_stops_nothing() {
    play(5);
    move();
    const std::string first = newest();
    std::ofstream(first, std::ios::binary) << std::string(100'000, '\0');
    play(5);
    move();
    CPPUNIT_ASSERT_EQUAL(size_t{2}, event_files_->list().size());
    const std::string second = newest();
    query(second,
          "create trigger refuse before insert on events begin select raise(abort, 'no'); "
          "end");
    play(5);
    for (int i = 0; i < 4; ++i) move();
    CPPUNIT_ASSERT_EQUAL(size_t{3}, event_files_->list().size());
    play(5);
    move();
    const Replay played = replay(newest());
    CPPUNIT_ASSERT_EQUAL(std::string(), played.stopped);
    CPPUNIT_ASSERT_EQUAL(std::string(), played.end.difference(books_now()));
    CPPUNIT_ASSERT_EQUAL(std::string("1|"), query(path(), "select count(*) from events"));
  }

  void old_and_large_files_go() {
    settings_.keep = 3 * kDayMs * 1000;
    start();
    for (int day = 0; day < 6; ++day) {
      play(3);
      move();
      clock_.advance_ms(kDayMs);
    }
    // Of three days, and the file with the last events before these.
    CPPUNIT_ASSERT_EQUAL(size_t{4}, event_files_->list().size());
    const auto all = event_files_->list();
    settings_ = {.most_bytes = all[2].bytes + all[3].bytes, .move_at = 1};
    start();
    move();
    CPPUNIT_ASSERT_EQUAL(size_t{2}, event_files_->list().size());
    settings_.most_bytes = 1;
    start();
    move();
    check_history(1);
    settings_ = {.most_bytes = 1ull << 40, .largest_file = 1, .move_at = 1};
    start();
    for (int i = 0; i < 3; ++i) {
      play(1);
      move();
    }
    check_history(4);
  }

  void damage_is_named() {
    play(20);
    move();
    clock_.advance_ms(kDayMs);
    move();
    const auto all = event_files_->list();
    const std::string file = all[0].path, next = all[1].path;
    const std::string whole = files_.read_file(file, 1 << 30);
    const auto put = [&](const std::string& bytes) {
      std::ofstream(file, std::ios::binary) << bytes;
    };
    query(file, "update events set kind = 99 where number = 10");
    CPPUNIT_ASSERT(replay(file).stopped.starts_with("an event is damaged: "));
    CPPUNIT_ASSERT_EQUAL(uint64_t{9}, replay(file).events);
    put(whole);
    query(file, "delete from events where number = 10");
    CPPUNIT_ASSERT_EQUAL(std::string("events are missing after number 9"), replay(file).stopped);
    put(whole);
    // Each change of what the events did is noticed in the next file.
    query(file, "delete from events where number = (select max(number) - 1 from events)");
    query(file,
          "update events set number = number - 1 where number = (select max(number) from "
          "events)");
    CPPUNIT_ASSERT(!replay(file).end.difference(books_at_head(next)).empty());
    put(whole);
    query(file, "update pool set version = 6");
    CPPUNIT_ASSERT_THROW(replay(file), StoreError);
    put(whole.substr(0, 100));
    CPPUNIT_ASSERT_THROW(replay(file), StoreError);
    put("no database");
    CPPUNIT_ASSERT_THROW(books_at_head(file), StoreError);
    put(whole);
    CPPUNIT_ASSERT_EQUAL(std::string(), replay(file).end.difference(books_at_head(next)));
  }

  void many_events_are_moved_in_slices() {
    move();
    for (int i = 0; i < 12; ++i)
      pipeline_->perform([&](Turn& turn) {
        for (int k = 0; k < 1000; ++k) turn.apply(SharesSet{"ann", 1.0 + k});
      });
    const EventFiles::Copied copied = event_files_->copy_events(0);
    CPPUNIT_ASSERT(copied.more);
    const int before = std::stoi(query(path(), "select count(*) from events"));
    pipeline_->perform([&](Turn& turn) { turn.changes().forget_events = 7000; });
    const int left = std::stoi(query(path(), "select count(*) from events"));
    CPPUNIT_ASSERT_EQUAL(before - static_cast<int>(EventFiles::kAtOnce), left);
    move();
    check_history(1);
  }

  // Deleting many large ones at once would hold up the committer.
  void large_events_are_moved_in_smaller_slices() {
    move();
    const int before = std::stoi(query(path(), "select max(number) from events"));
    for (int i = 0; i < 5; ++i)
      pipeline_->perform([&](Turn& turn) {
        turn.apply(JobsHeld{{{1, 1}}, {}, "ann", std::string(i == 4 ? 3'000'000 : 400'000, 'x')});
      });
    for (const int moved : {2, 4, 5}) {
      const EventFiles::Copied copied = event_files_->copy_events(0);
      CPPUNIT_ASSERT_EQUAL(static_cast<uint64_t>(before + moved), copied.last);
      CPPUNIT_ASSERT_EQUAL(moved < 5, copied.more);
    }
    move();
    check_history(1);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(EventHistoryTest);
}  // namespace
}  // namespace sublet::server
