// Users who share an account: the policies count them as one, and everything else as who they are.
#include "scheduling/accounts.h"

#include <cppunit/extensions/HelperMacros.h>

#include <map>
#include <string>
#include <vector>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
using testing::kSecond;
using testing::TestPool;

constexpr char kLab[] = "lab=ann bob";

Parameters with_accounts(const std::string& job_policy = "fair-share",
                         const std::string& accounts = kLab) {
  Parameters p;
  p.job_policy = job_policy;
  p.accounts = accounts;
  return p;
}

class AccountsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AccountsTest);
  CPPUNIT_TEST(lists_are_read);
  CPPUNIT_TEST(a_stored_list_is_no_longer);
  CPPUNIT_TEST(what_is_wrong_with_a_list_is_said);
  CPPUNIT_TEST(a_brain_refuses_a_wrong_list);
  CPPUNIT_TEST(the_index_rises_by_the_attempts_of_all);
  CPPUNIT_TEST(the_index_falls_once_for_all_who_wait);
  CPPUNIT_TEST(the_credit_is_the_accounts);
  CPPUNIT_TEST(an_account_has_the_share_of_one_user);
  CPPUNIT_TEST(turns_are_by_account);
  CPPUNIT_TEST(shares_are_the_accounts);
  CPPUNIT_TEST(limits_are_by_account);
  CPPUNIT_TEST(records_name_the_users);
  CPPUNIT_TEST(failures_count_by_user);
  CPPUNIT_TEST(members_jobs_stand_in_one_line);
  CPPUNIT_TEST(priority_takes_places_of_the_same_user_only);
  CPPUNIT_TEST(an_account_takes_places_by_its_index);
  CPPUNIT_TEST(another_list_moves_the_jobs);
  CPPUNIT_TEST_SUITE_END();

  static int64_t lab_index(const TestPool& t) { return t.books.users.at("@lab").index; }
  static void tick(TestPool& t, int times = 1) {
    for (int i = 0; i < times; ++i) t.apply(Ticked());
  }

  void lists_are_read() {
    const Accounts two = Accounts::parse(" lab-g=ann,\tlab-f = smith  jones\n");
    CPPUNIT_ASSERT_EQUAL(std::string("lab-f=jones smith,lab-g=ann"), two.text());
    CPPUNIT_ASSERT_EQUAL(two.text(), Accounts::parse(two.text()).text());
    CPPUNIT_ASSERT_EQUAL(std::string("@lab-f"), two.of("smith"));
    CPPUNIT_ASSERT_EQUAL(std::string("cid"), two.of("cid"));
    CPPUNIT_ASSERT(two.has("@lab-g") && !two.has("lab-g") && !two.has("ann"));
    CPPUNIT_ASSERT_EQUAL(std::string(), Accounts::parse(" ").text());
    CPPUNIT_ASSERT_EQUAL(
        std::string("user ann is in account lab-g, whose shares count: use \"@lab-g\" instead"),
        two.why_uncounted("ann"));
    CPPUNIT_ASSERT_EQUAL(std::string("there is no account lab in scheduling.accounts"),
                         two.why_uncounted("@lab"));
    CPPUNIT_ASSERT_EQUAL(std::string(), two.why_uncounted("@lab-f") + two.why_uncounted("cid"));
    CPPUNIT_ASSERT((two.users_of("@lab-f") == std::vector<std::string>{"jones", "smith"}));
    CPPUNIT_ASSERT(two.users_of("@lab").empty() && two.users_of("jones").empty());
  }

  // So what was accepted is accepted again in the form that is stored.
  void a_stored_list_is_no_longer() {
    std::string text;
    for (int i = 0; text.size() < kLongestAccounts - 20; ++i)
      text += (i == 0 ? "" : ",") + std::to_string(i) + "=u" + std::to_string(i);
    const std::string stored = Accounts::parse(text).text();
    CPPUNIT_ASSERT(stored.size() <= text.size());
    CPPUNIT_ASSERT_EQUAL(stored, Accounts::parse(stored).text());
  }

  void what_is_wrong_with_a_list_is_said() {
    const auto problem = [](const std::string& text) -> std::string {
      try {
        Accounts::parse(text);
      } catch (const AccountError& e) {
        return e.what();
      }
      return "";
    };
    CPPUNIT_ASSERT_EQUAL(
        std::string("user 'ann' is listed in account a and in account b; a user can "
                    "be in only one account, once"),
        problem("a=ann, b=bob ann"));
    CPPUNIT_ASSERT(
        problem("a=ann ann").starts_with("user 'ann' is listed in account a and in account a"));
    CPPUNIT_ASSERT_EQUAL(
        std::string("account a has no users; list them after the '=', or remove the account"),
        problem("a=, b=bob"));
    CPPUNIT_ASSERT_EQUAL(std::string("account a is listed twice; list all its users after one '='"),
                         problem("a=ann, a=bob"));
    for (const std::string& text :
         {std::string("ann"), std::string("a=ann,"), std::string("=ann"), std::string("a b=ann"),
          std::string("@a=ann"), std::string("\xc3\xa4=ann"), std::string(33, 'a') + "=ann"})
      CPPUNIT_ASSERT_MESSAGE(
          text, problem(text).ends_with(" is not of the form NAME=USER USER, such as lab-f=jones "
                                        "smith; an account's name has 1 to 32 letters, digits, "
                                        "'.', '-' and '_'"));
    for (const std::string& user :
         {std::string("@b"), std::string("b=cid"), std::string("b\x01"), std::string(256, 'b')})
      CPPUNIT_ASSERT_MESSAGE(
          user, problem("a=" + user).find(" in account a is not a valid user name; ") !=
                    std::string::npos);
    CPPUNIT_ASSERT_EQUAL(std::string(),
                         problem(std::string(32, 'a') + "=" + std::string(255, 'b')));
    CPPUNIT_ASSERT_EQUAL(std::string("the list has 65537 octets; at most 65536 are allowed"),
                         problem("a=" + std::string(65'535, ' ')));
  }

  void a_brain_refuses_a_wrong_list() {
    CPPUNIT_ASSERT_EQUAL(
        std::string(
            "accounts: account a has no users; list them after the '=', or remove the account"),
        problem_with(with_accounts("fifo", "a=")));
    CPPUNIT_ASSERT(!same_when_fixed(with_accounts(), Parameters()));
  }

  // Table 4.3: f is 1 for each attempt of the account.
  void the_index_rises_by_the_attempts_of_all() {
    TestPool t(with_accounts("up-down"));
    t.join("m", 3);
    t.submit("ann", 2);
    t.submit("bob");
    tick(t);
    CPPUNIT_ASSERT_EQUAL(int64_t{3}, lab_index(t));
    tick(t, 2);
    CPPUNIT_ASSERT_EQUAL(int64_t{9}, lab_index(t));
    CPPUNIT_ASSERT(!t.books.users.contains("ann") && !t.books.users.contains("bob"));
  }

  // While one of them has an attempt, the account does not wait.
  void the_index_falls_once_for_all_who_wait() {
    TestPool t(with_accounts("up-down"));
    const MachineId m = t.join("m", 1, false);
    t.submit("ann", 5);
    t.submit("bob", 5);
    tick(t, 4);
    CPPUNIT_ASSERT_EQUAL(int64_t{-4}, lab_index(t));
    t.report(m, true);
    tick(t, 2);
    CPPUNIT_ASSERT_EQUAL(int64_t{-2}, lab_index(t));
  }

  // Table 4.5: 3 from a distance of 6 on, 2 from 3 on, else 1; ann has run, and bob waits.
  void the_credit_is_the_accounts() {
    TestPool t(with_accounts("up-down"));
    const MachineId m = t.join("m");
    const JobId job = t.submit("ann");
    tick(t, 10);
    t.submit("bob");
    t.apply(MachineReported{m, false, 0, 0});
    t.end(job, EndReason::kDone);
    std::vector<int64_t> seen = {lab_index(t)};
    for (int i = 0; i < 6; ++i) {
      tick(t);
      seen.push_back(lab_index(t));
    }
    CPPUNIT_ASSERT((seen == std::vector<int64_t>{10, 7, 4, 2, 1, 0, -1}));
  }

  // How often each of them had the only place, of 300 times; all have jobs all the time.
  static std::map<std::string, int> places_of(const Parameters& p) {
    TestPool t(p);
    t.join("m");
    for (const char* user : {"ann", "bob", "cid"}) t.submit(user, 300);
    std::map<std::string, int> places;
    for (int i = 0; i < 300; ++i) {
      for (const auto& [id, job] : t.books.jobs) {
        if (job.state != JobState::kPlaced) continue;
        ++places[job.user];
        t.start(id);
        t.pass(60 * kSecond);
        t.end(id, EndReason::kDone, 60 * kSecond);
        break;
      }
      if (i % 5 == 0) tick(t);
    }
    return places;
  }

  // Under every policy that goes by user: 1 : 1 by account, where it is 2 : 1 by user.
  void an_account_has_the_share_of_one_user() {
    for (const std::string policy : {"fair-share", "up-down", "round-robin", "umol", "random"}) {
      const std::map<std::string, int> by_account = places_of(with_accounts(policy));
      const int room = policy == "random" ? 30 : 5;
      CPPUNIT_ASSERT_DOUBLES_EQUAL_MESSAGE(policy, 150, by_account.at("cid"), room);
      const std::map<std::string, int> by_user = places_of(with_accounts(policy, ""));
      CPPUNIT_ASSERT_DOUBLES_EQUAL_MESSAGE(policy, 100, by_user.at("cid"), room);
    }
  }

  void turns_are_by_account() {
    TestPool t(with_accounts("round-robin"));
    const MachineId m = t.join("m", 4, false);
    for (const char* user : {"ann", "bob", "cid"}) t.submit(user, 2);
    t.report(m, true);
    std::vector<std::string> users;
    for (const auto& [key, attempt] : t.books.attempts) users.push_back(t.record(key.job).user);
    // Both of ann's are before bob's in the line of the account.
    CPPUNIT_ASSERT((users == std::vector<std::string>{"ann", "ann", "cid", "cid"}));
  }

  void shares_are_the_accounts() {
    TestPool t(with_accounts());
    t.apply(SharesSet{"@lab", 3, SharesSet::By::kAdministrator});
    t.submit("ann");
    t.submit("bob", 2);
    const std::vector<Standing> standings = t.pool.standings(t.now);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, standings.size());
    CPPUNIT_ASSERT_EQUAL(std::string("@lab"), standings[0].user);
    CPPUNIT_ASSERT_EQUAL(3.0, standings[0].shares);
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, standings[0].queued);
  }

  void limits_are_by_account() {
    Parameters p = with_accounts();
    p.most_per_user = 2;
    TestPool t(p);
    t.join("m", 4);
    Submitted::Job at_night;
    at_night.needs.hours = "22:00-23:59";
    t.submit("ann", 2);
    const JobId third = t.submit("bob", 1, at_night);
    const JobId fourth = t.submit("bob");
    const JobId others = t.submit("cid");
    CPPUNIT_ASSERT(t.state(fourth) == JobState::kWaiting && t.state(third) == JobState::kWaiting);
    CPPUNIT_ASSERT(t.state(others) == JobState::kPlaced);
    CPPUNIT_ASSERT_EQUAL(
        std::string("@lab has 2 jobs on machines; the pool allows an account 2 at a time"),
        t.pool.why(fourth, t.now));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, t.pool.hours_of("ann").size());
    CPPUNIT_ASSERT(t.pool.hours_of("cid").empty());
    t.apply(Submitted{2, "ann", "desk", {{}}, {}, OnNever::kHold, 1});
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, t.pool.limited_batches("bob"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, t.pool.limited_batches("cid"));
  }

  // Also when the job is removed, and by a brain that was restored meanwhile.
  void records_name_the_users() {
    TestPool t(with_accounts());
    t.join("m", 2);
    const JobId removed = t.submit("ann"), done = t.submit("bob");
    CPPUNIT_ASSERT_EQUAL(std::string("bob"), std::get<StartAttempt>(t.last.decisions.at(0)).user);
    CPPUNIT_ASSERT(
        t.pool.attempt(done)->reason.text().starts_with("first in the queue: @lab, usage "));
    t.start(removed);
    t.start(done);
    t.apply(JobsRemoved{{removed}, {}, "ann"});
    Pool restored(with_accounts());
    CPPUNIT_ASSERT(restored.restore(t.books.snapshot()).empty());
    CPPUNIT_ASSERT_EQUAL(testing::text_of(t.apply(ServerStarted())),
                         testing::text_of(restored.apply(ServerStarted(), t.now)));
    for (const JobId job : {removed, done}) {
      AttemptEnded end{t.key(job), t.machine_of(job), EndReason::kDone, "", 20 * kSecond};
      end.wall = 20 * kSecond;
      CPPUNIT_ASSERT_EQUAL(testing::text_of(t.apply(end)),
                           testing::text_of(restored.apply(end, t.now)));
    }
    CPPUNIT_ASSERT_EQUAL(std::string("ann"), t.books.uses.at({removed, 1}).user);
    CPPUNIT_ASSERT_EQUAL(std::string("bob"), t.books.uses.at({done, 1}).user);
    CPPUNIT_ASSERT_EQUAL(std::string("bob"), t.books.changes.back().user);
    CPPUNIT_ASSERT_EQUAL(std::string("bob"), t.record(done).user);
    CPPUNIT_ASSERT_EQUAL(40.0, t.books.users.at("@lab").charges);
  }

  // Jobs of three users that cannot be started are the machine's fault, whoever shares an account.
  void failures_count_by_user() {
    TestPool t(with_accounts("fair-share", "lab=ann bob cid"));
    const MachineId m = t.join("m");
    for (const char* user : {"ann", "bob", "cid"}) t.end(t.submit(user), EndReason::kStart);
    CPPUNIT_ASSERT_EQUAL(uint32_t{1}, t.books.machines.at(m).failures.count);
    CPPUNIT_ASSERT_EQUAL(std::string("bob"), t.books.machines.at(m).failures.unstarted_second);
  }

  // By the priority that each gave his own, then by the policy's order and the id.
  void members_jobs_stand_in_one_line() {
    TestPool t(with_accounts("fifo"));
    const MachineId m = t.join("m", 1, false);
    Submitted::Job urgent;
    urgent.priority = 1;
    const JobId last = t.submit("ann"), first = t.submit("bob", 1, urgent);
    t.report(m, true);
    CPPUNIT_ASSERT(t.state(first) == JobState::kPlaced && t.state(last) == JobState::kWaiting);
  }

  static JobId run(TestPool& t, const std::string& user, int32_t priority = 0) {
    Submitted::Job job;
    job.priority = priority;
    const JobId id = t.submit(user, 1, job);
    if (t.state(id) == JobState::kPlaced) t.start(id);
    return id;
  }
  static void let_it_run(TestPool& t) {
    t.pass(5 * 60 * kSecond);
    for (const auto& [key, attempt] : std::map(t.books.attempts))
      if (attempt.state != AttemptState::kEnded) t.renew(key.job);
    tick(t);
  }

  void priority_takes_places_of_the_same_user_only() {
    Parameters p = with_accounts();
    p.victim_policy = "priority";
    p.lease = 3600 * kSecond;
    TestPool t(p);
    t.join("m");
    const JobId low = run(t, "ann");
    const JobId another = run(t, "bob", 5);
    let_it_run(t);
    CPPUNIT_ASSERT_EQUAL(JobId{0}, t.pool.attempt(low)->preempted_for);
    t.apply(JobsRemoved{{another}, {}, "bob"});
    const JobId own = run(t, "ann", 5);
    tick(t);
    CPPUNIT_ASSERT_EQUAL(own, t.pool.attempt(low)->preempted_for);
  }

  // Who shares an account with a holder takes nothing; somebody else does.
  void an_account_takes_places_by_its_index() {
    Parameters p = with_accounts("up-down");
    p.victim_policy = "up-down";
    p.lease = 3600 * kSecond;
    TestPool t(p);
    t.join("m");
    const JobId held = run(t, "ann");
    run(t, "bob");
    let_it_run(t);
    tick(t, 3);
    CPPUNIT_ASSERT_EQUAL(JobId{0}, t.pool.attempt(held)->preempted_for);
    const JobId others = run(t, "cid");
    tick(t);
    CPPUNIT_ASSERT_EQUAL(others, t.pool.attempt(held)->preempted_for);
    CPPUNIT_ASSERT(t.pool.attempt(held)->reason.text().starts_with(
        "for job 3 of cid: cid holds no place, up-down index -1 against "));
  }

  // What is live counts for the new accounts, running attempts included; what was counted before
  // stays where it was. Who is new in the books is stored at once.
  void another_list_moves_the_jobs() {
    TestPool t(with_accounts("fair-share", ""));
    t.join("m", 2);
    const JobId over = t.submit("ann");
    t.end(over, EndReason::kDone, 30 * kSecond);
    const JobId running = t.submit("ann");
    t.start(running);
    Parameters p = with_accounts();
    p.most_per_user = 1;
    Pool restarted(p);
    CPPUNIT_ASSERT(restarted.restore(t.books.snapshot()).empty());
    t.books.write(restarted.apply(ServerStarted{p}, t.now));
    CPPUNIT_ASSERT_EQUAL(uint32_t{2}, t.books.users.at("@lab").number);
    Submitted more{1, "bob", "desk", {{}}};
    const JobId next = restarted.apply(more, t.now).answer.first_job;
    CPPUNIT_ASSERT(restarted.why(next, t.now).starts_with("@lab has 1 job on machines"));
    CPPUNIT_ASSERT_EQUAL(30.0, t.books.users.at("ann").charges);
    const std::vector<Standing> standings = restarted.standings(t.now);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, standings.size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, standings[0].active);
    CPPUNIT_ASSERT_EQUAL(0.0, standings[0].charges);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, standings[1].active);
    CPPUNIT_ASSERT_EQUAL(30.0, standings[1].charges);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(AccountsTest);

}  // namespace
}  // namespace sublet::scheduling
