// The supervisor with shell scripts in place of the server.
#include "server/supervisor.h"

#include <cppunit/extensions/HelperMacros.h>

#include <fstream>
#include <sstream>

#include "base/testing/temporary_folder.h"

namespace sublet::server {
namespace {

class SupervisorTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SupervisorTest);
  CPPUNIT_TEST(an_orderly_end_is_the_end);
  CPPUNIT_TEST(a_first_start_that_fails_is_not_repeated);
  CPPUNIT_TEST(a_crash_is_repeated);
  CPPUNIT_TEST(a_later_failure_is_repeated);
  CPPUNIT_TEST(wrong_settings_end_it);
  CPPUNIT_TEST(instant_deaths_end_it);
  CPPUNIT_TEST(the_first_restart_is_immediate);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;

  // Each line of `lives` is a script, run at that life of the server.
  int run(const std::string& lives) {
    std::ofstream(folder_ / "lives") << lives;
    const std::string script =
        "cd " + folder_.path() + "; echo >> lived; eval \"$(sed -n $(wc -l < lived)p lives)\"";
    ServiceNotify nobody("", 0);
    return supervise({"/nowhere", 60'000}, {"/bin/sh", "-c", script, "sh"}, nobody);
  }
  size_t lived() const {
    std::ifstream in(folder_ / "lived");
    std::stringstream text;
    text << in.rdbuf();
    return text.str().size();
  }

  void an_orderly_end_is_the_end() {
    CPPUNIT_ASSERT_EQUAL(0, run("exit 0\n"));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, lived());
  }

  void a_first_start_that_fails_is_not_repeated() {
    CPPUNIT_ASSERT_EQUAL(3, run("exit 3\n"));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, lived());
  }

  void a_crash_is_repeated() {
    CPPUNIT_ASSERT_EQUAL(0, run("kill -9 $$\nkill -6 $$\nexit 0\n"));
    CPPUNIT_ASSERT_EQUAL(size_t{3}, lived());
  }

  // The disk may be full for a while.
  void a_later_failure_is_repeated() {
    CPPUNIT_ASSERT_EQUAL(0, run("kill -9 $$\nexit 1\nexit 0\n"));
    CPPUNIT_ASSERT_EQUAL(size_t{3}, lived());
  }

  // The settings were changed since the first start.
  void wrong_settings_end_it() {
    CPPUNIT_ASSERT_EQUAL(2, run("kill -9 $$\nexit 2\nexit 0\n"));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, lived());
  }

  void instant_deaths_end_it() {
    std::string lives;
    for (int life = 0; life < 9; ++life) lives += "kill -9 $$\n";
    CPPUNIT_ASSERT_EQUAL(1, run(lives));
    CPPUNIT_ASSERT_EQUAL(size_t{5}, lived());
  }

  void the_first_restart_is_immediate() {
    for (int deaths = 0; deaths < 5; ++deaths)
      CPPUNIT_ASSERT_EQUAL(int64_t{std::max(0, deaths - 1) * 100}, restart_pause_ms(deaths));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(SupervisorTest);

}  // namespace
}  // namespace sublet::server
