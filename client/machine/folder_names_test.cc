#include "client/machine/folder_names.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/testing/temporary_folder.h"
#include "base/unique_fd.h"

namespace sublet::client {

class FolderNamesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(FolderNamesTest);
  CPPUNIT_TEST(each_is_found_once);
  CPPUNIT_TEST(an_error_is_not_the_end);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;

  UniqueFd open_it() const {
    return UniqueFd(open((folder_ / "").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }

 public:
  // More than are read at once; among them the longest, and some that begin with a dot.
  void each_is_found_once() {
    std::set<std::string> expected;
    for (int i = 0; i < 300; ++i)
      expected.insert((i % 3 == 0 ? "." : "") + std::string(static_cast<size_t>(i % 250), 'x') +
                      std::to_string(i));
    for (const std::string& name : expected) std::ofstream(folder_ / name);
    std::set<std::string> found;
    const UniqueFd folder = open_it();
    FolderNames names(folder.get());
    while (const dirent64* entry = names.next()) CPPUNIT_ASSERT(found.insert(entry->d_name).second);
    CPPUNIT_ASSERT(!names.failed());
    CPPUNIT_ASSERT(expected == found);
  }

  void an_error_is_not_the_end() {
    std::ofstream(folder_ / "file");
    const UniqueFd file(open((folder_ / "file").c_str(), O_RDONLY | O_CLOEXEC));
    FolderNames names(file.get());
    CPPUNIT_ASSERT(names.next() == nullptr);
    CPPUNIT_ASSERT_EQUAL(ENOTDIR, errno);
    CPPUNIT_ASSERT(names.failed());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(FolderNamesTest);

}  // namespace sublet::client
