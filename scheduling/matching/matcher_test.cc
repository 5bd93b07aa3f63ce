// The queues IDLE and REQUESTING in cases worked out by hand; and Pool::why.
#include <cppunit/extensions/HelperMacros.h>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::as_in_1998;
using testing::kSecond;
using testing::TestPool;
using Ids = std::vector<MachineId>;
using Names = std::vector<std::string>;

class AllocationTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AllocationTest);
  CPPUNIT_TEST(idle_is_first_in_first_out);
  CPPUNIT_TEST(several_slots_keep_their_place);
  CPPUNIT_TEST(unfit_machines_keep_their_place);
  CPPUNIT_TEST(best_job_of_all);
  CPPUNIT_TEST(own_priority_orders_own_jobs_only);
  CPPUNIT_TEST(turns_by_machine);
  CPPUNIT_TEST(requirements);
  CPPUNIT_TEST(programs_of_platforms);
  CPPUNIT_TEST(slots_are_one_bound_of_several);
  CPPUNIT_TEST(more_slots_than_cores);
  CPPUNIT_TEST(memory_is_reserved);
  CPPUNIT_TEST(disk_is_reserved);
  CPPUNIT_TEST(new_jobs_of_many_sizes);
  CPPUNIT_TEST(behind_many_who_are_looked_at_in_vain);
  CPPUNIT_TEST(expressions_choose_machines);
  CPPUNIT_TEST(a_new_kind_while_a_user_is_throttled);
  CPPUNIT_TEST(many_expressions_are_few_groups);
  CPPUNIT_TEST(refusal_pauses);
  CPPUNIT_TEST(reasons_are_kept);
  CPPUNIT_TEST(why_it_waits);
  CPPUNIT_TEST(what_no_machine_could_ever_run);
  CPPUNIT_TEST_SUITE_END();

  static void done(TestPool& t, JobId job) { t.end(job, EndReason::kDone, 0); }

 public:
  void idle_is_first_in_first_out() {
    TestPool t;
    const MachineId a = t.join("a"), b = t.join("b"), c = t.join("c");
    const JobId job = t.submit("ann", 2);
    CPPUNIT_ASSERT_EQUAL(a, t.machine_of(job));
    CPPUNIT_ASSERT_EQUAL(b, t.machine_of(job + 1));
    done(t, job);  // a goes to the tail, behind c
    CPPUNIT_ASSERT(t.pool.idle() == (Ids{c, a}));
    t.report(c, true);  // a report does not change the order
    CPPUNIT_ASSERT(t.pool.idle() == (Ids{c, a}));
    t.report(c, false);
    t.report(c, true);
    CPPUNIT_ASSERT(t.pool.idle() == (Ids{a, c}));
  }

  void several_slots_keep_their_place() {
    TestPool t;
    const MachineId a = t.join("a", 2), b = t.join("b");
    const JobId job = t.submit("ann");
    CPPUNIT_ASSERT_EQUAL(a, t.machine_of(job));
    CPPUNIT_ASSERT(t.pool.idle() == (Ids{a, b}));
    CPPUNIT_ASSERT(t.books.machines[a].state == MachineState::kIdle);
    const JobId next = t.submit("ann");
    CPPUNIT_ASSERT_EQUAL(a, t.machine_of(next));
    CPPUNIT_ASSERT(t.pool.idle() == (Ids{b}));
    CPPUNIT_ASSERT(t.books.machines[a].state == MachineState::kBusy);
    done(t, job);
    CPPUNIT_ASSERT(t.pool.idle() == (Ids{b, a}));
  }

  void unfit_machines_keep_their_place() {
    TestPool t;
    const MachineId small = t.join("small");
    const MachineId big = t.join({0, "big", "linux", "x86_64", 1, 1, 64ull << 30, 1ull << 40});
    Submitted::Job wanted;
    wanted.needs.memory = 32ull << 30;
    const JobId job = t.submit("ann", 1, wanted);
    CPPUNIT_ASSERT_EQUAL(big, t.machine_of(job));
    CPPUNIT_ASSERT(t.pool.idle() == (Ids{small}));
    CPPUNIT_ASSERT_EQUAL(small, t.machine_of(t.submit("ann")));
  }

  // ann has usage, bob has none: bob's job is placed first though ann's came first.
  void best_job_of_all() {
    TestPool t(as_in_1998());
    const MachineId m = t.join("m");
    const JobId first = t.submit("ann", 1, {}, "desk-a");
    t.end(first, EndReason::kDone, 100 * kSecond);
    t.apply(Ticked());
    t.report(m, false);
    const JobId a = t.submit("ann", 1, {}, "desk-a");
    const JobId b = t.submit("bob", 2, {}, "desk-b");
    CPPUNIT_ASSERT(t.pool.requesting() == (Names{"desk-a", "desk-b"}));
    t.report(m, true);
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(b));
    // Once served, desk-b is at the tail; a tie would go to the other.
    CPPUNIT_ASSERT(t.pool.requesting() == (Names{"desk-a", "desk-b"}));
    done(t, b);
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(b + 1));
    done(t, b + 1);
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(a));
    CPPUNIT_ASSERT(t.pool.requesting().empty());
  }

  void own_priority_orders_own_jobs_only() {
    TestPool t;
    const MachineId m = t.join("m", 1, false);
    const JobId a = t.submit("ann", 1, {{}, 0, 0}, "desk-a");
    const JobId urgent = t.submit("ann", 1, {{}, 5, 0}, "desk-a");
    const JobId b = t.submit("bob", 1, {{}, 99, 0}, "desk-b");
    t.report(m, true);
    // No user has any usage: nobody was served yet, and ann came first; then her own order.
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(urgent));
    done(t, urgent);
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(b));  // who was not served yet
    done(t, b);
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(a));
  }

  // The same pool as best_job_of_all, but the head machine's turn comes first.
  void turns_by_machine() {
    Parameters p = as_in_1998();
    p.turns_by_machine = true;
    TestPool t(p);
    const MachineId m = t.join("m");
    const JobId first = t.submit("ann", 1, {}, "desk-a");
    t.end(first, EndReason::kDone, 100 * kSecond);
    t.apply(Ticked());
    t.report(m, false);
    const JobId a = t.submit("ann", 2, {}, "desk-a");
    const JobId b = t.submit("bob", 1, {}, "desk-b");
    Submitted::Job unfit;
    unfit.needs.os = "plan9";
    t.submit("cid", 1, unfit, "desk-c");
    t.report(m, true);
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(a));
    CPPUNIT_ASSERT(t.pool.requesting() == (Names{"desk-b", "desk-c", "desk-a"}));
    done(t, a);
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(b));
    CPPUNIT_ASSERT(t.pool.requesting() == (Names{"desk-c", "desk-a"}));
    done(t, b);  // no job of desk-c fits: it is skipped and keeps its position
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(a + 1));
    CPPUNIT_ASSERT(t.pool.requesting() == (Names{"desk-c"}));
  }

  void requirements() {
    const auto fits = [](const Requirements& needs, uint64_t memory_free = 0) {
      TestPool t;
      const MachineId m = t.join("m", 1, false);  // linux x86_64, 8 GiB, 100 GiB
      t.report(m, true, memory_free);
      return t.machine_of(t.submit("ann", 1, {needs, 0, 0})) == m;
    };
    CPPUNIT_ASSERT(fits({}));
    CPPUNIT_ASSERT(fits({"linux", "x86_64", 1, 8ull << 30, 100ull << 30}));
    CPPUNIT_ASSERT(!fits({"macos", "", 0, 0, 0}));
    CPPUNIT_ASSERT(!fits({"", "aarch64", 0, 0, 0}));
    CPPUNIT_ASSERT(!fits({"", "", 2, 0, 0}));
    CPPUNIT_ASSERT(!fits({"", "", 0, (8ull << 30) + 1, 0}));
    CPPUNIT_ASSERT(!fits({"", "", 0, 0, (100ull << 30) + 1}));
    CPPUNIT_ASSERT(!fits({"", "", 0, 2ull << 30, 0}, 1ull << 30));  // as reported
    CPPUNIT_ASSERT(fits({"", "", 0, 1ull << 30, 0}, 1ull << 30));
  }

  void programs_of_platforms() {
    TestPool t;
    const MachineId pc = t.join("pc");
    Submitted::Job wanted;
    wanted.needs.platforms = "linux/aarch64 linux/riscv64";
    const JobId job = t.submit("ann", 1, wanted);
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(job));
    CPPUNIT_ASSERT_EQUAL(std::string("no machine is linux/aarch64 or linux/riscv64"),
                         t.pool.why(job, t.now));
    CPPUNIT_ASSERT(!allows_platform(wanted.needs.platforms, "linux", "aarch6"));
    CPPUNIT_ASSERT(!allows_platform(wanted.needs.platforms, "inux", "aarch64"));
    CPPUNIT_ASSERT(!allows_platform(wanted.needs.platforms, "linux", "aarch64 linux/riscv64"));
    CPPUNIT_ASSERT(allows_platform(wanted.needs.platforms, "linux", "riscv64"));
    const MachineId arm = t.join({0, "arm", "linux", "aarch64", 1, 1, 64ull << 30, 1ull << 40});
    CPPUNIT_ASSERT_EQUAL(arm, t.machine_of(job));
    wanted.needs.platforms = "linux/aarch64 linux/x86_64";
    CPPUNIT_ASSERT_EQUAL(pc, t.machine_of(t.submit("ann", 1, wanted)));
    done(t, job);
    CPPUNIT_ASSERT_EQUAL(arm, t.machine_of(t.submit("ann", 1, wanted)));
  }

  void slots_are_one_bound_of_several() {
    constexpr uint64_t kGiB = 1ull << 30;
    TestPool t;
    const MachineId m = t.join({0, "m", "linux", "x86_64", 8, 3, 8 * kGiB, 100 * kGiB});
    const auto submit = [&](uint32_t cores, uint64_t memory, uint64_t disk = 0) {
      return t.submit("ann", 1, {{"", "", cores, memory * kGiB, disk * kGiB}, 0, 0});
    };
    const JobId wide = submit(5, 4);
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(wide));
    const JobId wider = submit(4, 0), large = submit(1, 5), full = submit(1, 0, 101);
    for (const JobId job : {wider, large, full})
      CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(job));
    CPPUNIT_ASSERT_EQUAL(std::string("1 machine fits, full; 1 job that comes first waits for the "
                                     "same machines"),
                         t.pool.why(large, t.now));
    const JobId small = submit(0, 4), last = submit(2, 0);
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(small));
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(last));
    CPPUNIT_ASSERT(t.pool.idle().empty());
    done(t, wide);
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(wider));
  }

  void more_slots_than_cores() {
    TestPool t;
    const MachineId m = t.join({0, "m", "linux", "x86_64", 2, 4, 8ull << 30, 1ull << 40});
    const JobId wide = t.submit("ann", 1, {{"", "", 3, 0, 0}, 0, 0});
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(wide));
    CPPUNIT_ASSERT_EQUAL(std::string("no machine has 3 cores (largest: 2 on m)"),
                         t.pool.why(wide, t.now));
    const JobId all = t.submit("ann", 1, {{"", "", 2, 0, 0}, 0, 0});
    const JobId narrow = t.submit("ann", 3);
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(all));
    CPPUNIT_ASSERT_EQUAL(m, t.machine_of(narrow + 1));
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(narrow + 2));
  }

  // What a job has written is not free, but it was reserved for it.
  void disk_is_reserved() {
    constexpr uint64_t kGiB = 1ull << 30;
    Submitted::Job job;
    job.needs.disk = 40 * kGiB;
    TestPool t;
    const MachineId m = t.join({0, "m", "linux", "x86_64", 8, 8, 8 * kGiB, 100 * kGiB}, false);
    const JobId first = t.submit("ann", 3, job);
    const auto renewal = [&](uint64_t used, uint64_t free) {
      t.apply(Renewed{m,
                      false,
                      {{t.key(first), AttemptState::kRunning, 0, 0, used * kGiB}},
                      MachineReported{m, true, 0, free * kGiB}});
    };
    t.apply(MachineReported{m, true, 0, 50 * kGiB});
    CPPUNIT_ASSERT_EQUAL(size_t{1}, t.pool.machine(m)->running.size());
    t.start(first);
    // What it uses beyond its reservation is free for nobody.
    renewal(60, 30);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, t.pool.machine(m)->running.size());
    // Never more than the machine has.
    renewal(40, 99);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, t.pool.machine(m)->running.size());
    renewal(35, 65);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, t.pool.machine(m)->running.size());
    done(t, first);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, t.pool.machine(m)->running.size());
    t.apply(MachineReported{m, true, 0, 80 * kGiB});
    CPPUNIT_ASSERT_EQUAL(size_t{2}, t.pool.machine(m)->running.size());
  }

  // Two of eight jobs of 12 GiB have room in 15 GiB and in 31, however the events come.
  void memory_is_reserved() {
    constexpr uint64_t kGiB = 1ull << 30;
    Submitted::Job job;
    job.needs.memory = 12 * kGiB;
    TestPool t;
    const MachineId m = t.join({0, "m", "linux", "x86_64", 8, 8, 31 * kGiB, 100 * kGiB}, false);
    const JobId first = t.submit("ann", 8, job);
    t.apply(MachineReported{m, true, 15 * kGiB, 100 * kGiB});
    CPPUNIT_ASSERT_EQUAL(size_t{1}, t.pool.machine(m)->running.size());
    // What the job uses is not free, but it was reserved for it.
    const auto renewal = [&](uint64_t used, uint64_t free) {
      t.apply(Renewed{m,
                      false,
                      {{t.key(first), AttemptState::kRunning, 0, used * kGiB}},
                      MachineReported{m, true, free * kGiB, 100 * kGiB}});
    };
    t.start(first);
    renewal(10, 5);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, t.pool.machine(m)->running.size());
    // What it uses beyond its reservation is not.
    renewal(20, 11);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, t.pool.machine(m)->running.size());
    t.report(m, true, 12 * kGiB);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, t.pool.machine(m)->running.size());
    // Never more than the machine has, whatever is reported.
    t.report(m, true, 90 * kGiB);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, t.pool.machine(m)->running.size());
    done(t, first);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, t.pool.machine(m)->running.size());
  }

  // None needs less than another of both; more sizes than the search for idle machines keeps apart.
  void new_jobs_of_many_sizes() {
    constexpr uint64_t kSizes = 20, kMiB = 1ull << 20;
    const auto memory = [](uint64_t k) { return 64 * kMiB << k; };
    const auto disk = [](uint64_t k) { return 64 * kMiB << (kSizes - k); };
    TestPool t;
    const MachineId small = t.join({0, "small", "linux", "x86_64", 1, 1, kMiB, kMiB});
    std::vector<MachineId> machines;
    Submitted all{1, "ann", "desk", {}};
    for (uint64_t k = 0; k < kSizes; ++k) {
      const std::string name = "m" + std::to_string(k);
      machines.push_back(t.join({0, name, "linux", "x86_64", 1, 1, memory(k), disk(k)}));
      t.apply(MachineReported{machines.back(), true, memory(k), disk(k)});
      Submitted::Job job;
      job.needs.memory = memory(k);
      job.needs.disk = disk(k);
      all.jobs.push_back(job);
    }
    const JobId first = t.apply(all).answer.first_job;
    for (uint64_t k = 0; k < kSizes; ++k)
      CPPUNIT_ASSERT_EQUAL(machines[k], t.machine_of(first + k));
    CPPUNIT_ASSERT(t.pool.idle() == Ids{small});
  }

  // Each of 100 users has a small job that fits no machine, and a large one of this group; so all
  // may have one that fits, as far as their bounds say. Of the two behind them who have, the one
  // that the policy puts first is served.
  void behind_many_who_are_looked_at_in_vain() {
    for (const std::string policy : {"fair-share", "round-robin", "umol"}) {
      Parameters parameters;
      parameters.job_policy = policy;
      TestPool t(parameters);
      const MachineId m = t.join({0, "m", "linux", "x86_64", 1, 1, 8ull << 30, 1ull << 40}, false);
      const auto submit = [&](const std::string& user, const std::string& os, uint64_t mib) {
        Submitted::Job job;
        job.needs.os = os;
        job.needs.memory = mib << 20;
        return t.submit(user, 1, job);
      };
      t.report(m, true, 2ull << 30);
      for (const std::string user : {"zoe", "yan"}) {
        t.end(t.submit(user), EndReason::kDone, (user == "zoe" ? 100 : 50) * kSecond);
        if (policy == "round-robin") t.end(t.submit("xu"), EndReason::kDone, 200 * kSecond);
      }
      t.report(m, false);
      for (int i = 0; i < 100; ++i) {
        const std::string user = "u" + std::to_string(i);
        submit(user, "haiku", 64);
        submit(user, "", 1500);
      }
      const JobId of_zoe = submit("zoe", "", 1100), of_yan = submit("yan", "", 1100);
      t.report(m, true, 1200ull << 20);
      // By usage; after xu, who was served last, by number; the longest ago.
      const JobId first = policy == "umol" ? of_zoe : of_yan;
      CPPUNIT_ASSERT_EQUAL_MESSAGE(policy, m, t.machine_of(first));
      t.end(first, EndReason::kDone, 0);
      CPPUNIT_ASSERT_EQUAL(m, t.machine_of(first == of_yan ? of_zoe : of_yan));
    }
  }

  void expressions_choose_machines() {
    TestPool t;
    const auto join = [&](const char* name, uint32_t cores, uint64_t gib) {
      return t.join({0, name, "linux", "x86_64", cores, 1, gib << 30, 1ull << 40});
    };
    const auto submit = [&](const std::string& require) {
      Submitted::Job job;
      job.needs.require = require;
      return t.submit("ann", 1, job);
    };
    const MachineId small = join("small", 2, 8);
    const JobId wants_more = submit("cores >= 4 and memory_mb >= 16384");
    const JobId wants_most = submit("cores >= 4 and memory_mb >= 32768");
    CPPUNIT_ASSERT_EQUAL(size_t{1}, t.pool.groups());  // nothing suits either
    CPPUNIT_ASSERT_EQUAL(std::string("no machine meets \"cores >= 4 and memory_mb >= 16384\""),
                         t.pool.why(wants_more, t.now));
    // A kind that tells them apart.
    const MachineId medium = join("medium", 8, 16);
    CPPUNIT_ASSERT_EQUAL(medium, t.machine_of(wants_more));
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(wants_most));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, t.pool.groups());
    const MachineId large = join("large", 8, 64);
    CPPUNIT_ASSERT_EQUAL(large, t.machine_of(wants_most));
    CPPUNIT_ASSERT_EQUAL(small, t.machine_of(submit("not (cores >= 4)")));
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(submit("os == 'linux' and slots > 1")));
    // It was refused when it was submitted; a stored one that is damaged suits nothing.
    const JobId damaged = submit("cores >=");
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(damaged));
    CPPUNIT_ASSERT_EQUAL(std::string("its requirement \"cores >=\" cannot be read"),
                         t.pool.why(damaged, t.now));
  }

  // A new kind of machine tells demands apart also for a user who is throttled at the time.
  void a_new_kind_while_a_user_is_throttled() {
    Parameters p;
    p.throttle = 1;
    p.throttle_span = 10 * kSecond;
    TestPool t(p);
    const auto join = [&](const char* name, const char* os) {
      return t.join({0, name, os, "x86_64", 1, 1, 8ull << 30, 1ull << 40});
    };
    join("first", "linux");
    t.submit("ann");  // it uses up her span
    Submitted::Job plan9, amiga;
    plan9.needs.os = "plan9";
    amiga.needs.os = "amiga";
    t.submit("ann", 1, amiga);
    const JobId wants_plan9 = t.submit("ann", 1, plan9);
    const MachineId second = join("second", "plan9");
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(wants_plan9));
    CPPUNIT_ASSERT(t.to_next_deadline());
    CPPUNIT_ASSERT_EQUAL(second, t.machine_of(wants_plan9));
  }

  // 10^5 different expressions of one user: few groups, and no decision looks at them all.
  void many_expressions_are_few_groups() {
    constexpr uint64_t kJobs = 100'000;
    Pool pool{Parameters()};
    std::vector<MachineId> machines;
    for (uint32_t cores = 1; cores <= 8; ++cores)
      machines.push_back(pool.apply(MachineJoined{0, "m" + std::to_string(cores), "linux", "x86_64",
                                                  cores, 1, 8ull << 30, 1ull << 40},
                                    testing::kStart)
                             .answer.machine);
    Submitted s{1, "ann", "desk", {}};
    s.jobs.resize(kJobs);
    for (uint64_t i = 0; i < kJobs; ++i)
      s.jobs[i].needs.require =
          "cores >= " + std::to_string(1 + i % 8) + " and memory_mb > " + std::to_string(i / 20);
    pool.apply(s, testing::kStart);
    CPPUNIT_ASSERT(pool.groups() <= 9);
    uint64_t looked_at = 0;
    for (int i = 0; i < 1000; ++i) {
      const MachineId m = machines[static_cast<size_t>(i) % 8];
      const Outcome placed = pool.apply(MachineReported{m, true, 1ull << 30, 1}, testing::kStart);
      CPPUNIT_ASSERT_EQUAL(size_t{1}, placed.decisions.size());
      looked_at += placed.records.size();
      pool.apply(MachineReported{m, false, 1ull << 30, 1}, testing::kStart);
      const auto& order = std::get<StartAttempt>(placed.decisions[0]);
      pool.apply(AttemptEnded{order.key, m, EndReason::kDone, ""}, testing::kStart);
    }
    CPPUNIT_ASSERT(looked_at < 10'000);
  }

  void refusal_pauses() {
    for (const bool reports : {false, true}) {
      TestPool t;
      const MachineId m = t.join("m");
      const JobId job = t.submit("ann");
      t.apply(OrderAnswered{t.key(job), OrderAnswered::Answer::kNotDelivered, ""});
      CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(job));
      CPPUNIT_ASSERT(t.pool.idle().empty());
      CPPUNIT_ASSERT_EQUAL(std::string("1 machine fits, pausing after a refusal"),
                           t.pool.why(job, t.now));
      if (reports) {
        t.report(m, true);
      } else {
        CPPUNIT_ASSERT_EQUAL(t.now + kSecond, *t.pool.next_deadline());
        t.pass(kSecond - 1);
        t.apply(TimePassed());
        CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(job));
        t.pass(1);
        t.apply(TimePassed());
      }
      CPPUNIT_ASSERT_EQUAL(m, t.machine_of(job));
      CPPUNIT_ASSERT_EQUAL(2u, t.key(job).attempt);
    }
  }

  void reasons_are_kept() {
    TestPool t(as_in_1998());
    t.join("curly");
    t.pass(12 * kSecond);
    const JobId job = t.submit("ann");
    CPPUNIT_ASSERT_EQUAL(
        std::string("first in the queue: ann, priority 0 (usage 0 CPU s, 1 active, "
                    "1 share); machine curly idle for 12 s"),
        t.pool.attempt(job)->reason.text());
    t.apply(AttemptEnded{t.key(job), t.machine_of(job), EndReason::kExit, "status 3"});
    CPPUNIT_ASSERT_EQUAL(std::string("attempt 1 failed: exit status other than 0 (status 3)"),
                         t.record(job).reason);
  }

  void why_it_waits() {
    TestPool t(as_in_1998());
    Submitted::Job big;
    big.needs.memory = 64ull << 30;
    const JobId job = t.submit("ann", 1, big);
    const auto why = [&](JobId id) { return t.pool.why(id, t.now); };
    CPPUNIT_ASSERT_EQUAL(
        std::string("no machine is in the pool: start sublet-client on a workstation"), why(job));
    const MachineId a = t.join("a");
    CPPUNIT_ASSERT_EQUAL(std::string("no machine has 64 GiB of memory (largest: 8 GiB on a)"),
                         why(job));
    t.report(a, false);
    t.join("b", 1, false);
    const JobId small = t.submit("bob", 3);
    CPPUNIT_ASSERT_EQUAL(std::string("2 machines fit, all used by their owners"), why(small));
    CPPUNIT_ASSERT_EQUAL(std::string("2 machines fit, all used by their owners; 2 jobs that come "
                                     "first wait for the same machines"),
                         why(small + 2));
    t.apply(MachineReported{a, false, 0, 100ull << 30, 0, 0, true});  // its disk is full, say
    CPPUNIT_ASSERT_EQUAL(
        std::string("2 machines fit: 1 used by its owner, 1 taking no jobs at present"),
        why(small));
    t.report(a, true);
    const auto starts = [&](const std::string& sentence) {
      CPPUNIT_ASSERT_EQUAL(sentence, why(small).substr(0, sentence.size()));
    };
    const AttemptKey key{small, 1};
    starts("attempt 1 has been waiting for an answer from a for 0 s: first in the queue: bob, ");
    t.apply(OrderAnswered{key, OrderAnswered::Answer::kAccepted, ""});
    starts("attempt 1 has been in preparation on a for 0 s: first in the queue: bob, ");
    t.apply(AttemptStarted{key, a});
    t.pass(200 * kSecond);
    starts("attempt 1 has been running on a for 3 min: first in the queue: bob, ");
    t.apply(Renewed{a, false, {{key, AttemptState::kLeaving}}});
    starts("attempt 1 has been leaving a for 0 s: first in the queue: bob, ");
    CPPUNIT_ASSERT_EQUAL(
        std::string("2 machines fit: 1 used by its owner, 1 full; 1 job that comes "
                    "first waits for the same machines"),
        why(small + 2));
    t.apply(JobsHeld{{small + 2}, {}, "bob"});
    CPPUNIT_ASSERT_EQUAL(std::string("held by bob until it is released"), why(small + 2));
    CPPUNIT_ASSERT_EQUAL(std::string("job 99 is not live"), why(99));
  }

  void what_no_machine_could_ever_run() {
    TestPool t;
    const auto needs = [](uint64_t gib, uint32_t cores = 1, const std::string& os = "") {
      Requirements out;
      out.memory = gib << 30;
      out.cores = cores;
      out.os = os;
      return out;
    };
    // Nothing is known of an empty pool.
    CPPUNIT_ASSERT_EQUAL(std::string(), t.pool.unsuitable(needs(1000)));
    const MachineId a = t.join("a", 2);  // 8 GiB
    CPPUNIT_ASSERT_EQUAL(std::string("no machine has 9 GiB of memory (largest: 8 GiB on a)"),
                         t.pool.unsuitable(needs(9)));
    // What is in use, or its owner's, counts: it may become free.
    CPPUNIT_ASSERT_EQUAL(std::string(), t.pool.unsuitable(needs(8)));
    t.apply(MachineReported{a, false, 1ull << 30, 1ull << 30});
    CPPUNIT_ASSERT_EQUAL(std::string(), t.pool.unsuitable(needs(8)));
    // A machine that has gone may come back.
    const MachineId big = t.join({0, "big", "plan9", "x86_64", 8, 1, 64ull << 30, 1ull << 40});
    t.apply(MachineWithdrew{big});
    CPPUNIT_ASSERT_EQUAL(std::string(), t.pool.unsuitable(needs(64, 8, "plan9")));
    CPPUNIT_ASSERT_EQUAL(std::string("no machine that fits otherwise has 9 cores "
                                     "(largest: 8 on big)"),
                         t.pool.unsuitable(needs(64, 9, "plan9")));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(AllocationTest);
}  // namespace
}  // namespace sublet::scheduling
