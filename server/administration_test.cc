#include "server/administration.h"

#include <cppunit/extensions/HelperMacros.h>

#include "server/services_testing.h"

namespace sublet::server {
namespace {

using scheduling::MachineState;

// The refusal that `act` throws.
Refusal refusal_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Refusal& refusal) {
    return refusal;
  }
  return Refusal(Refusal::Kind::kInvalid, "", "");
}

PipelineSettings with_shares_of_ann() {
  PipelineSettings settings;
  settings.shares = {{"ann", 2}};
  settings.policies.accounts = "lab=fay gus";
  return settings;
}

scheduling::PolicyChoice settled_policies() { return {.job_policy = "umol", .floor = 0.5}; }

class AdministrationTest : public testing::ServicesFixture {
  CPPUNIT_TEST_SUITE(AdministrationTest);
  CPPUNIT_TEST(only_administrators_may);
  CPPUNIT_TEST(a_repeat_gets_the_first_answer);
  CPPUNIT_TEST(a_machine_is_drained_and_resumed);
  CPPUNIT_TEST(unknown_machines_are_named);
  CPPUNIT_TEST(jobs_are_evicted);
  CPPUNIT_TEST(shares_outlive_a_restart);
  CPPUNIT_TEST(shares_of_accounts);
  CPPUNIT_TEST(policies_outlive_a_restart);
  CPPUNIT_TEST(bad_policies_change_nothing);
  CPPUNIT_TEST(words_mean_what_they_say);
  CPPUNIT_TEST(quotas_outlive_a_restart);
  CPPUNIT_TEST(who_sees_which_quota);
  CPPUNIT_TEST(bad_values_are_refused);
  CPPUNIT_TEST(lists_have_pages);
  CPPUNIT_TEST_SUITE_END();

  std::unique_ptr<AdministrationService> administration_;

  static std::string id() { return random_bytes(16); }
  bool draining() {
    bool draining = false;
    pipeline_->perform(
        [&](Turn& turn) { draining = turn.pool().machine(machine_)->record.draining; });
    return draining;
  }
  void start_again() {
    pipeline_->stop();
    pipeline_ = std::make_unique<Pipeline>(with_shares_of_ann(), *store_, system_clock(),
                                           Pipeline::Listener{});
    pipeline_->start();
    serve();
  }
  void serve() {
    administration_ = std::make_unique<AdministrationService>(
        *pipeline_, *archive_, access_, SettledShares{{{"ann", 2}}, 1}, settled_policies(),
        SpoolLimits{1000, {{"bob", 50}}});
  }
  SharesLine shares_of(const std::string& user) {
    for (const auto& line : administration_->shares("", 1000))
      if (line.user == user) return line;
    return {};
  }
  QuotaLine quota_of(const std::string& user) {
    for (const auto& line : administration_->quotas(root_, "", 1000))
      if (line.user == user) return line;
    return {};
  }

 public:
  AdministrationTest() : ServicesFixture(with_shares_of_ann()) {}

  void setUp() override {
    ServicesFixture::setUp();
    curly_joins();
    serve();
  }

