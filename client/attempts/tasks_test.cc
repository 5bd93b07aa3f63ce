#include "client/attempts/tasks.h"

#include <cppunit/extensions/HelperMacros.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/testing/temporary_folder.h"
#include "client/machine/disk_usage.h"
#include "client/testing/memory_server.h"

namespace sublet::client {
namespace {

// Throws unexpected exceptions, and notes what is synced.
class StrangeFiles : public Files {
 public:
  void after(FileStep step, const std::string& path, const std::string&) override {
    if (step != FileStep::sync) return;
    std::lock_guard lock(mutex);
    synced.push_back(path);
  }
  std::vector<std::string> paths() const {
    std::lock_guard lock(mutex);
    return synced;
  }
  mutable std::mutex mutex;
  std::vector<std::string> synced;
  bool exists(const std::string& path) const override {
    if (surprises-- > 0) throw std::logic_error("a surprise");
    return Files::exists(path);
  }
  mutable std::atomic<int> surprises{0};
};

class AttemptTasksTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AttemptTasksTest);
  CPPUNIT_TEST(one_may_be_started_at_once);
  CPPUNIT_TEST(without_its_shepherd_a_machine_is_in_trouble);
  CPPUNIT_TEST(a_surprise_costs_no_attempt_its_end);
  CPPUNIT_TEST(whom_its_shepherd_has_passed_over_is_started_again_once);
  CPPUNIT_TEST(who_has_begun_or_leaves_is_not_started_again);
  CPPUNIT_TEST(its_slot_is_free_before_it_is_removed);
  CPPUNIT_TEST(local_work_waits_for_no_upload);
  CPPUNIT_TEST(removed_at_one_stroke);
  CPPUNIT_TEST(many_files_are_removed);
  CPPUNIT_TEST(what_an_earlier_client_discarded_is_removed);
  CPPUNIT_TEST(who_leaves_for_the_disk_makes_room_without_the_server);
  CPPUNIT_TEST(who_saved_nothing_gets_no_allowance_the_next_time);
  CPPUNIT_TEST(uploads_hold_up_no_slot);
  CPPUNIT_TEST(who_is_stopped_while_staging_leaves_no_file_behind);
  CPPUNIT_TEST(an_end_that_waits_is_synced);
  CPPUNIT_TEST(an_end_that_is_known_is_not);
  CPPUNIT_TEST(who_left_nothing_waits_for_no_upload);
  CPPUNIT_TEST(who_left_little_waits_for_nobody);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder state_;
  StrangeFiles files_;
  MemoryServer server_;
  PublicPresence presence_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string happened_;
  protocol::EndCode end_ = protocol::kEndNone;
  std::function<void(const WorkPtr&)> starting_;
  std::unique_ptr<Workers> workers_, starts_, uploads_, local_;
  Pace pace_{1, presence_.away};
  std::unique_ptr<OrderDesk> desk_;
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<InputCache> cache_;
  std::unique_ptr<AttemptTasks> tasks_;

 public:
  void setUp() override {
    presence_.away = true;
    DeskSettings desk;
    desk.state_folder = state_.path();
    desk.slot_uids = {-1};
    desk.facts.slots = 1;
    desk_ = std::make_unique<OrderDesk>(
        desk, files_, presence_, [](auto, bool) {}, [](auto) {});
    workers_ = std::make_unique<Workers>(1);
    starts_ = std::make_unique<Workers>(1);
    uploads_ = std::make_unique<Workers>(1, 19);
    local_ = std::make_unique<Workers>(1);
    reporter_ = std::make_unique<Reporter>(
        server_, [](const AttemptName&, uint32_t, bool) {}, [](AttemptWork&) {},
        [] { return false; });
    auto say = [this](const char* what) { return [this, what](const WorkPtr&) { tell(what); }; };
    TaskEvents events;
    events.starting = [this](const WorkPtr& w) {
      if (starting_) starting_(w);
      tell("starting");
    };
    events.ended = say("ended");
    events.vanished = say("vanished");
    events.still_alive = say("alive");
    events.removed = say("removed");
    events.cleared = say("cleared");
    events.handed_in = say("handed in");
    events.staging_failed = [say](const WorkPtr& w, protocol::EndCode, const std::string&) {
      say("not staged")(w);
    };
    events.shepherd_failed = [this](const WorkPtr&, protocol::EndCode end, const std::string&) {
      end_ = end;
      tell("failed");
    };
    cache_ = std::make_unique<InputCache>(files_, CacheSettings{state_ / "cache", 8 << 20, 0});
    tasks_ = std::make_unique<AttemptTasks>(
        TaskThreads{*local_, *workers_, *starts_, *uploads_, *workers_, pace_}, files_, server_,
        *desk_, *reporter_, *cache_, JobSettings(), state_ / "no-such-shepherd",
        std::vector<std::string>(), events);
  }
  void tearDown() override {
    workers_->stop();
    starts_->stop();
    uploads_->stop();
    local_->stop();
    reporter_->stop();
  }

