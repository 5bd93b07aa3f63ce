// The commit pipeline, driven by one thread in virtual time with a store that
// fails on demand, and once with its own thread.
#include "server/commit/pipeline.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sqlite3.h>

#include <chrono>
#include <functional>
#include <future>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/testing/temporary_folder.h"
#include "scheduling/events/event_codec.h"
#include "server/refusal_testing.h"
#include "server/store/sql_store.h"

namespace sublet::server {
namespace {

using namespace scheduling;

class FailingStore : public Store {
 public:
  explicit FailingStore(const std::string& path) : real(path) {}
  Snapshot load(std::vector<std::string>* damage) override { return real.load(damage); }
  void commit(const Changes& changes) override {
    if (during) std::exchange(during, {})();
    if (std::exchange(lacks_memory, false)) throw std::bad_alloc();
    if (fail > 0) {
      --fail;
      throw StoreError("no room");
    }
    real.commit(changes);
    ++commits;
    if (seems_to_fail > 0) {
      --seems_to_fail;
      throw StoreError("an error after the pages were written");
    }
  }
  std::optional<RequestRow> find_request(const std::string& key) override {
    return real.find_request(key);
  }
  SqlStore real;
  int fail = 0;
  int seems_to_fail = 0;  // these commits are on disk nevertheless
  int commits = 0;
  bool lacks_memory = false;     // the next commit
  std::function<void()> during;  // called once, by the next commit
};

Submitted::Job any_job() { return {}; }

class PipelineTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PipelineTest);
  CPPUNIT_TEST(nothing_is_told_before_the_commit);
  CPPUNIT_TEST(a_failed_commit_changes_nothing_and_heals);
  CPPUNIT_TEST(a_refusal_reaches_its_caller_only);
  CPPUNIT_TEST(a_refusal_from_what_was_rolled_back_is_not_told);
  CPPUNIT_TEST(a_piece_that_fails_half_way_leaves_nothing);
  CPPUNIT_TEST(a_failed_allocation_is_no_full_disk);
  CPPUNIT_TEST(a_full_disk_does_not_make_it_spin);
  CPPUNIT_TEST(many_pieces_share_a_transaction);
  CPPUNIT_TEST(the_tick_comes_by_time);
  CPPUNIT_TEST(local_time_comes_with_start_and_tick);
  CPPUNIT_TEST(time_never_runs_backwards);
  CPPUNIT_TEST(repeats_are_recognised);
  CPPUNIT_TEST(a_repeat_of_what_was_done_after_all);
  CPPUNIT_TEST(nothing_is_forgotten_by_empty);
  CPPUNIT_TEST(a_stop_is_one_commit);
  CPPUNIT_TEST(history_replays_to_the_same_state);
  CPPUNIT_TEST(a_restart_goes_on_where_it_was);
  CPPUNIT_TEST(usage_decays_while_the_server_is_down);
  CPPUNIT_TEST(threads_wait_for_their_own_commit);
  CPPUNIT_TEST(a_stopping_pipeline_refuses);
  CPPUNIT_TEST(what_nobody_waits_for_comes_in_its_turn);
  CPPUNIT_TEST(alone_in_its_transaction);
  CPPUNIT_TEST(a_question_does_not_wait_for_its_turn);
  CPPUNIT_TEST(an_answer_shows_only_what_is_committed);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  ManualClock clock_{1'700'000'000'000'000, 1'000'000'000};
  std::unique_ptr<FailingStore> store_;
  std::unique_ptr<Pipeline> pipeline_;
  std::vector<Decision> decisions_;
  std::vector<std::string> failures_;
  int failed_allocations_ = 0;

  std::string path() const { return folder_.path() + "/pool.db"; }

 public:
  void setUp() override { open(); }

 private:
  void open() {
    pipeline_.reset();
    store_ = std::make_unique<FailingStore>(path());
    Pipeline::Listener listener;
    listener.decided = [this](const auto& d) {
      decisions_.insert(decisions_.end(), d.begin(), d.end());
    };
    listener.failed = [this](const std::string& why) { failures_.push_back(why); };
    listener.short_of_memory = [this] { ++failed_allocations_; };
    pipeline_ = std::make_unique<Pipeline>(PipelineSettings{}, *store_, clock_, listener);
    store_->commits = 0;
  }

