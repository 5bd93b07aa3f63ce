#include "loadmon/owners_rules.h"

#include <cppunit/extensions/HelperMacros.h>

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
  CPPUNIT_TEST(what_would_never_lend_is_refused);
  CPPUNIT_TEST(the_machine_is_read_only_if_a_rule_needs_it);
  CPPUNIT_TEST_SUITE_END();

  int readings_ = 0;

  OwnersRules make(std::vector<std::pair<std::string, std::string>> texts) {
    std::vector<RulePair> pairs;
    for (const auto& [idle, evict] : texts) pairs.push_back(parse_pair(idle, evict));
    return {std::move(pairs),
            [this](int64_t now, const std::vector<pid_t>&) {
              ++readings_;
              MachineState state;
              state.at = now;
              state.battery = 50;
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

  void what_would_never_lend_is_refused() {
    CPPUNIT_ASSERT_THROW(parse_pair("1 > 2", ""), std::invalid_argument);
    CPPUNIT_ASSERT_THROW(parse_pair("", "cpu > 1 or 1 < 2"), std::invalid_argument);
    CPPUNIT_ASSERT_THROW(parse_pair("cpuu > 1", ""), rules::RuleError);
    parse_pair("1 < 2", "false");
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
    CPPUNIT_ASSERT_EQUAL(1, readings_);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(OwnersRulesTest);

}  // namespace
}  // namespace sublet::loadmon
