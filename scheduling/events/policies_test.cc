// Policies that take over while the brain runs.
#include <cppunit/extensions/HelperMacros.h>

#include <string>
#include <vector>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

constexpr Micros kMinute = 60 * kSecond;

PolicyChoice named(const std::string& job_policy) {
  PolicyChoice choice;
  choice.job_policy = job_policy;
  return choice;
}
Parameters settings_with(const std::string& job_policy) {
  Parameters settings;
  settings.job_policy = job_policy;
  return settings;
}

class PoliciesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PoliciesTest);
  CPPUNIT_TEST(what_waits_is_in_the_new_order);
  CPPUNIT_TEST(hosts_take_turns_only_while_they_are_to);
  CPPUNIT_TEST(it_is_recorded_once);
  CPPUNIT_TEST(what_cannot_be_is_refused);
  CPPUNIT_TEST(settings_give_way_to_an_administrator);
  CPPUNIT_TEST(a_restored_brain_keeps_it);
  CPPUNIT_TEST(a_damaged_record_leaves_the_settings);
  CPPUNIT_TEST(charges_decay_under_any_policy);
  CPPUNIT_TEST(the_throttle_passes_over_who_has_had_enough);
  CPPUNIT_TEST(the_throttle_ends_with_its_setting);
  CPPUNIT_TEST(the_throttle_ends_with_a_shorter_span);
  CPPUNIT_TEST_SUITE_END();

  // The jobs that a machine takes, each of which ends at once.
  static std::vector<JobId> taken(TestPool& t, MachineId machine, size_t count) {
    std::vector<JobId> taken;
    for (t.report(machine, true); taken.size() < count;) {
      taken.push_back(t.pool.machine(machine)->running.at(0).job);
      t.end(taken.back(), EndReason::kDone);
    }
    return taken;
  }

  // bob's jobs are newer, but he has used less.
  void what_waits_is_in_the_new_order() {
    TestPool t;
    const MachineId m = t.join("curly");
    const JobId used = t.submit("ann");
    t.start(used);
    t.pass(kMinute);
    t.end(used, EndReason::kDone, 60 * kSecond);
    t.report(m, false);
    t.submit("ann", 3);
    t.submit("bob", 3);
    t.apply(PolicySet{named("fifo"), "root"});
    CPPUNIT_ASSERT(t.last.answer.accepted);
    CPPUNIT_ASSERT(t.last.decisions.empty());
    CPPUNIT_ASSERT(taken(t, m, 2) == (std::vector<JobId>{2, 3}));
    t.report(m, false);
    t.end(t.pool.machine(m)->running.at(0).job, EndReason::kOwner);
    t.apply(PolicySet{named("fair-share"), "root"});
    CPPUNIT_ASSERT(taken(t, m, 3) == (std::vector<JobId>{5, 6, 7}));
  }

  // ann's jobs are better, but bob's host is at the head of REQUESTING.
  void hosts_take_turns_only_while_they_are_to() {
    for (const bool turns : {false, true}) {
      Parameters before = testing::as_in_1998();
      before.turns_by_machine = !turns;
      TestPool t(before);
      const MachineId m = t.join("curly");
      const JobId used = t.submit("bob", 1, {}, "a-desk");
      t.end(used, EndReason::kDone, 60 * kSecond);
      t.apply(Ticked());
      t.report(m, false);
      const JobId bob = t.submit("bob", 2, {}, "a-desk"), ann = t.submit("ann", 2, {}, "b-desk");
      PolicyChoice after = before;
      after.turns_by_machine = turns;
      t.apply(PolicySet{after, "root"});
      CPPUNIT_ASSERT_EQUAL(turns ? bob : ann, taken(t, m, 1).front());
    }
  }

  void it_is_recorded_once() {
    TestPool t;
    t.pass(kMinute);
    t.apply(PolicySet{named("umol"), "root"});
    CPPUNIT_ASSERT_EQUAL(size_t{1}, t.last.records.size());
    CPPUNIT_ASSERT((*t.books.policy == PolicyRecord{named("umol"), t.now, "root"}));
    CPPUNIT_ASSERT(t.pool.policy() == *t.books.policy);
    t.pass(kMinute);
    t.apply(PolicySet{named("umol"), "root"});
    CPPUNIT_ASSERT(t.last.records.empty());
    CPPUNIT_ASSERT_EQUAL(t.now - kMinute, t.pool.policy().since);
    t.apply(PolicySet{named("umol"), "ann"});
    CPPUNIT_ASSERT_EQUAL(t.now, t.pool.policy().since);
  }

  void what_cannot_be_is_refused() {
    TestPool t;
    const PolicyRecord before = t.pool.policy();
    PolicyChoice wrong[] = {named("nearest"), {}, {}, {}};
    wrong[1].machine_policy = "nearest";
    wrong[2].half_life = 0;
    wrong[3].floor = 1.5;
    for (const PolicyChoice& choice : wrong) {
      t.apply(PolicySet{choice, "root"});
      CPPUNIT_ASSERT(!t.last.answer.accepted && t.last.records.empty());
      CPPUNIT_ASSERT(t.pool.policy() == before);
    }
  }

  void settings_give_way_to_an_administrator() {
    TestPool t;
    const auto in_force = [&] {
      return t.pool.policy().choice.job_policy + " by " + t.pool.policy().by;
    };
    t.apply(ServerStarted{settings_with("fifo")});
    CPPUNIT_ASSERT_EQUAL(std::string("fifo by "), in_force());
    CPPUNIT_ASSERT_EQUAL(t.now, t.pool.policy().since);
    t.apply(PolicySet{named("random"), "root"});
    t.apply(ServerStarted{settings_with("umol")});
    CPPUNIT_ASSERT_EQUAL(std::string("random by root"), in_force());
    t.apply(PolicySet{named("umol")});
    CPPUNIT_ASSERT_EQUAL(std::string("umol by "), in_force());
    t.apply(ServerStarted{settings_with("fifo")});
    CPPUNIT_ASSERT_EQUAL(std::string("fifo by "), in_force());
  }

  void a_restored_brain_keeps_it() {
    TestPool t;
    t.apply(PolicySet{named("random"), "root"});
    Pool restored(settings_with("umol"));
    CPPUNIT_ASSERT(restored.restore(t.books.snapshot()).empty());
    CPPUNIT_ASSERT(restored.apply(ServerStarted{settings_with("umol")}, t.now).records.empty());
    CPPUNIT_ASSERT(restored.policy() == t.pool.policy());
    CPPUNIT_ASSERT((restored.anchor().parameters == settings_with("random")));
  }

  void a_damaged_record_leaves_the_settings() {
    TestPool t;
    t.apply(PolicySet{named("random"), "root"});
    Snapshot damaged = t.books.snapshot();
    damaged.policy->choice.job_policy = "nearest";
    Pool restored(settings_with("umol"));
    const auto complaints = restored.restore(damaged);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, complaints.size());
    CPPUNIT_ASSERT_EQUAL(std::string("the stored policies are left out: job_policy 'nearest' is "
                                     "not known; known: fair-share, fair-share-1998, up-down, "
                                     "fifo, round-robin, random, umol; the settings count"),
                         complaints[0]);
    CPPUNIT_ASSERT_EQUAL(std::string("umol"), restored.policy().choice.job_policy);
  }

  // What fair share has charged for a job is given back when it is evicted under another policy,
  // as far as it has not decayed: ann, who had two jobs, has used as much as bob, who had one.
  void charges_decay_under_any_policy() {
    Parameters settings;
    settings.half_life = 60 * kMinute;
    TestPool t(settings);
    t.join("curly", 3);
    const std::vector<JobId> jobs = {t.submit("bob"), t.submit("ann"), t.submit("ann")};
    for (const JobId job : jobs) t.start(job);
    const auto run_for_an_hour = [&] {
      for (int i = 0; i < 60; ++i) {
        t.pass(kMinute);
        for (const JobId job : jobs) t.renew(job);
        t.apply(Ticked());
      }
    };
    run_for_an_hour();
    settings.job_policy = "fifo";
    t.apply(PolicySet{settings, "root"});
    run_for_an_hour();
    t.end(jobs.back(), EndReason::kOwner, 7200 * kSecond);
    const UserRecord &ann = t.books.users["ann"], &bob = t.books.users["bob"];
    CPPUNIT_ASSERT(bob.usage > 1000);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(1, (ann.usage + ann.charges) / (bob.usage + bob.charges), 0.02);
  }

  static Parameters two_in_a_minute() {
    Parameters settings;
    settings.throttle = 2;
    settings.throttle_span = kMinute;
    settings.lease = 60 * kMinute;
    return settings;
  }
  static std::vector<JobId> running(const TestPool& t) {
    std::vector<JobId> running;
    const auto view = t.pool.machine(1);
    for (const AttemptKey& key : view->running) running.push_back(key.job);
    return running;
  }

  // ann has the first places, bob the next; the others of ann's come when the minute is over.
  void the_throttle_passes_over_who_has_had_enough() {
    TestPool t(two_in_a_minute());
    t.join("curly", 5);
    t.submit("ann", 4);
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{1, 2}));
    CPPUNIT_ASSERT_EQUAL(std::string("ann has been given 2 places, as many as the throttle allows: "
                                     "the next in 60 s"),
                         t.pool.why(3, t.now));
    CPPUNIT_ASSERT(!t.pool.outlook(3, t.now));
    t.pass(20 * kSecond);
    // As much as ann's job needs, which waits beside an idle machine.
    t.submit("bob", 1);
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{1, 2, 5}));
    Pool restored(two_in_a_minute());
    CPPUNIT_ASSERT(restored.restore(t.books.snapshot()).empty());
    CPPUNIT_ASSERT_EQUAL(testing::kStart + kMinute, *t.pool.next_deadline());
    CPPUNIT_ASSERT(restored.next_deadline() == t.pool.next_deadline());
    CPPUNIT_ASSERT(t.to_next_deadline());
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{1, 2, 3, 4, 5}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, t.books.users["ann"].placed);
    CPPUNIT_ASSERT_EQUAL(t.now, t.books.users["ann"].placed_since);
  }

  void the_throttle_ends_with_its_setting() {
    TestPool t(two_in_a_minute());
    t.join("curly", 5);
    t.submit("ann", 4);
    PolicyChoice choice = two_in_a_minute();
    choice.throttle = 3;
    t.apply(PolicySet{choice, "root"});
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{1, 2, 3}));
    t.apply(PolicySet{{}, "root"});
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{1, 2, 3, 4}));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, t.books.users["ann"].placed);
  }

  void the_throttle_ends_with_a_shorter_span() {
    TestPool t(two_in_a_minute());
    t.join("curly", 5);
    t.submit("ann", 4);
    t.pass(20 * kSecond);
    PolicyChoice choice = two_in_a_minute();
    choice.throttle_span = 10 * kSecond;
    t.apply(PolicySet{choice, "root"});
    CPPUNIT_ASSERT(running(t) == (std::vector<JobId>{1, 2, 3, 4}));
    CPPUNIT_ASSERT_EQUAL(t.now, t.books.users["ann"].placed_since);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(PoliciesTest);

}  // namespace
}  // namespace sublet::scheduling
