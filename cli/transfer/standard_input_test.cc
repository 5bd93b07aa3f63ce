#include "cli/transfer/standard_input.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/testing/temporary_folder.h"
#include "base/unique_fd.h"
#include "cli/pool/pool.h"

namespace sublet::cli {
namespace {

class StandardInputTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(StandardInputTest);
  CPPUNIT_TEST(a_pipe_becomes_a_file);
  CPPUNIT_TEST(it_is_bounded);
  CPPUNIT_TEST(what_cannot_be_read_is_said);
  CPPUNIT_TEST_SUITE_END();

  // A pipe from which `text` can be read, then the end.
  static UniqueFd pipe_with(const std::string& text) {
    int ends[2];
    CPPUNIT_ASSERT(pipe2(ends, O_CLOEXEC) == 0);
    UniqueFd reader(ends[0]), writer(ends[1]);
    CPPUNIT_ASSERT_EQUAL(static_cast<ssize_t>(text.size()),
                         write(writer.get(), text.data(), text.size()));
    return reader;
  }
  static std::string error_of(int fd, uint64_t most) {
    try {
      copy_standard_input(fd, most);
    } catch (const PoolError& e) {
      CPPUNIT_ASSERT_EQUAL(std::string("submit.stdin"), e.code);
      return e.message;
    }
    return "no error";
  }

  void a_pipe_becomes_a_file() {
    for (const std::string& text : {std::string("a\0b\n", 4), std::string()}) {
      const std::string path = copy_standard_input(pipe_with(text).get());
      CPPUNIT_ASSERT_EQUAL(text, system_files().read_file(path, 100));
      CPPUNIT_ASSERT_EQUAL(text, system_files().read_file(path, 100));  // each reads all of it
      CPPUNIT_ASSERT(std::filesystem::is_regular_file(path));
    }
  }

  void it_is_bounded() {
    CPPUNIT_ASSERT_EQUAL(std::string("no error"), error_of(pipe_with("abc").get(), 3));
    CPPUNIT_ASSERT(error_of(pipe_with("abcd").get(), 3).find("more than") != std::string::npos);
  }

  void what_cannot_be_read_is_said() {
    const TemporaryFolder folder;
    const UniqueFd no_file(open(folder.path().c_str(), O_RDONLY | O_CLOEXEC));
    CPPUNIT_ASSERT(error_of(no_file.get(), 3).find("read standard input") != std::string::npos);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(StandardInputTest);

}  // namespace
}  // namespace sublet::cli
