#include "client/machine/machine.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/stat.h>

#include "base/testing/temporary_folder.h"
#include "client/attempts/record.h"

namespace sublet::client {
namespace {

class MachineTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(MachineTest);
  CPPUNIT_TEST(an_identity_lasts);
  CPPUNIT_TEST(a_damaged_identity_is_not_replaced);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;

  void an_identity_lasts() {
    const MachineIdentity made = ensure_identity(system_files(), folder_.path());
    CPPUNIT_ASSERT_EQUAL(size_t{32}, made.secret.size());
    write_identity(system_files(), folder_.path(), {7, made.secret});
    const MachineIdentity read = ensure_identity(system_files(), folder_.path());
    CPPUNIT_ASSERT_EQUAL(uint64_t{7}, read.machine);
    CPPUNIT_ASSERT(read.secret == made.secret);
    struct stat info;
    CPPUNIT_ASSERT_EQUAL(0, stat((folder_ / "machine").c_str(), &info));
    CPPUNIT_ASSERT_EQUAL(mode_t{0600}, info.st_mode & 07777);
  }

  // Another machine id would be another machine: people must decide.
  void a_damaged_identity_is_not_replaced() {
    const std::string path = folder_ / "machine";
    write_identity(system_files(), folder_.path(), {7, "secret"});
    const std::string whole = system_files().read_file(path, 4096);
    system_files().write_atomic(path, whole.substr(0, whole.size() / 2));
    try {
      ensure_identity(system_files(), folder_.path());
      CPPUNIT_FAIL("accepted");
    } catch (const RecordError& error) {
      const std::string message = error.what();
      CPPUNIT_ASSERT_MESSAGE(message, message.starts_with(path + ": "));
      CPPUNIT_ASSERT_MESSAGE(
          message, message.find("remove it to register as a new machine") != std::string::npos);
      // What is wrong stands between them.
      CPPUNIT_ASSERT_MESSAGE(message, message.find(": .") == std::string::npos);
    }
    CPPUNIT_ASSERT_EQUAL(whole.substr(0, whole.size() / 2), system_files().read_file(path, 4096));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(MachineTest);

}  // namespace
}  // namespace sublet::client
