// What administrators do to a machine, and to a user's shares.
#include <cppunit/extensions/HelperMacros.h>

#include <algorithm>

#include "scheduling/events/event_codec.h"
#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;
using Answer = OrderAnswered::Answer;
using By = SharesSet::By;

class MachinesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(MachinesTest);
  CPPUNIT_TEST(a_drained_machine_takes_no_jobs);
  CPPUNIT_TEST(what_runs_on_a_drained_machine_goes_on);
  CPPUNIT_TEST(it_stays_drained_whatever_happens);
  CPPUNIT_TEST(a_drained_machine_is_a_reason_to_wait);
  CPPUNIT_TEST(evicted_jobs_go_on_elsewhere);
  CPPUNIT_TEST(an_eviction_is_not_in_vain);
  CPPUNIT_TEST(who_leaves_or_delivers_is_not_evicted);
  CPPUNIT_TEST(a_lost_order_to_leave_is_repeated);
  CPPUNIT_TEST(a_job_that_is_not_yet_accepted_is_evicted_too);
  CPPUNIT_TEST(shares_of_an_administrator_stay);
  CPPUNIT_TEST(an_anchor_says_all_that_records_do_not);
  CPPUNIT_TEST_SUITE_END();

  static MachineState state_of(const TestPool& t, MachineId machine) {
    return t.books.machines.at(machine).state;
  }

 public:
  void a_drained_machine_takes_no_jobs() {
    TestPool t;
    const MachineId curly = t.join("curly");
    t.apply(MachineDrained{curly});
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.last.answer.changed);
    CPPUNIT_ASSERT(t.books.machines.at(curly).draining);
    CPPUNIT_ASSERT(state_of(t, curly) == MachineState::kBusy);
    CPPUNIT_ASSERT(t.pool.idle().empty());
    t.apply(MachineDrained{curly});
    CPPUNIT_ASSERT(t.last.answer.accepted && t.last.answer.changed == 0 && t.last.records.empty());
    const JobId job = t.submit("ann");
    t.report(curly, true);
    t.report(curly, false);
    t.report(curly, true);
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(job));
    const MachineId moe = t.join("moe");
    CPPUNIT_ASSERT_EQUAL(moe, t.machine_of(job));
    const JobId next = t.submit("ann");
    t.apply(MachineDrained{curly, false});
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.last.answer.changed);
    CPPUNIT_ASSERT_EQUAL(curly, t.machine_of(next));
    t.apply(MachineDrained{curly, false});
    CPPUNIT_ASSERT(t.last.answer.changed == 0 && t.last.records.empty());
  }

  void what_runs_on_a_drained_machine_goes_on() {
    TestPool t;
    const MachineId curly = t.join("curly", 2);
    const JobId job = t.submit("ann");
    t.start(job);
    t.apply(MachineDrained{curly});
    CPPUNIT_ASSERT(t.last.decisions.empty());
    const JobId next = t.submit("ann");
    t.renew(job);
    CPPUNIT_ASSERT(t.last.answer.verdicts.at(0).second == Verdict::kCounts);
    t.end(job, EndReason::kDone);
    CPPUNIT_ASSERT(t.state(job) == JobState::kDone);
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(next));
  }

  void it_stays_drained_whatever_happens() {
    TestPool t;
    const MachineId curly = t.join("curly");
    t.apply(MachineDrained{curly});
    const JobId job = t.submit("ann");
    t.apply(MachineWithdrew{curly});
    t.join({curly, "larry", "linux", "x86_64", 1, 1, 8ull << 30, 100ull << 30});
    t.apply(ServerStarted());
    t.report(curly, true);
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(job));
    TestPool restored;
    restored.pool.restore(t.books.snapshot());
    restored.books = t.books;
    restored.now = t.now;
    restored.apply(ServerStarted());
    restored.report(curly, true);
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, restored.machine_of(job));
    restored.apply(MachineDrained{curly, false});
    CPPUNIT_ASSERT_EQUAL(curly, restored.machine_of(job));
  }

  void a_drained_machine_is_a_reason_to_wait() {
    TestPool t;
    const MachineId curly = t.join("curly");
    t.apply(MachineDrained{curly});
    const JobId job = t.submit("ann");
    CPPUNIT_ASSERT_EQUAL(std::string("1 machine fits, drained by an administrator"),
                         t.pool.why(job, t.now));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, t.pool.outlook(job, t.now)->lent);
    t.join("moe", 1, false);
    CPPUNIT_ASSERT_EQUAL(
        std::string("2 machines fit: 1 used by its owner, 1 drained by an administrator"),
        t.pool.why(job, t.now));
  }

  void evicted_jobs_go_on_elsewhere() {
    TestPool t;
    const MachineId curly = t.join("curly", 2);
    const JobId job = t.submit("ann", 1, {{}, 0, 1});
    t.start(job);
    t.apply(MachineDrained{curly});
    t.apply(MachineEvicted{curly});
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.last.answer.changed);
    const auto& leave = std::get<TellToLeave>(t.last.decisions.at(0));
    CPPUNIT_ASSERT(leave.key == t.key(job) && leave.reason == LeaveReason::kAdministrator);
    CPPUNIT_ASSERT(t.state(job) == JobState::kRunning);  // until it has left
    const MachineId moe = t.join("moe");
    t.apply(CheckpointStored{t.key(job), curly, 1, 10});
    t.end(job, EndReason::kAdministrator, 9 * kSecond, 8 * kSecond);
    const JobRecord& record = t.record(job);
    CPPUNIT_ASSERT_EQUAL(1u, record.evictions);
    CPPUNIT_ASSERT_EQUAL(1u, record.retries_left);
    CPPUNIT_ASSERT_EQUAL(8.0, t.books.users["ann"].charges);  // what was lost is not
    CPPUNIT_ASSERT_EQUAL(moe, t.machine_of(job));
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.pool.attempt(job)->resumed_generation);
    CPPUNIT_ASSERT_EQUAL(std::string("evicted: by an administrator"),
                         t.books.attempts.at({job, 1}).reason.text());
  }

  // However often, and at once: it was not the job's doing.
  void an_eviction_is_not_in_vain() {
    TestPool t;
    const MachineId curly = t.join("curly");
    const JobId job = t.submit("ann");
    for (int i = 0; i < 10; ++i) {
      t.start(job);
      t.apply(MachineEvicted{curly});
      t.apply(AttemptEnded{t.key(job), curly, EndReason::kAdministrator, "", 0, -1, 1});
    }
    CPPUNIT_ASSERT(t.state(job) == JobState::kPlaced);
    CPPUNIT_ASSERT_EQUAL(10u, t.record(job).evictions);
  }

  void who_leaves_or_delivers_is_not_evicted() {
    TestPool t;
    const MachineId curly = t.join("curly", 4);
    const JobId held = t.submit("ann", 4);
    for (JobId id = held; id < held + 4; ++id) t.start(id);
    t.apply(JobsHeld{{held}});
    t.renew(held + 1, AttemptState::kDelivering);
    t.renew(held + 2, AttemptState::kLeaving);  // by its owner's word
    t.apply(MachineEvicted{curly});
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.last.answer.changed);
    CPPUNIT_ASSERT_EQUAL(held + 3, std::get<TellToLeave>(t.last.decisions.at(0)).key.job);
    t.apply(MachineEvicted{curly});
    CPPUNIT_ASSERT(t.last.answer.changed == 0 && t.last.records.empty());
  }

  void a_lost_order_to_leave_is_repeated() {
    TestPool t;
    const MachineId curly = t.join("curly");
    const JobId job = t.submit("ann");
    t.start(job);
    t.apply(MachineEvicted{curly});
    t.pass(kSecond);
    t.renew(job);
    const auto reason = [&] { return std::get<TellToLeave>(t.last.decisions.at(0)).reason; };
    CPPUNIT_ASSERT(reason() == LeaveReason::kAdministrator);
    t.apply(JobsHeld{{job}});
    t.renew(job);
    CPPUNIT_ASSERT(reason() == LeaveReason::kHeld);
  }

  void a_job_that_is_not_yet_accepted_is_evicted_too() {
    TestPool t;
    const MachineId curly = t.join("curly");
    const JobId job = t.submit("ann");
    t.apply(MachineDrained{curly});
    t.apply(MachineEvicted{curly});
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.last.answer.changed);
    t.apply(OrderAnswered{t.key(job), Answer::kRefused, "told to leave"});
    CPPUNIT_ASSERT(t.state(job) == JobState::kWaiting);
  }

  // What random histories seldom have: deliveries that progress, machines that pause.
  void an_anchor_says_all_that_records_do_not() {
    TestPool t;
    const MachineId curly = t.join("curly", 2), moe = t.join("moe"), larry = t.join("larry");
    const JobId job = t.submit("ann", 3, {}, "desk");
    t.start(job);
    t.apply(Renewed{curly, true, {{t.key(job), AttemptState::kDelivering, 17}}});
    t.apply(OrderAnswered{t.key(job + 2), Answer::kRefused, "busy"});
    t.report(larry, false, 5);
    t.submit("bob", 2, {}, "lab");
    t.pass(29 * kSecond);
    t.report(curly, true, 123);
    t.pass(3 * kSecond);
    t.apply(TimePassed());
    const Anchored anchor = t.pool.anchor();
    const auto has = [](const auto& all, const auto& what) {
      return std::any_of(all.begin(), all.end(), what);
    };
    using Now = Anchored::MachineNow;
    CPPUNIT_ASSERT(has(anchor.machines, [&](const Now& m) { return m.silent; }));
    CPPUNIT_ASSERT(has(anchor.machines, [&](const Now& m) { return m.memory_free == 123; }));
    CPPUNIT_ASSERT(has(anchor.attempts, [](const auto& a) { return a.delivered == 17; }));
    CPPUNIT_ASSERT(!anchor.requesting.empty());
    Pool restored{Parameters()};
    restored.restore(t.books.snapshot());
    restored.apply(anchor, t.now);
    CPPUNIT_ASSERT(encode_event(anchor) == encode_event(restored.anchor()));
    CPPUNIT_ASSERT(moe != 0);
  }

  void shares_of_an_administrator_stay() {
    TestPool t;
    const auto shares = [&] { return t.books.users["ann"].shares; };
    t.apply(SharesSet{"ann", 2});
    t.apply(SharesSet{"ann", 5, By::kAdministrator});
    CPPUNIT_ASSERT_EQUAL(5.0, shares());
    t.apply(SharesSet{"ann", 3});
    CPPUNIT_ASSERT(t.last.records.empty());
    CPPUNIT_ASSERT(t.pool.standings(t.now).at(0).by_administrator);
    t.apply(SharesSet{"ann", 3, By::kGivenBack});
    CPPUNIT_ASSERT_EQUAL(3.0, shares());
    CPPUNIT_ASSERT(!t.pool.standings(t.now).at(0).by_administrator);
    t.apply(SharesSet{"ann", 4});
    CPPUNIT_ASSERT_EQUAL(4.0, shares());
    // The default ones, but his: not forgotten.
    t.apply(SharesSet{"ann", 1, By::kAdministrator});
    t.apply(SharesSet{"ann", 7});
    CPPUNIT_ASSERT_EQUAL(1.0, shares());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(MachinesTest);
}  // namespace
}  // namespace sublet::scheduling
