#include "base/start_up_memory.h"

#include <cppunit/extensions/HelperMacros.h>

#include <fstream>
#include <sstream>
#include <string>

namespace sublet {
namespace {

// How much of the code of this program is mapped, and of all that, in kB.
struct Code {
  long mapped = 0;
  long size = 0;
};

Code own_code() {
  std::ifstream mappings("/proc/self/smaps");
  Code code;
  bool counts = false;
  for (std::string line; std::getline(mappings, line);) {
    if (line.find("-") < line.find(":")) {
      counts = line.find(" r-xp ") != std::string::npos && line.ends_with("/base_test");
    } else if (counts) {
      std::istringstream words(line);
      std::string name;
      long kb = 0;
      words >> name >> kb;
      if (name == "Rss:") code.mapped += kb;
      if (name == "Size:") code.size += kb;
    }
  }
  return code;
}

}  // namespace

class StartUpMemoryTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(StartUpMemoryTest);
  CPPUNIT_TEST(what_the_start_used_is_given_back);
  CPPUNIT_TEST(all_code_of_the_program_is_kept);
  CPPUNIT_TEST_SUITE_END();

  void what_the_start_used_is_given_back() {
    keep_own_code();
    const Code before = own_code();
    release_start_up_memory();
    const Code after = own_code();
    CPPUNIT_ASSERT(before.size > 0);
    CPPUNIT_ASSERT_MESSAGE(std::to_string(after.mapped) + " kB of " + std::to_string(before.mapped),
                           after.mapped < before.mapped / 2);
  }

  void all_code_of_the_program_is_kept() {
    release_start_up_memory();
    keep_own_code();
    const Code code = own_code();
    CPPUNIT_ASSERT_EQUAL(code.size, code.mapped);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(StartUpMemoryTest);

}  // namespace sublet
