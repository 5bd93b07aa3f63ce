#include "client/staging/work_folder.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "base/testing/temporary_folder.h"

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
  CPPUNIT_TEST(finds_folders_and_patterns);
  CPPUNIT_TEST(finds_the_job_s_own_files_only);
  CPPUNIT_TEST(finds_within_bounds);
  CPPUNIT_TEST(finds_what_the_output_covers);
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
    // A link in place of a file is replaced, not followed.
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

  using Names = std::vector<std::string>;
  static FoundFiles find(const TemporaryFolder& folder, const std::string& output,
                         FindBounds bounds = {}, int64_t uid = -1) {
    return find_inside(folder.path(), OutputName(output), uid, bounds, [] {});
  }
  static void make(const TemporaryFolder& folder, const std::string& name) {
    create_inside(folder.path(), name, false, -1);
  }

  void finds_folders_and_patterns() {
    TemporaryFolder folder;
    for (const char* name : {"r/b", "r/a", "r/.hidden/x", "r/deep/er/y", "x.png", ".x.png",
                             "run-1/out", "run-2/out", "run-2/log", "stdout"})
      make(folder, name);
    CPPUNIT_ASSERT_EQUAL(0, mkdir((folder / "d.png").c_str(), 0700));
    CPPUNIT_ASSERT((find(folder, "r/").names == Names{"r/.hidden/x", "r/a", "r/b", "r/deep/er/y"}));
    CPPUNIT_ASSERT((find(folder, "*.png").names == Names{"x.png"}));
    CPPUNIT_ASSERT((find(folder, "run-*/out").names == Names{"run-1/out", "run-2/out"}));
    CPPUNIT_ASSERT((find(folder, "run-?/").names == Names{"run-1/out", "run-2/log", "run-2/out"}));
    CPPUNIT_ASSERT(find(folder, "no/").names.empty() && find(folder, "x.png/").names.empty());
    CPPUNIT_ASSERT(find(folder, "std*").names.empty());
  }

  // A job may leave anything: only its own regular files are found.
  void finds_the_job_s_own_files_only() {
    TemporaryFolder folder, outside;
    make(outside, "secret");
    make(folder, "r/mine");
    CPPUNIT_ASSERT_EQUAL(0, symlink((outside / "secret").c_str(), (folder / "r/link").c_str()));
    CPPUNIT_ASSERT_EQUAL(0, symlink(outside.path().c_str(), (folder / "r/folder").c_str()));
    CPPUNIT_ASSERT_EQUAL(0, symlink(".", (folder / "r/round").c_str()));
    CPPUNIT_ASSERT_EQUAL(0, mkfifo((folder / "r/pipe").c_str(), 0600));
    const FoundFiles found = find(folder, "r/");
    CPPUNIT_ASSERT(found.names == Names{"r/mine"});
    CPPUNIT_ASSERT_EQUAL(uint64_t{4}, found.others);
    CPPUNIT_ASSERT(find(folder, "r/*/secret").names.empty());
    // The folder itself is a link.
    CPPUNIT_ASSERT_EQUAL(0, symlink("r", (folder / "s").c_str()));
    CPPUNIT_ASSERT(find(folder, "s/").names.empty());
    CPPUNIT_ASSERT_EQUAL(std::string("s"), find(folder, "s/").other);
    CPPUNIT_ASSERT(find(folder, "s/mine*").names.empty());
    // As if other accounts' files had been linked into the folder.
    CPPUNIT_ASSERT(find(folder, "r/", {}, 61999).names.empty());
    CPPUNIT_ASSERT_EQUAL(uint64_t{5}, find(folder, "r/", {}, 61999).others);
  }

  void finds_within_bounds() {
    TemporaryFolder folder;
    for (int i = 0; i < 600; ++i) make(folder, "r/" + std::to_string(1000 + i));
    const auto code = [&](const char* output, FindBounds bounds) {
      return code_of([&] { find(folder, output, bounds); });
    };
    CPPUNIT_ASSERT_EQUAL(0, code("r/", {600, 600 * 6, 601}));
    CPPUNIT_ASSERT_EQUAL(E2BIG, code("r/", {599, 600 * 6, 601}));
    CPPUNIT_ASSERT_EQUAL(E2BIG, code("r/", {600, 600 * 6 - 1, 601}));
    CPPUNIT_ASSERT_EQUAL(E2BIG, code("r/", {600, 600 * 6, 600}));
    CPPUNIT_ASSERT_EQUAL(E2BIG, code("r/10??", {600, 600 * 6, 600}));
    // Several outputs share the bounds.
    FindBounds left = {601, 10'000, 10'000};
    int ticks = 0;
    const OutputName all("r/*");
    find_inside(folder.path(), all, -1, left, [&] { ++ticks; });
    CPPUNIT_ASSERT_EQUAL(2, ticks);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, left.files);
    CPPUNIT_ASSERT_EQUAL(E2BIG, code_of([&] { find_inside(folder.path(), all, -1, left, [] {}); }));
    std::string deep;
    for (int i = 0; i < 63; ++i) deep += "d/";
    make(folder, deep + "x");
    CPPUNIT_ASSERT_EQUAL(size_t{1}, find(folder, "d/").names.size());
    CPPUNIT_ASSERT_EQUAL(0, mkdir((folder / (deep + "d")).c_str(), 0700));
    CPPUNIT_ASSERT_EQUAL(ENAMETOOLONG, code("d/", {}));
  }

  void finds_what_the_output_covers() {
    TemporaryFolder folder;
    const Names all = {"a", "b", "a.b", ".a", "x/a", "x/.b", "x/y/a", "y/a", "new\nline", "\xff"};
    for (const auto& name : all) make(folder, name);
    CPPUNIT_ASSERT(rc::check("what is covered is found", [&] {
      const auto text = *rc::gen::container<std::string>(
          rc::gen::element('a', 'b', 'x', 'y', '*', '*', '?', '[', ']', '.', '/', '!'));
      Names expected;
      for (const auto& name : all)
        if (covers(text, name)) expected.push_back(name);
      std::sort(expected.begin(), expected.end());
      try {
        RC_ASSERT(find(folder, text).names == expected);
      } catch (const std::invalid_argument&) {
        RC_ASSERT(expected.empty());
      }
    }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(WorkFolderTest);

}  // namespace
}  // namespace sublet::client
