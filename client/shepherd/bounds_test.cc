// What the kernel's counters say, in both layouts. (Real cgroups: run_test.cc.)
#include "client/shepherd/bounds.h"

#include <cppunit/extensions/HelperMacros.h>

#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/testing/temporary_folder.h"

namespace sublet::shepherd {
namespace {

class MemoryTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(MemoryTest);
  CPPUNIT_TEST(its_own_limit);
  CPPUNIT_TEST(the_machines_memory);
  CPPUNIT_TEST(nothing);
  CPPUNIT_TEST_SUITE_END();

  static bool ran_out(const std::vector<std::pair<std::string, std::string>>& files) {
    TemporaryFolder folder;
    for (const auto& [name, text] : files) system_files().write_atomic(folder / name, text);
    return memory_ran_out(folder.path().c_str());
  }
  static std::string events(const std::string& oom, const std::string& kills) {
    return "low 0\nhigh 0\nmax 9\noom " + oom + "\noom_kill " + kills + "\noom_group_kill 0\n";
  }
  static std::string control(const std::string& kills) {
    return "oom_kill_disable 0\nunder_oom 0\noom_kill " + kills + "\n";
  }

  void its_own_limit() {
    CPPUNIT_ASSERT(ran_out({{"memory.events", events("1", "2")}}));
    CPPUNIT_ASSERT(ran_out({{"memory.oom_control", control("1")},
                            {"memory.max_usage_in_bytes", "49999872\n"},
                            {"memory.limit_in_bytes", "49999872\n"}}));
  }
  void the_machines_memory() {
    CPPUNIT_ASSERT(!ran_out({{"memory.events", events("0", "1")}}));
    CPPUNIT_ASSERT(!ran_out({{"memory.oom_control", control("1")},
                             {"memory.max_usage_in_bytes", "20000000\n"},
                             {"memory.limit_in_bytes", "49999872\n"}}));
  }
  void nothing() {
    CPPUNIT_ASSERT(!ran_out({}));
    CPPUNIT_ASSERT(!ran_out({{"memory.events", events("3", "0")}}));
    CPPUNIT_ASSERT(!ran_out({{"memory.oom_control", control("0")},
                             {"memory.max_usage_in_bytes", "49999872\n"},
                             {"memory.limit_in_bytes", "49999872\n"}}));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(MemoryTest);

}  // namespace
}  // namespace sublet::shepherd
