#include "client/attempts/output_text.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/testing/temporary_folder.h"
#include "client/staging/work_folder.h"

namespace sublet::client {
namespace {

class AttemptTextTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AttemptTextTest);
  CPPUNIT_TEST(reads_a_part);
  CPPUNIT_TEST(nothing_written_is_empty);
  CPPUNIT_TEST(no_such_attempt);
  CPPUNIT_TEST(planted_files_are_not_read);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder state_;
  const AttemptName name_{7, 2};
  std::string folder_;

 public:
  void setUp() override {
    folder_ = attempt_folder(state_.path(), name_);
    make_attempt_folder(system_files(), folder_, -1, -1);
  }

 private:
  std::optional<std::string> read(FileKind stream, uint64_t offset, uint32_t limit = 100) {
    return read_attempt_text(state_.path(), name_, stream, offset, limit);
  }
  int refusal() {
    try {
      read(FileKind::kStdout, 0);
    } catch (const WorkFolderError& error) {
      return error.code();
    }
    return 0;
  }

  void reads_a_part() {
    system_files().append(folder_ + "/stdout", "0123456789");
    system_files().append(folder_ + "/stderr", "e");
    CPPUNIT_ASSERT_EQUAL(std::string("0123456789"), *read(FileKind::kStdout, 0));
    CPPUNIT_ASSERT_EQUAL(std::string("3456"), *read(FileKind::kStdout, 3, 4));
    CPPUNIT_ASSERT_EQUAL(std::string("9"), *read(FileKind::kStdout, 9));
    CPPUNIT_ASSERT_EQUAL(std::string(), *read(FileKind::kStdout, 10));
    CPPUNIT_ASSERT_EQUAL(std::string(), *read(FileKind::kStdout, UINT64_MAX));
    CPPUNIT_ASSERT_EQUAL(std::string("e"), *read(FileKind::kStderr, 0));
    system_files().append(folder_ + "/stdout", "ab");
    CPPUNIT_ASSERT_EQUAL(std::string("ab"), *read(FileKind::kStdout, 10));
  }

  void nothing_written_is_empty() {
    CPPUNIT_ASSERT_EQUAL(std::string(), *read(FileKind::kStdout, 0));
    CPPUNIT_ASSERT_EQUAL(std::string(), *read(FileKind::kStderr, 5));
  }

  void no_such_attempt() {
    CPPUNIT_ASSERT(!read_attempt_text(state_.path(), {7, 1}, FileKind::kStdout, 0, 10));
  }

  void planted_files_are_not_read() {
    const std::string stdout_file = folder_ + "/stdout";
    CPPUNIT_ASSERT_EQUAL(0, symlink("/etc/passwd", stdout_file.c_str()));
    CPPUNIT_ASSERT_EQUAL(ELOOP, refusal());
    unlink(stdout_file.c_str());
    CPPUNIT_ASSERT_EQUAL(0, mkfifo(stdout_file.c_str(), 0600));  // opening it must not block
    CPPUNIT_ASSERT_EQUAL(EINVAL, refusal());
    system_files().remove_tree(folder_);
    const std::string elsewhere = state_ / "elsewhere";
    make_attempt_folder(system_files(), elsewhere, -1, -1);
    system_files().append(elsewhere + "/stdout", "secret");
    CPPUNIT_ASSERT_EQUAL(0, symlink(elsewhere.c_str(), folder_.c_str()));
    CPPUNIT_ASSERT(refusal() == ELOOP || refusal() == ENOTDIR);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(AttemptTextTest);

}  // namespace
}  // namespace sublet::client
