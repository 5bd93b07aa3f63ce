// The order of users: the standings, and the sentence made from them.
#include "scheduling/queries/user_order.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <algorithm>

#include "scheduling/policies/job_policies.h"
#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

// Gives each user this usage in CPU seconds; no jobs are waiting afterwards.
void use_up(TestPool& t, const std::vector<std::pair<std::string, int64_t>>& used) {
  const MachineId m = t.join("past");
  for (const auto& [user, seconds] : used) {
    const JobId job = t.submit(user);
    t.start(job);
    t.end(job, EndReason::kDone, seconds * kSecond);
  }
  t.apply(MachineWithdrew{m});
  t.apply(Ticked());
}

Standing of(const TestPool& t, const std::string& user) {
  for (const Standing& s : t.pool.standings(t.now))
    if (s.user == user) return s;
  return {};
}

class UserOrderTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(UserOrderTest);
  CPPUNIT_TEST(behind_and_ahead);
  CPPUNIT_TEST(a_new_job_would_stand);
  CPPUNIT_TEST(texts);
  CPPUNIT_TEST(the_order_is_the_true_one);
  CPPUNIT_TEST_SUITE_END();

  void behind_and_ahead() {
    TestPool t;
    use_up(t, {{"ann", 10}, {"bob", 300}, {"cid", 100}});
    for (const char* user : {"bob", "ann", "cid"}) t.submit(user);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, of(t, "ann").place);
    CPPUNIT_ASSERT_EQUAL(std::string(), of(t, "ann").behind);
    CPPUNIT_ASSERT_EQUAL(std::string("cid"), of(t, "ann").ahead_of);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, of(t, "cid").place);
    CPPUNIT_ASSERT_EQUAL(std::string("ann"), of(t, "cid").behind);
    CPPUNIT_ASSERT_EQUAL(std::string("bob"), of(t, "cid").ahead_of);
    CPPUNIT_ASSERT_EQUAL(std::string("cid"), of(t, "bob").behind);
    CPPUNIT_ASSERT_EQUAL(std::string(), of(t, "bob").ahead_of);
  }

  void a_new_job_would_stand() {
    TestPool t;
    use_up(t, {{"ann", 10}, {"bob", 300}, {"cid", 100}});
    CPPUNIT_ASSERT_EQUAL(std::string(), of(t, "cid").behind + of(t, "cid").ahead_of);
    t.submit("bob");
    t.submit("ann");
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, of(t, "cid").place);
    CPPUNIT_ASSERT_EQUAL(std::string("ann"), of(t, "cid").behind);
    CPPUNIT_ASSERT_EQUAL(std::string("bob"), of(t, "cid").ahead_of);
    t.submit("cid");  // now it is really queued there
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, of(t, "cid").place);
    CPPUNIT_ASSERT_EQUAL(std::string("ann"), of(t, "cid").behind);
  }

  void texts() {
    Standing s;
    s.user = "eve";
    s.place = 2;
    s.behind = "ann";
    s.ahead_of = "bob";
    CPPUNIT_ASSERT_EQUAL(
        std::string("12 CPU hours in the last day at a share of 1 of 4: behind ann, ahead of bob"),
        user_order_text(s, 4, 12 * 3600 * kSecond));
    CPPUNIT_ASSERT_EQUAL(std::string("a share of 1 of 4: behind ann, ahead of bob"),
                         user_order_text(s, 4, std::nullopt));
    s.place = 1;
    s.behind = "";
    CPPUNIT_ASSERT_EQUAL(
        std::string("1 CPU minute in the last day at a share of 1 of 2.5: next in line, ahead of "
                    "bob"),
        user_order_text(s, 2.5, 60 * kSecond));
    s.ahead_of = "";
    CPPUNIT_ASSERT_EQUAL(std::string("a share of 1 of 1: next in line, nobody else waits"),
                         user_order_text(s, 1, std::nullopt));
    s.place = 0;
    CPPUNIT_ASSERT_EQUAL(
        std::string("0 CPU seconds in the last day at a share of 1 of 1: nobody waits"),
        user_order_text(s, 1, 0));
    s.behind = "ann";
    CPPUNIT_ASSERT_EQUAL(std::string("a share of 1 of 2: a new job would queue behind ann"),
                         user_order_text(s, 2, std::nullopt));
  }

  // The first user in the standings is served first for any usage, shares and turns.
  void the_order_is_the_true_one() {
    CPPUNIT_ASSERT(rc::check(
        "machines serve users in the order of their standings",
        [](std::vector<uint32_t> choices, bool turns, uint32_t policy) {
          Parameters p;
          const std::vector<std::string> policies = known_job_policies();
          p.job_policy = policies[policy % policies.size()];
          p.turns_by_machine = turns;
          TestPool t(p);
          const std::vector<std::string> users = {"ann", "bob", "cid", "dan"};
          std::vector<std::pair<std::string, int64_t>> used;
          for (size_t i = 0; i < choices.size() && i < 4; ++i)
            used.emplace_back(users[i], choices[i] % 3);  // equal ones too
          use_up(t, used);
          for (const uint32_t c : choices) {
            t.pass(c % 7 * kSecond);
            if (c % 5 == 0) t.apply(SharesSet{users[c % 4], 1.0 + c % 3});
            Submitted::Job job;
            job.priority = static_cast<int32_t>(c / 8 % 2);
            t.submit(users[c % 4], 1 + c % 2, job, "desk" + std::to_string(c / 16 % 3));
          }
          const MachineId m = t.join("m", 1, false);
          while (t.pool.waiting() > 0) {
            const auto standings = t.pool.standings(t.now);
            const auto next = std::find_if(standings.begin(), standings.end(),
                                           [](const Standing& s) { return s.place == 1; });
            RC_ASSERT(next != standings.end());
            RC_ASSERT(next->behind.empty());
            t.report(m, true);
            const JobId job = t.pool.machine(m)->running.at(0).job;
            RC_ASSERT(t.record(job).user == next->user);
            t.report(m, false);
            t.end(job, EndReason::kDone, kSecond);
          }
        }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(UserOrderTest);

}  // namespace
}  // namespace sublet::scheduling
