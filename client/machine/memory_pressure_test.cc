#include "client/machine/memory_pressure.h"

#include <cppunit/extensions/HelperMacros.h>

#include <filesystem>
#include <fstream>

#include "base/testing/temporary_folder.h"

namespace sublet::client {
namespace {

constexpr int64_t kMs = 1'000'000;

class MemoryPressureTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(MemoryPressureTest);
  CPPUNIT_TEST(others_wait);
  CPPUNIT_TEST(jobs_wait);
  CPPUNIT_TEST(jobs_that_cannot_be_told_apart);
  CPPUNIT_TEST(the_kernel_does_not_say);
  CPPUNIT_TEST(this_kernel);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  const std::string machine_ = folder_ / "machine";
  const std::string groups_ = folder_ / "cgroup";
  int64_t now_ = 1'000 * kMs;

  static void write(const std::string& path, int64_t some_ms) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << "some avg10=1.50 avg60=0.00 avg300=0.00 total=" << some_ms * 1000
                        << "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=99000000\n";
  }
  void waited(const std::string& group, int64_t ms) const {
    write(groups_ + "/" + group + "/memory.pressure", ms);
  }
  // After a second.
  uint32_t look(MemoryPressure& pressure, bool of_jobs_too = false) {
    now_ += 1'000 * kMs;
    const Pressure last = pressure.look(now_);
    CPPUNIT_ASSERT_EQUAL(of_jobs_too, last.of_jobs_too);
    return last.ppm;
  }

  void others_wait() {
    waited("user.slice", 5'000);
    waited("system.slice", 7'000);
    MemoryPressure pressure(groups_, machine_);
    CPPUNIT_ASSERT_EQUAL(0u, look(pressure));
    waited("user.slice", 5'200);
    waited("system.slice", 7'150);
    CPPUNIT_ASSERT_EQUAL(200'000u, look(pressure));
    CPPUNIT_ASSERT_EQUAL(0u, look(pressure));
    waited("machine.slice", 900);  // new: since when is not known
    CPPUNIT_ASSERT_EQUAL(0u, look(pressure));
    std::filesystem::remove_all(groups_ + "/user.slice");
    waited("machine.slice", 1'200);
    CPPUNIT_ASSERT_EQUAL(300'000u, look(pressure));
    waited("machine.slice", 9'000);  // as if the clocks differed
    CPPUNIT_ASSERT_EQUAL(1'000'000u, look(pressure));
  }

  void jobs_wait() {
    waited("user.slice", 0);
    waited("sublet-c0-7.1", 0);
    write(machine_, 0);
    MemoryPressure pressure(groups_, machine_);
    look(pressure);
    waited("sublet-c0-7.1", 900);
    write(machine_, 900);
    CPPUNIT_ASSERT_EQUAL(0u, look(pressure));
  }

  // No control groups; those of a unit, beside which the owner's programs are not; or a machine on
  // which those have none.
  void jobs_that_cannot_be_told_apart() {
    waited("unit/other", 0);
    waited("root/sublet-c0-7.1", 0);
    std::ofstream(groups_ + "/unit/cgroup.type") << "domain\n";
    for (const std::string& jobs_in : {std::string(), groups_ + "/unit", groups_ + "/root"}) {
      write(machine_, 0);
      MemoryPressure pressure(jobs_in, machine_);
      CPPUNIT_ASSERT_EQUAL(0u, look(pressure, true));
      write(machine_, 500);
      CPPUNIT_ASSERT_EQUAL(500'000u, look(pressure, true));
    }
  }

  void the_kernel_does_not_say() {
    MemoryPressure pressure("", machine_);
    look(pressure, true);
    CPPUNIT_ASSERT_EQUAL(0u, look(pressure, true));
    std::ofstream(machine_) << "nonsense\n";
    CPPUNIT_ASSERT_EQUAL(0u, look(pressure, true));
    write(machine_, 900);
    CPPUNIT_ASSERT_EQUAL(0u, look(pressure, true));
    write(machine_, 1'000);
    CPPUNIT_ASSERT_EQUAL(100'000u, look(pressure, true));
  }

  // If it has the counters, what it says can be read.
  void this_kernel() {
    if (!std::ifstream("/proc/pressure/memory").is_open()) return;
    MemoryPressure pressure("");
    pressure.look(1 * kMs);
    CPPUNIT_ASSERT_EQUAL(0u, pressure.look(INT64_MAX / 2).ppm);  // an average of 146 years
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(MemoryPressureTest);

}  // namespace
}  // namespace sublet::client
