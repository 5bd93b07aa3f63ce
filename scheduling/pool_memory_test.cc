// The memory per queued job. (bench/brain.cc measures speed.)
#include <cppunit/extensions/HelperMacros.h>
#include <malloc.h>

#include <cstdio>

#include "scheduling/pool_testing.h"

namespace sublet::scheduling {
namespace {
class PoolMemoryTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PoolMemoryTest);
  CPPUNIT_TEST(bytes_of_a_queued_job);
  CPPUNIT_TEST_SUITE_END();

  static void submit(Pool& pool, Micros now, uint64_t jobs) {
    for (uint64_t user = 0; user < 10; ++user) {
      Submitted s{1, "user" + std::to_string(user), "desk" + std::to_string(user), {}};
      s.jobs.resize(jobs / 10);
      for (size_t i = 0; i < s.jobs.size(); ++i) s.jobs[i].needs.memory = (1 + i % 4) << 20;
      pool.apply(s, now);
    }
  }

 public:
  void bytes_of_a_queued_job() {
    constexpr uint64_t kJobs = 100'000;
    Pool pool{Parameters()};
    const size_t before = mallinfo2().uordblks;
    submit(pool, testing::kStart, kJobs);
    const size_t each = (mallinfo2().uordblks - before) / kJobs;
    std::printf(" %zu bytes a queued job ", each);
    CPPUNIT_ASSERT(each <= 600);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(PoolMemoryTest);
}  // namespace
}  // namespace sublet::scheduling
