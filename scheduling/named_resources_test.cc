// What machines offer by name, and the pool's licences: reserved, released, and named by `why`.
#include <cppunit/extensions/HelperMacros.h>

#include <functional>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

Parameters with(const std::string& licences) {
  Parameters parameters;
  parameters.licences = licences;
  return parameters;
}

Submitted::Job asking(const std::string& resources) {
  Submitted::Job job;
  job.needs.resources = resources;
  return job;
}

// Four slots, and what it offers besides.
MachineId join(TestPool& t, const std::string& name, const std::string& resources,
               MachineId machine = 0) {
  return t.join({machine, name, "linux", "x86_64", 4, 4, 8ull << 30, 100ull << 30, resources});
}

uint64_t placed(const TestPool& t) {
  uint64_t count = 0;
  for (const auto& [id, job] : t.books.jobs) count += is_at_work(job.state);
  return count;
}

class NamedResourcesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(NamedResourcesTest);
  CPPUNIT_TEST(of_a_machine);
  CPPUNIT_TEST(licences_of_the_pool);
  CPPUNIT_TEST(a_licence_wakes_other_machines);
  CPPUNIT_TEST(held_until_the_lease_is_over);
  CPPUNIT_TEST(a_refusal_gives_back);
  CPPUNIT_TEST(other_licences_take_over);
  CPPUNIT_TEST(what_nobody_has);
  CPPUNIT_TEST(a_machine_offers_less_than_before);
  CPPUNIT_TEST(a_place_is_promised_for_two);
  CPPUNIT_TEST(no_place_is_promised_without_a_licence);
  CPPUNIT_TEST(what_it_lacks_of_a_promised_place_becomes_the_pool_s);
  CPPUNIT_TEST(damaged_texts);
  CPPUNIT_TEST(licences_are_kept_for_who_needs_several);
  CPPUNIT_TEST(not_for_who_needs_one);
  CPPUNIT_TEST(kept_licences_end_with_their_cause);
  CPPUNIT_TEST(not_kept_where_it_has_no_room);
  CPPUNIT_TEST(kept_on_where_it_may_start);
  CPPUNIT_TEST(known_to_an_anchored_brain);
  CPPUNIT_TEST_SUITE_END();

 public:
  void of_a_machine() {
    TestPool t;
    const MachineId curly = join(t, "curly", "gpu=1");
    join(t, "moe", "");
    const JobId first = t.submit("ann", 2, asking("gpu=1"));
    CPPUNIT_ASSERT_EQUAL(curly, t.machine_of(first));
    CPPUNIT_ASSERT_EQUAL(std::string("1 machine fits, full"), t.pool.why(first + 1, t.now));
    // Who asks for none is not behind them.
    CPPUNIT_ASSERT(t.state(t.submit("ann", 7) + 6) == JobState::kPlaced);
    t.end(first, EndReason::kOwner);
    CPPUNIT_ASSERT_EQUAL(uint64_t{8}, placed(t));
    CPPUNIT_ASSERT_EQUAL(std::string("gpu=1"), t.pool.machine(curly)->named_reserved.text());
  }

  void licences_of_the_pool() {
    TestPool t(with("ansys=3"));
    join(t, "curly", "");
    join(t, "moe", "ansys=9");  // the pool's count, not this machine's
    const JobId first = t.submit("ann", 8, asking("ansys=1"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, placed(t));
    CPPUNIT_ASSERT_EQUAL(
        std::string("waits for a licence of ansys: 3 of 3 are held by jobs 1, 2, 3"),
        t.pool.why(first + 3, t.now));
    CPPUNIT_ASSERT(!t.pool.outlook(first + 3, t.now));
    const JobId two = t.submit("bob", 1, asking("ansys=2"));
    CPPUNIT_ASSERT_EQUAL(
        std::string("waits for 2 licences of ansys: 3 of 3 are held by jobs 1, 2, 3"),
        t.pool.why(two, t.now));
    t.end(first, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, placed(t));
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, t.pool.licences().at(0).held);
  }

  // The machine on which the licence was held takes no more jobs, an idle one does.
  void a_licence_wakes_other_machines() {
    TestPool t(with("ansys=1"));
    const MachineId curly = join(t, "curly", "");
    const JobId first = t.submit("ann", 1, asking("ansys=1"));
    const MachineId moe = join(t, "moe", "");
    const JobId second = t.submit("ann", 1, asking("ansys=1"));
    t.report(curly, false);
    CPPUNIT_ASSERT(t.state(second) == JobState::kWaiting);
    t.end(first, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(moe, t.machine_of(second));
  }

  // A machine that is lost holds the licence as long as the job may still be running there.
  void held_until_the_lease_is_over() {
    TestPool t(with("ansys=1"));
    join(t, "curly", "");
    const JobId first = t.submit("ann", 2, asking("ansys=1"));
    t.start(first);
    t.apply(JobsRemoved{{{first, 1}}});
    CPPUNIT_ASSERT(t.state(first + 1) == JobState::kWaiting);
    Pool restored(with("ansys=1"));
    CPPUNIT_ASSERT(restored.restore(t.books.snapshot()).empty());
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, restored.licences().at(0).held);
    const MachineId moe = join(t, "moe", "");
    const Micros until = t.now + 31 * kSecond;
    while (t.machine_of(first + 1) == 0 && t.to_next_deadline()) t.report(moe, true);
    CPPUNIT_ASSERT(t.now > until);
    CPPUNIT_ASSERT_EQUAL(moe, t.machine_of(first + 1));
  }

  // bob's jobs hold all four licences, and more of them wait; ann's needs three, and has waited.
  struct Kept {
    static constexpr Micros kWait = 600 * kSecond;
    static Parameters settings() {
      Parameters p = with("ansys=4");
      p.wide_wait = kWait;
      p.lease = 1000 * kWait;
      return p;
    }
    Kept() : t(settings()) {
      machine = t.join("curly", 16);
      singles = t.submit("bob", 4, asking("ansys=1"));
      several = t.submit("ann", 1, asking("ansys=3"));
      t.pass(kWait);
      more = t.submit("bob", 8, asking("ansys=1"));
      t.end(singles, EndReason::kDone);
    }
    bool are_kept() const { return !t.pool.anchor().licensed.empty(); }
    TestPool t;
    MachineId machine;
    JobId singles, several, more;
  };

  void licences_are_kept_for_who_needs_several() {
    Kept kept;
    TestPool& t = kept.t;
    CPPUNIT_ASSERT(kept.are_kept());
    CPPUNIT_ASSERT_EQUAL(
        std::string("waits for 3 licences of ansys, which are kept for it as they come back: 3 of "
                    "4 are held by jobs 2, 3, 4"),
        t.pool.why(kept.several, t.now));
    CPPUNIT_ASSERT_EQUAL(std::string("waits for a licence of ansys: 3 of 4 are held by jobs 2, 3, "
                                     "4, 3 licences are kept for job 5"),
                         t.pool.why(kept.more, t.now));
    // What needs no licence is not kept waiting.
    const JobId other = t.submit("bob");
    CPPUNIT_ASSERT(t.state(other) == JobState::kPlaced);
    t.end(kept.singles + 1, EndReason::kDone);
    CPPUNIT_ASSERT(t.state(kept.more) == JobState::kWaiting);
    t.end(kept.singles + 2, EndReason::kDone);
    CPPUNIT_ASSERT(t.state(kept.several) == JobState::kPlaced);
    CPPUNIT_ASSERT(!kept.are_kept());
    t.end(kept.singles + 3, EndReason::kDone);
    CPPUNIT_ASSERT(t.state(kept.more) == JobState::kPlaced);
  }

  // The next one that comes back is for the first in the queue.
  void not_for_who_needs_one() {
    TestPool t(Kept::settings());
    t.join("curly", 16);
    const JobId first = t.submit("bob", 4, asking("ansys=1"));
    t.submit("ann", 1, asking("ansys=1"));
    t.pass(Kept::kWait);
    t.submit("bob");
    CPPUNIT_ASSERT(t.pool.anchor().licensed.empty());
    CPPUNIT_ASSERT(t.state(first) == JobState::kPlaced);
  }

  void kept_licences_end_with_their_cause() {
    const std::vector<std::function<void(Kept&)>> causes = {
        [](Kept& k) { k.t.apply(JobsRemoved{{k.several}}); },
        [](Kept& k) { k.t.apply(JobsHeld{{k.several}}); },
        [](Kept& k) {
          PolicyChoice choice = Kept::settings();
          choice.licences = "ansys=4 matlab=1";
          choice.wide_wait *= 10;
          k.t.apply(PolicySet{choice, "root"});
        },
        [](Kept& k) { k.t.report(k.machine, false); },
        [](Kept& k) { k.t.apply(MachineWithdrew{k.machine}); },
        [](Kept& k) { k.t.apply(ServerStarted{}); },
    };
    for (size_t i = 0; i < causes.size(); ++i) {
      Kept kept;
      CPPUNIT_ASSERT(kept.are_kept());
      causes[i](kept);
      CPPUNIT_ASSERT_MESSAGE(std::to_string(i), !kept.are_kept());
      // The one that was left has gone to bob's in the same event.
      if (i < 3) CPPUNIT_ASSERT(kept.t.state(kept.more) == JobState::kPlaced);
    }
  }

  // Nor are they kept while the owner's programs need the memory that the job would take.
  void not_kept_where_it_has_no_room() {
    constexpr uint64_t kGiB = 1ull << 30;
    Submitted::Job large = asking("ansys=3");
    large.needs.memory = 6 * kGiB;
    TestPool t(Kept::settings());
    const MachineId machine = t.join("curly", 16);
    const JobId singles = t.submit("bob", 4, asking("ansys=1"));
    const JobId several = t.submit("ann", 1, large);
    t.pass(Kept::kWait);
    const JobId more = t.submit("bob", 1, asking("ansys=1"));
    t.end(singles, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, t.pool.anchor().licensed.size());
    CPPUNIT_ASSERT(t.state(more) == JobState::kWaiting);
    t.report(machine, true, 4 * kGiB);
    CPPUNIT_ASSERT(t.pool.anchor().licensed.empty());
    CPPUNIT_ASSERT(t.state(more) == JobState::kPlaced);
    CPPUNIT_ASSERT(t.state(several) == JobState::kWaiting);
  }

  void kept_on_where_it_may_start() {
    Kept kept;
    const MachineId moe = kept.t.join("moe", 16);
    kept.t.report(kept.machine, false);
    CPPUNIT_ASSERT(kept.are_kept());
    CPPUNIT_ASSERT_EQUAL(moe, kept.t.pool.anchor().licensed[0].machine);
  }

  void known_to_an_anchored_brain() {
    Kept kept;
    Anchored anchor = kept.t.pool.anchor();
    Pool restored(Kept::settings());
    CPPUNIT_ASSERT(restored.restore(kept.t.books.snapshot()).empty());
    anchor.licensed.push_back({kept.more, kept.machine});  // damaged: they are kept already
    anchor.licensed.push_back({999, kept.machine});
    restored.apply(anchor, kept.t.now);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, restored.anchor().licensed.size());
    CPPUNIT_ASSERT_EQUAL(kept.several, restored.anchor().licensed[0].job);
  }

  void a_refusal_gives_back() {
    TestPool t(with("ansys=1"));
    join(t, "curly", "gpu=1");
    join(t, "moe", "gpu=1");
    const JobId job = t.submit("ann", 1, asking("ansys=1 gpu=1"));
    const MachineId before = t.machine_of(job);
    t.apply(OrderAnswered{t.key(job), OrderAnswered::Answer::kRefused, "no"});
    CPPUNIT_ASSERT(t.machine_of(job) != before && t.machine_of(job) != 0);
    CPPUNIT_ASSERT(t.pool.machine(before)->named_reserved.empty());
  }

  void other_licences_take_over() {
    TestPool t;
    join(t, "curly", "gpu=2");
    const JobId first = t.submit("ann", 4, asking("ansys=1"));
    const JobId gpus = t.submit("ann", 3, asking("gpu=1"));
    CPPUNIT_ASSERT_EQUAL(std::string("no machine offers 1 ansys"), t.pool.why(first, t.now));
    CPPUNIT_ASSERT(t.state(gpus + 2) == JobState::kWaiting);
    t.apply(PolicySet{with("ansys=1"), "root"});
    CPPUNIT_ASSERT(t.state(first) == JobState::kPlaced);
    CPPUNIT_ASSERT(t.state(first + 1) == JobState::kWaiting);
    // What the machine's jobs hold of a name counts if it becomes the pool's.
    t.apply(PolicySet{with("ansys=2 gpu=3"), "root"});
    CPPUNIT_ASSERT(t.state(first + 1) == JobState::kPlaced);
    CPPUNIT_ASSERT_EQUAL(uint64_t{4}, placed(t));
    t.end(first, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(std::string("waits for a licence of ansys: 2 of 2 are held by jobs 2, 3"),
                         t.pool.why(first + 3, t.now));
    // Fewer than are held: those that hold them go on.
    t.apply(PolicySet{with("ansys=1 gpu=3"), "root"});
    CPPUNIT_ASSERT_EQUAL(uint64_t{4}, placed(t));
    t.end(first + 1, EndReason::kDone);
    CPPUNIT_ASSERT(t.state(first + 3) == JobState::kWaiting);
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, t.pool.licences().at(1).held);
    t.apply(PolicySet{with("lic=x"), "root"});
    CPPUNIT_ASSERT(!t.last.answer.accepted);
  }

  void what_nobody_has() {
    TestPool t(with("ansys=3 none=0"));
    CPPUNIT_ASSERT_EQUAL(std::string("the pool has 3 licences of ansys, it needs 4"),
                         t.pool.unsuitable(asking("ansys=4").needs));
    CPPUNIT_ASSERT_EQUAL(std::string("the pool has no licence of none, it needs 1"),
                         t.pool.unsuitable(asking("none=1").needs));
    join(t, "curly", "gpu=2");
    CPPUNIT_ASSERT_EQUAL(std::string("no machine offers 3 gpu (largest: 2 on curly)"),
                         t.pool.unsuitable(asking("gpu=3").needs));
    CPPUNIT_ASSERT_EQUAL(std::string("no machine offers 1 fpga"),
                         t.pool.unsuitable(asking("fpga=1 gpu=1").needs));
    CPPUNIT_ASSERT_EQUAL(std::string(), t.pool.unsuitable(asking("ansys=3 gpu=2").needs));
    const JobId job = t.submit("ann", 1, asking("ansys=4"));
    CPPUNIT_ASSERT_EQUAL(std::string("the pool has 3 licences of ansys, it needs 4"),
                         t.pool.why(job, t.now));
  }

  void a_machine_offers_less_than_before() {
    TestPool t;
    const MachineId curly = join(t, "curly", "gpu=2");
    const JobId first = t.submit("ann", 3, asking("gpu=1"));
    for (const JobId id : {first, first + 1}) t.start(id);
    join(t, "curly", "gpu=1", curly);
    t.apply(Renewed{
        curly,
        true,
        {{t.key(first), AttemptState::kRunning}, {t.key(first + 1), AttemptState::kRunning}}});
    t.end(first, EndReason::kDone);
    CPPUNIT_ASSERT(t.state(first + 2) == JobState::kWaiting);
    t.end(first + 1, EndReason::kDone);
    CPPUNIT_ASSERT(t.state(first + 2) == JobState::kPlaced);
  }

  // Beside jobs of one GPU, a job of two waits for ever, unless one is kept for it.
  void a_place_is_promised_for_two() {
    Parameters parameters;
    parameters.wide_wait = 60 * kSecond;
    TestPool t(parameters);
    const MachineId curly = join(t, "curly", "gpu=2");
    const JobId first = t.submit("ann", 2, asking("gpu=1"));
    const JobId both = t.submit("bob", 1, asking("gpu=2"));
    const JobId more = t.submit("ann", 3, asking("gpu=1"));
    t.pass(20 * kSecond);
    t.end(first, EndReason::kDone);
    CPPUNIT_ASSERT(t.state(more) == JobState::kPlaced);
    t.pass(50 * kSecond);
    t.report(curly, true);
    t.end(first + 1, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(both, t.pool.machine(curly)->promised);
    CPPUNIT_ASSERT(t.state(more + 1) == JobState::kWaiting);
    CPPUNIT_ASSERT(t.state(t.submit("ann", 1)) == JobState::kPlaced);  // needs none
    t.end(more, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(curly, t.machine_of(both));
  }

  void what_it_lacks_of_a_promised_place_becomes_the_pool_s() {
    Parameters parameters = with("");
    parameters.wide_wait = 0;
    TestPool t(parameters);
    const MachineId curly =
        t.join({0, "curly", "linux", "x86_64", 4, 2, 8ull << 30, 100ull << 30, "gpu=1"});
    const JobId first = t.submit("ann", 2, asking("gpu=1"));
    const JobId lesser = t.submit("ann");
    CPPUNIT_ASSERT_EQUAL(first + 1, t.pool.machine(curly)->promised);
    parameters.licences = "gpu=2";
    t.apply(PolicySet{parameters, "root"});
    CPPUNIT_ASSERT(t.state(first + 1) == JobState::kPlaced);
    CPPUNIT_ASSERT(t.state(lesser) == JobState::kWaiting);
  }

  // A place that waits for a licence would stand idle for as long as others hold it.
  void no_place_is_promised_without_a_licence() {
    Parameters parameters = with("ansys=1");
    parameters.wide_wait = 0;
    TestPool t(parameters);
    const MachineId curly = join(t, "curly", "");
    const JobId first = t.submit("ann");
    Submitted::Job wide = asking("ansys=1");
    wide.needs.cores = 4;
    const JobId wanting = t.submit("bob", 1, wide);
    const JobId narrow = t.submit("ann");
    CPPUNIT_ASSERT_EQUAL(wanting, t.pool.machine(curly)->promised);
    CPPUNIT_ASSERT(t.state(narrow) == JobState::kWaiting);
    const MachineId moe = t.join("moe");  // of one core
    CPPUNIT_ASSERT_EQUAL(moe, t.machine_of(narrow));
    const JobId holder = t.submit("cid", 1, asking("ansys=1"));
    const JobId next = t.submit("ann", 3);
    CPPUNIT_ASSERT(t.state(next) == JobState::kWaiting);
    t.end(narrow, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(moe, t.machine_of(holder));
    CPPUNIT_ASSERT_EQUAL(JobId{0}, t.pool.machine(curly)->promised);
    for (JobId id = next; id < next + 3; ++id) CPPUNIT_ASSERT_EQUAL(curly, t.machine_of(id));
    for (const JobId id : {first, holder, next, next + 1, next + 2}) t.end(id, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(curly, t.machine_of(wanting));
  }

  // A stored text that cannot be read costs itself only.
  void damaged_texts() {
    TestPool t;
    join(t, "curly", "gpu=2");
    const JobId job = t.submit("ann", 2, asking("gpu=1"));
    Snapshot snapshot = t.books.snapshot();
    snapshot.machines[0].resources = "gpu";
    snapshot.jobs[1].needs.resources = "?";
    Pool restored{Parameters()};
    restored.restore(snapshot);
    restored.apply(ServerStarted(), t.now);
    CPPUNIT_ASSERT(restored.job(job)->state == JobState::kPlaced);
    CPPUNIT_ASSERT(restored.job(job + 1).has_value());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(NamedResourcesTest);
}  // namespace
}  // namespace sublet::scheduling
