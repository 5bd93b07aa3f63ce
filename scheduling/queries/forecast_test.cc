// A forecast includes the data it is based on, and gives no time without enough data.
#include "scheduling/queries/forecast.h"

#include <cppunit/extensions/HelperMacros.h>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::kStart;
using testing::TestPool;

class ForecastTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ForecastTest);
  CPPUNIT_TEST(the_rate_at_which_places_come_free);
  CPPUNIT_TEST(no_basis_yet);
  CPPUNIT_TEST(owners_who_are_there_give_no_basis);
  CPPUNIT_TEST(promised_places_give_no_basis);
  CPPUNIT_TEST(long_waits);
  CPPUNIT_TEST(what_frees_a_place);
  CPPUNIT_TEST(the_outlook_of_a_job);
  CPPUNIT_TEST(no_outlook_outside_the_queue);
  CPPUNIT_TEST(saturated_pool_keeps_its_word);
  CPPUNIT_TEST_SUITE_END();

  // `count` jobs of a minute each, one after the other, until `now`.
  static std::vector<Freed> a_minute_each(uint64_t count, MachineId machine, Micros now) {
    std::vector<Freed> freed;
    for (uint64_t i = count; i > 0; --i) {
      const Micros finished = now - static_cast<Micros>(i - 1) * 60 * kSecond;
      freed.push_back({machine, finished - 60 * kSecond, finished});
    }
    return freed;
  }

  void the_rate_at_which_places_come_free() {
    auto recent = a_minute_each(10, 5, kStart);
    recent.push_back({6, kStart - 3000 * kSecond, kStart});  // does not fit
    const Outlook two_ahead{{4, 5}, 2, true, kStart - 30 * kSecond, 2};
    Forecast f = forecast(two_ahead, recent, kStart - 3600 * kSecond, kStart);
    CPPUNIT_ASSERT(f.starts_at.has_value());
    CPPUNIT_ASSERT_EQUAL(kStart + 180 * kSecond, *f.starts_at);
    CPPUNIT_ASSERT_EQUAL(
        std::string("in about 3 min: 2 jobs are ahead, and 10 slots became free in "
                    "the last 10 min on the machines that fit"),
        f.sentence);
    // A job started before the window must not extend the measured time.
    f = forecast({{5}, 0, true, 1, 1}, recent, kStart - 1200 * kSecond, kStart);
    CPPUNIT_ASSERT_EQUAL(kStart + 120 * kSecond, *f.starts_at);
  }

  void no_basis_yet() {
    const Outlook outlook{{5}, 2, true, kStart - 7 * kSecond, 1};
    const Forecast f =
        forecast(outlook, a_minute_each(2, 5, kStart), kStart - 3600 * kSecond, kStart);
    CPPUNIT_ASSERT(!f.starts_at.has_value());
    CPPUNIT_ASSERT_EQUAL(
        std::string("too little data yet: 2 slots became free in the last 60 min on the "
                    "machines that fit"),
        f.sentence);
    CPPUNIT_ASSERT(!forecast(outlook, {}, kStart - 3600 * kSecond, kStart).starts_at);
  }

  // However many slots became free before.
  void owners_who_are_there_give_no_basis() {
    const Outlook outlook{{5}, 0, true, 0, 0};
    const Forecast f =
        forecast(outlook, a_minute_each(50, 5, kStart), kStart - 3600 * kSecond, kStart);
    CPPUNIT_ASSERT(!f.starts_at.has_value());
    CPPUNIT_ASSERT_EQUAL(
        std::string("not known: the machines that fit are used by their owners, silent, drained or "
                    "promised to other jobs"),
        f.sentence);
  }

  // Neither to the job that is promised one, nor to others.
  void promised_places_give_no_basis() {
    Parameters p;
    p.wide_wait = 600 * kSecond;
    p.lease = 3600 * kSecond;
    TestPool t(p);
    const MachineId curly = t.join({0, "curly", "linux", "x86_64", 2, 2, 8ull << 30, 100ull << 30});
    const JobId narrow = t.submit("bob", 2);
    Submitted::Job job;
    job.needs.cores = 2;
    const JobId wide = t.submit("ann", 1, job);
    t.pass(600 * kSecond);
    const JobId other = t.submit("bob");
    t.end(narrow, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(curly, t.pool.promised(wide).value_or(0));
    CPPUNIT_ASSERT(!t.pool.promised(other));
    const auto told = [&](JobId id) {
      const auto outlook = t.pool.outlook(id, t.now);
      CPPUNIT_ASSERT(outlook.has_value());
      const Forecast f = forecast(*outlook, a_minute_each(50, curly, t.now), kStart, t.now);
      CPPUNIT_ASSERT(!f.starts_at);
      return f.sentence;
    };
    CPPUNIT_ASSERT_EQUAL(
        std::string("not known: as soon as others have made room where it is promised a place"),
        told(wide));
    CPPUNIT_ASSERT(told(other).ends_with("promised to other jobs"));
  }

  void long_waits() {
    const auto recent = a_minute_each(10, 5, kStart);
    Forecast f = forecast({{5}, 1000, false, 0, 1}, recent, kStart - 3600 * kSecond, kStart);
    CPPUNIT_ASSERT(f.sentence.starts_with("not before 17 h from now: at least 1000 jobs are"));
    f = forecast({{5}, ~uint64_t{0} - 1, true, 0, 1}, recent, kStart - 3600 * kSecond, kStart);
    CPPUNIT_ASSERT(!f.starts_at.has_value());
    CPPUNIT_ASSERT(f.sentence.starts_with("not within a year: "));
  }

  void what_frees_a_place() {
    for (const EndReason r : {EndReason::kDone, EndReason::kExit, EndReason::kLimit,
                              EndReason::kRemoved, EndReason::kHeld})
      CPPUNIT_ASSERT(frees_a_place(r));
    for (const EndReason r : {EndReason::kNone, EndReason::kOwner, EndReason::kPreempted,
                              EndReason::kRefused, EndReason::kLost, EndReason::kSuperseded})
      CPPUNIT_ASSERT(!frees_a_place(r));
  }

  void the_outlook_of_a_job() {
    TestPool t;
    const MachineId m = t.join("m");
    t.join({0, "other", "plan9", "x86_64", 1, 1, 8ull << 30, 100ull << 30});
    Submitted::Job choosy;
    choosy.needs.os = "linux";
    const JobId first = t.submit("ann", 4, choosy);
    t.pass(5 * kSecond);
    t.start(first);
    CPPUNIT_ASSERT(!t.pool.outlook(first, t.now));  // it is running
    const auto outlook = t.pool.outlook(first + 3, t.now);
    CPPUNIT_ASSERT(outlook.has_value());
    CPPUNIT_ASSERT(outlook->machines == std::vector<MachineId>{m});
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, outlook->ahead);
    CPPUNIT_ASSERT_EQUAL(t.now, outlook->at_work_since);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, outlook->lent);
    t.report(m, false);  // its job has not left yet
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.pool.outlook(first + 3, t.now)->lent);
    t.end(first, EndReason::kOwner);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, t.pool.outlook(first + 3, t.now)->lent);
    choosy.needs.cores = 64;
    CPPUNIT_ASSERT(!t.pool.outlook(t.submit("ann", 1, choosy), t.now));  // nothing fits
    CPPUNIT_ASSERT(!t.pool.outlook(999, t.now));
  }

  // A free slot is of no use to a job that is backing off or whose old attempt has not ended.
  void no_outlook_outside_the_queue() {
    TestPool t;
    const MachineId m = t.join("m");
    const JobId refused = t.submit("ann");
    const auto refuse = [&] {
      while (t.machine_of(refused) == 0) {
        t.now = std::max(t.now, *t.pool.next_deadline());
        t.apply(Renewed{m, false, {}});
        t.apply(TimePassed());
      }
      t.apply(OrderAnswered{t.key(refused), OrderAnswered::Answer::kRefused, "no such file"});
    };
    refuse();
    refuse();
    CPPUNIT_ASSERT(t.pool.outlook(refused, t.now).has_value());
    refuse();  // from the third refusal on it backs off
    CPPUNIT_ASSERT(!t.pool.outlook(refused, t.now));
    CPPUNIT_ASSERT(t.pool.outlook(refused, t.now + 60 * kSecond).has_value());

    t.apply(JobsHeld{{refused}});
    const MachineId other = t.join("other");
    const JobId released = t.submit("ann");
    t.start(released);
    t.apply(JobsHeld{{released}});
    t.apply(JobsReleased{{released}});
    CPPUNIT_ASSERT(t.state(released) == JobState::kWaiting);
    CPPUNIT_ASSERT(!t.pool.outlook(released, t.now));
    t.report(m, false);
    t.report(other, false);
    t.end(released, EndReason::kHeld);
    CPPUNIT_ASSERT(t.state(released) == JobState::kWaiting);
    CPPUNIT_ASSERT(t.pool.outlook(released, t.now).has_value());
  }

  // Two machines, jobs of 50 s each: after a while the forecast is correct.
  void saturated_pool_keeps_its_word() {
    TestPool t;
    t.join("m", 2);
    const JobId first = t.submit("ann", 40);
    const JobId last = first + 39;
    std::vector<Freed> recent;
    Micros foretold = 0;
    while (t.state(last) == JobState::kWaiting) {
      t.start(t.pool.machines().front().running[0].job);
      t.start(t.pool.machines().front().running[1].job);
      t.pass(50 * kSecond);
      const auto running = t.pool.machines().front().running;
      for (const AttemptKey& key : running) {
        t.end(key.job, EndReason::kDone, kSecond);
        const UseRecord& use = t.books.uses.at(key);
        recent.push_back({use.machine, use.started, use.finished});
      }
      if (recent.size() != 10) continue;
      foretold = *forecast(*t.pool.outlook(last, t.now), recent, kStart, t.now).starts_at;
    }
    const Micros placed = t.books.attempts.at({last, 1}).decided;
    CPPUNIT_ASSERT_DOUBLES_EQUAL(static_cast<double>(placed - kStart),
                                 static_cast<double>(foretold - kStart), 60e6);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(ForecastTest);

}  // namespace
}  // namespace sublet::scheduling
