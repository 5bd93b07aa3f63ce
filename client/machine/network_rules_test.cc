#include "client/machine/network_rules.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet::client {
namespace {

constexpr Network kAll[] = {Network::kDefault, Network::kNone, Network::kServer, Network::kAny};

class NetworkRulesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(NetworkRulesTest);
  CPPUNIT_TEST(the_stricter_counts);
  CPPUNIT_TEST(a_server_on_this_machine_needs_no_network);
  CPPUNIT_TEST(who_needs_more_than_is_permitted_is_refused);
  CPPUNIT_TEST(what_cannot_be_kept_is_refused);
  CPPUNIT_TEST_SUITE_END();

  static NetworkRules rules(Network most, bool server_is_here = false) {
    return {most, server_is_here, true, true};
  }

  // For each wish, in the order of kAll.
  static std::string given(const NetworkRules& rules) {
    std::string names;
    for (const Network wish : kAll) names += network_name(rules.of(wish)) + " ";
    return names;
  }

  static std::string refused(const NetworkRules& rules) {
    std::string names;
    for (const Network wish : kAll)
      if (!rules.lacking(wish).empty()) names += "[" + network_name(wish) + "]";
    return names;
  }

 public:
  void the_stricter_counts() {
    CPPUNIT_ASSERT_EQUAL(std::string("any none server any "), given(rules(Network::kAny)));
    CPPUNIT_ASSERT_EQUAL(std::string("server none server server "), given(rules(Network::kServer)));
    CPPUNIT_ASSERT_EQUAL(std::string("none none none none "), given(rules(Network::kNone)));
  }

  void a_server_on_this_machine_needs_no_network() {
    CPPUNIT_ASSERT_EQUAL(std::string("any none none any "), given(rules(Network::kAny, true)));
    CPPUNIT_ASSERT_EQUAL(std::string("none none none none "), given(rules(Network::kServer, true)));
  }

  void who_needs_more_than_is_permitted_is_refused() {
    CPPUNIT_ASSERT_EQUAL(std::string(), refused(rules(Network::kAny)));
    for (const Network most : {Network::kServer, Network::kNone})
      CPPUNIT_ASSERT_EQUAL(std::string("[any]"), refused(rules(most)));
    CPPUNIT_ASSERT_EQUAL(
        std::string(
            "it needs the network, and this machine's owner permits only the pool's server"),
        rules(Network::kServer).lacking(Network::kAny));
  }

  void what_cannot_be_kept_is_refused() {
    NetworkRules none_kept = {Network::kAny, false, false, false};
    CPPUNIT_ASSERT_EQUAL(std::string("[none][server]"), refused(none_kept));
    none_kept.can_watch_traffic = true;
    CPPUNIT_ASSERT_EQUAL(std::string("[none]"), refused(none_kept));
    none_kept.server_is_here = true;
    CPPUNIT_ASSERT_EQUAL(std::string("[none][server]"), refused(none_kept));
    none_kept.can_have_own = true;
    none_kept.can_watch_traffic = false;
    CPPUNIT_ASSERT_EQUAL(std::string(), refused(none_kept));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(NetworkRulesTest);

}  // namespace
}  // namespace sublet::client
