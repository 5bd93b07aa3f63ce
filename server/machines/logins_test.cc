#include "server/machines/logins.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet::server {
namespace {

using Facts = std::map<std::string, bool>;

class LoginsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LoginsTest);
  CPPUNIT_TEST(known_when_all_had_time_to_answer);
  CPPUNIT_TEST(a_machine_that_does_not_know);
  CPPUNIT_TEST(a_machine_that_falls_silent);
  CPPUNIT_TEST(nobody_asks_any_more);
  CPPUNIT_TEST(bounded);
  CPPUNIT_TEST_SUITE_END();

  using Users = std::set<std::string>;

  Logins logins_{30'000};

  // The answer to a machine of which it is known who is logged in there.
  LoginsAnswer says(uint64_t machine, const Users& asked, const Users& here, int64_t now_ms) {
    return logins_.renewed(machine, {asked, here}, now_ms);
  }

  void known_when_all_had_time_to_answer() {
    // Machine 1 asks, machine 2 is where anna works.
    CPPUNIT_ASSERT(says(1, {"anna"}, {}, 0).logged_in.empty());
    CPPUNIT_ASSERT_EQUAL(std::string("anna"), says(2, {}, {}, 1000).wanted.at(0));
    CPPUNIT_ASSERT(says(1, {"anna"}, {}, 10'000).logged_in.empty());
    says(2, {}, {"anna"}, 11'000);
    CPPUNIT_ASSERT(Facts({{"anna", true}}) == says(1, {"anna"}, {}, 20'000).logged_in);
    says(2, {}, {}, 21'000);  // she has gone
    CPPUNIT_ASSERT(says(1, {"anna"}, {}, 29'999).logged_in.empty());
    CPPUNIT_ASSERT(Facts({{"anna", false}}) == says(1, {"anna"}, {}, 30'000).logged_in);
    // Who does not ask is told nothing, and who is not asked for does not count.
    CPPUNIT_ASSERT(says(2, {}, {"ben"}, 31'000).logged_in.empty());
    CPPUNIT_ASSERT(says(1, {"anna", "ben"}, {}, 32'000).logged_in == Facts({{"anna", false}}));
  }

  // It cannot be told that she is nowhere while a machine does not know it yet.
  void a_machine_that_does_not_know() {
    says(1, {"anna"}, {}, 0);
    logins_.renewed(2, {}, 39'000);
    CPPUNIT_ASSERT(says(1, {"anna"}, {}, 40'000).logged_in.empty());
    says(3, {}, {"anna"}, 41'000);
    CPPUNIT_ASSERT(says(1, {"anna"}, {}, 42'000).logged_in.at("anna"));
    says(3, {}, {}, 43'000);
    CPPUNIT_ASSERT(says(1, {"anna"}, {}, 44'000).logged_in.empty());
    says(2, {}, {}, 45'000);
    CPPUNIT_ASSERT(!says(1, {"anna"}, {}, 46'000).logged_in.at("anna"));
  }

  void a_machine_that_falls_silent() {
    for (int64_t at = 0; at <= 40'000; at += 10'000) says(1, {"anna"}, {}, at);
    says(2, {}, {"anna"}, 40'000);
    CPPUNIT_ASSERT(says(1, {"anna"}, {}, 99'999).logged_in.at("anna"));
    CPPUNIT_ASSERT(!says(1, {"anna"}, {}, 101'000).logged_in.at("anna"));
  }

  void nobody_asks_any_more() {
    says(1, {"anna"}, {}, 0);
    says(1, {}, {}, 1000);
    CPPUNIT_ASSERT(says(2, {}, {}, 1000).wanted.empty());
    // Asked for anew, it takes as long again until it is known.
    CPPUNIT_ASSERT(says(1, {"anna"}, {}, 30'000).logged_in.empty());
  }

  void bounded() {
    for (uint64_t machine = 1; machine <= 8; ++machine) {
      Users asked;
      for (size_t n = 0; n < Logins::kMostAsked; ++n)
        asked.insert(std::to_string(machine) + "-" + std::to_string(n));
      says(machine, asked, asked, 0);
    }
    CPPUNIT_ASSERT_EQUAL(Logins::kMostWanted, says(9, {}, {}, 0).wanted.size());
    // Whoever comes too late gets a place when the others have gone.
    CPPUNIT_ASSERT(!says(9, {"late"}, {}, 0).logged_in.contains("late"));
    for (int64_t at = 10'000; at <= 60'000; at += 10'000) says(9, {"late"}, {}, at);
    CPPUNIT_ASSERT(says(9, {"late"}, {}, 70'000).wanted == std::vector<std::string>{"late"});
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(LoginsTest);

}  // namespace
}  // namespace sublet::server