 private:
  void tell(const std::string& what) {
    std::lock_guard lock(mutex_);
    happened_ += what + ";";
    changed_.notify_all();
  }
  static bool until(const std::function<bool()>& condition) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    return condition();
  }
  bool comes(const std::string& what) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return happened_ == what; });
  }
  WorkPtr work(size_t arguments = 0, std::vector<InputFile> inputs = {}) {
    auto what = std::make_shared<Assignment>();
    what->name = {7, 1};
    what->job.program = "true";
    what->job.arguments.assign(arguments, "x");
    what->job.inputs = std::move(inputs);
    std::string folder = attempt_folder(state_.path(), what->name);
    make_attempt_folder(files_, folder, -1, -1);
    return std::make_shared<AttemptWork>(what, folder);
  }

  static AttemptExit exit_with(int64_t outcome, int64_t code) {
    AttemptExit exit;
    exit.facts.job = 7;
    exit.facts.attempt = 1;
    exit.facts.outcome = outcome;
    exit.facts.code = code;
    exit.boot_id = boot_id();
    return exit;
  }

  // By the thread that asks: it is told first that it starts, and what became of that afterwards.
  void one_may_be_started_at_once() {
    const auto prepared = work();
    const auto here = std::this_thread::get_id();
    std::thread::id started_by;
    starting_ = [&](const WorkPtr& w) {
      started_by = std::this_thread::get_id();
      CPPUNIT_ASSERT_EQUAL(prepared->folder, w->folder);
      CPPUNIT_ASSERT(!files_.exists(w->folder + "/" SUBLET_ORDER_FILE));
    };
    tasks_->start_at_once(prepared->assignment);
    CPPUNIT_ASSERT_EQUAL(std::string("starting;failed;"), happened_);
    CPPUNIT_ASSERT(here == started_by);
    CPPUNIT_ASSERT(files_.exists(prepared->folder + "/" SUBLET_ORDER_FILE));
    CPPUNIT_ASSERT_EQUAL(protocol::kEndLost, end_);
  }

  void without_its_shepherd_a_machine_is_in_trouble() {
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, desk_->may_run({}).answer);
    // More arguments than an order may have: the job's fault.
    tasks_->perform(work(5000), protocol::kStart, protocol::kEndNone, "");
    CPPUNIT_ASSERT(comes("failed;"));
    CPPUNIT_ASSERT_EQUAL(protocol::kEndStart, end_);
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, desk_->may_run({}).answer);
    happened_.clear();
    // After these failures the pause is longer than this test.
    for (int i = 0; i < 6; ++i) desk_->machine_failed("an earlier one");
    tasks_->perform(work(), protocol::kStart, protocol::kEndNone, "");
    CPPUNIT_ASSERT(comes("failed;"));
    CPPUNIT_ASSERT_EQUAL(protocol::kEndLost, end_);
    RunAnswer answer = desk_->may_run({});
    CPPUNIT_ASSERT_EQUAL(kRunError, answer.answer);
    CPPUNIT_ASSERT(answer.reason.find("no-such-shepherd") != std::string::npos);
  }

  void a_surprise_costs_no_attempt_its_end() {
    files_.surprises = 2;
    tasks_->check_end(work());
    CPPUNIT_ASSERT(comes("vanished;"));
  }

  // Here there is no shepherd's program: it is tried, and then the attempt is lost.
  void whom_its_shepherd_has_passed_over_is_started_again_once() {
    auto w = work();
    files_.write_atomic(w->folder + "/order", "x");
    tasks_->check_end(w);
    CPPUNIT_ASSERT(comes("vanished;"));
    CPPUNIT_ASSERT_EQUAL(1, w->restarts.load());
    CPPUNIT_ASSERT(files_.read_file(w->folder + "/order", 1 << 20) != "x");
    tasks_->check_end(w);
    CPPUNIT_ASSERT(comes("vanished;vanished;"));
    CPPUNIT_ASSERT_EQUAL(1, w->restarts.load());
  }

  void who_has_begun_or_leaves_is_not_started_again() {
    auto w = work();
    files_.write_atomic(w->folder + "/order", "x");
    w->leave_reason = SUBLET_LEAVE_OWNER;
    tasks_->check_end(w);
    CPPUNIT_ASSERT(comes("vanished;"));
    w->leave_reason = SUBLET_LEAVE_NONE;
    files_.write_atomic(w->folder + "/record", "x");
    tasks_->check_end(w);
    CPPUNIT_ASSERT(comes("vanished;vanished;"));
    CPPUNIT_ASSERT_EQUAL(0, w->restarts.load());
    CPPUNIT_ASSERT_EQUAL(std::string("x"), files_.read_file(w->folder + "/order", 1 << 20));
  }

  // It has ended, and its removal waits: nobody knows whether the next one runs already.
  void its_slot_is_free_before_it_is_removed() {
    const auto w = work();
    RunOrder order;
    order.what = *w->assignment;
    order.lease_ms = 3'600'000;
    order.decided_us = system_clock().utc_us();
    desk_->set_session("key");
    desk_->set_server_clock(order.decided_us, system_clock().boot_ns());
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, desk_->run("key", {order})[0].answer);
    CPPUNIT_ASSERT_EQUAL(0u, desk_->slots_free());
    tasks_->release(w);
    CPPUNIT_ASSERT(until([&] { return desk_->slots_free() == 1; }));
    CPPUNIT_ASSERT(w->released);
    CPPUNIT_ASSERT(files_.exists(w->folder));
  }

  void local_work_waits_for_no_upload() {
    std::promise<void> server_answers;
    workers_->post([&] { server_answers.get_future().wait(); });
    auto w = work();
    tasks_->check_end(w);
    CPPUNIT_ASSERT(comes("vanished;"));
    tasks_->perform(w, protocol::kKillTenant | protocol::kRemove, protocol::kEndNone, "");
    CPPUNIT_ASSERT(comes("vanished;cleared;"));
    server_answers.set_value();
    CPPUNIT_ASSERT(comes("vanished;cleared;removed;"));
  }

  void removed_at_one_stroke() {
    auto w = work();
    system_files().write_atomic(w->folder + "/order", "x");
    tasks_->perform(w, protocol::kRemove, protocol::kEndNone, "");
    CPPUNIT_ASSERT(comes("removed;"));
    CPPUNIT_ASSERT(!files_.exists(w->folder));
    CPPUNIT_ASSERT(files_.list(state_ / "trash").empty());
  }

  // By another process; here there is no shepherd's program, so by this one after all.
  void many_files_are_removed() {
    auto w = work();
    constexpr int kMany = 1000;
    for (int i = 0; i < kMany; ++i)
      system_files().write_atomic(w->folder + "/work/" + std::to_string(i), "", 0600);
    tasks_->perform(w, protocol::kRemove, protocol::kEndNone, "");
    CPPUNIT_ASSERT(comes("removed;"));
    CPPUNIT_ASSERT(files_.list(state_ / "trash").empty());
  }

  void what_an_earlier_client_discarded_is_removed() {
    constexpr int kMany = 300;
    const std::string left = state_ / "trash/1.1.99";
    system_files().make_folders(left + "/work");
    for (int i = 0; i < kMany; ++i)
      system_files().write_atomic(left + "/work/" + std::to_string(i), "", 0600);
    system_files().make_folders(state_ / "trash/2.1.99");
    tasks_->empty_trash();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!files_.list(state_ / "trash").empty()) {
      CPPUNIT_ASSERT(std::chrono::steady_clock::now() < deadline);
      std::this_thread::yield();
    }
  }

  void who_leaves_for_the_disk_makes_room_without_the_server() {
    server_.away_at = 0;
    auto w = work();
    AttemptExit exit = exit_with(SUBLET_OUTCOME_SIGNALLED, SIGTERM);
    exit.facts.asked = 1;
    exit.facts.reason = SUBLET_LEAVE_DRAIN;
    files_.write_atomic(w->folder + "/exit", print_exit(exit));
    files_.write_atomic(w->folder + "/checkpoint/checkpoint", "saved");
    files_.write_atomic(w->folder + "/work/large", "x");
    w->reported_generation = 1;
    w->short_free = 1;
    w->short_used = 2;
    w->short_of = Shortage::Of::kDisk;
    tasks_->perform(w, protocol::kHandIn, protocol::kEndNone, "");
    CPPUNIT_ASSERT(until([&] { return !files_.exists(w->folder + "/work"); }));
    CPPUNIT_ASSERT(files_.exists(w->folder + "/checkpoint/checkpoint"));
    // The end has to wait: the assignment is written again, and synced this time.
    CPPUNIT_ASSERT(until([&] { return files_.exists(w->folder + "/" + kAssignmentFile); }));
  }

  void who_saved_nothing_gets_no_allowance_the_next_time() {
    auto w = work();
    std::string error;
    auto allowance = [&] {
      files_.remove_file(w->folder + "/order");
      tasks_->perform(w, protocol::kStart, protocol::kEndNone, "");
      // There is no shepherd here, but its order is written.
      CPPUNIT_ASSERT(until([&] { return files_.exists(w->folder + "/order"); }));
      return read_order(files_, w->folder, &error)->cpu_allowance_ms;
    };
    CPPUNIT_ASSERT(allowance() > 0);
    AttemptExit exit = exit_with(SUBLET_OUTCOME_SIGNALLED, SIGKILL);
    exit.facts.asked = exit.facts.killed = exit.facts.unsaved = 1;
    exit.facts.reason = SUBLET_LEAVE_OWNER;
    files_.write_atomic(w->folder + "/exit", print_exit(exit));
    tasks_->perform(w, protocol::kHandIn, protocol::kEndNone, "");
    CPPUNIT_ASSERT(until([&] { return !desk_->may_be_lifted(7); }));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, allowance());
  }

  // A slow upload delays neither a start nor the release of a slot.
  void uploads_hold_up_no_slot() {
    std::promise<void> server_answers;
    uploads_->post([&] { server_answers.get_future().wait(); });
    auto w = work();
    desk_->adopt(*w->assignment, true);
    uint32_t taken = desk_->slots_free();
    tasks_->perform(w, protocol::kStart, protocol::kEndNone, "");
    CPPUNIT_ASSERT(comes("failed;"));
    tasks_->perform(w, protocol::kHandIn, protocol::kEndNone, "");
    CPPUNIT_ASSERT(until([&] { return desk_->slots_free() == taken + 1; }));
    server_answers.set_value();
  }

  WorkPtr ended(int64_t printed) {
    auto w = work();
    AttemptExit exit = exit_with(SUBLET_OUTCOME_EXITED, 0);
    exit.facts.stdout_bytes = printed;
    files_.write_atomic(w->folder + "/exit", print_exit(exit), 0600, Files::Outlives::kProcess);
    files_.write_atomic(w->folder + "/work/out", "x", 0600, Files::Outlives::kProcess);
    return w;
  }

  // The server does not answer, nor does it hang up: the upload waits.
  void an_end_that_waits_is_synced() {
    std::promise<void> server_answers;
    uploads_->post([&] { server_answers.get_future().wait(); });
    auto w = ended(1);
    files_.synced.clear();
    tasks_->perform(w, protocol::kHandIn, protocol::kEndNone, "");
    CPPUNIT_ASSERT(until([&] { return files_.exists(w->folder + "/" + kSyncedFile); }));
    // The mark comes last, by way of a temporary file.
    const std::vector<std::string> synced = files_.paths();
    for (const char* name : {"/work/out", "/exit", "/.assignment.new"}) {
      const auto at = std::ranges::find(synced, w->folder + name);
      CPPUNIT_ASSERT_MESSAGE(name, at != synced.end() && at + 1 != synced.end());
    }
    server_answers.set_value();
  }

  void an_end_that_is_known_is_not() {
    auto w = ended(1);
    w->over = true;
    files_.synced.clear();
    std::promise<void> server_answers;
    uploads_->post([&] { server_answers.get_future().wait(); });
    tasks_->perform(w, protocol::kHandIn, protocol::kEndNone, "");
    std::promise<void> later;  // than what falls due now
    workers_->post([&] { later.set_value(); }, 100);
    later.get_future().wait();
    CPPUNIT_ASSERT(files_.paths().empty());
    CPPUNIT_ASSERT(!files_.exists(w->folder + "/" + kSyncedFile));
    server_answers.set_value();
  }

  void who_left_nothing_waits_for_no_upload() {
    std::promise<void> server_answers;
    uploads_->post([&] { server_answers.get_future().wait(); });
    tasks_->perform(ended(0), protocol::kHandIn, protocol::kEndNone, "");
    CPPUNIT_ASSERT(comes("handed in;"));
    happened_.clear();
    tasks_->perform(ended(1), protocol::kHandIn, protocol::kEndNone, "");
    auto other = std::make_shared<std::promise<void>>();
    starts_->post([other] { other->set_value(); });
    other->get_future().wait();
    CPPUNIT_ASSERT_EQUAL(std::string(), happened_);
    server_answers.set_value();
    CPPUNIT_ASSERT(comes("handed in;"));
  }

  // By the thread that frees its slot; unless it takes longer to look through its folder.
  void who_left_little_waits_for_nobody() {
    std::promise<void> go_on;
    workers_->post([&] { go_on.get_future().wait(); });
    auto w = ended(0);
    tasks_->perform(w, protocol::kHandIn, protocol::kEndNone, "");
    CPPUNIT_ASSERT(comes("handed in;"));
    CPPUNIT_ASSERT_EQUAL(disk_usage(w->folder), w->end.disk_peak);
    happened_.clear();
    w = ended(0);
    for (int i = 0; i < 50; ++i)
      files_.write_atomic(w->folder + "/work/" + std::to_string(i), "x", 0600,
                          Files::Outlives::kProcess);
    tasks_->perform(w, protocol::kHandIn, protocol::kEndNone, "");
    std::promise<void> later;
    starts_->post([&] { later.set_value(); });
    later.get_future().wait();
    CPPUNIT_ASSERT_EQUAL(std::string(), happened_);
    go_on.set_value();
    CPPUNIT_ASSERT(comes("handed in;"));
    CPPUNIT_ASSERT_EQUAL(disk_usage(w->folder), w->end.disk_peak);
  }

  // Even before its end is reported.
  void who_is_stopped_while_staging_leaves_no_file_behind() {
    server_.inputs = {{1, std::string(2 * kChunkLimit, 'x')}};
    auto w = work(0, {{1, "data", false}});
    size_t parts = 0;
    server_.before_get = [&](const FilePlace&) {
      parts = files_.list(state_ / "cache").size();
      w->stop = true;
    };
    tasks_->perform(w, protocol::kStage, protocol::kEndNone, "");
    CPPUNIT_ASSERT(comes("not staged;"));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, parts);
    CPPUNIT_ASSERT(files_.list(state_ / "cache").empty());
    CPPUNIT_ASSERT(!w->incoming);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(AttemptTasksTest);

}  // namespace
}  // namespace sublet::client
