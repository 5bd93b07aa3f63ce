#include "loadmon/owners_rules.h"

#include <cppunit/extensions/HelperMacros.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace sublet::loadmon {
namespace {

using Strings = std::vector<std::string>;

class OwnersRulesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OwnersRulesTest);
  CPPUNIT_TEST(two_rules_and_what_lies_between);
  CPPUNIT_TEST(one_rule_is_both);
  CPPUNIT_TEST(what_is_unknown_speaks_against_jobs);
  CPPUNIT_TEST(all_pairs_must_hold);
  CPPUNIT_TEST(the_owner_adds_to_what_is_fixed);
  CPPUNIT_TEST(scopes);
  CPPUNIT_TEST(anywhere);
  CPPUNIT_TEST(they_are_kept);
  CPPUNIT_TEST(what_would_never_lend_is_refused);
  CPPUNIT_TEST(the_machine_is_read_only_if_a_rule_needs_it);
  CPPUNIT_TEST_SUITE_END();

  std::atomic<int> readings_ = 0;
  std::vector<std::string> users_;

  OwnersRules make(std::vector<std::pair<std::string, std::string>> texts) {
    std::vector<RulePair> pairs;
    for (const auto& [idle, evict] : texts) pairs.push_back(parse_pair("", idle, evict));
    return {std::move(pairs),
            [this](int64_t now, const std::vector<pid_t>&) {
              ++readings_;
              MachineState state;
              state.at = now;
              state.battery = 50;
              state.users = users_;
              return state;
            },
            {.processes = [] { return std::vector<pid_t>(); },
             .daemons = [] { return std::vector<pid_t>(); },
             .attempts = [] { return std::vector<std::pair<uint64_t, uint32_t>>(); }}};
  }

  // "": jobs may come and stay; "w": none may come; "e": those that are here must leave, too.
  static std::string verdict(OwnersRules& rules, double cpu) {
    protocol::PresenceSample sample;
    sample.cpu = cpu;
    rules.judge(&sample);
    CPPUNIT_ASSERT(sample.rule_withholds || !sample.rule_evicts);
    return sample.rule_evicts ? "e" : sample.rule_withholds ? "w" : "";
  }

  void two_rules_and_what_lies_between() {
    OwnersRules rules = make({{"cpu < 1", "cpu > 2"}});
    CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(rules, 0.5));
    CPPUNIT_ASSERT(rules.reasons().empty());
    CPPUNIT_ASSERT_EQUAL(std::string("w"), verdict(rules, 1.5));
    CPPUNIT_ASSERT((rules.reasons() == Strings{"idle_when: cpu < 1 (cpu is 1.5)"}));
    CPPUNIT_ASSERT_EQUAL(std::string("e"), verdict(rules, 2.5));
    CPPUNIT_ASSERT((rules.reasons() == Strings{"evict_when: cpu > 2 (cpu is 2.5)"}));
  }

  void one_rule_is_both() {
    OwnersRules idle = make({{"cpu < 1", ""}});
    CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(idle, 0.5));
    CPPUNIT_ASSERT_EQUAL(std::string("e"), verdict(idle, 1.5));
    CPPUNIT_ASSERT((idle.reasons() == Strings{"idle_when: cpu < 1 (cpu is 1.5)"}));
    OwnersRules evict = make({{"", "cpu > 1"}});
    CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(evict, 0.5));
    CPPUNIT_ASSERT_EQUAL(std::string("e"), verdict(evict, 1.5));
    OwnersRules none = make({});
    CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(none, 100));
  }

  void what_is_unknown_speaks_against_jobs() {
    OwnersRules idle = make({{"cpu < 1", ""}});
    CPPUNIT_ASSERT_EQUAL(std::string("e"), verdict(idle, -1));
    OwnersRules evict = make({{"", "cpu > 1"}});
    CPPUNIT_ASSERT_EQUAL(std::string("e"), verdict(evict, -1));
    OwnersRules careful = make({{"", "exist cpu and cpu > 1"}});
    CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(careful, -1));
  }

  void all_pairs_must_hold() {
    OwnersRules rules = make({{"cpu < 3", ""}, {"", "cpu > 1"}});
    CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(rules, 0.5));
    CPPUNIT_ASSERT_EQUAL(std::string("e"), verdict(rules, 2));
    verdict(rules, 4);
    CPPUNIT_ASSERT((rules.reasons() ==
                    Strings{"idle_when: cpu < 3 (cpu is 4)", "evict_when: cpu > 1 (cpu is 4)"}));
  }

  void the_owner_adds_to_what_is_fixed() {
    OwnersRules rules = make({{"cpu < 3", ""}});
    rules.set("", "cpu < 1", "");
    CPPUNIT_ASSERT_EQUAL(std::string("e"), verdict(rules, 2));
    rules.set("", "", "cpu > 2.5");
    CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(rules, 2));
    // What is fixed stays, whatever the owner says.
    rules.set("", "cpu >= 0 or true", "");
    CPPUNIT_ASSERT_EQUAL(std::string("e"), verdict(rules, 4));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, rules.lines().size());
    rules.set("", "", "");
    rules.set("", "", "");
    CPPUNIT_ASSERT_EQUAL(size_t{1}, rules.lines().size());
    CPPUNIT_ASSERT(rules.lines()[0].fixed && rules.lines()[0].idle == "cpu < 3");
    CPPUNIT_ASSERT_EQUAL(std::string(""), rules.stored_form());
    CPPUNIT_ASSERT_THROW(rules.set("", "cpu <", ""), RuleRefusal);
    CPPUNIT_ASSERT_THROW(rules.set("", "cpu <\n1", ""), std::invalid_argument);
    CPPUNIT_ASSERT_THROW(rules.set("no name", "cpu < 1", ""), std::invalid_argument);
    CPPUNIT_ASSERT_EQUAL(std::string(""), rules.stored_form());
    for (int i = 0; i < 64; ++i) rules.set("user" + std::to_string(i), "cpu < 1", "");
    CPPUNIT_ASSERT_THROW(rules.set("one-more", "cpu < 1", ""), std::invalid_argument);
    rules.set("user7", "cpu < 2", "");
  }

  // Waits for the reader's thread until the rules say so.
  static void becomes(const std::string& expected, OwnersRules& rules, double cpu,
                      int64_t now = 1) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (verdict(rules, cpu) != expected && std::chrono::steady_clock::now() < deadline) {
      rules.refresh(now);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CPPUNIT_ASSERT_EQUAL(expected, verdict(rules, cpu));
  }

  // Two scopes, and whether the user is here, which may not be known.
  void scopes() {
    for (const std::string here : {"anna", "ben", ""}) {
      for (const bool for_all : {false, true}) {
        for (const bool for_anna : {false, true}) {
          users_ = {here};
          OwnersRules rules = make({});
          if (for_all) rules.set("", "cpu < 3", "");
          if (for_anna) rules.set("anna", "cpu < 1", "");
          if (for_anna && here == "ben") becomes("", rules, 2);
          const bool anna_counts = for_anna && here != "ben";
          CPPUNIT_ASSERT_EQUAL(std::string(anna_counts ? "e" : ""), verdict(rules, 2));
          CPPUNIT_ASSERT_EQUAL(std::string(anna_counts || for_all ? "e" : ""), verdict(rules, 4));
          CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(rules, 0.5));
        }
      }
    }
  }

  // What is known of the pool keeps jobs from coming, and drives none away.
  void anywhere() {
    users_ = {"ben"};
    OwnersRules rules = make({});
    rules.set("anna anywhere", "cpu < 1", "");
    const auto reason = [&] { return rules.reasons().empty() ? "" : rules.reasons().front(); };
    // When it is known that she is not here, it may still be that she is elsewhere.
    CPPUNIT_ASSERT(rules.note_pool("anna 0\ndora ?\n"));
    CPPUNIT_ASSERT_EQUAL(std::string("unknown\nask anna\n"), rules.pool_answer());
    becomes("", rules, 2);
    CPPUNIT_ASSERT(rules.note_pool(""));
    CPPUNIT_ASSERT_EQUAL(std::string("w"), verdict(rules, 2));
    CPPUNIT_ASSERT(reason().find("for anna anywhere (not known") != std::string::npos);
    CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(rules, 0.5));
    CPPUNIT_ASSERT_EQUAL(std::string("ask anna\n"), rules.pool_answer());
    CPPUNIT_ASSERT(rules.note_pool("anna 0\ncarl 1\n"));
    CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(rules, 2));
    CPPUNIT_ASSERT(rules.note_pool("anna 1\nben ?\ndora ?\n"));
    CPPUNIT_ASSERT_EQUAL(std::string("w"), verdict(rules, 2));
    CPPUNIT_ASSERT_EQUAL(std::string("idle_when for anna anywhere: cpu < 1 (cpu is 2)"), reason());
    CPPUNIT_ASSERT_EQUAL(std::string("ask anna\nhere ben\n"), rules.pool_answer());
    // It counts for a minute.
    CPPUNIT_ASSERT(rules.note_pool("anna 0\n"));
    CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(rules, 2));
    const int64_t later = 1 + PoolLogins::kKnownForNs;
    rules.refresh(later);
    CPPUNIT_ASSERT_EQUAL(std::string("w"), verdict(rules, 2));
    CPPUNIT_ASSERT(rules.note_pool("anna 0\n"));
    becomes("", rules, 2, later);
    for (const char* wrong : {"anna", "anna 2", "anna 1\nben", "anna yes"}) {
      CPPUNIT_ASSERT(rules.note_pool("anna 0\n"));
      CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(rules, 2));
      CPPUNIT_ASSERT(!rules.note_pool(wrong));
      CPPUNIT_ASSERT_EQUAL(std::string("w"), verdict(rules, 2));
    }
    // Who is logged in here is so anywhere.
    rules.set("ben anywhere", "cpu < 1.5", "");
    rules.set("anna anywhere", "", "");
    CPPUNIT_ASSERT(rules.note_pool("ben 0\n"));
    CPPUNIT_ASSERT_EQUAL(std::string("w"), verdict(rules, 2));
    // Both scopes of a user, and the pair that always counts, hold each for itself.
    rules.set("ben", "cpu < 3", "");
    CPPUNIT_ASSERT_EQUAL(std::string("e"), verdict(rules, 4));
    CPPUNIT_ASSERT_EQUAL(std::string("w"), verdict(rules, 2));
    for (const char* scope : {" anywhere", "anna somewhere", "anna  anywhere", "anna anywhere "})
      CPPUNIT_ASSERT_THROW(rules.set(scope, "cpu < 1", ""), std::invalid_argument);
  }

  void they_are_kept() {
    OwnersRules rules = make({{"cpu < 3", ""}});
    rules.set("anna", "cpu < 1", "'it\\'s' in programs");
    rules.set("anna anywhere", "cpu < 2", "");
    rules.set("", "", "cpu > 2");
    OwnersRules again = make({{"cpu < 3", ""}});
    CPPUNIT_ASSERT(again.load(rules.stored_form()));
    CPPUNIT_ASSERT_EQUAL(rules.stored_form(), again.stored_form());
    CPPUNIT_ASSERT_EQUAL(size_t{4}, again.lines().size());
    // Damage keeps jobs away, until somebody says what holds.
    const std::string form = rules.stored_form();
    for (size_t size = 0; size + 1 < form.size(); ++size) {
      OwnersRules damaged = make({});
      CPPUNIT_ASSERT(!damaged.load(form.substr(0, size)));
      CPPUNIT_ASSERT_EQUAL(std::string("e"), verdict(damaged, 0));
      CPPUNIT_ASSERT(!damaged.reasons().empty());
    }
    OwnersRules damaged = make({});
    CPPUNIT_ASSERT(!damaged.load("sublet-rules 1\n\tcpu <\t\nend\n"));
    damaged.set("", "cpu < 1", "");
    CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(damaged, 0));
  }

  void what_would_never_lend_is_refused() {
    CPPUNIT_ASSERT_THROW(parse_pair("", "1 > 2", ""), std::invalid_argument);
    CPPUNIT_ASSERT_THROW(parse_pair("", "", "cpu > 1 or 1 < 2"), std::invalid_argument);
    CPPUNIT_ASSERT_THROW(parse_pair("", "cpuu > 1", ""), RuleRefusal);
    parse_pair("", "1 < 2", "false");
  }

  void the_machine_is_read_only_if_a_rule_needs_it() {
    OwnersRules without = make({{"cpu < 1 and hour < 24 and input_idle >= 0", ""}});
    without.refresh(1);
    CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(without, 0.5));
    OwnersRules with = make({{"battery > 20", ""}});
    CPPUNIT_ASSERT_EQUAL(std::string("e"), verdict(with, 0));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (verdict(with, 0) == "e" && std::chrono::steady_clock::now() < deadline) with.refresh(1);
    CPPUNIT_ASSERT_EQUAL(std::string(""), verdict(with, 0));
    CPPUNIT_ASSERT_EQUAL(1, readings_.load());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(OwnersRulesTest);

}  // namespace
}  // namespace sublet::loadmon
