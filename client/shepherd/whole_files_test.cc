#include "client/shepherd/whole_files.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "base/testing/temporary_folder.h"
#include "base/unique_fd.h"
#include "client/shepherd/system.h"

namespace sublet::shepherd {
namespace {

constexpr int64_t kLong = 60'000'000'000;

class WholeFilesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(WholeFilesTest);
  CPPUNIT_TEST(what_nobody_writes_is_whole);
  CPPUNIT_TEST(open_or_mapped_for_writing_is_not);
  CPPUNIT_TEST(folders_and_patterns);
  CPPUNIT_TEST(only_files_inside_the_folder);
  CPPUNIT_TEST(it_ends_in_time_and_in_its_room);
  CPPUNIT_TEST(all_of_them);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  UniqueFd at_{open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  std::unique_ptr<sublet_order> order_ = std::make_unique<sublet_order>();
  std::vector<std::string> patterns_;
  bool incomplete_ = false;  // as written
  std::vector<char> room_ = std::vector<char>(SUBLET_RECORD_MAX_BYTES);

 public:
  void setUp() override {
    signal(SIGIO, SIG_IGN);
    std::filesystem::create_directories(folder_ / "work/out/deep");
    for (const char* name :
         {"work/state-1", "work/state-2", "work/other", "work/out/a", "work/out/deep/b"})
      std::ofstream(folder_ / name) << name;
    order_->work = "work";
  }

 private:
  std::set<std::string> look(std::vector<std::string> patterns, int64_t until = 0,
                             size_t room = SUBLET_RECORD_MAX_BYTES) {
    patterns_ = std::move(patterns);
    order_->own_file_count = patterns_.size();
    for (size_t i = 0; i < patterns_.size(); ++i) order_->own_files[i] = patterns_[i].data();
    WholeFiles whole(room_.data(), room);
    whole.look(at_.get(), *order_, until != 0 ? until : boot_now() + kLong);
    CPPUNIT_ASSERT(whole.write(at_.get()));
    return written();
  }
  std::set<std::string> written() {
    const std::string bytes = system_files().read_file(folder_ / SUBLET_WHOLE_FILE, 1 << 20);
    std::set<std::string> names;
    incomplete_ = bytes.ends_with(std::string("\0", 1)) &&
                  (bytes.size() == 1 || bytes[bytes.size() - 2] == '\0');
    for (size_t i = 0; i < bytes.size() - incomplete_; i = bytes.find('\0', i) + 1) {
      long long size = 0, seconds = 0;
      long nanoseconds = 0;
      int read = 0;
      CPPUNIT_ASSERT_EQUAL(
          3, sscanf(bytes.c_str() + i, "%lld %lld %ld %n", &size, &seconds, &nanoseconds, &read));
      const std::string name = bytes.c_str() + i + read;
      struct stat info;
      CPPUNIT_ASSERT_EQUAL(0, stat((folder_ / ("work/" + name)).c_str(), &info));
      CPPUNIT_ASSERT(size == info.st_size && seconds == info.st_ctim.tv_sec &&
                     nanoseconds == info.st_ctim.tv_nsec);
      names.insert(name);
    }
    return names;
  }
  using Names = std::set<std::string>;

  void what_nobody_writes_is_whole() {
    CPPUNIT_ASSERT(look({"other", "none", "state-1"}) == (Names{"other", "state-1"}));
    const UniqueFd reader(open((folder_ / "work/other").c_str(), O_RDONLY | O_CLOEXEC));
    CPPUNIT_ASSERT(look({"other"}) == Names{"other"});
  }

  void open_or_mapped_for_writing_is_not() {
    UniqueFd writer(open((folder_ / "work/other").c_str(), O_RDWR | O_CLOEXEC));
    CPPUNIT_ASSERT(look({"other", "state-1"}) == Names{"state-1"});
    void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, writer.get(), 0);
    CPPUNIT_ASSERT(page != MAP_FAILED);
    writer.reset();
    CPPUNIT_ASSERT(look({"other", "state-1"}) == Names{"state-1"});
    munmap(page, 4096);
    CPPUNIT_ASSERT(look({"other", "state-1"}) == (Names{"other", "state-1"}));
  }

  // Of a pattern beyond ASCII it may find more: the client knows which of them match.
  void folders_and_patterns() {
    for (int i = 0; i < 2000; ++i) std::ofstream(folder_ / ("work/unrelated-" + std::to_string(i)));
    CPPUNIT_ASSERT(look({"out/"}) == (Names{"out/a", "out/deep/b"}));
    CPPUNIT_ASSERT(look({"state-*"}) == (Names{"state-1", "state-2"}));
    CPPUNIT_ASSERT(look({"state-[!2]"}) == Names{"state-1"});
    CPPUNIT_ASSERT_EQUAL(0,
                         rename((folder_ / "work/other").c_str(), (folder_ / "work/.o").c_str()));
    CPPUNIT_ASSERT(look({"*o"}) == Names{});
    std::ofstream(folder_ / "work/\u00e4-1") << "x";
    CPPUNIT_ASSERT(look({"?-1"}).contains("\u00e4-1"));
    CPPUNIT_ASSERT(look({"o*/deep/?"}) == Names{"out/deep/b"});
    CPPUNIT_ASSERT(look({"out/a", "o*/"}) == (Names{"out/a", "out/deep/b"}));
  }

  void only_files_inside_the_folder() {
    std::ofstream(folder_ / "secret") << "x";
    CPPUNIT_ASSERT_EQUAL(0, symlink("../secret", (folder_ / "work/link").c_str()));
    CPPUNIT_ASSERT_EQUAL(0, symlink("out", (folder_ / "work/way").c_str()));
    CPPUNIT_ASSERT_EQUAL(0, mkfifo((folder_ / "work/pipe").c_str(), 0600));
    CPPUNIT_ASSERT(look({"link", "way/a", "pipe", "out", "way/"}) == Names{});
    std::string deep = "work";
    for (int i = 0; i < 20; ++i) deep += "/d";
    std::filesystem::create_directories(folder_ / deep);
    std::ofstream(folder_ / deep + "/x") << "x";
    CPPUNIT_ASSERT(look({"d/"}) == Names{});
  }

  void it_ends_in_time_and_in_its_room() {
    for (int i = 0; i < 200; ++i) std::ofstream(folder_ / "work/out/n" + std::to_string(i)) << i;
    CPPUNIT_ASSERT_EQUAL(size_t{202}, look({"out/"}).size());
    CPPUNIT_ASSERT(!incomplete_);
    CPPUNIT_ASSERT(look({"out/", "state-1"}, 1).empty());  // an instant long ago
    CPPUNIT_ASSERT(incomplete_);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, look({"state-1", "state-2"}, 0, 100).size());
    CPPUNIT_ASSERT(incomplete_);
  }

  void all_of_them() {
    WholeFiles whole(room_.data(), room_.size());
    whole.all_are();
    CPPUNIT_ASSERT(whole.write(at_.get()));
    CPPUNIT_ASSERT_EQUAL(std::string("all"),
                         system_files().read_file(folder_ / SUBLET_WHOLE_FILE, 100));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(WholeFilesTest);

}  // namespace
}  // namespace sublet::shepherd
