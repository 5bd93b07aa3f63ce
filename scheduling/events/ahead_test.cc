// Attempts ahead: beyond the places of a machine whose jobs run shortly.
#include <cppunit/extensions/HelperMacros.h>

#include "protocol/lease.h"
#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

constexpr Micros kMs = 1000;

class Rig {
 public:
  explicit Rig(uint32_t slots = 1, uint32_t ahead = 3, const Parameters& parameters = Parameters())
      : t(parameters) {
    curly = join("curly", slots, ahead);
  }
  MachineId join(const std::string& name, uint32_t slots, uint32_t ahead) {
    const MachineId machine = t.join(name, slots, false);
    report(machine, true, ahead);
    return machine;
  }
  void report(MachineId machine, bool away, uint32_t ahead) {
    t.apply(MachineReported{machine, away, 0, 100ull << 30, 0, 0, false, ahead});
  }
  std::vector<JobId> there(bool ahead) const {
    const MachineView view = *t.pool.machine(curly);
    std::vector<JobId> jobs;
    for (const AttemptKey& key : ahead ? view.ahead : view.running) jobs.push_back(key.job);
    return jobs;
  }
  std::vector<JobId> ahead() const { return there(true); }
  // Its client holds these, of which some wait there for a slot.
  void renew(const std::vector<JobId>& held, const std::vector<JobId>& waiting) {
    Renewed event{
        curly, false, {}, MachineReported{curly, true, 0, 100ull << 30, 0, 0, false, 3}, true};
    for (const JobId job : held) {
      const bool runs = t.pool.attempt(job)->started != 0;
      Renewed::Status status{t.key(job), runs ? AttemptState::kRunning : AttemptState::kStaging};
      status.waits = std::count(waiting.begin(), waiting.end(), job) > 0;
      event.attempts.push_back(status);
    }
    t.apply(event);
  }
  // The job's attempt ends by itself, having run so long.
  void run(JobId job, Micros wall = 2 * kMs) {
    if (t.pool.attempt(job)->started == 0) t.start(job);
    t.pass(wall);
    t.end(job, EndReason::kDone, wall);
  }

  TestPool t;
  MachineId curly = 0;
};

using Jobs = std::vector<JobId>;

Submitted::Job asking(uint64_t memory, const std::string& resources = "") {
  Submitted::Job job;
  job.needs.memory = memory;
  job.needs.resources = resources;
  return job;
}

class AheadTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AheadTest);
  CPPUNIT_TEST(behind_short_jobs_only);
  CPPUNIT_TEST(no_more_than_end_soon);
  CPPUNIT_TEST(what_is_fetched_for_long_is_not_short);
  CPPUNIT_TEST(to_whom_announces_it_only);
  CPPUNIT_TEST(each_takes_the_place_of_one_that_ends);
  CPPUNIT_TEST(one_that_begins_before_the_end_is_known);
  CPPUNIT_TEST(nobody_waits_behind_a_long_one);
  CPPUNIT_TEST(who_is_called_back_too_late_goes_on);
  CPPUNIT_TEST(who_does_not_come_is_called_back_again);
  CPPUNIT_TEST(who_is_kept_in_vain_runs_elsewhere);
  CPPUNIT_TEST(who_has_a_slot_is_not_called_back);
  CPPUNIT_TEST(who_has_none_is_whatever_the_server_thinks);
  CPPUNIT_TEST(after_a_restart_all_that_may_wait_are_called_back);
  CPPUNIT_TEST(who_waited_in_vain_has_lost_nothing);
  CPPUNIT_TEST(a_turn_that_came_to_nothing_is_had_again);
  CPPUNIT_TEST(and_the_circle_goes_on_where_it_was);
  CPPUNIT_TEST(nor_who_comes_back_when_the_owner_returns);
  CPPUNIT_TEST(a_refusal_is_held_against_nobody);
  CPPUNIT_TEST(who_is_lost_unstarted_is_no_failure);
  CPPUNIT_TEST(who_needs_more_is_not_overtaken);
  CPPUNIT_TEST(nothing_that_the_pool_lets_is_held_ahead);
  CPPUNIT_TEST(who_has_to_wait_keeps_nobody_from_it);
  CPPUNIT_TEST(none_beside_a_limit_of_the_pool);
  CPPUNIT_TEST(a_drained_machine_gives_them_back);
  CPPUNIT_TEST(can_be_turned_off);
  CPPUNIT_TEST(their_turns_are_those_of_their_placing);
  CPPUNIT_TEST(who_has_a_place_and_does_not_begin_is_called_back);
  CPPUNIT_TEST(a_restart_takes_nothing_from_what_runs);
  CPPUNIT_TEST(a_wide_job_is_not_kept_waiting);
  CPPUNIT_TEST(they_count_for_their_user);
  CPPUNIT_TEST(restored_from_what_is_stored);
  CPPUNIT_TEST(other_settings_at_a_start_find_what_is_stored);
  CPPUNIT_TEST(the_decision_says_so);
  CPPUNIT_TEST_SUITE_END();

 public:
  void behind_short_jobs_only() {
    Rig r;
    r.t.submit("ann", 20);
    CPPUNIT_ASSERT(r.ahead().empty());
    r.run(1);
    CPPUNIT_ASSERT(r.ahead() == Jobs{3});
    r.run(2);
    CPPUNIT_ASSERT((r.ahead() == Jobs{4, 5}));
    r.run(3);
    CPPUNIT_ASSERT((r.ahead() == Jobs{5, 6, 7}));
    r.run(4);
    CPPUNIT_ASSERT((r.ahead() == Jobs{6, 7, 8}));
    r.run(5, kSecond);
    r.run(6, kSecond);
    r.run(7, kSecond);
    r.run(8, kSecond);
    CPPUNIT_ASSERT(r.ahead().empty());
    CPPUNIT_ASSERT((r.there(false) == Jobs{9}));
  }

  // Together they hold a slot for as long as a short job may.
  void no_more_than_end_soon() {
    Rig r;
    r.report(r.curly, true, 16);
    r.t.submit("ann", 100);
    JobId job = 0;
    const auto run = [&](int times, Micros wall) {
      for (int i = 0; i < times; ++i) r.run(++job, wall);
      return r.ahead().size();
    };
    CPPUNIT_ASSERT_EQUAL(size_t{16}, run(20, 2 * kMs));
    CPPUNIT_ASSERT_EQUAL(size_t{15}, run(1, 20 * kMs));  // those that are there stay
    CPPUNIT_ASSERT_EQUAL(size_t{2}, run(20, 20 * kMs));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, run(2, 50 * kMs));
    CPPUNIT_ASSERT_EQUAL(size_t{6}, run(5, 0));
    CPPUNIT_ASSERT_EQUAL(size_t{16}, run(20, 3 * kMs));
  }

  void what_is_fetched_for_long_is_not_short() {
    Rig r;
    r.t.submit("ann", 9);
    const auto fetched = [&](JobId job, Micros staging) {
      AttemptEnded end{r.t.key(job), r.curly, EndReason::kDone, "", 0, -1, 2 * kMs, "", true};
      end.staging = staging;
      r.t.apply(end);
    };
    fetched(1, 49 * kMs);
    CPPUNIT_ASSERT(r.ahead().empty());
    fetched(2, 48 * kMs);
    CPPUNIT_ASSERT(r.ahead() == Jobs{4});
    fetched(3, std::numeric_limits<Micros>::max());
    fetched(4, kSecond);
    CPPUNIT_ASSERT(r.ahead().empty());
  }

  void to_whom_announces_it_only() {
    Rig r(1, 0);
    r.t.submit("ann", 5);
    r.run(1);
    r.run(2);
    CPPUNIT_ASSERT(r.ahead().empty());
  }

  void each_takes_the_place_of_one_that_ends() {
    Rig r(2);
    r.t.submit("ann", 20, asking(1ull << 30));
    r.run(1);
    r.run(2);
    CPPUNIT_ASSERT((r.there(false) == Jobs{3, 4, 5, 6}));
    CPPUNIT_ASSERT((r.ahead() == Jobs{5, 6}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2} << 30, r.t.pool.machine(r.curly)->reserved.memory);
    r.run(4);
    CPPUNIT_ASSERT((r.ahead() == Jobs{6, 7, 8}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2} << 30, r.t.pool.machine(r.curly)->reserved.memory);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, r.t.pool.machine(r.curly)->reserved.cores);
  }

  // Its machine knows of the end first.
  void one_that_begins_before_the_end_is_known() {
    Rig r(2, 2);
    r.t.submit("ann", 20);
    r.run(1);
    r.run(2);
    CPPUNIT_ASSERT((r.ahead() == Jobs{5, 6}));
    r.t.start(6);
    r.t.end(3, EndReason::kDone, kMs);
    CPPUNIT_ASSERT((r.ahead() == Jobs{5, 7}));
    r.t.start(7);
    r.t.end(7, EndReason::kDone, kMs);
    CPPUNIT_ASSERT((r.ahead() == Jobs{5, 8}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, r.t.pool.machine(r.curly)->reserved.cores);
    r.t.end(4, EndReason::kDone, kMs);
    r.t.end(6, EndReason::kDone, kMs);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, r.t.pool.machine(r.curly)->reserved.cores);
  }

  void nobody_waits_behind_a_long_one() {
    Rig r;
    r.t.submit("ann", 3);
    r.run(1);
    r.t.start(2);
    CPPUNIT_ASSERT(r.ahead() == Jobs{3});
    const Micros placed = r.t.now;
    const MachineId moe = r.join("moe", 1, 0);
    while (r.t.last.decisions.empty()) CPPUNIT_ASSERT(r.t.to_next_deadline());
    CPPUNIT_ASSERT_EQUAL(100 * kMs, r.t.now - placed);
    const auto& leave = std::get<TellToLeave>(r.t.last.decisions.at(0));
    CPPUNIT_ASSERT((leave.key == AttemptKey{3, 1}));
    CPPUNIT_ASSERT(leave.reason == LeaveReason::kUnstarted);
    CPPUNIT_ASSERT(r.t.pool.attempt(3)->state == AttemptState::kOrdered);
    const std::string why = r.t.pool.attempt(3)->reason.text();
    CPPUNIT_ASSERT(why.ends_with("; ahead on machine curly, whose jobs end at once"));
    r.t.end(3, EndReason::kRefused);
    CPPUNIT_ASSERT_EQUAL(moe, r.t.machine_of(3));
    // None is placed there until a short one has ended again.
    r.t.submit("ann", 2);
    CPPUNIT_ASSERT(r.ahead().empty());
  }

  // It has begun, and the server did not know.
  void who_is_called_back_too_late_goes_on() {
    Rig r;
    r.t.submit("ann", 3);
    r.run(1);
    r.t.start(2);
    while (r.t.last.decisions.empty()) CPPUNIT_ASSERT(r.t.to_next_deadline());
    r.t.start(3);
    CPPUNIT_ASSERT(r.t.state(3) == JobState::kRunning);
    r.t.end(2, EndReason::kDone, kSecond);
    r.t.end(3, EndReason::kDone, kSecond);
    CPPUNIT_ASSERT(r.t.state(3) == JobState::kDone);
    CPPUNIT_ASSERT_EQUAL(0u, r.t.record(3).evictions);
  }

  // The order was lost, say.
  void who_does_not_come_is_called_back_again() {
    Rig r;
    r.t.submit("ann", 3);
    r.run(1);
    r.t.start(2);
    int calls = 0;
    for (int i = 0; i < 20; ++i) {
      r.t.pass(10 * kSecond);
      r.t.apply(Renewed{r.curly, false, {{r.t.key(2)}, {r.t.key(3), AttemptState::kStaging}}});
      r.t.apply(TimePassed());
      calls += static_cast<int>(r.t.last.decisions.size());
    }
    CPPUNIT_ASSERT_EQUAL(7, calls);  // a lease is 30 s
    r.t.end(2, EndReason::kDone, kSecond);
    CPPUNIT_ASSERT(r.ahead().empty() && r.there(false) == Jobs{3});
  }

  // By a client that neither starts it nor gives it back.
  void who_is_kept_in_vain_runs_elsewhere() {
    Parameters p;
    p.ahead_return = 45 * kSecond;
    Rig r(1, 3, p);
    r.t.submit("ann", 3);
    r.run(1);
    r.t.start(2);
    while (r.t.last.decisions.empty()) CPPUNIT_ASSERT(r.t.to_next_deadline());
    const Micros called = r.t.now;
    const AttemptKey kept = r.t.key(3);
    Micros renewed = 0;
    const MachineId moe = r.join("moe", 1, 0);
    while (r.t.machine_of(3) == r.curly) {
      r.t.pass(5 * kSecond);
      r.renew({2, 3}, {3});
      for (const auto& [key, verdict] : r.t.last.answer.verdicts)
        if (key == kept && verdict == Verdict::kCounts) renewed = r.t.now;
      r.report(moe, true, 0);
      r.t.apply(TimePassed());
      CPPUNIT_ASSERT(r.t.now < called + 120 * kSecond);
    }
    CPPUNIT_ASSERT_EQUAL(called + 40 * kSecond, renewed);
    CPPUNIT_ASSERT(r.t.now >= renewed + protocol::reassign_delay_us(p.lease));
    CPPUNIT_ASSERT_EQUAL(moe, r.t.machine_of(3));
    CPPUNIT_ASSERT_EQUAL(std::string("lost (machine curly neither started it nor gave it back)"),
                         r.t.books.attempts.at(kept).reason.text());
    CPPUNIT_ASSERT(r.t.state(2) == JobState::kRunning);
  }

  // It fetches its files, say.
  void who_has_a_slot_is_not_called_back() {
    Rig r;
    r.t.submit("ann", 3);
    r.run(1);
    r.t.start(2);
    CPPUNIT_ASSERT(r.ahead() == Jobs{3});
    r.renew({2, 3}, {});
    for (int i = 0; i < 9; ++i) {
      r.t.pass(10 * kSecond);
      r.t.apply(TimePassed());
      CPPUNIT_ASSERT(r.t.last.decisions.empty());
      r.renew({2, 3}, {});
    }
  }

  // The machine has got the orders in another order.
  void who_has_none_is_whatever_the_server_thinks() {
    Rig r;
    r.t.submit("ann", 3);
    r.run(1);
    CPPUNIT_ASSERT(r.ahead() == Jobs{3});
    r.renew({2, 3}, {2});
    std::vector<JobId> called;
    while (called.empty()) {
      CPPUNIT_ASSERT(r.t.to_next_deadline() && r.t.now < testing::kStart + kSecond);
      for (const Decision& decision : r.t.last.decisions)
        called.push_back(std::get<TellToLeave>(decision).key.job);
    }
    CPPUNIT_ASSERT(called == Jobs{2});
    r.t.end(2, EndReason::kRefused);
    CPPUNIT_ASSERT_EQUAL(0u, r.t.record(2).refusals);
  }

  // Of a machine that does not say which do.
  void after_a_restart_all_that_may_wait_are_called_back() {
    Rig r;
    r.t.submit("ann", 3);
    r.run(1);
    CPPUNIT_ASSERT((r.there(false) == Jobs{2, 3}));
    r.t.apply(ServerStarted());
    std::vector<JobId> called;
    for (int i = 0; i < 4; ++i) {
      r.t.pass(10 * kSecond);
      r.t.apply(
          Renewed{r.curly,
                  false,
                  {{r.t.key(2), AttemptState::kStaging}, {r.t.key(3), AttemptState::kStaging}}});
      r.t.apply(TimePassed());
      for (const Decision& decision : r.t.last.decisions)
        called.push_back(std::get<TellToLeave>(decision).key.job);
    }
    CPPUNIT_ASSERT((called == Jobs{2, 3}));
  }

  void who_waited_in_vain_has_lost_nothing() {
    Rig r(1, 3, testing::as_in_1998());
    r.t.submit("ann", 4);
    const double priority = r.t.record(3).share_priority;
    r.run(1);
    r.t.start(2);
    while (r.t.last.decisions.empty()) CPPUNIT_ASSERT(r.t.to_next_deadline());
    r.t.end(3, EndReason::kRefused);
    const JobRecord& job = r.t.record(3);
    CPPUNIT_ASSERT(job.state == JobState::kWaiting);
    CPPUNIT_ASSERT_EQUAL(0u, job.evictions);
    CPPUNIT_ASSERT_EQUAL(0u, job.refusals);
    CPPUNIT_ASSERT_EQUAL(Micros{0}, job.not_before);
    CPPUNIT_ASSERT_EQUAL(priority, job.share_priority);
    r.run(2, kSecond);
    CPPUNIT_ASSERT((r.there(false) == Jobs{3}));  // before the one that was behind it
  }

  // Four users with four jobs each, of whom the first had one done; and the last that was placed.
  static JobId take_turns(Rig& r) {
    for (const char* user : {"ann", "bob", "cid", "dan"}) r.t.submit(user, 4, {}, user);
    r.run(1);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, r.ahead().size());
    return r.ahead().front();
  }
  void a_turn_that_came_to_nothing_is_had_again() {
    for (const char* policy : {"round-robin", "umol", "fair-share", "fair-share-1998"}) {
      Parameters p;
      p.job_policy = policy;
      p.turns_by_machine = true;
      Rig r(1, 3, p);
      const JobId job = take_turns(r);
      r.t.end(job, EndReason::kRefused);
      const MachineId moe = r.join("moe", 1, 0);
      CPPUNIT_ASSERT_EQUAL_MESSAGE(policy, moe, r.t.machine_of(job));
      // Once.
      r.join("larry", 1, 0);
      CPPUNIT_ASSERT_EQUAL_MESSAGE(policy, size_t{1}, live_of(r, r.t.record(job).user));
    }
  }
  static size_t live_of(const Rig& r, const std::string& user) {
    return static_cast<size_t>(
        std::count_if(r.t.books.attempts.begin(), r.t.books.attempts.end(), [&](const auto& entry) {
          return entry.second.state != AttemptState::kEnded &&
                 r.t.record(entry.first.job).user == user;
        }));
  }

  void and_the_circle_goes_on_where_it_was() {
    Parameters p;
    p.job_policy = "round-robin";
    Rig r(1, 3, p);
    const JobId cids = take_turns(r);
    CPPUNIT_ASSERT_EQUAL(std::string("cid"), r.t.record(cids).user);
    std::vector<std::string> served;
    const auto serve = [&] {
      r.join("m" + std::to_string(served.size()), 1, 0);
      const auto& start = std::get<StartAttempt>(r.t.last.decisions.at(0));
      served.push_back(r.t.record(start.key.job).user);
    };
    serve();
    r.t.end(cids, EndReason::kRefused);
    for (int i = 0; i < 5; ++i) serve();
    CPPUNIT_ASSERT((served == std::vector<std::string>{"dan", "cid", "ann", "bob", "cid", "dan"}));
  }

  void nor_who_comes_back_when_the_owner_returns() {
    Rig r(1, 2);
    r.t.submit("ann", 6);
    r.run(1);
    r.run(2);
    CPPUNIT_ASSERT((r.there(false) == Jobs{3, 4, 5}));
    r.t.start(3);
    r.report(r.curly, false, 2);
    for (JobId job : {3, 4, 5}) r.t.end(job, EndReason::kOwner);
    CPPUNIT_ASSERT(r.there(false).empty());
    CPPUNIT_ASSERT_EQUAL(1u, r.t.record(3).evictions);
    for (JobId job : {4, 5}) {
      CPPUNIT_ASSERT_EQUAL(0u, r.t.record(job).evictions);
      CPPUNIT_ASSERT_EQUAL(0u, r.t.record(job).vain);
    }
    r.report(r.curly, true, 2);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, r.there(false).size());  // it takes none ahead at first
  }

  void a_refusal_is_held_against_nobody() {
    Rig r(1, 2);
    r.t.submit("ann", 6);
    r.run(1);
    r.run(2);
    for (uint32_t i = 0; i < 5; ++i) {
      if (r.ahead().empty()) break;
      const JobId job = r.ahead().back();
      r.t.apply(OrderAnswered{r.t.key(job), OrderAnswered::Answer::kRefused, "no slot is free"});
      CPPUNIT_ASSERT_EQUAL(0u, r.t.record(job).refusals);
    }
    CPPUNIT_ASSERT(r.ahead().empty());
    r.run(3);
    CPPUNIT_ASSERT((r.there(false) == Jobs{4, 5}));  // it is not paused
  }

  // Its client was killed, and had it in memory only; or its machine is gone, as the one that ran
  // there shows.
  void who_is_lost_unstarted_is_no_failure() {
    for (const bool joins : {true, false}) {
      Rig r(1, 2);
      r.t.submit("ann", 6);
      r.run(1);
      r.run(2);
      CPPUNIT_ASSERT((r.there(false) == Jobs{3, 4, 5}));
      r.t.start(3);
      if (joins) {
        r.t.apply(
            MachineJoined{r.curly, "curly", "linux", "x86_64", 1, 1, 8ull << 30, 100ull << 30});
        r.t.apply(Renewed{r.curly, true, {{r.t.key(3)}}});
      } else {
        r.t.pass(40 * kSecond);
        r.t.apply(TimePassed());
      }
      for (const JobId job : {4, 5})
        CPPUNIT_ASSERT(r.t.books.attempts.at({job, 1}).ended == EndReason::kLost);
      CPPUNIT_ASSERT_EQUAL(joins ? 0u : 1u, r.t.books.machines.at(r.curly).failures.count);
    }
    // It had a slot, and its shepherd vanished.
    Rig r(1, 2);
    r.t.submit("ann", 6);
    r.run(1);
    r.run(2);
    r.t.end(4, EndReason::kLost);
    CPPUNIT_ASSERT_EQUAL(1u, r.t.books.machines.at(r.curly).failures.count);
  }

  // The next one, or none.
  void who_needs_more_is_not_overtaken() {
    Rig r;
    r.t.submit("ann", 2, asking(1ull << 30));
    r.t.submit("ann", 1, asking(2ull << 30));
    r.t.submit("ann", 1, asking(1ull << 30));
    r.run(1);
    CPPUNIT_ASSERT((r.there(false) == Jobs{2}));
    r.run(2);
    CPPUNIT_ASSERT((r.there(false) == Jobs{3, 4}));  // one that needs less
  }

  void nothing_that_the_pool_lets_is_held_ahead() {
    Parameters p;
    p.licences = "ansys=2";
    Rig r(1, 3, p);
    r.t.submit("ann", 2);
    r.t.submit("ann", 1, asking(0, "ansys=1"));
    r.t.submit("ann", 1);
    r.run(1);
    CPPUNIT_ASSERT((r.there(false) == Jobs{2}));
    r.run(2);
    CPPUNIT_ASSERT((r.there(false) == Jobs{3}));  // nor is anything behind one that has some
    Submitted::Job at_night;
    at_night.needs.hours = "00:00-24:00";
    r.t.submit("ann", 1, at_night);
    r.run(3);
    CPPUNIT_ASSERT((r.there(false) == Jobs{4}));
  }

  // For licences.
  void who_has_to_wait_keeps_nobody_from_it() {
    Parameters p;
    p.licences = "ansys=1";
    Rig r(1, 3, p);
    const MachineId moe = r.join("moe", 1, 3);
    r.t.submit("ann", 2, asking(0, "ansys=1"));
    r.t.submit("ann", 3);
    CPPUNIT_ASSERT((r.there(false) == Jobs{1}) && r.t.machine_of(3) == moe);
    r.t.start(1);
    CPPUNIT_ASSERT(r.t.state(2) == JobState::kWaiting);
    r.run(3);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, r.t.pool.machine(moe)->ahead.size());
  }

  // The client knows of its slots only.
  void none_beside_a_limit_of_the_pool() {
    Parameters p;
    p.most_per_machine = "1";
    Rig r(2, 3, p);
    r.t.submit("ann", 9);
    r.run(1);
    r.run(2);
    CPPUNIT_ASSERT((r.there(false) == Jobs{3}));
    PolicyChoice choice = p;
    choice.most_per_machine = "";
    r.t.apply(PolicySet{choice, "root"});
    r.run(3);
    r.run(4);
    CPPUNIT_ASSERT(!r.ahead().empty());
    const size_t held = r.ahead().size();
    choice.most_per_machine = "1";
    r.t.apply(PolicySet{choice, "root"});
    CPPUNIT_ASSERT_EQUAL(held, r.t.last.decisions.size());  // all are called back
  }

  void a_drained_machine_gives_them_back() {
    Rig r;
    r.t.submit("ann", 9);
    r.run(1);
    r.run(2);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, r.ahead().size());
    r.t.apply(MachineDrained{r.curly});
    CPPUNIT_ASSERT_EQUAL(size_t{2}, r.t.last.decisions.size());
    for (const JobId job : r.ahead()) r.t.end(job, EndReason::kRefused);
    r.run(3);
    CPPUNIT_ASSERT(r.there(false).empty());
  }

  void can_be_turned_off() {
    Parameters p;
    p.short_run = 0;
    Rig r(1, 3, p);
    r.t.submit("ann", 5);
    r.run(1, 0);
    CPPUNIT_ASSERT(r.ahead().empty());
  }

  // Placed in one apply, by priority and not by their ids.
  void their_turns_are_those_of_their_placing() {
    Rig r(1, 2);
    Submitted::Job urgent;
    urgent.priority = 5;
    r.t.submit("ann", 6);
    r.run(1);
    r.run(2);
    CPPUNIT_ASSERT((r.ahead() == Jobs{4, 5}));
    for (const JobId job : {5, 4}) r.t.end(job, EndReason::kRefused);
    r.run(3);
    const JobId soon = r.t.submit("ann", 1, urgent);
    r.run(4);
    CPPUNIT_ASSERT_EQUAL(soon, r.there(false).back());
    r.run(soon);
    CPPUNIT_ASSERT((r.there(false) == Jobs{5, 6}));
  }

  // What the server takes for the next one has not begun: another has, and runs for long.
  void who_has_a_place_and_does_not_begin_is_called_back() {
    Rig r(1, 2);
    r.t.submit("ann", 6);
    r.run(1);
    r.run(2);
    CPPUNIT_ASSERT((r.ahead() == Jobs{4, 5}));
    r.t.start(3);
    r.t.end(3, EndReason::kDone, kMs);
    CPPUNIT_ASSERT((r.ahead() == Jobs{5, 6}));
    r.t.start(5);
    std::vector<JobId> called;
    while (std::count(called.begin(), called.end(), JobId{4}) == 0) {
      CPPUNIT_ASSERT(r.t.to_next_deadline() && r.t.now < testing::kStart + kSecond);
      for (const Decision& decision : r.t.last.decisions)
        called.push_back(std::get<TellToLeave>(decision).key.job);
    }
    r.t.end(4, EndReason::kRefused);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, r.t.pool.machine(r.curly)->places_taken());
    CPPUNIT_ASSERT(r.ahead() == Jobs{6});  // the place is that of the one that runs
  }

  // Their licences are in use.
  void a_restart_takes_nothing_from_what_runs() {
    Parameters p;
    p.licences = "ansys=4";
    Rig r(4, 0, p);
    r.t.submit("ann", 6, asking(0, "ansys=1"));
    for (JobId job = 1; job <= 4; ++job) r.t.start(job);
    r.t.apply(MachineJoined{r.curly, "curly", "linux", "x86_64", 4, 2, 8ull << 30, 100ull << 30});
    r.t.apply(ServerStarted());
    CPPUNIT_ASSERT(r.ahead().empty());
    r.join("moe", 4, 0);
    CPPUNIT_ASSERT(r.t.state(5) == JobState::kWaiting);
  }

  void a_wide_job_is_not_kept_waiting() {
    Parameters p;
    p.wide_wait = kSecond;
    Rig r(2, 3, p);
    Submitted::Job wide;
    wide.needs.cores = 2;
    r.t.submit("ann", 200);
    r.run(1);
    r.run(2);
    const JobId two = r.t.submit("bob", 1, wide);
    CPPUNIT_ASSERT(!r.ahead().empty());
    while (r.t.state(two) == JobState::kWaiting) {
      CPPUNIT_ASSERT(r.t.now < testing::kStart + 3 * kSecond);
      r.run(r.there(false).front(), 10 * kMs);
    }
  }

  void they_count_for_their_user() {
    Parameters p;
    p.most_per_user = 2;
    Rig r(1, 3, p);
    r.t.submit("ann", 9);
    r.run(1);
    r.run(2);
    r.run(3);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, r.there(false).size());
  }

  // Whoever was started, or decided first, has a place.
  void restored_from_what_is_stored() {
    Rig r(1, 2);
    r.t.submit("ann", 6);
    r.run(1);
    r.run(2);
    Pool restored{Parameters()};
    CPPUNIT_ASSERT(restored.restore(r.t.books.snapshot()).empty());
    restored.apply(ServerStarted(), r.t.now);
    r.t.apply(ServerStarted());
    for (const Pool* pool : {&restored, &r.t.pool}) {
      const MachineView view = *pool->machine(r.curly);
      CPPUNIT_ASSERT_EQUAL(size_t{3}, view.running.size());
      CPPUNIT_ASSERT_EQUAL(uint64_t{1}, view.reserved.cores);
      CPPUNIT_ASSERT(view.ahead == (std::vector<AttemptKey>{{4, 1}, {5, 1}}));
    }
    // Its machine registers again, and names them before long.
    r.t.pass(kSecond);
    r.t.apply(TimePassed());
    CPPUNIT_ASSERT(r.t.last.decisions.empty());
    CPPUNIT_ASSERT(r.t.pool.attempt(4)->state != AttemptState::kLeaving);
  }

  // A brain that went on, as in a replay, tells its machines what a restored one tells them.
  void other_settings_at_a_start_find_what_is_stored() {
    Rig r(2, 2);
    r.t.apply(PolicySet{Parameters(), ""});  // as each server does at its first start
    r.t.submit("ann", 20);
    r.run(1);
    r.run(2);
    CPPUNIT_ASSERT((r.ahead() == Jobs{5, 6}));
    Parameters settings;
    settings.most_per_machine = "1";  // fewer than slots: nobody waits ahead there
    Pool restored(settings);
    CPPUNIT_ASSERT(restored.restore(r.t.books.snapshot()).empty());
    const ServerStarted started{settings};
    const Outcome live = r.t.apply(started);
    CPPUNIT_ASSERT_EQUAL(testing::text_of(live),
                         testing::text_of(restored.apply(started, r.t.now)));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, live.decisions.size());
    CPPUNIT_ASSERT(restored.next_deadline() == r.t.pool.next_deadline());
  }

  void the_decision_says_so() {
    Rig r;
    r.t.submit("ann", 3);
    CPPUNIT_ASSERT(!std::get<StartAttempt>(r.t.last.decisions.at(0)).ahead);
    r.run(1);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, r.t.last.decisions.size());
    CPPUNIT_ASSERT(!std::get<StartAttempt>(r.t.last.decisions[0]).ahead);
    CPPUNIT_ASSERT(std::get<StartAttempt>(r.t.last.decisions[1]).ahead);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(AheadTest);

}  // namespace
}  // namespace sublet::scheduling
