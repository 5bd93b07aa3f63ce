// Who may see which usage, and that each page continues where the previous one ended.
#include "server/accounting/service.h"

#include <cppunit/extensions/HelperMacros.h>

#include "server/accounting/usage_testing.h"
#include "server/refusal_testing.h"

namespace sublet::server {
namespace {

using testing::code;
using testing::kDay;
using testing::kSecond;
using testing::UsedPool;

class UsageServiceTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(UsageServiceTest);
  CPPUNIT_TEST(users_see_their_own_lines);
  CPPUNIT_TEST(administrators_see_all);
  CPPUNIT_TEST(everybody_sees_the_standings);
  CPPUNIT_TEST(an_account_stands_for_its_users);
  CPPUNIT_TEST(pages);
  CPPUNIT_TEST(a_report_holds_still_while_it_is_read);
  CPPUNIT_TEST(bad_questions);
  CPPUNIT_TEST_SUITE_END();

  UsedPool pool_;
  Access access_{{}};
  UsageService usage_{pool_.pipeline, pool_.archive, access_};
  const Caller ann_{1000, "ann", false, true};
  const Caller root_{0, "root", true, true};

  static UsageQuery by(std::vector<GroupBy> groups) {
    UsageQuery query;
    query.by = std::move(groups);
    return query;
  }
  const UserStanding* standing(const std::vector<UserStanding>& all, const std::string& user) {
    for (const auto& s : all)
      if (s.standing.user == user) return &s;
    return nullptr;
  }

 public:
  void setUp() override {
    pool_.use("ann", 12 * 3600 * kSecond);
    pool_.use("bob", 3600 * kSecond);
    pool_.use("bob", 3600 * kSecond, scheduling::EndReason::kOwner);
    pool_.pipeline.perform([](Turn& t) { t.apply(scheduling::Ticked{}); });
  }

 private:
  void users_see_their_own_lines() {
    const auto lines = usage_.report(ann_, by({GroupBy::kUser}), "", 10).rows;
    CPPUNIT_ASSERT_EQUAL(size_t{1}, lines.size());
    CPPUNIT_ASSERT_EQUAL(std::string("ann"), lines[0].group[0].second);
    // Nor the pool's total, from which the usage of others could be computed.
    const auto pool = usage_.report(ann_, {}, "", 10).rows;
    CPPUNIT_ASSERT_EQUAL(12 * 3600 * kSecond, pool.at(0).used);
    CPPUNIT_ASSERT(!pool[0].server_cpu);
    for (const GroupBy g : {GroupBy::kMachine, GroupBy::kJob, GroupBy::kBatch, GroupBy::kDay})
      for (const auto& row : usage_.report(ann_, by({g}), "", 10).rows)
        CPPUNIT_ASSERT_EQUAL(uint64_t{1}, row.attempts);
    UsageQuery of_bob = by({GroupBy::kDay});
    of_bob.user = "bob";
    CPPUNIT_ASSERT_EQUAL(std::string("admin.only"),
                         code([&] { usage_.report(ann_, of_bob, "", 10); }));
    of_bob.user = "ann";
    CPPUNIT_ASSERT_EQUAL(size_t{1}, usage_.report(ann_, of_bob, "", 10).rows.size());
  }

  void administrators_see_all() {
    const auto pool = usage_.report(root_, {}, "", 10).rows;
    CPPUNIT_ASSERT_EQUAL(14 * 3600 * kSecond, pool.at(0).used);
    CPPUNIT_ASSERT(pool[0].server_cpu.has_value());
    UsageQuery of_bob;
    of_bob.user = "bob";
    const UsageRow bob = usage_.report(root_, of_bob, "", 10).rows.at(0);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, bob.evictions);
    CPPUNIT_ASSERT_EQUAL(3600 * kSecond, bob.lost);
    CPPUNIT_ASSERT(!bob.server_cpu);  // belongs to no single user
    CPPUNIT_ASSERT(!usage_.report(root_, by({GroupBy::kUser}), "", 10).rows[0].server_cpu);
  }

