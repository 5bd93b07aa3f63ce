#include "client/staging/spare_folders.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "attempt/folder.h"
#include "base/testing/temporary_folder.h"
#include "client/attempts/assignment.h"
#include "client/machine/disk_usage.h"

namespace sublet::client {
namespace {

namespace fs = std::filesystem;

class SpareFoldersTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SpareFoldersTest);
  CPPUNIT_TEST(a_plain_folder_is_used_again);
  CPPUNIT_TEST(one_that_is_untouched);
  CPPUNIT_TEST(a_few_files_are_removed);
  CPPUNIT_TEST(only_for_the_same_user_and_account);
  CPPUNIT_TEST(not_if_anything_was_left);
  CPPUNIT_TEST(at_most_so_many_are_kept);
  CPPUNIT_TEST(what_an_earlier_client_left_is_removed);
  CPPUNIT_TEST(without_root_none_is_kept);
  CPPUNIT_TEST_SUITE_END();

  static constexpr int64_t kUid = 4711;

  static bool skip() {
    if (geteuid() == 0) return false;
    std::cerr << "skipped, needs root\n";
    return true;
  }
  static ino_t inode(const std::string& path) {
    struct stat about = {};
    return lstat(path.c_str(), &about) == 0 ? about.st_ino : 0;
  }
  // What a job and its daemons leave at least.
  static void fill(const std::string& folder) {
    for (const char* name : {kAssignmentFile, SUBLET_ORDER_FILE, SUBLET_RECORD_FILE,
                             SUBLET_EXIT_FILE, SUBLET_STATUS_FILE, SUBLET_STDOUT_FILE})
      system_files().write_atomic(folder + "/" + name, "text");
    CPPUNIT_ASSERT(chown((folder + "/" SUBLET_STATUS_FILE).c_str(), kUid, kUid) == 0);
    CPPUNIT_ASSERT(chmod(folder.c_str(), 0700) == 0);  // sealed
  }

  TemporaryFolder base_;
  std::string state_ = base_.path();
  std::string attempt(int number) const {
    return state_ + "/attempts/" + std::to_string(number) + ".1";
  }

 public:
  void setUp() override { fs::create_directory(state_ + "/attempts"); }

 private:
  void a_plain_folder_is_used_again() {
    if (skip()) return;
    SpareFolders spares(system_files(), state_, 2);
    spares.make(attempt(1), kUid, "ann");
    fill(attempt(1));
    const ino_t folder = inode(attempt(1)), order = inode(attempt(1) + "/" SUBLET_ORDER_FILE);
    // As it was while the attempt ran: somebody killed its shepherd.
    CPPUNIT_ASSERT_EQUAL(0, chmod(attempt(1).c_str(), 0710));
    CPPUNIT_ASSERT(spares.take(attempt(1), kUid, "ann", false));
    CPPUNIT_ASSERT(!fs::exists(attempt(1)));
    spares.make(attempt(2), kUid, "ann");
    CPPUNIT_ASSERT_EQUAL(folder, inode(attempt(2)));
    // It looks like a new one to whoever asks what has happened in it.
    for (const char* name : {kAssignmentFile, SUBLET_ORDER_FILE, SUBLET_RECORD_FILE,
                             SUBLET_EXIT_FILE, SUBLET_STDOUT_FILE})
      CPPUNIT_ASSERT_MESSAGE(name, !fs::exists(attempt(2) + "/" + name));
    struct stat about;
    CPPUNIT_ASSERT(stat(attempt(2).c_str(), &about) == 0);
    CPPUNIT_ASSERT_EQUAL(mode_t{S_IFDIR | 0700}, about.st_mode);
    CPPUNIT_ASSERT(stat((attempt(2) + "/work").c_str(), &about) == 0);
    CPPUNIT_ASSERT_EQUAL(uid_t{kUid}, about.st_uid);
    // Shorter than what was there.
    system_files().write_over(attempt(2) + "/" SUBLET_ORDER_FILE, "new", Files::Outlives::kProcess);
    CPPUNIT_ASSERT_EQUAL(order, inode(attempt(2) + "/" SUBLET_ORDER_FILE));
    CPPUNIT_ASSERT_EQUAL(std::string("new"),
                         system_files().read_file(attempt(2) + "/" SUBLET_ORDER_FILE, 100));
  }

  void one_that_is_untouched() {
    if (skip()) return;
    SpareFolders spares(system_files(), state_, 2);
    spares.make(attempt(1), kUid, "ann");
    fill(attempt(1));
    const std::string output = attempt(1) + "/" SUBLET_STDOUT_FILE, work = attempt(1) + "/work";
    CPPUNIT_ASSERT(!spares.untouched(attempt(1), kUid));
    fs::remove(output);
    // What a look at all that is in it finds.
    CPPUNIT_ASSERT(disk_usage(attempt(1), 100) == spares.untouched(attempt(1), kUid));
    CPPUNIT_ASSERT(!spares.untouched(attempt(1), kUid + 1));
    CPPUNIT_ASSERT(!spares.untouched(attempt(2), kUid));
    for (const std::string& name : {work + "/.hidden", attempt(1) + "/checkpoint/checkpoint"}) {
      system_files().write_atomic(name, "");
      CPPUNIT_ASSERT_MESSAGE(name, !spares.untouched(attempt(1), kUid));
      fs::remove(name);
    }
    const ino_t folder = inode(attempt(1));
    CPPUNIT_ASSERT(spares.take(attempt(1), kUid, "ann", true));
    spares.make(attempt(2), kUid, "ann");
    CPPUNIT_ASSERT_EQUAL(folder, inode(attempt(2)));
    CPPUNIT_ASSERT(!fs::exists(attempt(2) + "/" SUBLET_EXIT_FILE));
  }

