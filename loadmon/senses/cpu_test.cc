#include "loadmon/senses/cpu.h"

#include <cppunit/extensions/HelperMacros.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace sublet::loadmon {
namespace {
using protocol::PresenceSample;
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kStart = 1'000'000 * kMs;

void near(double expected, double actual) { CPPUNIT_ASSERT_DOUBLES_EQUAL(expected, actual, 1e-9); }
}  // namespace

class CpuTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(CpuTest);
  CPPUNIT_TEST(a_unit_of_its_own);
  CPPUNIT_TEST(groups_come_and_go);
  CPPUNIT_TEST(any_other_unit_is_not_ours_alone);
  CPPUNIT_TEST(the_old_hierarchy);
  CPPUNIT_TEST(idle_time);
  CPPUNIT_TEST(the_window_slides);
  CPPUNIT_TEST(jobs_are_subtracted_once);
  CPPUNIT_TEST(what_cannot_be_read_is_a_failure);
  CPPUNIT_TEST(this_machine);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    char name[] = "/tmp/sublet-cpu-XXXXXX";
    CPPUNIT_ASSERT(mkdtemp(name) != nullptr);
    root_ = name;
  }
  void tearDown() override { std::filesystem::remove_all(root_); }

  void a_unit_of_its_own() {
    in_unit();
    group("user.slice", 5'000'000);
    group("sublet-1-7.1", 90'000'000);
    const auto clock = open_cpu_clock(root_);
    CPPUNIT_ASSERT(!clock->counts_jobs());
    const double before = clock->read().value();
    group("user.slice", 5'250'000);
    group("sublet-1-7.1", 99'000'000);           // a job's
    group("system.slice", 3'000'000 + 400'000);  // contains the unit
    group("system.slice/sublet-client.service", 1'000'000 + 400'000);
    near(0.25, clock->read().value() - before);
  }

  void groups_come_and_go() {
    in_unit();
    group("user.slice", 5'000'000);
    const auto clock = open_cpu_clock(root_);
    const double before = clock->read().value();
    group("machine.slice", 100'000);
    group("sublet-1-8.1", 100'000);
    near(0.1, clock->read().value() - before);
    std::filesystem::remove_all(group_path("machine.slice"));
    std::filesystem::remove_all(group_path("sublet-1-8.1"));
    group("user.slice", 5'010'000);
    near(0.11, clock->read().value() - before);
    std::filesystem::remove_all(group_path("system.slice"));
    CPPUNIT_ASSERT(!clock->read());  // ours
  }

  void any_other_unit_is_not_ours_alone() {
    for (const char* path :
         {"0::/user.slice/user-1000.slice/session-2.scope\n", "0::/system.slice/cron.service\n",
          "0::/system.slice/sublet-client.service/x\n", "0::/\n", ""}) {
      in_unit();
      write("proc/self/cgroup", path);
      write("proc/stat", "cpu 0 0 0 0 0 0 0 0 0 0\n");
      CPPUNIT_ASSERT_MESSAGE(path, open_cpu_clock(root_)->counts_jobs());
    }
  }

  void the_old_hierarchy() {
    for (const std::string folder : {"cpuacct", "cpu,cpuacct"}) {
      write("sys/fs/cgroup/" + folder + "/cpuacct.usage", "1500000000\n");
      const auto clock = open_cpu_clock(root_);
      CPPUNIT_ASSERT(clock->counts_jobs());
      CPPUNIT_ASSERT_EQUAL(std::string(), clock->remark());
      near(1.5, clock->read().value());
      write("sys/fs/cgroup/" + folder + "/cpuacct.usage", "1750000000\n");
      near(1.75, clock->read().value());
      write("sys/fs/cgroup/" + folder + "/cpuacct.usage", "");
      CPPUNIT_ASSERT(!clock->read());
      std::filesystem::remove_all(root_ + "/sys");
    }
  }

  void idle_time() {
    write("proc/stat", "cpu 1 1 1 1000 10 5 5 5 0 0\n");
    const auto clock = open_cpu_clock(root_);
    CPPUNIT_ASSERT(clock->remark().starts_with("the processors' idle time"));
    const double before = clock->read().value();
    // An hour of idle time, of interrupts or of others' that has not passed cannot be told from
    // its opposite; what matters is that all of these count.
    write("proc/stat", "cpu 9 9 9 1100 110 105 105 105 0 0\n");
    const double after = clock->read().value();
    CPPUNIT_ASSERT(after - before < -4.5);
    for (const char* text : {"", "cpu", "cpu 1 2 3 4 5 6 7", "intr 1 2 3 4 5 6 7 8"}) {
      write("proc/stat", text);
      CPPUNIT_ASSERT_MESSAGE(text, !clock->read());
    }
  }

  void the_window_slides() {
    used(0);
    CpuSense sense(root_);
    near(-1, cores(sense, 0));  // one reading gives no value yet
    used(100);
    near(-1, cores(sense, 250));
    near(0.2, cores(sense, 500));
    used(400);
    near(0.6, cores(sense, 750));  // 300 ms in the last 500
    used(400);
    near(0.6, cores(sense, 1000));
    near(0, cores(sense, 1250));
    used(300);  // the jobs used more than was counted
    near(0, cores(sense, 1500));
    // A sample that comes late covers a longer time.
    used(2300);
    near(1, cores(sense, 3500));
  }

  void jobs_are_subtracted_once() {
    used(0);
    CpuSense sense(root_);
    cores(sense, 0);
    used(1000);
    near(0.5, cores(sense, 1000, 0.5));
    used(2000);
    near(0, cores(sense, 2000, 1));
    in_unit();
    group("user.slice", 0);
    CpuSense other(root_);
    cores(other, 0);
    group("user.slice", 500'000);
    near(0.5, cores(other, 1000, 1e6));  // its jobs are not in there
  }

  void what_cannot_be_read_is_a_failure() {
    PresenceSample sample;
    CpuSense sense(root_);
    CPPUNIT_ASSERT(!sense.sample(kStart, {}, &sample));
  }

  void this_machine() {
    const auto clock = open_cpu_clock("");
    const double before = clock->read().value();
    // Work that certainly costs CPU time, by the kernel's own word.
    while (clock->read().value() - before < 0.05) {
    }
  }

 private:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path, std::ios::trunc) << text;
  }
  std::string group_path(const std::string& name) const { return root_ + "/sys/fs/cgroup/" + name; }
  void group(const std::string& name, int64_t usage) {
    write("sys/fs/cgroup/" + name + "/cpu.stat",
          "usage_usec " + std::to_string(usage) + "\nuser_usec 1\nsystem_usec 1\n");
  }
  void in_unit() {
    write("proc/self/cgroup", "0::/system.slice/sublet-client.service\n");
    group("system.slice", 3'000'000);
    group("system.slice/sublet-client.service", 1'000'000);
  }
  // Milliseconds since boot, of all processes.
  void used(int64_t ms) {
    write("sys/fs/cgroup/cpuacct/cpuacct.usage", std::to_string((5000 + ms) * kMs) + "\n");
  }
  static double cores(CpuSense& sense, int64_t ms, double jobs = 0) {
    PresenceSample sample;
    CPPUNIT_ASSERT(sense.sample(kStart + ms * kMs, {.cpu_seconds = jobs}, &sample));
    return sample.cpu;
  }

  std::string root_;
};

CPPUNIT_TEST_SUITE_REGISTRATION(CpuTest);

}  // namespace sublet::loadmon