  void everybody_sees_the_standings() {
    pool_.pipeline.perform([](Turn& t) {
      using namespace scheduling;
      UsedPool::owners(t, 0);
      for (const char* user : {"ann", "bob", "cid"}) t.apply(Submitted{1, user, "desk", {{}}});
      t.apply(SharesSet{"cid", 2});
    });
    const auto seen = usage_.standings(ann_, "", 1000).standings;
    CPPUNIT_ASSERT_EQUAL(size_t{3}, seen.size());
    CPPUNIT_ASSERT_EQUAL(
        std::string("12 CPU hours in the last day at a share of 1 of 4: behind bob"),
        standing(seen, "ann")->reason);
    // For other users, only what is needed for the comparison.
    CPPUNIT_ASSERT_EQUAL(std::string("a share of 1 of 4: behind cid, ahead of ann"),
                         standing(seen, "bob")->reason);
    CPPUNIT_ASSERT(!standing(seen, "bob")->cpu_day);
    const auto all = usage_.standings(root_, "", 1000).standings;
    const StandingLines one = usage_.standings(root_, "", 1);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, one.standings.size());
    CPPUNIT_ASSERT_EQUAL(all[0].standing.user, one.next);
    const StandingLines rest = usage_.standings(root_, one.next, 1000);
    CPPUNIT_ASSERT_EQUAL(all.size() - 1, rest.standings.size());
    CPPUNIT_ASSERT_EQUAL(all[1].standing.user, rest.standings[0].standing.user);
    CPPUNIT_ASSERT_EQUAL(std::string(), rest.next);
    CPPUNIT_ASSERT_EQUAL(
        std::string("2 CPU hours in the last day at a share of 1 of 4: behind cid, ahead of ann"),
        standing(all, "bob")->reason);
    CPPUNIT_ASSERT_EQUAL(
        std::string("0 CPU seconds in the last day at a share of 2 of 4: next in line, ahead of "
                    "bob"),
        standing(all, "cid")->reason);
    pool_.clock.advance_ms(kDay / 1000);
    CPPUNIT_ASSERT_EQUAL(
        Micros{0}, standing(usage_.standings(root_, "", 1000).standings, "bob")->cpu_day.value());
  }

  // Only administrators see how much all of them used in the last day; the usage is by user.
  void an_account_stands_for_its_users() {
    PipelineSettings settings;
    settings.policies.accounts = "lab=ann bob";
    UsedPool pool(settings);
    UsageService usage(pool.pipeline, pool.archive, access_);
    for (const char* user : {"ann", "bob", "cid"}) pool.use(user, 3600 * kSecond);
    pool.pipeline.perform([](Turn& t) {
      UsedPool::owners(t, 0);
      for (const char* user : {"ann", "bob", "cid"})
        t.apply(scheduling::Submitted{1, user, "desk", {{}}});
    });
    const auto all = usage.standings(root_, "", 10).standings;
    CPPUNIT_ASSERT_EQUAL(size_t{2}, all.size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, standing(all, "@lab")->standing.queued);
    CPPUNIT_ASSERT_EQUAL(
        std::string("2 CPU hours in the last day at a share of 1 of 2: behind cid"),
        standing(all, "@lab")->reason);
    CPPUNIT_ASSERT((standing(all, "@lab")->users == std::vector<std::string>{"ann", "bob"}));
    CPPUNIT_ASSERT(standing(all, "cid")->users.empty());
    CPPUNIT_ASSERT(!standing(usage.standings(ann_, "", 10).standings, "@lab")->cpu_day);
    CPPUNIT_ASSERT_EQUAL(size_t{3}, usage.report(root_, by({GroupBy::kUser}), "", 10).rows.size());
  }

  void pages() {
    for (int i = 0; i < 5; ++i) pool_.use("cid", 1 + i);
    const std::vector<std::vector<GroupBy>> groupings = {
        {GroupBy::kJob}, {GroupBy::kUser, GroupBy::kJob}, {GroupBy::kMachine, GroupBy::kUser}};
    for (const auto& groups : groupings) {
      const auto whole = usage_.report(root_, by(groups), "", 1000);
      CPPUNIT_ASSERT(whole.next.empty());
      std::vector<UsageRow> paged;
      std::string cursor;
      do {
        const UsageLines page = usage_.report(root_, by(groups), cursor, 1);
        CPPUNIT_ASSERT(page.rows.size() <= 1);
        paged.insert(paged.end(), page.rows.begin(), page.rows.end());
        cursor = page.next;
      } while (!cursor.empty());
      CPPUNIT_ASSERT_EQUAL(whole.rows.size(), paged.size());
      for (size_t i = 0; i < paged.size(); ++i)
        CPPUNIT_ASSERT(paged[i].group == whole.rows[i].group &&
                       paged[i].used == whole.rows[i].used);
    }
  }

  void a_report_holds_still_while_it_is_read() {
    const UsageLines first = usage_.report(root_, by({GroupBy::kUser}), "", 1);
    pool_.clock.advance_ms(5);
    pool_.use("bob", 77);
    const UsageLines second = usage_.report(root_, by({GroupBy::kUser}), first.next, 1);
    CPPUNIT_ASSERT_EQUAL(std::string("bob"), second.rows.at(0).group[0].second);
    CPPUNIT_ASSERT_EQUAL(7200 * kSecond, second.rows[0].used);
    // A new report includes everything committed, even if the clock was set back.
    pool_.clock.set_utc_us(1);
    CPPUNIT_ASSERT_EQUAL(7200 * kSecond + 77,
                         usage_.report(root_, by({GroupBy::kUser}), "", 10).rows.at(1).used);
  }

  void bad_questions() {
    const auto ask = [&](const UsageQuery& query, const std::string& cursor, uint32_t limit) {
      return code([&] { usage_.report(root_, query, cursor, limit); });
    };
    CPPUNIT_ASSERT_EQUAL(std::string("limit.range"), ask({}, "", 0));
    CPPUNIT_ASSERT_EQUAL(std::string("limit.range"), ask({}, "", 1001));
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), ask(by({GroupBy(7)}), "", 1));
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), ask(by({GroupBy(0)}), "", 1));
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"),
                         ask(by({GroupBy::kDay, GroupBy::kDay}), "", 1));
    for (const char* cursor : {"x", "5", "5:1:2", ":1", "5:one", "5:", "-5:1", "5:%", "5:-1",
                               "99999999999999999999:1", "5:1 or 1=1"})
      CPPUNIT_ASSERT_EQUAL_MESSAGE(cursor, std::string("cursor.bad"),
                                   ask(by({GroupBy::kJob}), cursor, 1));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(UsageServiceTest);

}  // namespace
}  // namespace sublet::server
