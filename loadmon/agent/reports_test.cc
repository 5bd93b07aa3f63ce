#include "loadmon/agent/reports.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet::agent {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kStart = 5'000'000 * kMs;

class ReportsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ReportsTest);
  CPPUNIT_TEST(the_first_input_is_reported_at_once);
  CPPUNIT_TEST(input_that_goes_on_is_reported_seldom);
  CPPUNIT_TEST(the_end_of_what_goes_on_is_always_reported);
  CPPUNIT_TEST(the_end_is_reported_if_the_last_report_is_old);
  CPPUNIT_TEST(two_reports_are_apart);
  CPPUNIT_TEST(a_desktop_that_is_quiet_at_first);
  CPPUNIT_TEST(a_desktop_that_never_says_it_is_quiet);
  CPPUNIT_TEST(a_new_monitor_is_told_what_is);
  CPPUNIT_TEST(a_full_screen_program);
  CPPUNIT_TEST(a_full_screen_program_and_a_new_monitor);
  CPPUNIT_TEST_SUITE_END();

  Reports reports_{kStart};

 public:
  void the_first_input_is_reported_at_once() {
    CPPUNIT_ASSERT(!reports_.quiet(kStart));
    CPPUNIT_ASSERT_EQUAL(Reports::kNever, reports_.due());
    CPPUNIT_ASSERT(reports_.active(kStart + 1));
  }

  void input_that_goes_on_is_reported_seldom() {
    CPPUNIT_ASSERT(reports_.active(kStart));
    CPPUNIT_ASSERT(!reports_.goes_on());
    int64_t now = kStart;
    for (int n = 0; n < 10; ++n) {
      CPPUNIT_ASSERT_EQUAL(now + (n == 0 ? Reports::kGoesOn : Reports::kRepeat), reports_.due());
      CPPUNIT_ASSERT(!reports_.timer(reports_.due() - 1));
      now = reports_.due();
      CPPUNIT_ASSERT(reports_.timer(now));
      CPPUNIT_ASSERT(reports_.goes_on());
    }
    // A monitor that believes that it goes on is told when it does not.
    CPPUNIT_ASSERT(reports_.quiet(now + 600 * kMs));
    CPPUNIT_ASSERT(!reports_.goes_on());
  }

  // Its end comes too soon after a report, and is put off, not left out.
  void the_end_of_what_goes_on_is_always_reported() {
    reports_.active(kStart);
    CPPUNIT_ASSERT(reports_.timer(kStart + Reports::kGoesOn));
    const int64_t said = kStart + Reports::kGoesOn;
    CPPUNIT_ASSERT(!reports_.quiet(said + kMs));
    CPPUNIT_ASSERT_EQUAL(said + int64_t{SUBLET_AGENT_PAUSE_NS}, reports_.due());
    CPPUNIT_ASSERT(reports_.timer(reports_.due()));
    CPPUNIT_ASSERT(!reports_.goes_on());
    CPPUNIT_ASSERT_EQUAL(Reports::kNever, reports_.due());
  }

  void the_end_is_reported_if_the_last_report_is_old() {
    reports_.active(kStart);
    CPPUNIT_ASSERT(!reports_.quiet(kStart + 250 * kMs));
    CPPUNIT_ASSERT_EQUAL(Reports::kNever, reports_.due());
    CPPUNIT_ASSERT(reports_.active(kStart + 2000 * kMs));
    CPPUNIT_ASSERT(reports_.quiet(kStart + 2500 * kMs));
    CPPUNIT_ASSERT_EQUAL(Reports::kNever, reports_.due());
  }

  void two_reports_are_apart() {
    CPPUNIT_ASSERT(reports_.active(kStart));
    reports_.quiet(kStart + kMs);
    CPPUNIT_ASSERT(!reports_.active(kStart + 2 * kMs));
    CPPUNIT_ASSERT_EQUAL(kStart + int64_t{SUBLET_AGENT_PAUSE_NS}, reports_.due());
    CPPUNIT_ASSERT(!reports_.timer(reports_.due() - 1));
    CPPUNIT_ASSERT(reports_.timer(reports_.due()));
  }

  void a_desktop_that_is_quiet_at_first() {
    CPPUNIT_ASSERT(!reports_.timer(kStart));
    CPPUNIT_ASSERT(!reports_.quiet(kStart + 900 * kMs));
    CPPUNIT_ASSERT(!reports_.timer(kStart + 5000 * kMs));
  }

  // Somebody types, or a film keeps the desktop from becoming quiet.
  void a_desktop_that_never_says_it_is_quiet() {
    CPPUNIT_ASSERT(reports_.timer(kStart + Reports::kGoesOn));
    CPPUNIT_ASSERT(!reports_.goes_on());
    CPPUNIT_ASSERT(reports_.timer(kStart + 2 * Reports::kGoesOn));
    CPPUNIT_ASSERT(reports_.goes_on());
  }

  void a_new_monitor_is_told_what_is() {
    CPPUNIT_ASSERT(!reports_.connected(kStart));
    reports_.active(kStart);
    CPPUNIT_ASSERT(reports_.connected(kStart + kMs));
    reports_.quiet(kStart + 2 * kMs);
    CPPUNIT_ASSERT(!reports_.connected(kStart + 3 * kMs));
  }

  void a_full_screen_program() {
    constexpr int64_t kPause = FullScreenReports::kPause;
    FullScreenReports reports;
    CPPUNIT_ASSERT(!reports.changed(false, kStart));
    CPPUNIT_ASSERT(reports.changed(true, kStart));
    CPPUNIT_ASSERT_EQUAL(Reports::kNever, reports.due());
    CPPUNIT_ASSERT(!reports.changed(false, kStart + 1));
    // Changed back before it was said.
    CPPUNIT_ASSERT(!reports.changed(true, kStart + 2));
    CPPUNIT_ASSERT_EQUAL(Reports::kNever, reports.due());
    CPPUNIT_ASSERT(!reports.changed(false, kStart + 3));
    CPPUNIT_ASSERT_EQUAL(kStart + kPause, reports.due());
    CPPUNIT_ASSERT(!reports.timer(kStart + kPause - 1));
    CPPUNIT_ASSERT(reports.timer(kStart + kPause));
    CPPUNIT_ASSERT(!reports.is());
    CPPUNIT_ASSERT_EQUAL(Reports::kNever, reports.due());
  }

  void a_full_screen_program_and_a_new_monitor() {
    FullScreenReports reports;
    CPPUNIT_ASSERT(!reports.connected(kStart));
    CPPUNIT_ASSERT(reports.changed(true, kStart));
    CPPUNIT_ASSERT(!reports.connected(kStart + 1));
    CPPUNIT_ASSERT(reports.timer(reports.due()));
    CPPUNIT_ASSERT(reports.connected(kStart + 5 * FullScreenReports::kPause));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ReportsTest);
}  // namespace
}  // namespace sublet::agent
