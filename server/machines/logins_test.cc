#include "server/machines/logins.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet::server {
namespace {

using Facts = std::map<std::string, bool>;

class LoginsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LoginsTest);
  CPPUNIT_TEST(known_when_all_had_time_to_answer);
  CPPUNIT_TEST(a_machine_that_falls_silent);
  CPPUNIT_TEST(nobody_asks_any_more);
  CPPUNIT_TEST(bounded);
  CPPUNIT_TEST_SUITE_END();

  Logins logins_{30'000};

  void known_when_all_had_time_to_answer() {
    // Machine 1 asks, machine 2 is where anna works.
    CPPUNIT_ASSERT(logins_.renewed(1, {{"anna"}, {}}, 0).logged_in.empty());
    CPPUNIT_ASSERT_EQUAL(std::string("anna"), logins_.renewed(2, {}, 1000).wanted.at(0));
    CPPUNIT_ASSERT(logins_.renewed(1, {{"anna"}, {}}, 10'000).logged_in.empty());
    logins_.renewed(2, {{}, {"anna"}}, 11'000);
    CPPUNIT_ASSERT(Facts({{"anna", true}}) == logins_.renewed(1, {{"anna"}, {}}, 20'000).logged_in);
    logins_.renewed(2, {}, 21'000);  // she has gone
    CPPUNIT_ASSERT(logins_.renewed(1, {{"anna"}, {}}, 29'999).logged_in.empty());
    CPPUNIT_ASSERT(Facts({{"anna", false}}) ==
                   logins_.renewed(1, {{"anna"}, {}}, 30'000).logged_in);
    // Who does not ask is told nothing.
    CPPUNIT_ASSERT(logins_.renewed(2, {}, 31'000).logged_in.empty());
  }

  void a_machine_that_falls_silent() {
    for (int64_t at = 0; at <= 40'000; at += 10'000) logins_.renewed(1, {{"anna"}, {}}, at);
    logins_.renewed(2, {{}, {"anna"}}, 40'000);
    CPPUNIT_ASSERT(logins_.renewed(1, {{"anna"}, {}}, 99'999).logged_in.at("anna"));
    CPPUNIT_ASSERT(!logins_.renewed(1, {{"anna"}, {}}, 100'000).logged_in.at("anna"));
  }

  void nobody_asks_any_more() {
    logins_.renewed(1, {{"anna"}, {}}, 0);
    logins_.renewed(1, {}, 1000);
    CPPUNIT_ASSERT(logins_.renewed(2, {}, 1000).wanted.empty());
    // Asked for anew, it takes as long again until it is known.
    CPPUNIT_ASSERT(logins_.renewed(1, {{"anna"}, {}}, 30'000).logged_in.empty());
  }

  void bounded() {
    for (uint64_t machine = 1; machine <= 8; ++machine) {
      LoginsReport report;
      for (size_t n = 0; n < Logins::kMostAsked; ++n)
        report.asked.insert(std::to_string(machine) + "-" + std::to_string(n));
      logins_.renewed(machine, report, 0);
    }
    CPPUNIT_ASSERT_EQUAL(Logins::kMostWanted, logins_.renewed(9, {}, 0).wanted.size());
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(LoginsTest);

}  // namespace
}  // namespace sublet::server
