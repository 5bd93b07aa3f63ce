#include "base/files.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>

#include "base/testing/faulty_files.h"
#include "base/testing/temporary_folder.h"

namespace sublet {
namespace {

class SyncedFiles : public Files {
 public:
  std::vector<std::string> synced;

 private:
  void after(FileStep step, const std::string& path, const std::string&) override {
    if (step == FileStep::sync) synced.push_back(path);
  }
};

int code_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const FileError& e) {
    return e.code();
  }
  return 0;
}

mode_t mode_of(const std::string& path) {
  struct stat st {};
  CPPUNIT_ASSERT_EQUAL(0, stat(path.c_str(), &st));
  return st.st_mode & 07777;
}

}  // namespace

class FilesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(FilesTest);
  CPPUNIT_TEST(writes_and_reads);
  CPPUNIT_TEST(write_is_atomic_whatever_step_fails);
  CPPUNIT_TEST(a_written_file_survives_power_loss_at_every_step);
  CPPUNIT_TEST(a_lost_sync_is_noticed);
  CPPUNIT_TEST(append_is_cut_off_whatever_step_fails);
  CPPUNIT_TEST(errors_say_what_and_where);
  CPPUNIT_TEST(writes_over_what_was_there_before);
  CPPUNIT_TEST(a_tree_is_synced);
  CPPUNIT_TEST(folders);
  CPPUNIT_TEST(moves);
  CPPUNIT_TEST(removes_trees_deep_and_wide);
  CPPUNIT_TEST(removing_follows_no_link);
  CPPUNIT_TEST(leftovers_are_removed);
  CPPUNIT_TEST(the_lock_has_one_holder);
  CPPUNIT_TEST_SUITE_END();

 public:
  void writes_and_reads() {
    const std::string bytes("\0\xff text", 7);
    files_.write_atomic(folder_ / "a", bytes, 0640);
    CPPUNIT_ASSERT_EQUAL(bytes, files_.read_file(folder_ / "a", 7));
    CPPUNIT_ASSERT_EQUAL(mode_t{0640}, mode_of(folder_ / "a"));
    files_.append(folder_ / "b", "one", 0600);
    files_.append(folder_ / "b", "two", 0600);
    CPPUNIT_ASSERT_EQUAL(std::string("onetwo"), files_.read_file(folder_ / "b", 100));
    CPPUNIT_ASSERT(files_.exists(folder_ / "b"));
    CPPUNIT_ASSERT(files_.remove_file(folder_ / "b"));
    CPPUNIT_ASSERT(!files_.remove_file(folder_ / "b"));
    CPPUNIT_ASSERT(files_.free_bytes(folder_.path()) > 0);
  }

  void write_is_atomic_whatever_step_fails() {
    FaultyFiles files;
    files.write_atomic(folder_ / "a", "old", 0600);
    const uint64_t first = files.steps();
    files.write_atomic(folder_ / "a", "old", 0600);
    const uint64_t steps = files.steps() - first;
    CPPUNIT_ASSERT(steps >= 5);
    for (uint64_t step = 0; step < steps; ++step) {
      files.fail_at(step, ENOSPC);
      CPPUNIT_ASSERT_EQUAL(ENOSPC, code_of([&] { files.write_atomic(folder_ / "a", "new"); }));
      const std::string now = files_.read_file(folder_ / "a", 100);
      // The last two steps open and sync the folder: the new name is already in place.
      CPPUNIT_ASSERT_EQUAL(std::string(step + 2 < steps ? "old" : "new"), now);
      CPPUNIT_ASSERT_EQUAL(size_t{1}, files_.list(folder_.path()).size());
      files_.write_atomic(folder_ / "a", "old");
    }
    CPPUNIT_ASSERT_EQUAL(0, code_of([&] { files.write_atomic(folder_ / "a", "new"); }));
  }

  void a_written_file_survives_power_loss_at_every_step() {
    bool finished = false;
    for (uint64_t step = 0; !finished; ++step) {
      files_.remove_tree(folder_ / "new");
      files_.write_atomic(folder_ / "a", "old");
      FaultyFiles files;
      files.fail_from(step, EIO);
      finished = code_of([&] {
                   files.write_atomic(folder_ / "a", "new");
                   files.append(folder_ / "new", "tail");
                 }) == 0;
      const bool acknowledged = files_.exists(folder_ / "new");
      files.lose_power();
      const std::string now = files_.read_file(folder_ / "a", 100);
      CPPUNIT_ASSERT(now == "old" || now == "new");
      if (acknowledged) CPPUNIT_ASSERT_EQUAL(std::string("new"), now);
      if (finished) CPPUNIT_ASSERT_EQUAL(std::string("tail"), files_.read_file(folder_ / "new", 9));
    }
  }

  void a_lost_sync_is_noticed() {
    // Checks that the test above can fail: without syncs the new file is lost.
    files_.write_atomic(folder_ / "a", "old");
    FaultyFiles files;
    files.ignore_syncs(true);
    files.write_atomic(folder_ / "a", "new");
    CPPUNIT_ASSERT_EQUAL(std::string("new"), files_.read_file(folder_ / "a", 100));
    files.lose_power();
    CPPUNIT_ASSERT_EQUAL(std::string("old"), files_.read_file(folder_ / "a", 100));
  }

  void append_is_cut_off_whatever_step_fails() {
    FaultyFiles files;
    files.append(folder_ / "a", "one");
    for (const FileStep step : {FileStep::open, FileStep::sync}) {
      files.fail_step(step, EIO);
      CPPUNIT_ASSERT_EQUAL(EIO, code_of([&] { files.append(folder_ / "a", "two"); }));
      files.fail_step(step, 0);
      CPPUNIT_ASSERT_EQUAL(std::string("one"), files_.read_file(folder_ / "a", 100));
    }
    files.fail_step(FileStep::write, ENOSPC);
    CPPUNIT_ASSERT_EQUAL(ENOSPC, code_of([&] { files.append(folder_ / "a", "two"); }));
    CPPUNIT_ASSERT_EQUAL(std::string("one"), files_.read_file(folder_ / "a", 100));
  }

  void errors_say_what_and_where() {
    const std::string missing = folder_ / "none";
    try {
      files_.read_file(missing, 1);
      CPPUNIT_FAIL("read what is not there");
    } catch (const FileError& e) {
      CPPUNIT_ASSERT_EQUAL(ENOENT, e.code());
      CPPUNIT_ASSERT_EQUAL(missing, e.path());
      CPPUNIT_ASSERT_EQUAL("cannot open " + missing + ": No such file or directory",
                           std::string(e.what()));
    }
    FaultyFiles files;
    files.fail_step(FileStep::write, ENOSPC);
    try {
      files.write_atomic(folder_ / "a", "x");
      CPPUNIT_FAIL("wrote on a full disk");
    } catch (const FileError& e) {
      CPPUNIT_ASSERT_EQUAL(folder_ / "a", e.path());
      CPPUNIT_ASSERT_EQUAL(std::string("free some space"), e.advice());
    }
    files_.write_atomic(folder_ / "a", "12345");
    CPPUNIT_ASSERT_EQUAL(EFBIG, code_of([&] { files_.read_file(folder_ / "a", 4); }));
    CPPUNIT_ASSERT_EQUAL(EISDIR, code_of([&] { files_.read_file(folder_.path(), 4); }));
  }

  void writes_over_what_was_there_before() {
    const std::string path = folder_ / "order", spare = Files::spare_name(path);
    CPPUNIT_ASSERT_EQUAL(folder_ / ".order.new", spare);
    files_.write_over(path, "a long one", Files::Outlives::kProcess);
    CPPUNIT_ASSERT_EQUAL(std::string("a long one"), files_.read_file(path, 100));
    CPPUNIT_ASSERT_EQUAL(mode_t{0600}, mode_of(path));
    std::filesystem::rename(path, spare);
    files_.write_over(path, "short", Files::Outlives::kPower);
    CPPUNIT_ASSERT_EQUAL(std::string("short"), files_.read_file(path, 100));
    CPPUNIT_ASSERT(!files_.exists(spare));
    // Not elsewhere, where a link in its place leads.
    files_.write_atomic(folder_ / "other", "kept");
    std::filesystem::create_symlink(folder_ / "other", spare);
    CPPUNIT_ASSERT_EQUAL(ELOOP,
                         code_of([&] { files_.write_over(path, "x", Files::Outlives::kProcess); }));
    CPPUNIT_ASSERT_EQUAL(std::string("kept"), files_.read_file(folder_ / "other", 100));
  }

  void a_tree_is_synced() {
    const std::string tree = folder_ / "tree";
    files_.make_folders(tree + "/a/b");
    files_.write_atomic(tree + "/a/b/file", "x");
    files_.write_atomic(folder_ / "elsewhere", "x");
    std::filesystem::create_symlink(folder_ / "elsewhere", tree + "/link");
    CPPUNIT_ASSERT(mkfifo((tree + "/pipe").c_str(), 0600) == 0);
    SyncedFiles files;
    files.sync_tree(tree, 100);
    const std::vector<std::string> all = {tree + "/a/b/file", tree + "/a/b", tree + "/a", tree};
    CPPUNIT_ASSERT(all == files.synced);
    // Too many: all at once.
    files.synced.clear();
    files.sync_tree(tree, 2);
    CPPUNIT_ASSERT(files.synced.size() < all.size());
    files.synced.clear();
    files.sync_tree(folder_ / "nowhere", 100);
    CPPUNIT_ASSERT(files.synced.empty());
  }

  void folders() {
    files_.make_folders(folder_ / "x/y/z", 0750);
    files_.make_folders(folder_ / "x/y/z", 0700);
    CPPUNIT_ASSERT_EQUAL(mode_t{0750}, mode_of(folder_ / "x/y"));
    files_.write_atomic(folder_ / "x/f", "1234");
    CPPUNIT_ASSERT_EQUAL(ENOTDIR, code_of([&] { files_.make_folders(folder_ / "x/f"); }));
    CPPUNIT_ASSERT(code_of([&] { files_.make_folders(folder_ / "x/f/g"); }) != 0);
    for (const char* target : {"nowhere", "link"}) {
      files_.remove_file(folder_ / "link");
      std::filesystem::create_symlink(target, folder_ / "link");
      for (const char* path : {"link", "link/y"})
        CPPUNIT_ASSERT_EQUAL(ENOTDIR, code_of([&] { files_.make_folders(folder_ / path); }));
    }
    files_.remove_file(folder_ / "link");
    const std::vector<FolderEntry> entries = files_.list(folder_ / "x");
    CPPUNIT_ASSERT_EQUAL(size_t{2}, entries.size());
    CPPUNIT_ASSERT(entries[0].name == "f" && !entries[0].is_folder && entries[0].size == 4);
    CPPUNIT_ASSERT(entries[1].name == "y" && entries[1].is_folder);
    CPPUNIT_ASSERT_EQUAL(ENOENT, code_of([&] { files_.list(folder_ / "none"); }));
    CPPUNIT_ASSERT_EQUAL(std::string("a/b"), folder_of("a/b/c"));
    CPPUNIT_ASSERT_EQUAL(std::string("."), folder_of("c"));
    CPPUNIT_ASSERT_EQUAL(std::string("/"), folder_of("/c"));
  }

  void moves() {
    files_.make_folders(folder_ / "x");
    files_.write_atomic(folder_ / "a", "1");
    files_.write_atomic(folder_ / "x/b", "2");
    files_.move(folder_ / "a", folder_ / "x/b");
    CPPUNIT_ASSERT_EQUAL(std::string("1"), files_.read_file(folder_ / "x/b", 9));
    CPPUNIT_ASSERT_EQUAL(ENOENT, code_of([&] { files_.move(folder_ / "a", folder_ / "c"); }));
  }

  void removes_trees_deep_and_wide() {
    // Deeper than the limits of path length and descriptors.
    const std::string top = folder_ / "top";
    files_.make_folders(top);
    UniqueFd at(open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int depth = 0; depth < 3000; ++depth) {
      CPPUNIT_ASSERT_EQUAL(0, mkdirat(at.get(), "d", 0700));
      UniqueFd file(openat(at.get(), "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
      at.reset(openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      CPPUNIT_ASSERT(at.valid());
    }
    for (int i = 0; i < 200; ++i) files_.make_folders(top + "/w" + std::to_string(i));
    CPPUNIT_ASSERT_EQUAL(0, chmod((top + "/w0").c_str(), 0));
    at.reset();
    files_.remove_tree(top);
    CPPUNIT_ASSERT(!files_.exists(top));
    files_.remove_tree(top);  // not an error if it does not exist
    CPPUNIT_ASSERT(files_.remove_some(top, 1));
    for (int i = 0; i < 5; ++i) files_.make_folders(top + "/" + std::to_string(i) + "/inner");
    CPPUNIT_ASSERT(!files_.remove_some(top, 4));
    CPPUNIT_ASSERT_EQUAL(size_t{3}, files_.list(top).size());
    CPPUNIT_ASSERT(files_.remove_some(top, 100));
    CPPUNIT_ASSERT(!files_.exists(top));
  }

  void removing_follows_no_link() {
    files_.make_folders(folder_ / "kept");
    files_.write_atomic(folder_ / "kept/f", "1");
    files_.make_folders(folder_ / "gone");
    CPPUNIT_ASSERT_EQUAL(0, symlink("../kept", (folder_ / "gone/link").c_str()));
    CPPUNIT_ASSERT_EQUAL(0, symlink("kept", (folder_ / "link").c_str()));
    files_.remove_tree(folder_ / "gone");
    files_.remove_tree(folder_ / "link");
    CPPUNIT_ASSERT(files_.exists(folder_ / "kept/f"));
    CPPUNIT_ASSERT(!files_.exists(folder_ / "gone"));
    CPPUNIT_ASSERT(!files_.exists(folder_ / "link"));
  }

  void leftovers_are_removed() {
    FaultyFiles files;
    files.write_atomic(folder_ / "a", "old");
    files.fail_from(2, EIO);  // nor can the temporary name be removed
    CPPUNIT_ASSERT_EQUAL(EIO, code_of([&] { files.write_atomic(folder_ / "a", "new"); }));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, files_.list(folder_.path()).size());
    files_.remove_leftovers(folder_.path());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, files_.list(folder_.path()).size());
    CPPUNIT_ASSERT_EQUAL(std::string("old"), files_.read_file(folder_ / "a", 9));
  }

  void the_lock_has_one_holder() {
    {
      FolderLock lock(folder_.path());
      try {
        FolderLock second(folder_.path());
        CPPUNIT_FAIL("two holders");
      } catch (const FileError& e) {
        CPPUNIT_ASSERT_EQUAL(EBUSY, e.code());
        CPPUNIT_ASSERT(std::string(e.what()).find("process " + std::to_string(getpid())) !=
                       std::string::npos);
      }
    }
    FolderLock third(folder_.path());
  }

 private:
  TemporaryFolder folder_;
  Files files_;
};

CPPUNIT_TEST_SUITE_REGISTRATION(FilesTest);

}  // namespace sublet
