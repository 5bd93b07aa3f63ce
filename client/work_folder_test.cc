#include "client/work_folder.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>

#include "base/temporary_folder.h"

namespace sublet::client {
namespace {

int code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const WorkFolderError& error) {
    return error.code();
  }
  return 0;
}

class WorkFolderTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(WorkFolderTest);
  CPPUNIT_TEST(refuses_names_that_lead_out);
  CPPUNIT_TEST(makes_and_opens_files);
  CPPUNIT_TEST(follows_no_symbolic_link);
  CPPUNIT_TEST(takes_regular_files_of_the_job_only);
  CPPUNIT_TEST(an_accepted_name_stays_inside);
  CPPUNIT_TEST_SUITE_END();

  void refuses_names_that_lead_out() {
    for (const char* name :
         {"", "/etc/passwd", "..", "../x", "a/../../x", "a/..", ".", "./", "a/", "a/.", "/"})
      CPPUNIT_ASSERT_EQUAL_MESSAGE(name, EINVAL, code_of([&] { split_name(name); }));
    CPPUNIT_ASSERT_EQUAL(EINVAL, code_of([&] { split_name(std::string("a\0b", 3)); }));
    CPPUNIT_ASSERT_EQUAL(EINVAL, code_of([&] { split_name(std::string(5000, 'a')); }));
    std::string deep;
    for (int i = 0; i < 65; ++i) deep += "a/";
    CPPUNIT_ASSERT_EQUAL(EINVAL, code_of([&] { split_name(deep + "a"); }));
    CPPUNIT_ASSERT_EQUAL(size_t{3}, split_name("a//b/./..c").size());
  }

  void makes_and_opens_files() {
    TemporaryFolder folder;
    create_inside(folder.path(), "a/b/c", true, -1);
    struct stat info;
    CPPUNIT_ASSERT_EQUAL(0, stat((folder / "a/b/c").c_str(), &info));
    CPPUNIT_ASSERT_EQUAL(0700u, unsigned{info.st_mode & 0777});
    std::ofstream(folder / "a/b/c") << "12345";
    CPPUNIT_ASSERT_EQUAL(uint64_t{5}, open_inside(folder.path(), "a/b/c", -1).size);
    create_inside(folder.path(), "a/b/c", false, -1);  // replaces
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, open_inside(folder.path(), "a/b/c", -1).size);
    CPPUNIT_ASSERT_EQUAL(ENOENT, code_of([&] { open_inside(folder.path(), "no/c", -1); }));
  }

  void follows_no_symbolic_link() {
    TemporaryFolder folder, outside;
    std::ofstream(outside / "secret") << "s";
    CPPUNIT_ASSERT_EQUAL(0, symlink(outside.path().c_str(), (folder / "link").c_str()));
    CPPUNIT_ASSERT_EQUAL(0, symlink((outside / "secret").c_str(), (folder / "file").c_str()));
    CPPUNIT_ASSERT(code_of([&] { open_inside(folder.path(), "link/secret", -1); }) != 0);
    CPPUNIT_ASSERT_EQUAL(ELOOP, code_of([&] { open_inside(folder.path(), "file", -1); }));
    CPPUNIT_ASSERT(code_of([&] { create_inside(folder.path(), "link/new", false, -1); }) != 0);
    CPPUNIT_ASSERT(!system_files().exists(outside / "new"));
    // A link in the place of a file is replaced, not written through.
    create_inside(folder.path(), "file", false, -1);
    CPPUNIT_ASSERT_EQUAL(std::string("s"), system_files().read_file(outside / "secret", 10));
  }

  void takes_regular_files_of_the_job_only() {
    TemporaryFolder folder;
    CPPUNIT_ASSERT_EQUAL(0, mkfifo((folder / "pipe").c_str(), 0600));
    CPPUNIT_ASSERT_EQUAL(0, mkdir((folder / "dir").c_str(), 0700));
    std::ofstream(folder / "mine") << "m";
    CPPUNIT_ASSERT_EQUAL(EINVAL, code_of([&] { open_inside(folder.path(), "pipe", -1); }));
    CPPUNIT_ASSERT_EQUAL(EINVAL, code_of([&] { open_inside(folder.path(), "dir", -1); }));
    // As if another account's file had been linked into the folder.
    CPPUNIT_ASSERT_EQUAL(EINVAL, code_of([&] { open_inside(folder.path(), "mine", 61999); }));
  }

  void an_accepted_name_stays_inside() {
    auto part = rc::gen::element<std::string>("a", "..", ".", "", "b c", "...", "x..y");
    CPPUNIT_ASSERT(rc::check("components are plain names", [&] {
      auto parts = *rc::gen::container<std::vector<std::string>>(part);
      std::string name;
      for (const auto& p : parts) name += (name.empty() ? "" : "/") + p;
      int depth = 0;
      try {
        for (const auto& p : split_name(name)) {
          RC_ASSERT(!p.empty() && p != "." && p != ".." && p.find('/') == std::string::npos);
          ++depth;
        }
      } catch (const WorkFolderError&) {
        return;
      }
      RC_ASSERT(depth > 0);
    }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(WorkFolderTest);

}  // namespace
}  // namespace sublet::client
