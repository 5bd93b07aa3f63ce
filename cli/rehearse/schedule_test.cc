// Which interruptions a seed draws.
#include "cli/rehearse/schedule.h"

#include <cppunit/extensions/HelperMacros.h>

#include <set>

namespace sublet::cli {
namespace {

using Way = Interruption::Way;

class ScheduleTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ScheduleTest);
  CPPUNIT_TEST(a_seed_draws_the_same_again);
  CPPUNIT_TEST(seven_runs_have_every_kind);
  CPPUNIT_TEST(without_points_all_are_at_instants);
  CPPUNIT_TEST_SUITE_END();

  static std::vector<double> shares(uint64_t seed) {
    std::vector<double> all;
    for (const PlannedRun& run : draw_runs(seed, 20, true))
      for (const Interruption& one : run.interruptions) all.push_back(one.share);
    return all;
  }

 public:
  void a_seed_draws_the_same_again() {
    CPPUNIT_ASSERT(shares(5) == shares(5));
    CPPUNIT_ASSERT(shares(5) != shares(6));
    for (const double share : shares(5)) CPPUNIT_ASSERT(share >= 0 && share < 1);
  }

  void seven_runs_have_every_kind() {
    std::set<std::string> kinds;
    std::set<Way> ways;
    bool loses = false, at_start = false;
    for (const PlannedRun& run : draw_runs(1, 7, true)) {
      kinds.insert(run.what);
      for (const Interruption& one : run.interruptions) {
        ways.insert(one.way);
        loses = loses || one.loses_newest;
        at_start = at_start || one.share == 0;
      }
    }
    CPPUNIT_ASSERT_EQUAL(size_t{7}, kinds.size());
    CPPUNIT_ASSERT_EQUAL(size_t{3}, ways.size());
    CPPUNIT_ASSERT(loses && at_start);
  }

  void without_points_all_are_at_instants() {
    for (const PlannedRun& run : draw_runs(1, 20, false))
      for (const Interruption& one : run.interruptions)
        CPPUNIT_ASSERT(one.way != Way::ask_at_point);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ScheduleTest);

}  // namespace
}  // namespace sublet::cli
