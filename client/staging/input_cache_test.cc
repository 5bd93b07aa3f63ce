#include "client/staging/input_cache.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "base/testing/temporary_folder.h"
#include "client/testing/memory_server.h"

namespace sublet::client {
namespace {

// A disk whose free space and errors are set by the test.
class SmallDisk : public Files {
 public:
  uint64_t free = 1 << 30;
  std::function<int(FileStep, const std::string&)> on_step;
  uint64_t free_bytes(const std::string&) const override { return free; }

 protected:
  int before(FileStep step, const std::string& path) const override {
    return on_step ? on_step(step, path) : 0;
  }
};

template <typename Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

class InputCacheTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(InputCacheTest);
  CPPUNIT_TEST(what_was_kept_comes_back);
  CPPUNIT_TEST(only_what_was_kept_stays);
  CPPUNIT_TEST(an_altered_file_is_thrown_away);
  CPPUNIT_TEST(the_least_recently_used_goes_first);
  CPPUNIT_TEST(a_restart_finds_them_in_their_order);
  CPPUNIT_TEST(a_restart_removes_what_is_not_its_own);
  CPPUNIT_TEST(an_entry_that_cannot_be_removed_is_passed_over);
  CPPUNIT_TEST(without_a_folder_nothing_is_kept);
  CPPUNIT_TEST(a_slow_disk_holds_up_nobody_else);
  CPPUNIT_TEST(nothing_is_kept_without_room);
  CPPUNIT_TEST(one_at_a_time);
  CPPUNIT_TEST(closed_to_others);
  CPPUNIT_TEST_SUITE_END();

  static constexpr uint64_t kBound = 1000;
  TemporaryFolder folder_;
  SmallDisk disk_;
  std::optional<InputCache> cache_;
  const std::atomic<bool> free_{true};
  Pace pace_{1, free_};
  MemoryServer server_;
  AttemptWork work_{std::make_shared<Assignment>(), ""};
  const MoverSettings mover_settings_;

 public:
  void setUp() override { start(); }

 private:
  void start(uint64_t bound = kBound) { cache_.emplace(disk_, CacheSettings{path(), bound, 0}); }
  std::string path() const { return folder_ / "cache"; }
  std::string path(const std::string& bytes) const { return path() + "/" + hex(digest_of(bytes)); }
  size_t files() const { return disk_.list(path()).size(); }