  MachineId add_machine() {
    MachineId id = 0;
    pipeline_->post([&](Turn& t) {
      id = t.apply(MachineJoined{0, "curly", "linux", "x86_64", 1, 1, 1 << 30, 1 << 30})
               .answer.machine;
      t.apply(Renewed{id, true, {}});
      t.apply(MachineReported{id, true, 1 << 30, 1 << 30});
    });
    pipeline_->run_once();
    return id;
  }

  void post_submit(std::function<void(bool)> done = {}, JobId* id = nullptr) {
    pipeline_->post(
        [id](Turn& t) {
          const JobId first = t.apply(Submitted{1, "ann", "desk", {any_job()}}).answer.first_job;
          if (id) *id = first;
        },
        std::move(done));
  }

  void nothing_is_told_before_the_commit() {
    add_machine();
    store_->commits = 0;
    bool done = false;
    post_submit([&](bool ok) {
      CPPUNIT_ASSERT(ok);
      CPPUNIT_ASSERT_EQUAL(1, store_->commits);
      done = true;
    });
    CPPUNIT_ASSERT(decisions_.empty());
    pipeline_->run_once();
    CPPUNIT_ASSERT(done);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, decisions_.size());
    CPPUNIT_ASSERT(std::holds_alternative<StartAttempt>(decisions_[0]));
  }

  // Only the one whose work it was is refused, or all of its group if the brain may have changed.
  void a_failed_allocation_is_no_full_disk() {
    enum Where { kBefore, kAfter, kStore };
    for (const Where where : {kBefore, kAfter, kStore}) {
      const auto fails = [&](Turn& t) {
        if (where == kStore) store_->lacks_memory = true;
        if (where == kStore || where == kAfter) t.apply(Submitted{1, "ann", "desk", {any_job()}});
        if (where != kStore) throw std::bad_alloc();
      };
      open();
      failed_allocations_ = 0;
      bool other = false, own = true;
      post_submit([&](bool ok) { other = ok; });
      pipeline_->post(fails, [&](bool ok) { own = ok; });
      pipeline_->run_once();
      CPPUNIT_ASSERT(!own);
      CPPUNIT_ASSERT_EQUAL(where == kBefore, other);
      clock_.advance_ms(2000);
      auto code = std::async(std::launch::async,
                             [&] { return testing::code([&] { pipeline_->perform(fails); }); });
      while (code.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
        pipeline_->run_once();
      CPPUNIT_ASSERT_EQUAL(std::string("server.memory"), code.get());
      CPPUNIT_ASSERT_EQUAL(2, failed_allocations_);
      CPPUNIT_ASSERT(failures_.empty());
      clock_.advance_ms(2000);
      pipeline_->run_once();  // rebuilds the brain
      uint64_t waiting = 0;
      pipeline_->ask([&](const Pool& pool, Micros) { waiting = pool.waiting(); });
      CPPUNIT_ASSERT_EQUAL(uint64_t{1}, waiting);  // that of the first round
    }
  }

  // Without the committer, in virtual time.
  void a_question_does_not_wait_for_its_turn() {
    post_submit();
    pipeline_->run_once();
    post_submit();  // has had no turn yet
    clock_.advance_ms(5);
    const Micros before = pipeline_->next_due();
    uint64_t waiting = 0;
    Micros now = 0;
    pipeline_->ask([&](const Pool& pool, Micros at) {
      waiting = pool.waiting();
      now = at;
    });
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, waiting);
    CPPUNIT_ASSERT_EQUAL(clock_.utc_us(), now);
    CPPUNIT_ASSERT_EQUAL(before, pipeline_->next_due());
  }

  // It may be asked while the committer writes, and is answered afterwards: again if that failed.
  void an_answer_shows_only_what_is_committed() {
    pipeline_->start();
    pipeline_->perform([](Turn& t) { t.apply(BatchOpened()); });
    for (const bool fails : {false, true}) {
      std::promise<void> asked;
      std::future<uint64_t> answer;
      bool was_asked = false;
      const auto ask = [&] {
        uint64_t waiting = 0, times = 0;
        pipeline_->ask([&](const Pool& pool, Micros) {
          waiting = pool.waiting();
          if (times++ == 0) asked.set_value();
        });
        return waiting;
      };
      store_->fail = fails;
      store_->during = [&] {
        answer = std::async(std::launch::async, ask);
        const auto seen = asked.get_future().wait_for(std::chrono::seconds(30));
        was_asked = seen == std::future_status::ready;
      };
      const auto submit = [&] {
        pipeline_->perform([](Turn& t) { t.apply(Submitted{1, "ann", "desk", {any_job()}}); });
      };
      if (fails) {
        CPPUNIT_ASSERT_THROW(submit(), Refusal);
        CPPUNIT_ASSERT_EQUAL(uint64_t{1}, answer.get());  // as it is on disk
      } else {
        submit();
        CPPUNIT_ASSERT_EQUAL(uint64_t{1}, answer.get());
      }
      CPPUNIT_ASSERT(was_asked);
    }
  }

  void what_nobody_waits_for_comes_in_its_turn() {
    pipeline_->start();
    std::vector<int> order;
    std::promise<void> ran;
    pipeline_->post_with_next([&](Turn&) {
      order.push_back(1);
      ran.set_value();
    });
    ran.get_future().wait();  // though nothing else comes
    pipeline_->post_with_next([&](Turn&) { order.push_back(2); });
    pipeline_->perform([&](Turn&) { order.push_back(3); });
    pipeline_->post_with_next([&](Turn&) { order.push_back(4); });
    pipeline_->stop();
    CPPUNIT_ASSERT((order == std::vector<int>{1, 2, 3, 4}));
  }

  // Work before and after it has transactions of its own, and nothing that is due is added.
  void alone_in_its_transaction() {
    pipeline_->start();
    std::vector<uint64_t> counts;
    const auto count = [&](Turn& turn) { counts.push_back(turn.changes().events.size()); };
    const auto open_batch = [](Turn& turn) { turn.apply(BatchOpened()); };
    // The others wait while the committer is at work on the first.
    std::promise<void> queued;
    pipeline_->post([&](Turn&) { queued.get_future().wait(); });
    for (int i = 0; i < 3; ++i) pipeline_->post(open_batch);
    size_t committed_events = 0;
    bool committed = false;
    std::thread alone([&] {
      pipeline_->perform_alone(
          [&](Turn& turn) {
            count(turn);
            turn.apply(SharesSet{"ann", 2});
          },
          [&] {
            committed = true;
            committed_events = events().size();
          });
    });
    pipeline_->post(open_batch);
    clock_.advance_ms(600'000);  // a tick is due
    queued.set_value();
    alone.join();
    pipeline_->perform(count);
    CPPUNIT_ASSERT(committed);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, counts.at(0));
    CPPUNIT_ASSERT(committed_events > 0);
    const auto all = events();
    CPPUNIT_ASSERT(std::holds_alternative<SharesSet>(all.at(committed_events - 1).second));
  }

  void a_failed_commit_changes_nothing_and_heals() {
    add_machine();
    store_->fail = 1;
    std::optional<bool> first;
    JobId id = 0;
    post_submit([&](bool ok) { first = ok; }, &id);
    pipeline_->run_once();
    CPPUNIT_ASSERT(first == false);
    CPPUNIT_ASSERT(decisions_.empty());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, failures_.size());
    clock_.advance_ms(1000);
    std::optional<bool> second;
    JobId again = 0;
    post_submit([&](bool ok) { second = ok; }, &again);
    pipeline_->run_once();
    CPPUNIT_ASSERT(second == true);
    CPPUNIT_ASSERT_EQUAL(id, again);  // the first submission left no trace
  }

  void a_refusal_reaches_its_caller_only() {
    pipeline_->start();
    std::thread other([this] {
      for (int i = 0; i < 50; ++i)
        pipeline_->perform([](Turn& t) { t.apply(Submitted{1, "bob", "desk", {any_job()}}); });
    });
    for (int i = 0; i < 50; ++i)
      CPPUNIT_ASSERT_THROW(
          pipeline_->perform([](Turn&) { throw Refusal(Refusal::Kind::kConflict, "x", "no"); }),
          Refusal);
    other.join();
    pipeline_->stop();
  }

  void a_refusal_from_what_was_rolled_back_is_not_told() {
    pipeline_->run_once();  // the first tick, so that the failing commit is the refused one's
    store_->fail = 1;
    pipeline_->start();
    std::string code;
    try {
      pipeline_->perform([](Turn& t) {
        t.remember("k", "d", "a");
        throw Refusal(Refusal::Kind::kConflict, "because.of.the.group", "no");
      });
    } catch (const Refusal& r) {
      code = r.code;
    }
    pipeline_->stop();
    CPPUNIT_ASSERT_EQUAL(std::string("server.disk"), code);
  }

  void a_piece_that_fails_half_way_leaves_nothing() {
    std::optional<bool> bad, other;
    pipeline_->post(
        [](Turn& t) {
          t.apply(Submitted{1, "eve", "desk", {any_job(), any_job()}});
          throw std::bad_alloc();
        },
        [&](bool ok) { bad = ok; });
    pipeline_->run_once();
    CPPUNIT_ASSERT(bad == false);
    clock_.advance_ms(1000);
    uint64_t waiting = 99;
    pipeline_->post([&](Turn& t) { waiting = t.pool().waiting(); }, [&](bool ok) { other = ok; });
    pipeline_->run_once();
    CPPUNIT_ASSERT(other == true);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, waiting);
    std::vector<std::string> damage;
    CPPUNIT_ASSERT(store_->load(&damage).jobs.empty());
  }

  void a_full_disk_does_not_make_it_spin() {
    store_->fail = 1000;
    post_submit();
    pipeline_->run_once();
    for (int i = 0; i < 100; ++i) pipeline_->run_once();
    CPPUNIT_ASSERT(store_->fail >= 998);  // one commit, one reload
    CPPUNIT_ASSERT(failures_.size() <= 2);
  }

  void many_pieces_share_a_transaction() {
    int done = 0;
    for (int i = 0; i < 500; ++i) post_submit([&](bool ok) { done += ok; });
    pipeline_->run_once();
    CPPUNIT_ASSERT_EQUAL(500, done);
    CPPUNIT_ASSERT_EQUAL(1, store_->commits);
  }

  void the_tick_comes_by_time() {
    pipeline_->run_once();
    Micros before = 0, after = 0;
    auto last = [](Micros* to) { return [to](Turn& t) { *to = t.pool().counters().last_tick; }; };
    pipeline_->post(last(&before));
    pipeline_->run_once();
    clock_.advance_ms(59'000);
    pipeline_->run_once();
    pipeline_->post(last(&after));
    pipeline_->run_once();
    CPPUNIT_ASSERT_EQUAL(before, after);
    clock_.advance_ms(2'000);
    pipeline_->run_once();
    pipeline_->post(last(&after));
    pipeline_->run_once();
    CPPUNIT_ASSERT(after > before);
  }

  void local_time_comes_with_start_and_tick() {
    const auto offset = [&] {
      int32_t offset = -1;
      pipeline_->post([&](Turn& t) { offset = t.pool().counters().utc_offset; });
      pipeline_->run_once();
      return offset;
    };
    const auto stored = [&] {
      std::vector<std::string> damage;
      return store_->load(&damage).pool.utc_offset;
    };
    CPPUNIT_ASSERT_EQUAL(0, offset());
    clock_.set_utc_offset_s(3600);
    CPPUNIT_ASSERT_EQUAL(0, offset());
    clock_.advance_ms(61'000);
    pipeline_->run_once();
    CPPUNIT_ASSERT_EQUAL(3600, offset());
    CPPUNIT_ASSERT_EQUAL(3600, stored());
    clock_.set_utc_offset_s(-7200);
    open();
    CPPUNIT_ASSERT_EQUAL(-7200, offset());
    CPPUNIT_ASSERT_EQUAL(-7200, stored());
  }

  void time_never_runs_backwards() {
    Micros first = 0, second = 0, third = 0;
    auto now = [](Micros* to) { return [to](Turn& t) { *to = t.now(); }; };
    pipeline_->post(now(&first));
    pipeline_->run_once();
    clock_.set_utc_us(clock_.utc_us() - 3600ll * 1'000'000);
    clock_.advance_ms(5);
    pipeline_->post(now(&second));
    pipeline_->run_once();
    CPPUNIT_ASSERT_EQUAL(first + 5000, second);
    // The last thing stored is an event without records.
    const MachineId machine = add_machine();
    clock_.advance_ms(50'000);
    pipeline_->post([&](Turn& t) {
      second = t.now();
      t.apply(MachineReported{machine, true, 1 << 30, 1 << 30});
    });
    pipeline_->run_once();
    open();  // a restart with the clock set back
    pipeline_->post(now(&third));
    pipeline_->run_once();
    CPPUNIT_ASSERT(third >= second);
  }

  void repeats_are_recognised() {
    auto once = [this](const std::string& digest) {
      std::string answer;
      bool refused = false;
      pipeline_->post([&](Turn& t) {
        try {
          if (auto old = t.answered("key", digest)) {
            answer = *old;
            return;
          }
        } catch (const Refusal&) {
          refused = true;
          return;
        }
        t.remember("key", digest, "first answer");
      });
      pipeline_->run_once();
      return refused ? "refused" : answer;
    };
    CPPUNIT_ASSERT_EQUAL(std::string(), once("d"));
    CPPUNIT_ASSERT_EQUAL(std::string("first answer"), once("d"));
    CPPUNIT_ASSERT_EQUAL(std::string("refused"), once("other"));
    open();
    CPPUNIT_ASSERT_EQUAL(std::string("first answer"), once("d"));
  }

  // "Perhaps done; repeat it with the same id."
  void a_repeat_of_what_was_done_after_all() {
    pipeline_->run_once();  // the first tick
    std::optional<bool> answered;
    const auto submit = [&] {
      std::string answer;
      pipeline_->post(
          [&](Turn& t) {
            if (const auto old = t.answered("key", "digest")) {
              answer = *old;
              return;
            }
            const Submitted event{1, "ann", "desk", {any_job()}};
            answer = std::to_string(t.apply(event).answer.first_job);
            t.remember("key", "digest", answer);
          },
          [&](bool ok) { answered = ok; });
      pipeline_->run_once();
      return answer;
    };
    store_->seems_to_fail = 1;
    const std::string first = submit();
    CPPUNIT_ASSERT(answered == false);
    clock_.advance_ms(1000);
    const std::string again = submit();
    CPPUNIT_ASSERT(answered == true);
    CPPUNIT_ASSERT_EQUAL(first, again);
    std::vector<std::string> damage;
    CPPUNIT_ASSERT_EQUAL(size_t{1}, store_->load(&damage).jobs.size());
  }

  void nothing_is_forgotten_by_empty() {
    const std::vector<std::function<void(Changes&)>> each = {
        [](Changes& c) { c.jobs[1]; },
        [](Changes& c) {
          c.attempts[{1, 1}];
        },
        [](Changes& c) { c.machines[1]; },
        [](Changes& c) { c.users["a"]; },
        [](Changes& c) { c.uses.emplace_back(); },
        [](Changes& c) { c.changes.emplace_back(); },
        [](Changes& c) { c.stops[1]; },
        [](Changes& c) { c.relations[1]; },
        [](Changes& c) { c.has_pool = true; },
        [](Changes& c) { c.batches[1]; },
        [](Changes& c) { c.dropped_batches.push_back(1); },
        [](Changes& c) { c.dropped_parts.push_back(1); },
        [](Changes& c) { c.parts.emplace_back(); },
        [](Changes& c) { c.specs.emplace_back(); },
        [](Changes& c) { c.feeds.emplace_back(); },
        [](Changes& c) { c.files[1]; },
        [](Changes& c) { c.dropped_files.push_back(1); },
        [](Changes& c) { c.contents[1]; },
        [](Changes& c) { c.loosened_contents.push_back(1); },
        [](Changes& c) { c.removed_outputs[1] = 1; },
        [](Changes& c) { c.counted_files.emplace_back(); },
        [](Changes& c) { c.credentials[1]; },
        [](Changes& c) { c.members[1]; },
        [](Changes& c) { c.invitations["a"]; },
        [](Changes& c) { c.dropped_invitations.emplace_back("a"); },
        [](Changes& c) { c.quotas["a"]; },
        [](Changes& c) { c.dropped_quotas.emplace_back("a"); },
        [](Changes& c) { c.ends.emplace_back(); },
        [](Changes& c) { c.spent.emplace_back(); },
        [](Changes& c) { c.requests["a"]; },
        [](Changes& c) { c.events.emplace_back(); },
        [](Changes& c) { c.forget_requests = 1; },
        [](Changes& c) { c.forget_changes = 1; },
        [](Changes& c) { c.forget_events = 1; },
        [](Changes& c) { c.forget_history.uses_until = 1; },
        [](Changes& c) { c.forget_history.spent_before = 1; },
        [](Changes& c) { c.moved_jobs.jobs.push_back(1); },
    };
    CPPUNIT_ASSERT(Changes().empty());
    for (size_t i = 0; i < each.size(); ++i) {
      Changes changes;
      each[i](changes);
      CPPUNIT_ASSERT_MESSAGE(std::to_string(i), !changes.empty());
    }
  }

  double usage_on_disk() {
    std::vector<std::string> damage;
    for (const UserRecord& user : store_->load(&damage).users)
      if (user.name == "ann") return user.usage;
    return 0;
  }

  // Once, however long that was.
  void usage_decays_while_the_server_is_down() {
    Changes changes;
    changes.users["ann"].name = "ann";
    changes.users["ann"].shares = 1;
    changes.users["ann"].usage = 1000;
    store_->commit(changes);
    open();
    pipeline_->run_once();
    const double before = usage_on_disk();
    CPPUNIT_ASSERT(before > 900);
    clock_.advance_ms(2 * 24 * 3600 * 1000);  // two half-lives
    open();
    pipeline_->run_once();
    CPPUNIT_ASSERT_DOUBLES_EQUAL(before / 4, usage_on_disk(), before / 100);
  }

  // Wherever a server crashes between a job's end and the removal of the other jobs, both
  // are on disk or neither.
  void a_stop_is_one_commit() {
    const MachineId machine = add_machine();
    Submitted::Job array;
    array.count = 100;
    JobId first = 0;
    pipeline_->post([&](Turn& t) {
      const BatchId batch = t.apply(BatchOpened{"ann"}).answer.batch;
      first = t.apply(Submitted{batch, "ann", "desk", {array}, {0, 0, "key"}}).answer.first_job;
    });
    pipeline_->run_once();
    const auto end = [&] {
      pipeline_->post([&](Turn& t) {
        t.apply(AttemptEnded{{first, 1}, machine, EndReason::kDone, "", 0, -1, 0, "key"});
      });
      pipeline_->run_once();
    };
    const auto live_on_disk = [&] {
      std::vector<std::string> damage;
      uint64_t jobs = 0;
      for (const auto& job : store_->load(&damage).jobs)
        if (!is_final(job.state)) jobs += job.count;
      return jobs;
    };
    store_->fail = 1;
    end();
    CPPUNIT_ASSERT_EQUAL(uint64_t{100}, live_on_disk());
    open();  // the process died
    end();
    CPPUNIT_ASSERT_EQUAL(1, store_->commits);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, live_on_disk());
  }

  // Rule 2: events are stored together with the records they caused, so that history can
  // be replayed.
  void history_replays_to_the_same_state() {
    const MachineId machine = add_machine();
    for (int i = 0; i < 20; ++i) {
      clock_.advance_ms(1000);
      post_submit();
      pipeline_->run_once();
      if (decisions_.empty()) continue;
      const AttemptKey key = std::get<StartAttempt>(decisions_.back()).key;
      decisions_.clear();
      pipeline_->post([&](Turn& t) {
        t.apply(AttemptStarted{key, machine});
        t.apply(AttemptEnded{key, machine, i % 2 ? EndReason::kDone : EndReason::kOwner, "", 5000,
                             1000, 6000});
      });
      pipeline_->run_once();
    }
    std::vector<std::string> damage;
    const Snapshot stored = store_->load(&damage);
    Pool replayed{Parameters{}};
    replayed.restore({});
    for (const auto& [at, event] : events()) replayed.apply(event, at);
    CPPUNIT_ASSERT_EQUAL(stored.pool.next_job, replayed.counters().next_job);
    CPPUNIT_ASSERT_EQUAL(stored.pool.next_change, replayed.counters().next_change);
    CPPUNIT_ASSERT(!stored.jobs.empty());
    for (const auto& j : stored.jobs) {
      const auto again = replayed.job(j.id);
      CPPUNIT_ASSERT(again.has_value());
      CPPUNIT_ASSERT(again->state == j.state);
      CPPUNIT_ASSERT_EQUAL(j.share_priority, again->share_priority);
      CPPUNIT_ASSERT_EQUAL(j.reason, again->reason);
    }
  }

  // The events table on disk.
  std::vector<std::pair<Micros, Event>> events() const {
    std::vector<std::pair<Micros, Event>> result;
    sqlite3* db = nullptr;
    sqlite3_stmt* rows = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open(path().c_str(), &db));
    sqlite3_prepare_v2(db, "select at, kind, body from events order by number", -1, &rows, nullptr);
    while (sqlite3_step(rows) == SQLITE_ROW) {
      const auto* body = static_cast<const char*>(sqlite3_column_blob(rows, 2));
      result.emplace_back(sqlite3_column_int64(rows, 0),
                          scheduling::decode_event(
                              sqlite3_column_int(rows, 1),
                              std::string_view(body, body ? sqlite3_column_bytes(rows, 2) : 0)));
    }
    sqlite3_finalize(rows);
    sqlite3_close(db);
    return result;
  }

  void a_restart_goes_on_where_it_was() {
    JobId id = 0;
    post_submit({}, &id);
    pipeline_->run_once();
    open();
    bool waiting = false;
    pipeline_->post([&](Turn& t) {
      waiting = t.pool().job(id) && t.pool().job(id)->state == JobState::kWaiting;
    });
    pipeline_->run_once();
    CPPUNIT_ASSERT(waiting);
    add_machine();
    CPPUNIT_ASSERT_EQUAL(size_t{1}, decisions_.size());
  }

  void threads_wait_for_their_own_commit() {
    pipeline_->start();
    std::vector<std::thread> threads;
    std::mutex mutex;
    std::set<JobId> ids;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) {
          JobId id = 0;
          pipeline_->perform([&](Turn& turn) {
            id = turn.apply(Submitted{1, "ann", "desk", {any_job()}}).answer.first_job;
          });
          std::lock_guard lock(mutex);
          ids.insert(id);
        }
      });
    for (auto& t : threads) t.join();
    CPPUNIT_ASSERT_EQUAL(size_t{400}, ids.size());
    pipeline_->stop();
    std::vector<std::string> damage;
    CPPUNIT_ASSERT_EQUAL(size_t{400}, store_->load(&damage).jobs.size());
  }

  void a_stopping_pipeline_refuses() {
    pipeline_->start();
    pipeline_->stop();
    CPPUNIT_ASSERT_THROW(pipeline_->perform([](Turn&) {}), Refusal);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(PipelineTest);

}  // namespace
}  // namespace sublet::server
