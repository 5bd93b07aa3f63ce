#include "attempt/cpu_weight.h"

#include <cppunit/extensions/HelperMacros.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "base/testing/temporary_folder.h"

using namespace sublet;

namespace {

// Real weights: client/shepherd/weight_test.cc.
class CpuWeightTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(CpuWeightTest);
  CPPUNIT_TEST(autogroups_count_in_the_roots_group_only);
  CPPUNIT_TEST(unless_switched_off);
  CPPUNIT_TEST_SUITE_END();

  // With these lines of /proc/self/cgroup, and these groups of v2 that have a weight.
  static bool count(const std::string& lines, const std::vector<std::string>& weighed = {},
                    const std::string& enabled = "1\n") {
    TemporaryFolder root;
    const auto write = [&](const std::string& name, const std::string& text) {
      const std::string path = root / name;
      system_files().make_folders(path.substr(0, path.rfind('/')));
      system_files().write_atomic(path, text);
    };
    if (!enabled.empty()) write("proc/sys/kernel/sched_autogroup_enabled", enabled);
    write("proc/self/cgroup", lines);
    for (const std::string& group : weighed) write("cgroup" + group + "/cpu.weight", "100\n");
    return autogroups_count((root / "proc").c_str(), (root / "cgroup").c_str());
  }

  void autogroups_count_in_the_roots_group_only() {
    // cgroup v1, or both.
    CPPUNIT_ASSERT(count("4:memory:/a\n1:cpu:/\n0::/b\n", {"/b"}));
    CPPUNIT_ASSERT(count("1:cpu,cpuacct:/\n"));
    CPPUNIT_ASSERT(!count("2:cpuacct,cpu:/user.slice\n0::/\n"));
    CPPUNIT_ASSERT(count("2:cpuacct:/a\n3:cpuset:/a\n0::/\n"));
    // v2 alone.
    CPPUNIT_ASSERT(count("0::/\n"));
    CPPUNIT_ASSERT(count("0::/user.slice/user-1.slice/session-1.scope\n"));
    CPPUNIT_ASSERT(count("0::/user.slice/user-1.slice/session-1.scope\n", {"/system.slice"}));
    for (const char* group :
         {"/user.slice", "/user.slice/user-1.slice", "/user.slice/user-1.slice/session-1.scope"})
      CPPUNIT_ASSERT(!count("0::/user.slice/user-1.slice/session-1.scope\n", {group}));
    CPPUNIT_ASSERT(!count("0::/\n", {""}));  // a namespace's root
    CPPUNIT_ASSERT(!count("0::/a\n", {""}));
    CPPUNIT_ASSERT(count(""));
    CPPUNIT_ASSERT(count("nonsense\n:\n"));
  }

  void unless_switched_off() {
    CPPUNIT_ASSERT(!count("0::/\n", {}, "0\n"));
    CPPUNIT_ASSERT(!count("0::/\n", {}, ""));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(CpuWeightTest);

}  // namespace