  static void fill(const InputCache::Addition& addition, const std::string& bytes) {
    CPPUNIT_ASSERT_EQUAL(static_cast<ssize_t>(bytes.size()),
                         write(addition.file(), bytes.data(), bytes.size()));
  }
  void keep(const std::string& bytes) {
    auto addition = cache_->add(digest_of(bytes), bytes.size());
    CPPUNIT_ASSERT(addition);
    fill(*addition, bytes);
    addition->keep();
  }
  // What a job gets.
  std::optional<std::string> take(const std::string& bytes) {
    const std::string copy = folder_ / "copy";
    UniqueFd file(open(copy.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    Mover mover(work_, server_, pace_, mover_settings_);
    const bool taken = cache_->take(digest_of(bytes), bytes.size(), file.get(), mover);
    const std::string got = disk_.read_file(copy, 1 << 20);
    if (taken) return got;
    CPPUNIT_ASSERT_EQUAL(std::string(), got);  // empty again, for fetching
    CPPUNIT_ASSERT_EQUAL(off_t{0}, lseek(file.get(), 0, SEEK_CUR));
    return {};
  }

  void what_was_kept_comes_back() {
    CPPUNIT_ASSERT(!take("abc"));
    keep("abc");
    CPPUNIT_ASSERT_EQUAL(std::string("abc"), *take("abc"));
    // The job's copy is independent of the cache.
    disk_.write_atomic(folder_ / "copy", "xyz");
    CPPUNIT_ASSERT_EQUAL(std::string("abc"), *take("abc"));
    struct stat kept {};
    stat(path("abc").c_str(), &kept);
    CPPUNIT_ASSERT_EQUAL(nlink_t{1}, kept.st_nlink);
    CPPUNIT_ASSERT(!take("abd"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, cache_->bytes());
    CPPUNIT_ASSERT(!cache_->add(digest_of("abc"), 3));  // already cached
  }

  void only_what_was_kept_stays() {
    fill(*cache_->add(digest_of("abc"), 3), "abc");
    CPPUNIT_ASSERT_EQUAL(size_t{0}, files());
    CPPUNIT_ASSERT(!take("abc"));
  }

  void an_altered_file_is_thrown_away() {
    for (const char* other : {"abX", "ab", "abcd", ""}) {
      keep("abc");
      disk_.write_atomic(path("abc"), other);
      CPPUNIT_ASSERT(!take("abc"));
      CPPUNIT_ASSERT_EQUAL(size_t{0}, files());
      CPPUNIT_ASSERT_EQUAL(uint64_t{0}, cache_->bytes());
    }
    keep("abc");
    CPPUNIT_ASSERT(disk_.remove_file(path("abc")));
    CPPUNIT_ASSERT(!take("abc"));
    disk_.write_atomic(folder_ / "elsewhere", "abc");
    keep("abc");
    disk_.remove_file(path("abc"));
    CPPUNIT_ASSERT_EQUAL(0, symlink((folder_ / "elsewhere").c_str(), path("abc").c_str()));
    CPPUNIT_ASSERT(!take("abc"));
    // Not a regular file; reading a pipe would block forever.
    keep("abc");
    disk_.remove_file(path("abc"));
    CPPUNIT_ASSERT_EQUAL(0, mkfifo(path("abc").c_str(), 0600));
    CPPUNIT_ASSERT(!take("abc"));
    keep("abc");
    disk_.remove_file(path("abc"));
    disk_.make_folders(path("abc") + "/folder");
    CPPUNIT_ASSERT(!take("abc"));
    CPPUNIT_ASSERT_EQUAL(size_t{0}, files());
  }

  void the_least_recently_used_goes_first() {
    const std::string a(400, 'a'), b(400, 'b'), c(400, 'c'), all(1000, 'd');
    keep(a);
    keep(b);
    CPPUNIT_ASSERT(take(a));
    keep(c);
    CPPUNIT_ASSERT(take(a) && take(c) && !take(b));
    CPPUNIT_ASSERT_EQUAL(uint64_t{800}, cache_->bytes());
    cache_->make_room(1);
    CPPUNIT_ASSERT(take(c) && !take(a));
    keep(all);
    CPPUNIT_ASSERT(take(all) && !take(c));
    cache_->make_room(1 << 20);
    CPPUNIT_ASSERT_EQUAL(size_t{0}, files());
  }

  void a_restart_finds_them_in_their_order() {
    const std::string a(400, 'a'), b(400, 'b'), c(400, 'c');
    keep(a);
    keep(b);
    // Last used long ago, b before a.
    const timespec first[2] = {{1000, 0}, {1000, 0}}, second[2] = {{2000, 0}, {2000, 0}};
    utimensat(AT_FDCWD, path(b).c_str(), first, 0);
    utimensat(AT_FDCWD, path(a).c_str(), second, 0);
    start();
    CPPUNIT_ASSERT_EQUAL(uint64_t{800}, cache_->bytes());
    keep(c);
    CPPUNIT_ASSERT(take(a) && take(c) && !take(b));
    // A use is recorded on disk.
    utimensat(AT_FDCWD, path(a).c_str(), first, 0);
    utimensat(AT_FDCWD, path(c).c_str(), second, 0);
    CPPUNIT_ASSERT(take(a));
    start(400);
    CPPUNIT_ASSERT(take(a) && !take(c));
    start(0);
    CPPUNIT_ASSERT_EQUAL(size_t{0}, files());
  }

  void a_restart_removes_what_is_not_its_own() {
    keep("abc");
    disk_.write_atomic(path("half") + ".1.part", "ha");
    disk_.write_atomic(path() + "/notes", "x");
    disk_.make_folders(path("folder"), 0700);
    start();
    CPPUNIT_ASSERT_EQUAL(size_t{1}, files());
    CPPUNIT_ASSERT(take("abc"));
  }

  void an_entry_that_cannot_be_removed_is_passed_over() {
    keep("abc");
    disk_.make_folders(path("def"));
    disk_.write_atomic(path("half") + ".1.part", "ha");
    disk_.on_step = [&](FileStep step, const std::string& where) {
      return step == FileStep::remove && where == path("def") ? EPERM : 0;
    };
    start();
    CPPUNIT_ASSERT_EQUAL(size_t{2}, files());  // the partial file is gone
    CPPUNIT_ASSERT(take("abc"));
    // The folder is in the way of this content, which is then not cached.
    keep("def");
    CPPUNIT_ASSERT(!take("def"));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, files());
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, cache_->bytes());
    keep("xyz");
    CPPUNIT_ASSERT(take("xyz"));
  }

  void without_a_folder_nothing_is_kept() {
    const auto check = [&] {
      CPPUNIT_ASSERT(!cache_->add(digest_of("abc"), 3));
      CPPUNIT_ASSERT(!take("abc"));
      cache_->make_room(1);
      CPPUNIT_ASSERT_EQUAL(uint64_t{0}, cache_->bytes());
    };
    keep("abc");
    disk_.on_step = [](FileStep step, const std::string&) {
      return step == FileStep::list ? EIO : 0;
    };
    start();
    disk_.on_step = nullptr;
    check();
    disk_.remove_tree(path());
    disk_.write_atomic(path(), "no folder");
    start();
    check();
  }

  void a_slow_disk_holds_up_nobody_else() {
    keep("old");
    keep("new");
    std::atomic<int> removals{0};
    std::atomic<bool> taken{false}, in_time{false};
    std::thread other;
    disk_.on_step = [&](FileStep step, const std::string& where) {
      if (step != FileStep::remove || removals++ > 0) return 0;
      CPPUNIT_ASSERT_EQUAL(path("old"), where);
      other = std::thread([&] {
        taken = cache_->bytes() == 3 && take("new") && !cache_->add(digest_of("old"), 3);
      });
      in_time = eventually([&] { return taken.load(); });
      return 0;
    };
    cache_->make_room(1);
    other.join();
    CPPUNIT_ASSERT(in_time);
    CPPUNIT_ASSERT_EQUAL(1, removals.load());
    disk_.on_step = nullptr;
    keep("old");
    CPPUNIT_ASSERT(take("old") && take("new"));
  }

  void nothing_is_kept_without_room() {
    CPPUNIT_ASSERT(!cache_->add(digest_of("x"), kBound + 1));
    CPPUNIT_ASSERT(!cache_->add(digest_of(""), 0));
    disk_.free = 1999;
    CPPUNIT_ASSERT(!cache_->add(digest_of("x"), 1000));
    disk_.free = 2000;
    CPPUNIT_ASSERT(cache_->add(digest_of("x"), 1000));
    cache_.emplace(disk_, CacheSettings{path(), kBound, 1002});
    CPPUNIT_ASSERT(!cache_->add(digest_of("x"), 500));
    CPPUNIT_ASSERT(cache_->add(digest_of("x"), 499));
  }

  void one_at_a_time() {
    std::atomic<bool> stop{false};
    std::atomic<int> inside{0}, most{0}, turns{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          InputCache::Turn turn(*cache_, digest_of("abc"), stop);
          most = std::max(most.load(), ++inside);
          std::this_thread::yield();
          --inside;
          ++turns;
        }
      });
    for (auto& thread : threads) thread.join();
    CPPUNIT_ASSERT_EQUAL(1, most.load());
    CPPUNIT_ASSERT_EQUAL(80, turns.load());
    // Another content does not wait, and setting `stop` ends the wait.
    InputCache::Turn turn(*cache_, digest_of("abc"), stop);
    InputCache::Turn other(*cache_, digest_of("abd"), stop);
    std::thread waiting([&] { InputCache::Turn never(*cache_, digest_of("abc"), stop); });
    CPPUNIT_ASSERT(eventually([&] { return cache_->waiting() == 1; }));
    stop = true;
    waiting.join();
  }

  void closed_to_others() {
    keep("abc");
    struct stat folder {
    }, file{};
    stat(path().c_str(), &folder);
    stat(path("abc").c_str(), &file);
    CPPUNIT_ASSERT_EQUAL(0700u, unsigned{folder.st_mode & 0777});
    CPPUNIT_ASSERT_EQUAL(0600u, unsigned{file.st_mode & 0777});
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(InputCacheTest);

}  // namespace
}  // namespace sublet::client