  void only_administrators_may() {
    AdministrationService& a = *administration_;
    const std::function<void()> acts[] = {
        [&] { a.drain(ann_, id(), machine_, true); },
        [&] { a.drain(ann_, id(), machine_, false); },
        [&] { a.evict(ann_, id(), machine_); },
        [&] { a.set_shares(ann_, id(), "ann", 1000); },
        [&] { a.set_quota(ann_, id(), "ann", 1ull << 40); },
        [&] {
          a.set_policies(ann_, id(), PolicyWords{{"jobs", "fifo"}});
        },
        [&] { a.set_policies(ann_, id(), std::nullopt); }};
    for (const auto& act : acts)
      CPPUNIT_ASSERT_EQUAL(std::string("admin.only"), refusal_of(act).code);
    CPPUNIT_ASSERT(!draining() && shares_of("ann").shares == 2);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1000}, administration_->quotas(ann_, "", 1)[0].bytes);
  }

  void a_repeat_gets_the_first_answer() {
    const std::string request = id();
    CPPUNIT_ASSERT(administration_->drain(root_, request, machine_, true));
    CPPUNIT_ASSERT(administration_->drain(root_, request, machine_, true));
    CPPUNIT_ASSERT(!administration_->drain(root_, id(), machine_, true));
    const auto reused = [&] { administration_->drain(root_, request, machine_, false); };
    CPPUNIT_ASSERT_EQUAL(std::string("request.reused"), refusal_of(reused).code);
    const std::string quota = id();
    administration_->set_quota(root_, quota, "ann", 1ull << 30);
    const auto nearly = [&] { administration_->set_quota(root_, quota, "ann", (1ull << 30) + 1); };
    CPPUNIT_ASSERT_EQUAL(std::string("request.reused"), refusal_of(nearly).code);
  }

  void policies_outlive_a_restart() {
    administration_->set_policies(root_, id(), PolicyWords{{"jobs", "fifo"}, {"floor", "0.1"}});
    start_again();
    const auto set = administration_->policies();
    CPPUNIT_ASSERT((set.choice == scheduling::PolicyChoice{.job_policy = "fifo", .floor = 0.1}));
    CPPUNIT_ASSERT_EQUAL(std::string("root"), set.by);
    CPPUNIT_ASSERT(set.since > 0);
    administration_->set_policies(root_, id(), PolicyWords{{"half_life", "90 min"}});
    CPPUNIT_ASSERT_EQUAL(std::string("fifo"), administration_->policies().choice.job_policy);
    administration_->set_policies(root_, id(), std::nullopt);
    CPPUNIT_ASSERT(administration_->policies().choice == settled_policies());
    CPPUNIT_ASSERT_EQUAL(std::string(), administration_->policies().by);
    start_again();  // whose settings are the defaults
    CPPUNIT_ASSERT(administration_->policies().choice == scheduling::PolicyChoice());
  }

  void bad_policies_change_nothing() {
    const auto before = administration_->policies();
    const auto refused = [&](const PolicyWords& words) {
      const Refusal refusal =
          refusal_of([&] { administration_->set_policies(root_, id(), words); });
      CPPUNIT_ASSERT(administration_->policies() == before);
      return refusal.code + ": " + refusal.message;
    };
    CPPUNIT_ASSERT_EQUAL(
        std::string("policy.invalid: setting \"scheduling.jobs=nearest\": \"scheduling.jobs\" "
                    "must be one of \"fair-share\" \"fair-share-1998\" \"up-down\" \"fifo\" "
                    "\"round-robin\" \"random\" \"umol\""),
        refused({{"floor", "0.5"}, {"jobs", "nearest"}}));
    CPPUNIT_ASSERT_EQUAL(
        std::string("policy.invalid: setting \"scheduling.floor=2\": \"scheduling.floor\" must be "
                    "a number from 0 to 1"),
        refused({{"floor", "2"}}));
    CPPUNIT_ASSERT_EQUAL(
        std::string(
            "policy.invalid: setting \"scheduling.machines=nearest\": "
            "\"scheduling.machines\" must be one of \"fifo-idle\" \"longest-free\" "
            "\"best-fit\" \"fastest\" \"predicted\" \"umol-score\" \"umol-beta\" \"random\""),
        refused({{"machines", "nearest"}}));
    CPPUNIT_ASSERT_EQUAL(
        std::string("policy.invalid: setting \"scheduling.candidates=0\": "
                    "\"scheduling.candidates\" must be a whole number from 1 to 10000"),
        refused({{"candidates", "0"}}));
    CPPUNIT_ASSERT_EQUAL(
        std::string("policy.unknown: `lease` cannot be changed while the server runs; what can: "
                    "jobs, machines, victims, candidates, half_life, floor, cost, "
                    "initial_priority, turns, charge, drift, throttle, wide_wait, licences, "
                    "most_per_user, most_per_machine"),
        refused({{"lease", "30 s"}}));
    for (const char* word : {"10", "10/", "/s", "0/s", "x/s", "10/y", "10/2 d", "1000001/s", ""})
      CPPUNIT_ASSERT_EQUAL(
          std::string("policy.invalid: \"scheduling.throttle\" must be off, or a number of places "
                      "and a span up to 1 d, such as \"10/s\" or \"100/30 s\""),
          refused({{"throttle", word}}));
    CPPUNIT_ASSERT_EQUAL(
        std::string("policy.invalid: \"scheduling.licences\": 'ansys' is not of the form "
                    "NAME=AMOUNT, such as gpu=1; amounts are whole numbers"),
        refused({{"licences", "ansys"}}));
    for (const char* word : {"0", "", "x", "4 5", "curly=0", "4 curly"})
      CPPUNIT_ASSERT_EQUAL(
          std::string(
              "policy.invalid: \"scheduling.most_per_machine\" must be off, or a number from "
              "1 to 1000000 and, for single machines, NAME=NUMBER, such as \"4\" or \"4 "
              "curly=2\""),
          refused({{"most_per_machine", word}}));
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid: nothing is to be changed"), refused({}));
  }

  void words_mean_what_they_say() {
    scheduling::PolicyChoice odd;
    odd.job_policy = "up-down";
    odd.machine_policy = "best-fit";
    odd.victim_policy = "up-down";
    odd.candidates = 1000;
    odd.half_life = 90'061'001'000;  // as text, "1 d 1 h"
    odd.floor = 1.0 / 3;
    odd.cost_cpu = odd.initial_priority_zero = odd.turns_by_machine = odd.charge_all = true;
    odd.drift = false;
    odd.throttle = 3;
    odd.throttle_span = 90'000'000;
    odd.wide_wait = 90'000'000;
    odd.licences = "ansys=3 matlab=10";
    odd.most_per_user = 12;
    odd.most_per_machine = "4 curly=2";
    for (const scheduling::PolicyChoice& choice : {odd, settled_policies()})
      CPPUNIT_ASSERT(changed({}, words_of(choice)) == choice);
    const auto throttle_of = [](const char* word) {
      return words_of(changed({}, {{"throttle", word}})).at(11).second;
    };
    CPPUNIT_ASSERT_EQUAL(std::string("10/s"), throttle_of("10/1"));
    CPPUNIT_ASSERT_EQUAL(std::string("2/min"), throttle_of("2/60 s"));
    CPPUNIT_ASSERT_EQUAL(std::string("off"), throttle_of("off"));
    CPPUNIT_ASSERT(words_of({}).at(4) == std::pair(std::string("half_life"), std::string("1 d")));
  }

  void a_machine_is_drained_and_resumed() {
    administration_->drain(root_, id(), machine_, true);
    start_again();
    CPPUNIT_ASSERT(draining());
    CPPUNIT_ASSERT(administration_->drain(root_, id(), machine_, false));
    start_again();
    CPPUNIT_ASSERT(!draining());
    CPPUNIT_ASSERT(!administration_->drain(root_, id(), machine_, false));
  }

  void unknown_machines_are_named() {
    const auto refusal = refusal_of([&] { administration_->drain(root_, id(), 7, true); });
    CPPUNIT_ASSERT_EQUAL(std::string("machine.unknown"), refusal.code);
    CPPUNIT_ASSERT_EQUAL(std::string("machine 7"), refusal.subject);
    CPPUNIT_ASSERT_EQUAL(std::string("machine.unknown"),
                         refusal_of([&] { administration_->evict(root_, id(), 0); }).code);
  }

  void jobs_are_evicted() {
    const JobId job = submit();
    start({job, 1});
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, administration_->evict(root_, id(), machine_));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, administration_->evict(root_, id(), machine_));
  }

  void shares_outlive_a_restart() {
    CPPUNIT_ASSERT_EQUAL(2.0, shares_of("ann").shares);
    administration_->set_shares(root_, id(), "ann", 5);
    administration_->set_shares(root_, id(), "new", 1);
    start_again();
    CPPUNIT_ASSERT(shares_of("ann").shares == 5 && shares_of("ann").by_administrator);
    CPPUNIT_ASSERT(shares_of("new").shares == 1 && shares_of("new").by_administrator);
    administration_->set_shares(root_, id(), "ann", std::nullopt);
    CPPUNIT_ASSERT(shares_of("ann").shares == 2 && !shares_of("ann").by_administrator);
    start_again();
    CPPUNIT_ASSERT(shares_of("ann").shares == 2 && !shares_of("ann").by_administrator);
  }

  // Not of those who share them: nothing would come of it.
  void shares_of_accounts() {
    administration_->set_shares(root_, id(), "@lab", 4);
    start_again();
    CPPUNIT_ASSERT(shares_of("@lab").shares == 4 && shares_of("@lab").by_administrator);
    for (const auto& [user, message] :
         {std::pair("fay", "user fay is in account lab, whose shares count: use \"@lab\" instead"),
          std::pair("@lap", "there is no account lap in scheduling.accounts")}) {
      const Refusal refusal =
          refusal_of([&] { administration_->set_shares(root_, id(), user, 1); });
      CPPUNIT_ASSERT_EQUAL(std::string(message), refusal.message);
      administration_->set_shares(root_, id(), user, std::nullopt);
    }
  }

  void quotas_outlive_a_restart() {
    CPPUNIT_ASSERT(quota_of("bob").bytes == 50 && !quota_of("bob").by_administrator);
    administration_->set_quota(root_, id(), "bob", 0);
    start_again();
    CPPUNIT_ASSERT(quota_of("bob").bytes == 0 && quota_of("bob").by_administrator);
    administration_->set_quota(root_, id(), "bob", std::nullopt);
    CPPUNIT_ASSERT(quota_of("bob").bytes == 50 && !quota_of("bob").by_administrator);
  }

  void who_sees_which_quota() {
    administration_->set_quota(root_, id(), "ann", 7);
    const auto own = administration_->quotas(ann_, "", 1000);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, own.size());
    CPPUNIT_ASSERT(own[0].user == "ann" && own[0].bytes == 7);
    std::string all;
    for (const auto& line : administration_->quotas(root_, "", 1000)) all += line.user + " ";
    CPPUNIT_ASSERT_EQUAL(std::string("ann bob root "), all);
  }

  void bad_values_are_refused() {
    AdministrationService& a = *administration_;
    const std::function<void()> acts[] = {
        [&] { a.set_shares(root_, id(), "ann", -1); },
        [&] { a.set_shares(root_, id(), "ann", std::nan("")); },
        [&] { a.set_shares(root_, id(), "ann", 1e300); },
        [&] { a.set_shares(root_, id(), "", 1); },
        [&] { a.set_shares(root_, id(), std::string(256, 'x'), 1); },
        [&] { a.set_quota(root_, id(), "ann", UINT64_MAX); },
        [&] { a.set_quota(root_, id(), "", 1); }};
    for (const auto& act : acts)
      CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), refusal_of(act).code);
    CPPUNIT_ASSERT_EQUAL(2.0, shares_of("ann").shares);
  }

  void lists_have_pages() {
    for (const char* user : {"eve", "dan", "cid"})
      administration_->set_shares(root_, id(), user, 1);
    std::string all;
    for (std::string after;;) {
      const auto page = administration_->shares(after, 2);
      for (const auto& line : page) all += line.user + " ";
      if (page.size() < 2) break;
      after = page.back().user;
    }
    CPPUNIT_ASSERT_EQUAL(std::string("ann cid dan eve "), all);
    CPPUNIT_ASSERT_EQUAL(std::string("limit.range"),
                         refusal_of([&] { administration_->shares("", 0); }).code);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(AdministrationTest);
}  // namespace
}  // namespace sublet::server