  void a_few_files_are_removed() {
    if (skip()) return;
    SpareFolders spares(system_files(), state_, 2);
    spares.make(attempt(1), kUid, "ann");
    fill(attempt(1));
    const ino_t folder = inode(attempt(1));
    const std::string elsewhere = state_ + "/elsewhere", work = attempt(1) + "/work/";
    system_files().write_atomic(elsewhere, "kept");
    fs::create_symlink(elsewhere, work + "link");
    fs::create_hard_link(elsewhere, work + "name");
    CPPUNIT_ASSERT(mkfifo((work + "pipe").c_str(), 0600) == 0);
    system_files().write_atomic(work + "out", "text");
    system_files().write_atomic(attempt(1) + "/checkpoint/checkpoint", "text");
    CPPUNIT_ASSERT(spares.take(attempt(1), kUid, "ann", false));
    CPPUNIT_ASSERT_EQUAL(std::string("kept"), system_files().read_file(elsewhere, 100));
    spares.make(attempt(2), kUid, "ann");
    CPPUNIT_ASSERT_EQUAL(folder, inode(attempt(2)));
    CPPUNIT_ASSERT(fs::is_empty(attempt(2) + "/work"));
    CPPUNIT_ASSERT(fs::is_empty(attempt(2) + "/checkpoint"));
  }

  void only_for_the_same_user_and_account() {
    if (skip()) return;
    SpareFolders spares(system_files(), state_, 9);
    spares.make(attempt(1), kUid, "ann");
    fill(attempt(1));
    const ino_t folder = inode(attempt(1));
    CPPUNIT_ASSERT(spares.take(attempt(1), kUid, "ann", false));
    spares.make(attempt(2), kUid, "bob");
    spares.make(attempt(3), kUid + 1, "ann");
    CPPUNIT_ASSERT(inode(attempt(2)) != folder && inode(attempt(3)) != folder);
    spares.make(attempt(4), kUid, "ann");
    CPPUNIT_ASSERT_EQUAL(folder, inode(attempt(4)));
  }

  void not_if_anything_was_left() {
    if (skip()) return;
    SpareFolders spares(system_files(), state_, 9);
    const std::string folder = attempt(1), work = folder + "/work";
    const std::string status = folder + "/" SUBLET_STATUS_FILE;
    const std::pair<const char*, std::function<void()>> left[] = {
        {"many files",
         [&] {
           for (int i = 0; i < 17; ++i)
             system_files().write_atomic(work + "/" + std::to_string(i), "");
         }},
        {"a large file",
         [&] {
           system_files().write_atomic(work + "/out", "");
           fs::resize_file(work + "/out", (1 << 20) + 1);
         }},
        {"a hidden folder", [&] { fs::create_directory(work + "/.out"); }},
        {"a checkpoint", [&] { fs::create_directory(folder + "/checkpoint/a"); }},
        {"temporary files", [&] { fs::create_directory(folder + "/private"); }},
        {"an end without a shepherd", [&] { system_files().write_atomic(folder + "/end", ""); }},
        {"a mode", [&] { fs::permissions(work, fs::perms::all); }},
        {"another mode", [&] { fs::permissions(status, fs::perms::all); }},
        {"a link instead of a folder",
         [&] {
           fs::remove(work);
           fs::create_symlink("/", work);
         }},
        {"no folder", [&] { fs::remove(folder + "/checkpoint"); }},
        {"a name of the page elsewhere", [&] { fs::create_hard_link(status, state_ + "/page"); }},
        {"no page", [&] { fs::remove(status); }},
        {"an attribute",
         [&] { CPPUNIT_ASSERT(setxattr(work.c_str(), "user.left", "x", 1, 0) == 0); }},
    };
    for (const auto& [what, leave] : left) {
      spares.make(folder, kUid, "ann");
      fill(folder);
      fs::remove(folder + "/" SUBLET_STDOUT_FILE);
      CPPUNIT_ASSERT_MESSAGE(what, spares.untouched(folder, kUid));
      leave();
      CPPUNIT_ASSERT_MESSAGE(what, !spares.untouched(folder, kUid));
      CPPUNIT_ASSERT_MESSAGE(what, !spares.take(folder, kUid, "ann", false));
      CPPUNIT_ASSERT_MESSAGE(what, fs::exists(folder));
      fs::remove_all(folder);
      fs::remove(state_ + "/page");
    }
  }

  void at_most_so_many_are_kept() {
    if (skip()) return;
    SpareFolders spares(system_files(), state_, 2);
    for (int i = 1; i <= 5; ++i) {
      spares.make(attempt(i), kUid, "ann");
      fill(attempt(i));
    }
    for (int i = 1; i <= 5; ++i) CPPUNIT_ASSERT(spares.take(attempt(i), kUid, "ann", false));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, system_files().list(state_ + "/spare").size());
  }

  void what_an_earlier_client_left_is_removed() {
    if (skip()) return;
    fs::create_directories(state_ + "/spare/1/work");
    SpareFolders spares(system_files(), state_, 2);
    CPPUNIT_ASSERT(fs::is_empty(state_ + "/spare"));
  }

  void without_root_none_is_kept() {
    if (geteuid() == 0) return;
    SpareFolders spares(system_files(), state_, 2);
    spares.make(attempt(1), -1, "ann");
    CPPUNIT_ASSERT(!spares.take(attempt(1), -1, "ann", false));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(SpareFoldersTest);

}  // namespace
}  // namespace sublet::client
