// The pool's limits: how many jobs a user may have on machines at a time, and a machine may take.
#include <cppunit/extensions/HelperMacros.h>

#include "scheduling/machine_limits.h"
#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

Parameters with_limits(uint64_t per_user, const std::string& per_machine = "") {
  Parameters p;
  p.most_per_user = per_user;
  p.most_per_machine = per_machine;
  return p;
}

std::vector<JobId> running(const TestPool& t, MachineId machine = 1) {
  std::vector<JobId> running;
  const auto view = t.pool.machine(machine);
  for (const AttemptKey& key : view->running) running.push_back(key.job);
  return running;
}

class LimitsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LimitsTest);
  CPPUNIT_TEST(a_user_has_so_many_at_a_time);
  CPPUNIT_TEST(what_is_leaving_counts);
  CPPUNIT_TEST(a_lower_limit_ends_nothing);
  CPPUNIT_TEST(a_machine_takes_so_many_at_a_time);
  CPPUNIT_TEST(a_batch_has_so_many_at_a_time);
  CPPUNIT_TEST(a_large_job_of_a_batch_blocks_no_other);
  CPPUNIT_TEST(a_restored_batch_keeps_its_limit);
  CPPUNIT_TEST(restored_at_the_limit);
  CPPUNIT_TEST(limits_of_machines_are_read);
  CPPUNIT_TEST(a_user_at_his_limit_costs_nothing);
  CPPUNIT_TEST_SUITE_END();

 public:
  // On all machines together; others are served meanwhile.
  void a_user_has_so_many_at_a_time() {
    TestPool t(with_limits(2));
    t.join("curly", 1);
    const MachineId moe = t.join("moe", 3);
    t.submit("ann", 4);
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{1}) &&
                   running(t, moe) == (std::vector<JobId>{2}));
    CPPUNIT_ASSERT_EQUAL(
        std::string("ann has 2 jobs on machines; the pool allows a user 2 at a time"),
        t.pool.why(3, t.now));
    CPPUNIT_ASSERT(!t.pool.outlook(3, t.now));
    t.submit("bob", 1);
    CPPUNIT_ASSERT(t.machine_of(5) != 0);
    t.start(1);
    t.end(1, EndReason::kDone);
    CPPUNIT_ASSERT(t.machine_of(3) != 0 && t.machine_of(4) == 0);
    // A failure that is tried again is one of his two, too.
    t.end(2, EndReason::kOwner);
    CPPUNIT_ASSERT(t.machine_of(2) != 0 && t.machine_of(4) == 0);
  }

  // A removed job holds its place until it has left.
  void what_is_leaving_counts() {
    TestPool t(with_limits(1));
    t.join("curly", 2);
    t.submit("ann", 2);
    const AttemptKey first = t.key(1);
    t.apply(JobsRemoved{{1}});
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(2));
    t.apply(AttemptEnded{first, 1, EndReason::kRemoved, ""});
    CPPUNIT_ASSERT_EQUAL(MachineId{1}, t.machine_of(2));
  }

  void a_lower_limit_ends_nothing() {
    TestPool t;
    t.join("curly", 4);
    t.submit("ann", 6);
    CPPUNIT_ASSERT_EQUAL(size_t{4}, running(t).size());
    t.apply(PolicySet{with_limits(2), "root"});
    CPPUNIT_ASSERT_EQUAL(size_t{4}, running(t).size());
    for (const JobId job : {1, 2}) t.end(job, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, running(t).size());
    t.end(3, EndReason::kDone);
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{4, 5}));
    t.apply(PolicySet{with_limits(0), "root"});
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{4, 5, 6}));
  }

  // The smaller of the owner's slots and the pool's limit, by name before the one for all.
  void a_machine_takes_so_many_at_a_time() {
    TestPool t(with_limits(0, "2 moe=1 shemp=9"));
    t.join("curly", 3);
    const MachineId moe = t.join("moe", 3), shemp = t.join("shemp", 3);
    t.submit("ann", 12);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, running(t).size());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, running(t, moe).size());
    CPPUNIT_ASSERT_EQUAL(size_t{3}, running(t, shemp).size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, t.pool.machine(1)->places);
    CPPUNIT_ASSERT(
        t.pool.why(12, t.now).starts_with("3 machines fit: 1 full, 2 at their limits of jobs; "));
    CPPUNIT_ASSERT(t.books.machines.at(moe).state == MachineState::kBusy);
    t.apply(PolicySet{with_limits(0, "moe=2"), "root"});
    CPPUNIT_ASSERT_EQUAL(size_t{3}, running(t).size());
    CPPUNIT_ASSERT_EQUAL(size_t{2}, running(t, moe).size());
    // It joins under another name.
    t.apply(MachineJoined{moe, "larry", "linux", "x86_64", 3, 3, 8ull << 30, 100ull << 30});
    t.report(moe, true);
    CPPUNIT_ASSERT_EQUAL(size_t{3}, running(t, moe).size());
  }

  static JobId submit_limited(TestPool& t, const std::vector<Submitted::Job>& jobs,
                              uint64_t at_most, const std::string& user = "ann") {
    const BatchId batch = t.apply(BatchOpened()).answer.batch;
    return t.apply(Submitted{batch, user, "desk", jobs, {}, OnNever::kHold, at_most})
        .answer.first_job;
  }

  // An array and a single job together; the user's other jobs run beside them.
  void a_batch_has_so_many_at_a_time() {
    TestPool t;
    t.join("curly", 8);
    Submitted::Job array;
    array.count = 5;
    const JobId first = submit_limited(t, {array, {}}, 2);
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{1, 2}));
    CPPUNIT_ASSERT_EQUAL(std::string("its batch has 2 jobs on machines, and at most 2 at a time"),
                         t.pool.why(4, t.now));
    CPPUNIT_ASSERT(!t.pool.outlook(4, t.now));
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.pool.limited_batches("ann"));
    t.submit("ann", 2);
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{1, 2, 7, 8}));
    submit_limited(t, {array}, 1);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, t.pool.limited_batches("ann"));
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{1, 2, 7, 8, 9}));
    // What is removed holds its place until it has left.
    const AttemptKey second = t.key(2);
    t.apply(JobsRemoved{{2}});
    CPPUNIT_ASSERT_EQUAL(MachineId{0}, t.machine_of(3));
    t.apply(AttemptEnded{second, 1, EndReason::kRemoved, ""});
    CPPUNIT_ASSERT_EQUAL(MachineId{1}, t.machine_of(3));
    for (const JobId job : {1, 3, 4, 5, 6}) {
      CPPUNIT_ASSERT_EQUAL(MachineId{1}, t.machine_of(job));
      t.end(job, EndReason::kDone);
    }
    CPPUNIT_ASSERT(is_final(t.state(first)));
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.pool.limited_batches("ann"));
  }

  // No machine lies idle because the first job of a batch does not fit it.
  void a_large_job_of_a_batch_blocks_no_other() {
    TestPool t;
    t.join("curly", 2);
    Submitted::Job large, small;
    large.needs.memory = 1ull << 40;
    submit_limited(t, {large, small, small, large}, 1);
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{2}));
    t.end(2, EndReason::kDone);
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{3}));
  }

  void a_restored_batch_keeps_its_limit() {
    TestPool t;
    t.join("curly", 4);
    submit_limited(t, std::vector<Submitted::Job>(4), 2);
    const AttemptKey first = t.key(1);
    t.apply(JobsRemoved{{1}});  // it counts until it has left
    Pool restored{Parameters()};
    CPPUNIT_ASSERT(restored.restore(t.books.snapshot()).empty());
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, restored.limited_batches("ann"));
    for (Pool* pool : {&t.pool, &restored}) {
      pool->apply(ServerStarted(), t.now);
      pool->apply(MachineReported{1, true, 0, 100ull << 30}, t.now);
      CPPUNIT_ASSERT(pool->attempt(3) == nullptr);
      pool->apply(AttemptEnded{first, 1, EndReason::kRemoved, ""}, t.now);
      CPPUNIT_ASSERT(pool->attempt(3) != nullptr && pool->attempt(4) == nullptr);
    }
  }

  void restored_at_the_limit() {
    TestPool t(with_limits(1, "1"));
    t.join("curly", 2);
    t.submit("ann", 2);
    t.submit("bob", 1);
    Pool restored(with_limits(1, "1"));
    CPPUNIT_ASSERT(restored.restore(t.books.snapshot()).empty());
    for (Pool* pool : {&t.pool, &restored}) {
      const Parameters only_users = with_limits(1);
      pool->apply(ServerStarted{only_users}, t.now);
      pool->apply(MachineReported{1, true, 0, 100ull << 30}, t.now);
      CPPUNIT_ASSERT(pool->attempt(1) != nullptr && pool->attempt(2) == nullptr);
      CPPUNIT_ASSERT(pool->attempt(3) != nullptr);
    }
  }

  void limits_of_machines_are_read() {
    const auto read = [](const std::string& text) {
      const auto limits = parse_machine_limits(text);
      return limits ? limits->text() : "none";
    };
    CPPUNIT_ASSERT_EQUAL(std::string(), read(" "));
    CPPUNIT_ASSERT_EQUAL(std::string("4 curly=2 moe=1000000"), read("moe=1000000  4 curly=2"));
    CPPUNIT_ASSERT_EQUAL(std::string("a=b=2"), read("a=b=2"));
    for (const char* text : {"0", "x", "-1", "4 5", "curly=0", "curly=", "=2", "curly", "1000001",
                             "curly=1 curly=1", "18446744073709551617"})
      CPPUNIT_ASSERT_EQUAL_MESSAGE(text, std::string("none"), read(text));
    CPPUNIT_ASSERT_EQUAL(std::string("most_per_machine cannot be read"),
                         problem_with(with_limits(0, "x")));
  }

  // His jobs stand in no line: many of them are not looked at while others are served.
  void a_user_at_his_limit_costs_nothing() {
    TestPool t(with_limits(1));
    const MachineId m = t.join("curly", 2);
    std::vector<Submitted::Job> jobs(20'000);
    for (size_t i = 0; i < jobs.size(); ++i) jobs[i].priority = static_cast<int32_t>(i);
    t.apply(Submitted{1, "ann", "desk", jobs});
    for (int i = 0; i < 100; ++i) {
      const JobId job = t.submit("bob");
      CPPUNIT_ASSERT_EQUAL(m, t.machine_of(job));
      t.pass(kSecond);
      t.end(job, EndReason::kDone);
      CPPUNIT_ASSERT(t.last.records.size() < 10);
    }
    CPPUNIT_ASSERT_EQUAL(uint64_t{19'999}, t.pool.waiting());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(LimitsTest);
}  // namespace
}  // namespace sublet::scheduling
