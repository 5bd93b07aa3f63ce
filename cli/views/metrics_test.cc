#include "cli/views/metrics.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet::cli {
namespace {

class MetricsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(MetricsTest);
  CPPUNIT_TEST(an_empty_pool);
  CPPUNIT_TEST(states_and_steps);
  CPPUNIT_TEST_SUITE_END();

  static void has(const std::string& text, const std::string& line) {
    CPPUNIT_ASSERT_MESSAGE(text, ("\n" + text).find("\n" + line + "\n") != std::string::npos);
  }

  // A state in which nothing is has a line, too: what vanishes from a graph is not 0.
  void an_empty_pool() {
    const std::string text = metrics_text({});
    has(text, "sublet_jobs{state=\"suspended\"} 0");
    has(text, "sublet_machines{state=\"silent\"} 0");
    has(text, "sublet_evictions_last_hour 0");
    CPPUNIT_ASSERT(text.ends_with("\n# EOF\n"));
    CPPUNIT_ASSERT(text.find("quantile") == std::string::npos);
  }

  void states_and_steps() {
    PoolMetrics metrics;
    metrics.jobs.waiting = 1840;
    metrics.machines.resize(3);
    metrics.machines[0].state = 1;
    metrics.machines[1].state = metrics.machines[2].state = 2;
    metrics.last_hour.kept_us = 1'500'000;
    metrics.last_hour.steps = {{"gone", 7, 1'280, 99'000, 101'100, 2'000'000}};
    const std::string text = metrics_text(metrics);
    has(text, "sublet_jobs{state=\"waiting\"} 1840");
    has(text, "sublet_machines{state=\"busy\"} 2");
    has(text, "sublet_cpu_kept_seconds_last_hour 1.500000");
    has(text, "# TYPE sublet_eviction_step_seconds summary");
    has(text, "sublet_eviction_step_seconds{step=\"gone\",quantile=\"0.5\"} 0.001280");
    has(text, "sublet_eviction_step_seconds{step=\"gone\",quantile=\"1.0\"} 2.000000");
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(MetricsTest);

}  // namespace
}  // namespace sublet::cli
