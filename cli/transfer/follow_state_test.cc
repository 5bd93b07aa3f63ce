#include "cli/transfer/follow_state.h"

#include <cppunit/extensions/HelperMacros.h>

#include <cerrno>

#include "base/testing/temporary_folder.h"

namespace sublet::cli {
namespace {

class FollowStateTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(FollowStateTest);
  CPPUNIT_TEST(comes_back);
  CPPUNIT_TEST(a_damaged_one_is_set_aside);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  std::string damage_;

  FollowState read() { return read_follow_state(system_files(), folder_.path(), &damage_); }

  void comes_back() {
    CPPUNIT_ASSERT(read() == FollowState());
    const FollowState state{77, 1'700'000'000'000'000, {{3, false}, {9, true}}};
    write_follow_state(system_files(), folder_.path(), state);
    CPPUNIT_ASSERT(read() == state);
    write_follow_state(system_files(), folder_.path(), {78, 1, {}});
    CPPUNIT_ASSERT(read() == (FollowState{78, 1, {}}));
    CPPUNIT_ASSERT_EQUAL(std::string(), damage_);
  }

  void a_damaged_one_is_set_aside() {
    for (const char* text : {"", "sublet-fetch 1\n", "sublet-fetch 1\nsince 7\n",
                             "sublet-fetch 1\nsince x\nend\n", "other 1\nsince 7\nend\n"}) {
      damage_.clear();
      system_files().write_atomic(folder_ / "state", text);
      CPPUNIT_ASSERT(read() == FollowState());
      CPPUNIT_ASSERT(damage_.find("state.damaged") != std::string::npos);
      CPPUNIT_ASSERT_EQUAL(std::string(text),
                           system_files().read_file(folder_ / "state.damaged", 1000));
      CPPUNIT_ASSERT(!system_files().exists(folder_ / "state"));
    }
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(FollowStateTest);

}  // namespace
}  // namespace sublet::cli
