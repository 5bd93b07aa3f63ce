// Policies that a newcomer wrote (docs/policies.md) are among the others here: the general
// properties, of which this program has a copy, take them in by themselves.
#include <cppunit/extensions/HelperMacros.h>

#include <algorithm>

#include "scheduling/policies/job_policies.h"
#include "scheduling/policies/machine_policies.h"
#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {

using testing::TestPool;

class NewcomersTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(NewcomersTest);
  CPPUNIT_TEST(are_known);
  CPPUNIT_TEST(decide);
  CPPUNIT_TEST_SUITE_END();

  void are_known() {
    const auto jobs = known_job_policies(), machines = known_machine_policies();
    CPPUNIT_ASSERT(std::ranges::count(jobs, "shortest-list") == 1);
    CPPUNIT_ASSERT(std::ranges::count(machines, "roomiest") == 1);
  }

  // The user with the fewest waiting jobs gets the machine with the most memory.
  void decide() {
    Parameters p;
    p.job_policy = "shortest-list";
    p.machine_policy = "roomiest";
    TestPool t(p);
    const MachineId small = t.join({0, "small", "linux", "x86_64", 1, 1, 1ull << 30, 1}, false);
    const MachineId large = t.join({0, "large", "linux", "x86_64", 1, 1, 8ull << 30, 1});
    const JobId first = t.submit("bob");
    const JobId others = t.submit("bob", 3);
    const JobId anns = t.submit("ann");
    CPPUNIT_ASSERT_EQUAL(large, t.machine_of(first));
    t.end(first, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(large, t.machine_of(anns));
    t.apply(JobsHeld{{JobRange(others, 3)}});
    t.end(anns, EndReason::kDone);
    t.report(small, true);
    CPPUNIT_ASSERT_EQUAL(large, t.machine_of(t.submit("ann")));
    CPPUNIT_ASSERT_EQUAL(small, t.machine_of(t.submit("ann")));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(NewcomersTest);

}  // namespace
}  // namespace sublet::scheduling
