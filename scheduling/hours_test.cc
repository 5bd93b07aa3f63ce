// When jobs may be started: the hours and the first instant that their users name.
#include <cppunit/extensions/HelperMacros.h>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

constexpr Micros kMinute = 60 * kSecond;
// kStart is Tuesday, 22:13:20 UTC.
constexpr Micros kQuarterPast = testing::kStart + 100 * kSecond;

// Machines stay without a word.
Parameters patient() {
  Parameters parameters;
  parameters.lease = 30ll * 24 * 3600 * kSecond;
  return parameters;
}

Submitted::Job at(const std::string& hours) {
  Submitted::Job job;
  job.needs.hours = hours;
  return job;
}
Submitted::Job from(Micros earliest) {
  Submitted::Job job;
  job.earliest = earliest;
  return job;
}

class HoursTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(HoursTest);
  CPPUNIT_TEST(started_when_they_open);
  CPPUNIT_TEST(what_runs_goes_on_when_they_close);
  CPPUNIT_TEST(local_time_counts);
  CPPUNIT_TEST(others_do_not_wait_behind_them);
  CPPUNIT_TEST(many_jobs_one_deadline);
  CPPUNIT_TEST(a_promise_ends_when_they_close);
  CPPUNIT_TEST(waiting_counts_from_when_they_opened);
  CPPUNIT_TEST(not_before_an_instant);
  CPPUNIT_TEST(the_instant_outlives_a_back_off);
  CPPUNIT_TEST(both);
  CPPUNIT_TEST(restored_as_they_were);
  CPPUNIT_TEST(damaged_texts);
  CPPUNIT_TEST_SUITE_END();

  static void wait_until(TestPool& t, Micros instant) {
    CPPUNIT_ASSERT_EQUAL(instant, t.pool.next_deadline().value());
    t.to_next_deadline();
  }
  static void same(const std::string& expected, const TestPool& t, JobId job) {
    CPPUNIT_ASSERT_EQUAL(expected, t.pool.why(job, t.now));
  }

 public:
  void started_when_they_open() {
    TestPool t(patient());
    t.join("m", 2);
    const JobId job = t.submit("ann", 1, at("22:15-22:30, sat"));
    same("its hours are 22:15-22:30, sat: they open in 2 min", t, job);
    CPPUNIT_ASSERT(!t.pool.outlook(job, t.now));
    wait_until(t, kQuarterPast);
    CPPUNIT_ASSERT(t.state(job) == JobState::kPlaced);
    const JobId second = t.submit("ann", 1, at("22:15-22:30, sat"));
    CPPUNIT_ASSERT(t.state(second) == JobState::kPlaced);
    // As long as somebody waits for them, they open and close.
    for (const JobId id : {job, second}) t.end(id, EndReason::kDone);
    CPPUNIT_ASSERT(*t.pool.next_deadline() > kQuarterPast + 24 * 60 * kMinute);
    CPPUNIT_ASSERT_EQUAL(size_t{0}, t.pool.groups());
  }

  void what_runs_goes_on_when_they_close() {
    TestPool t(patient());
    t.join("m");
    const JobId job = t.submit("ann", 2, at("22:00-22:15"));
    t.start(job);
    wait_until(t, kQuarterPast);
    CPPUNIT_ASSERT(t.state(job) == JobState::kRunning);
    t.end(job, EndReason::kOwner);  // and is not started again
    CPPUNIT_ASSERT(t.state(job) == JobState::kWaiting);
    same("its hours are 22:00-22:15: they open in 24 h", t, job);
    wait_until(t, kQuarterPast + (24 * 60 - 15) * kMinute);
    CPPUNIT_ASSERT(t.state(job) == JobState::kPlaced);
  }

  void local_time_counts() {
    TestPool t(patient());
    t.join("m");
    const JobId job = t.submit("ann", 1, at("wed 00:00-01:00"));
    t.apply(Ticked{3600});
    same("its hours are wed 00:00-01:00: they open in 47 min", t, job);
    CPPUNIT_ASSERT_EQUAL(kQuarterPast + 45 * kMinute, t.pool.next_deadline().value());
    t.apply(Ticked{7200});
    CPPUNIT_ASSERT(t.state(job) == JobState::kPlaced);
    const JobId second = t.submit("ann", 1, at("wed 00:00-01:00"));
    t.apply(ServerStarted{patient(), 0});
    t.end(job, EndReason::kDone);
    t.report(1, true);
    same("its hours are wed 00:00-01:00: they open in 2 h", t, second);
  }

  // Nor does a user's own job with other hours.
  void others_do_not_wait_behind_them() {
    TestPool t(patient());
    t.join("m", 2);
    const JobId closed = t.submit("ann", 1, at("sat, sun"));
    CPPUNIT_ASSERT(t.state(t.submit("ann")) == JobState::kPlaced);
    CPPUNIT_ASSERT(t.state(t.submit("bob", 1, at("tue"))) == JobState::kPlaced);
    const JobId behind = t.submit("bob");
    same("1 machine fits, full", t, behind);
    same("its hours are sat, sun: they open in 3 d", t, closed);
  }

  void many_jobs_one_deadline() {
    TestPool t(patient());
    for (int i = 0; i < 3; ++i) t.join("m" + std::to_string(i));
    Submitted::Job night = at("22:15-06:00");
    const JobId first = t.submit("ann", 1000, night);
    night.count = 100'000;
    t.submit("bob", 1, night);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, t.pool.groups());
    wait_until(t, kQuarterPast);
    CPPUNIT_ASSERT_EQUAL(uint64_t{100'997}, t.pool.waiting());
    CPPUNIT_ASSERT_EQUAL(size_t{3}, t.last.decisions.size());
    CPPUNIT_ASSERT(t.state(first) == JobState::kPlaced);
    CPPUNIT_ASSERT_EQUAL(kQuarterPast + (7 * 60 + 45) * kMinute, t.pool.next_deadline().value());
  }

  void a_promise_ends_when_they_close() {
    Parameters parameters = patient();
    parameters.wide_wait = 0;
    TestPool t(parameters);
    const MachineId m = t.join("m", 2);
    const JobId first = t.submit("ann", 2);
    Submitted::Job wide = at("22:00-22:15");
    wide.needs.cores = 2;
    const JobId job = t.submit("bob", 1, wide);
    const JobId narrow = t.submit("ann", 1);
    t.end(first, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(job, t.pool.machine(m)->promised);
    CPPUNIT_ASSERT(t.state(narrow) == JobState::kWaiting);
    wait_until(t, kQuarterPast);
    CPPUNIT_ASSERT_EQUAL(JobId{0}, t.pool.machine(m)->promised);
    CPPUNIT_ASSERT(t.state(narrow) == JobState::kPlaced);
  }

  void waiting_counts_from_when_they_opened() {
    Parameters parameters = patient();
    parameters.wide_wait = 60 * kSecond;
    TestPool t(parameters);
    const MachineId m = t.join("m", 2);
    JobId running = t.submit("ann", 2);
    Submitted::Job wide = at("22:15-23:00");
    wide.needs.cores = 2;
    const JobId job = t.submit("bob", 1, wide);
    const auto next = [&] {
      const JobId id = t.submit("ann");
      t.end(running, EndReason::kDone);
      running = id;
      return t.pool.machine(m)->promised;
    };
    t.now = kQuarterPast + 59 * kSecond;
    CPPUNIT_ASSERT_EQUAL(JobId{0}, next());
    t.now = kQuarterPast + 60 * kSecond;
    CPPUNIT_ASSERT_EQUAL(job, next());
  }

  void not_before_an_instant() {
    TestPool t(patient());
    t.join("m", 3);
    const JobId job = t.submit("ann", 1, from(kQuarterPast));
    const JobId past = t.submit("ann", 1, from(t.now - kSecond));
    CPPUNIT_ASSERT(t.state(past) == JobState::kPlaced);
    t.apply(Ticked{-5400});
    same("it may not start before 2023-11-14 20:45 (UTC-01:30): in 2 min", t, job);
    CPPUNIT_ASSERT(!t.pool.outlook(job, t.now));
    t.apply(JobsHeld{{job}});
    t.apply(JobsReleased{{job}});
    CPPUNIT_ASSERT(t.state(job) == JobState::kWaiting);
    wait_until(t, kQuarterPast);
    CPPUNIT_ASSERT(t.state(job) == JobState::kPlaced);
    Submitted::Job array = from(t.now + kMinute);
    array.count = 9;
    const JobId first = t.submit("ann", 1, array);
    t.apply(JobsRemoved{{first + 3}});
    wait_until(t, t.now + kMinute);
    CPPUNIT_ASSERT(t.state(first) == JobState::kPlaced);
    CPPUNIT_ASSERT(t.state(first + 1) == JobState::kWaiting);
  }

  // An accepted order ends the back-off alone.
  void the_instant_outlives_a_back_off() {
    TestPool t(patient());
    const MachineId m = t.join("m");
    const JobId job = t.submit("ann");
    for (int refused = 0; refused < 3; ++refused) {
      t.apply(OrderAnswered{t.key(job), OrderAnswered::Answer::kRefused, "no"});
      t.report(m, true);
    }
    CPPUNIT_ASSERT(t.record(job).not_before > t.now);
    Submitted::Job late = from(t.now + kMinute);
    const JobId second = t.submit("ann", 1, late);
    wait_until(t, t.record(job).not_before);
    t.start(job);
    CPPUNIT_ASSERT_EQUAL(Micros{0}, t.record(job).not_before);
    t.end(job, EndReason::kDone);
    CPPUNIT_ASSERT(t.state(second) == JobState::kWaiting);
    wait_until(t, late.earliest);
    CPPUNIT_ASSERT(t.state(second) == JobState::kPlaced);
    CPPUNIT_ASSERT_EQUAL(late.earliest, t.record(second).earliest);
  }

  void both() {
    TestPool t(patient());
    t.join("m");
    Submitted::Job job = at("22:00-22:16");
    job.earliest = kQuarterPast + 2 * kMinute;
    const JobId id = t.submit("ann", 1, job);
    t.now = job.earliest;
    t.apply(TimePassed());
    same("its hours are 22:00-22:16: they open in 24 h", t, id);
  }

  void restored_as_they_were() {
    TestPool t(patient());
    t.apply(Ticked{3600});
    const JobId job = t.submit("ann", 1, at("23:15-23:20"));
    const JobId late = t.submit("ann", 1, from(kQuarterPast + kMinute));
    Pool restored(patient());
    CPPUNIT_ASSERT(restored.restore(t.books.snapshot()).empty());
    for (const JobId id : {job, late})
      CPPUNIT_ASSERT_EQUAL(t.pool.why(id, t.now), restored.why(id, t.now));
    CPPUNIT_ASSERT(restored.next_deadline() == t.pool.next_deadline());
    CPPUNIT_ASSERT_EQUAL(3600, restored.counters().utc_offset);
  }

  // The job waits, and says so; the others are served.
  void damaged_texts() {
    TestPool t(patient());
    t.join("m");
    const JobId job = t.submit("ann", 1, at("sometimes"));
    same("its hours \"sometimes\" cannot be read", t, job);
    CPPUNIT_ASSERT(t.state(t.submit("ann")) == JobState::kPlaced);
    t.apply(Ticked{3600});
    CPPUNIT_ASSERT(t.state(job) == JobState::kWaiting);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(HoursTest);
}  // namespace
}  // namespace sublet::scheduling
