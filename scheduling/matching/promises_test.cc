// Promised places: jobs that need much of a machine do not wait for ever.
#include <cppunit/extensions/HelperMacros.h>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {

using testing::kSecond;
using testing::TestPool;

constexpr Micros kMinute = 60 * kSecond;
constexpr Micros kWideWait = 10 * kMinute;

Submitted::Job of_cores(uint32_t cores) {
  Submitted::Job job;
  job.needs.cores = cores;
  return job;
}

Parameters settings(const std::string& policy = "fair-share") {
  Parameters p;
  p.job_policy = policy;
  p.wide_wait = kWideWait;
  p.lease = 1000 * kMinute;
  return p;
}

class PromisesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PromisesTest);
  CPPUNIT_TEST(a_wide_job_beside_an_endless_stream);
  CPPUNIT_TEST(without_a_promise_it_starves);
  CPPUNIT_TEST(not_hidden_by_one_that_is_not_overdue);
  CPPUNIT_TEST(not_before_its_turn);
  CPPUNIT_TEST(what_it_leaves_is_for_others);
  CPPUNIT_TEST(it_starts_elsewhere_if_that_is_sooner);
  CPPUNIT_TEST(ends_with_its_cause);
  CPPUNIT_TEST(of_an_array_one_is_promised);
  CPPUNIT_TEST(not_kept_of_what_the_owner_needs);
  CPPUNIT_TEST(several_are_promised_at_a_time);
  CPPUNIT_TEST(an_anchor_that_names_a_job_twice);
  CPPUNIT_TEST(known_to_an_anchored_brain);
  CPPUNIT_TEST(said_by_why);
  CPPUNIT_TEST_SUITE_END();

  MachineId join(TestPool& t, const std::string& name, uint32_t cores) {
    return t.join({0, name, "linux", "x86_64", cores, cores, 64ull << 30, 100ull << 30});
  }
  JobId promised(const TestPool& t, MachineId machine) { return t.pool.machine(machine)->promised; }

  // The stream: bob's jobs of one core, 100 of which always wait; each runs for 40 minutes.
  struct Stream {
    static constexpr Micros kLength = 40 * kMinute;
    explicit Stream(const Parameters& p) : t(p) {}
    void feed() {
      while (next < 100 + ended) jobs.push_back(t.submit("bob")), ++next;
    }
    // One ends; the machine's cores end theirs in turn, all in kLength.
    void step() {
      t.pass(kLength / 8);
      t.apply(Ticked());
      for (const JobId job : jobs) {
        if (t.machine_of(job) == 0 || t.now - t.record(job).changed < kLength) continue;
        t.end(job, EndReason::kDone, kLength);
        ++ended;
      }
      std::erase_if(jobs, [&](JobId job) { return is_final(t.state(job)); });
      feed();
    }
    // Until the machine's cores end their jobs at different times.
    void spread() {
      feed();
      for (int i = 0; i < 8; ++i) {
        t.pass(kLength / 8);
        t.end(jobs.front(), EndReason::kDone, kLength / 8);
        jobs.erase(jobs.begin());
        ++ended;
        feed();
      }
    }
    TestPool t;
    std::vector<JobId> jobs;
    uint64_t next = 0, ended = 0;
  };

  // Issue: an eight-core job starts within wide_wait and the longest running job, whoever it is of,
  // under every policy that puts it before the stream's jobs some time.
  void a_wide_job_beside_an_endless_stream() {
    for (const char* policy : {"fair-share", "round-robin", "umol", "up-down"}) {
      Stream stream(settings(policy));
      TestPool& t = stream.t;
      join(t, "curly", 8);
      stream.spread();
      const Micros submitted = t.now;
      const JobId wide = t.submit("ann", 1, of_cores(8));
      while (t.state(wide) == JobState::kWaiting) {
        stream.step();
        CPPUNIT_ASSERT_MESSAGE(policy, t.now - submitted <= kWideWait + Stream::kLength);
      }
      CPPUNIT_ASSERT_MESSAGE(policy, t.now - submitted > kWideWait);
      CPPUNIT_ASSERT(t.books.attempts.at(t.key(wide)).reason.text().starts_with("promised to it"));
    }
  }

  void without_a_promise_it_starves() {
    Parameters p = settings();
    p.wide_wait = 100'000 * kMinute;
    Stream stream(p);
    TestPool& t = stream.t;
    join(t, "curly", 8);
    stream.spread();
    const JobId wide = t.submit("ann", 1, of_cores(8));
    for (int i = 0; i < 200; ++i) stream.step();
    CPPUNIT_ASSERT(t.state(wide) == JobState::kWaiting);
  }

  // Of somebody who comes first, or of its own user.
  void not_hidden_by_one_that_is_not_overdue() {
    for (const std::string first : {"carl", "ann"}) {
      TestPool t(settings());
      t.apply(SharesSet{"carl", 2});  // seen first: of equals he comes before ann
      const MachineId machine = join(t, "curly", 8);
      const JobId narrow = t.submit("bob", 8);
      const JobId wide = t.submit("ann", 1, of_cores(8));
      t.pass(kWideWait);
      t.submit("bob", 20);
      Submitted::Job better = of_cores(8);
      better.priority = 1;
      const JobId fresh = t.submit(first, 1, better);
      CPPUNIT_ASSERT_EQUAL(JobId{0}, promised(t, machine));
      t.end(narrow, EndReason::kDone);
      CPPUNIT_ASSERT_EQUAL(wide, promised(t, machine));
      for (JobId job = narrow + 1; job < narrow + 8; ++job) t.end(job, EndReason::kDone);
      CPPUNIT_ASSERT(t.state(wide) == JobState::kPlaced);
      CPPUNIT_ASSERT(t.state(fresh) == JobState::kWaiting);
    }
  }

  // ann has used more than bob.
  void not_before_its_turn() {
    TestPool t(settings());
    const MachineId machine = join(t, "curly", 8);
    const JobId used = t.submit("ann");
    t.start(used);
    t.end(used, EndReason::kDone, 1000 * kMinute);
    const JobId narrow = t.submit("bob", 8);
    t.submit("ann", 1, of_cores(8));
    t.pass(kWideWait);
    const JobId more = t.submit("bob", 20);
    t.end(narrow, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(JobId{0}, promised(t, machine));
    CPPUNIT_ASSERT(t.state(more) == JobState::kPlaced);
  }

  // A promise to a job that has waited: 8 of 16 cores, of which the narrow jobs hold 12.
  struct Half {
    explicit Half(uint32_t cores = 16) : t(settings()) {
      machine = t.join({0, "curly", "linux", "x86_64", cores, cores, 64ull << 30, 100ull << 30});
      narrow = t.submit("bob", 12);
      wide = t.submit("ann", 1, of_cores(8));
      t.pass(kWideWait);
      more = t.submit("bob", 20);
    }
    TestPool t;
    MachineId machine;
    JobId narrow, wide, more;
  };

  void what_it_leaves_is_for_others() {
    Half half;
    TestPool& t = half.t;
    CPPUNIT_ASSERT_EQUAL(half.wide, promised(t, half.machine));
    CPPUNIT_ASSERT(t.state(half.more) == JobState::kWaiting);
    for (JobId job = half.narrow; job < half.narrow + 4; ++job) {
      CPPUNIT_ASSERT(t.state(half.wide) == JobState::kWaiting);
      t.end(job, EndReason::kDone);
    }
    CPPUNIT_ASSERT(t.state(half.wide) == JobState::kPlaced);
    CPPUNIT_ASSERT_EQUAL(JobId{0}, promised(t, half.machine));
    // From now on all that end make room for the narrow ones.
    t.end(half.narrow + 4, EndReason::kDone);
    CPPUNIT_ASSERT(t.state(half.more) == JobState::kPlaced);
  }

  void it_starts_elsewhere_if_that_is_sooner() {
    Half half;
    TestPool& t = half.t;
    join(t, "moe", 8);
    CPPUNIT_ASSERT(t.state(half.wide) == JobState::kPlaced);
    CPPUNIT_ASSERT_EQUAL(JobId{0}, promised(t, half.machine));
    // What was kept for it is given away in the same event.
    CPPUNIT_ASSERT(t.state(half.more + 3) == JobState::kPlaced);
    CPPUNIT_ASSERT(t.state(half.more + 4) == JobState::kWaiting);
  }

  void ends_with_its_cause() {
    const std::vector<std::function<void(Half&)>> causes = {
        [](Half& h) { h.t.apply(JobsRemoved{{h.wide}}); },
        [](Half& h) { h.t.apply(JobsHeld{{h.wide}}); },
        [](Half& h) { h.t.report(h.machine, false); },
        [](Half& h) { h.t.apply(MachineWithdrew{h.machine}); },
        [](Half& h) {
          h.t.apply(MachineDrained{h.machine, true});
        },
        [](Half& h) { h.t.apply(ServerStarted{}); },
    };
    for (size_t i = 0; i < causes.size(); ++i) {
      Half half;
      CPPUNIT_ASSERT_EQUAL(half.wide, promised(half.t, half.machine));
      causes[i](half);
      CPPUNIT_ASSERT_EQUAL_MESSAGE(std::to_string(i), JobId{0}, promised(half.t, half.machine));
      const bool machine_is_there = i < 2;
      CPPUNIT_ASSERT_EQUAL(machine_is_there, half.t.state(half.more) == JobState::kPlaced);
    }
  }

  void of_an_array_one_is_promised() {
    TestPool t(settings());
    const MachineId machine = join(t, "curly", 8);
    t.submit("bob", 2);
    const JobId wide = t.submit("ann", 5, of_cores(8));
    t.pass(kWideWait);
    t.submit("bob", 8);
    CPPUNIT_ASSERT_EQUAL(wide, promised(t, machine));
    CPPUNIT_ASSERT(t.pool.job(wide + 4));
    // The next one has waited for as long.
    t.apply(JobsRemoved{{wide}});
    CPPUNIT_ASSERT_EQUAL(wide + 1, promised(t, machine));
  }

  void not_kept_of_what_the_owner_needs() {
    TestPool t(settings());
    const MachineId machine = join(t, "curly", 8);
    t.report(machine, true, 60ull << 30);
    const JobId narrow = t.submit("bob");
    Submitted::Job much;
    much.needs.memory = 50ull << 30;
    Submitted::Job little;
    little.needs.memory = 20ull << 30;
    t.submit("bob", 1, little);
    const JobId wide = t.submit("ann", 1, much);
    t.pass(kWideWait);
    const JobId others = t.submit("bob", 1, little);
    CPPUNIT_ASSERT_EQUAL(wide, promised(t, machine));
    t.end(narrow, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(wide, promised(t, machine));
    t.report(machine, true, 45ull << 30);
    CPPUNIT_ASSERT_EQUAL(JobId{0}, promised(t, machine));
    CPPUNIT_ASSERT(t.state(others) == JobState::kPlaced);
  }

  // Ten machines, each of which a wide job waits for, all of different users or of one.
  void several_are_promised_at_a_time() {
    for (const bool alone : {true, false}) {
      TestPool t(settings());
      for (int i = 0; i < 10; ++i) join(t, "m" + std::to_string(i), 8);
      const JobId narrow = t.submit("bob", 80);
      for (int i = 0; i < 10; ++i)
        t.submit(alone ? "ann" : std::string(1, 'a' + i), 1, of_cores(8));
      t.pass(kWideWait);
      t.submit("cat", 100);
      for (JobId job = narrow; job < narrow + 80; job += 1 + job % 2) t.end(job, EndReason::kDone);
      size_t kept = 0;
      for (const MachineView& m : t.pool.machines()) kept += m.promised != 0;
      CPPUNIT_ASSERT_EQUAL(size_t{10}, kept);
    }
  }

  void an_anchor_that_names_a_job_twice() {
    Half half;
    const MachineId moe = join(half.t, "moe", 4);
    Anchored damaged = half.t.pool.anchor();
    for (auto& m : damaged.machines) m.promised = half.wide;
    Pool restored(settings());
    CPPUNIT_ASSERT(restored.restore(half.t.books.snapshot()).empty());
    restored.apply(damaged, half.t.now);
    CPPUNIT_ASSERT_EQUAL(half.wide, restored.machine(half.machine)->promised);
    CPPUNIT_ASSERT_EQUAL(JobId{0}, restored.machine(moe)->promised);
  }

  void known_to_an_anchored_brain() {
    Half half;
    Pool restored(settings());
    CPPUNIT_ASSERT(restored.restore(half.t.books.snapshot()).empty());
    restored.apply(half.t.pool.anchor(), half.t.now);
    CPPUNIT_ASSERT_EQUAL(half.wide, restored.machine(half.machine)->promised);
  }

  void said_by_why() {
    Half half;
    CPPUNIT_ASSERT_EQUAL(std::string("a place on curly is promised to it: it starts when others "
                                     "have made room there"),
                         half.t.pool.why(half.wide, half.t.now));
    CPPUNIT_ASSERT_EQUAL(
        std::string("1 machine fits, promised to another job; at least 1 job that comes first "
                    "waits for the same machines"),
        half.t.pool.why(half.more, half.t.now));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(PromisesTest);

}  // namespace
}  // namespace sublet::scheduling
