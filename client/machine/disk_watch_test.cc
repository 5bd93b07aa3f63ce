#include "client/machine/disk_watch.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/temporary_folder.h"
#include "client/machine/disk_usage.h"

namespace sublet::client {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr int64_t kSecond = 1'000'000'000;

// A disk whose free space is set by the test.
class SmallDisk : public Files {
 public:
  std::atomic<uint64_t> free = 1000 * kMiB;
  uint64_t free_bytes(const std::string&) const override { return free; }
};

class DiskWatchTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(DiskWatchTest);
  CPPUNIT_TEST(counts_what_lies_in_a_folder);
  CPPUNIT_TEST(a_look_is_bounded);
  CPPUNIT_TEST(without_attempts_it_rests);
  CPPUNIT_TEST(an_attempt_ends_its_rest);
  CPPUNIT_TEST(looks_sooner_when_space_shrinks_fast);
  CPPUNIT_TEST(what_is_only_kept_goes_first);
  CPPUNIT_TEST(the_largest_has_to_leave);
  CPPUNIT_TEST(one_after_the_other);
  CPPUNIT_TEST(who_leaves_and_goes_on_writing_is_killed);
  CPPUNIT_TEST(what_has_ended_is_left_alone);
  CPPUNIT_TEST(no_orders_until_there_is_room);
  CPPUNIT_TEST(without_a_reserve_nobody_leaves);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder state_;
  SmallDisk disk_;
  PublicPresence presence_;
  std::vector<std::pair<AttemptName, Shortage>> named_;
  std::unique_ptr<OrderDesk> desk_;
  std::unique_ptr<DiskWatch> watch_;
  int64_t now_ = 1000 * kSecond;
  int changes_ = 0;
  std::atomic<int> count_{0};
  uint64_t kept_ = 0;  // bytes that no job needs

 public:
  void setUp() override {
    presence_.away = true;
    DeskSettings desk;
    desk.state_folder = state_.path();
    desk.facts.slots = 2;
    desk.slot_uids = {-1, -1};
    desk.disk_reserve = 100 * kMiB;
    desk_ = std::make_unique<OrderDesk>(
        desk, disk_, presence_, [](auto, bool) {}, [](auto) {});
    make_watch({state_.path(), 100 * kMiB, 2000, 5000});
  }

 private:
  void make_watch(const DiskSettings& settings) {
    watch_ = std::make_unique<DiskWatch>(
        settings, disk_, *desk_,
        [this](const AttemptName& name, const Shortage& disk) {
          named_.emplace_back(name, disk);
          ++count_;
        },
        [this] { ++changes_; }, [this](uint64_t bytes) { make_room(bytes); });
  }
  void attempt(uint64_t job, size_t bytes) {
    std::string folder = attempt_folder(state_.path(), {job, 1});
    make_attempt_folder(disk_, folder, -1, -1);
    disk_.write_atomic(folder + "/work/data", std::string(bytes, 'x'));
  }
  void make_room(uint64_t bytes) {
    uint64_t removed = std::min(bytes, kept_);
    kept_ -= removed;
    disk_.free += removed;
  }
  int64_t scan(int64_t after_ns) { return watch_->scan(now_ += after_ns); }
  uint64_t last_job() { return named_.empty() ? 0 : named_.back().first.job; }

  void counts_what_lies_in_a_folder() {
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, disk_usage(state_ / "absent"));
    attempt(1, 300'000);
    std::string work = attempt_folder(state_.path(), {1, 1}) + "/work";
    disk_.make_folders(work + "/a/b", 0700);
    disk_.write_atomic(work + "/a/b/more", std::string(200'000, 'y'));
    // Files elsewhere and holes do not count.
    TemporaryFolder elsewhere;
    disk_.write_atomic(elsewhere / "big", std::string(5'000'000, 'z'));
    CPPUNIT_ASSERT_EQUAL(0, symlink(elsewhere.path().c_str(), (work + "/link").c_str()));
    UniqueFd sparse(open((work + "/sparse").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    CPPUNIT_ASSERT_EQUAL(0, ftruncate(sparse.get(), 1 << 30));
    const uint64_t used = disk_usage(work);
    CPPUNIT_ASSERT(used >= 500'000 && used < 1'000'000);
    // Nor does a second name.
    CPPUNIT_ASSERT_EQUAL(0, ::link((work + "/data").c_str(), (work + "/a/again").c_str()));
    CPPUNIT_ASSERT(disk_usage(work) <= used);
  }

  void a_look_is_bounded() {
    for (int i = 0; i < 20; ++i)
      disk_.write_atomic(state_ / std::to_string(i), std::string(100'000, 'x'));
    uint64_t some = disk_usage(state_.path(), 5);
    CPPUNIT_ASSERT(some >= 500'000 && some < 1'000'000);
    std::string deep = state_ / "deep";
    for (int i = 0; i < 200; ++i) deep += "/d";
    disk_.make_folders(deep, 0700);
    disk_.write_atomic(deep + "/far", std::string(10'000'000, 'x'));
    CPPUNIT_ASSERT(disk_usage(state_.path()) < 5'000'000);
  }

  void without_attempts_it_rests() {
    CPPUNIT_ASSERT_EQUAL(int64_t{60'000}, scan(kSecond));
    attempt(1, 10);
    CPPUNIT_ASSERT_EQUAL(int64_t{2000}, scan(kSecond));
    CPPUNIT_ASSERT(named_.empty());
  }

  void what_is_only_kept_goes_first() {
    attempt(1, 10);
    kept_ = 200 * kMiB;
    disk_.free = 90 * kMiB;
    scan(kSecond);
    CPPUNIT_ASSERT(named_.empty() && !desk_->disk_low());
    CPPUNIT_ASSERT_EQUAL(uint64_t{125 * kMiB}, disk_.free.load());
    kept_ = 5 * kMiB;
    disk_.free = 90 * kMiB;
    scan(kSecond);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, kept_);
    CPPUNIT_ASSERT(desk_->disk_low());
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, last_job());
  }

  void an_attempt_ends_its_rest() {
    watch_->start();
    disk_.free = 90 * kMiB;
    attempt(1, 10);
    // Must work whether the first scan comes before, during or after this call.
    watch_->attempt_came();
    // Without it the next scan would be a minute away.
    for (int i = 0; i < 3000 && count_ == 0; ++i) usleep(10'000);
    CPPUNIT_ASSERT_EQUAL(1, count_.load());
    watch_->stop();
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, last_job());
  }

  void looks_sooner_when_space_shrinks_fast() {
    attempt(1, 10);
    scan(kSecond);
    disk_.free = 900 * kMiB;
    // At 100 MiB/s the reserve is reached in 8 s.
    CPPUNIT_ASSERT_EQUAL(int64_t{2000}, scan(kSecond));
    disk_.free = 300 * kMiB;
    // At 600 MiB/s in a third of a second.
    int64_t due = scan(kSecond);
    CPPUNIT_ASSERT(due > 150 && due < 180);
    disk_.free = 101 * kMiB;
    CPPUNIT_ASSERT_EQUAL(int64_t{100}, scan(kSecond));
    disk_.free = 1000 * kMiB;
    CPPUNIT_ASSERT_EQUAL(int64_t{2000}, scan(kSecond));
  }

  void the_largest_has_to_leave() {
    attempt(1, 100'000);
    attempt(2, 900'000);
    attempt(3, 500'000);
    scan(kSecond);
    CPPUNIT_ASSERT(named_.empty());
    disk_.free = 90 * kMiB;
    scan(kSecond);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, last_job());
    CPPUNIT_ASSERT(named_[0].second.used >= 900'000 && named_[0].second.used < 1'500'000);
    CPPUNIT_ASSERT_EQUAL(90 * kMiB, named_[0].second.free);
  }

  void one_after_the_other() {
    attempt(1, 100'000);
    attempt(2, 900'000);
    disk_.free = 90 * kMiB;
    CPPUNIT_ASSERT_EQUAL(int64_t{100}, scan(kSecond));
    scan(4 * kSecond);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, named_.size());  // it still has time
    scan(2 * kSecond);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, last_job());  // its time has passed
    CPPUNIT_ASSERT_EQUAL(size_t{2}, named_.size());
    scan(60 * kSecond);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, named_.size());  // no other is left
    // An attempt that makes room at once is not waited for.
    attempt(3, 10);
    scan(kSecond);
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, last_job());
    disk_.remove_tree(attempt_folder(state_.path(), {3, 1}));
    attempt(4, 10);
    scan(kSecond / 10);
    CPPUNIT_ASSERT_EQUAL(uint64_t{4}, last_job());
  }

  void who_leaves_and_goes_on_writing_is_killed() {
    attempt(1, 100'000);
    disk_.free = 90 * kMiB;
    scan(kSecond);
    scan(kSecond / 10);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, named_.size());
    disk_.free = 20 * kMiB;
    scan(kSecond / 10);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, named_.size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, last_job());
    scan(kSecond / 10);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, named_.size());
  }

  void what_has_ended_is_left_alone() {
    attempt(1, 900'000);
    disk_.write_atomic(attempt_folder(state_.path(), {1, 1}) + "/exit", "x");
    attempt(2, 100'000);
    disk_.free = 0;
    scan(kSecond);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, last_job());
  }

  void no_orders_until_there_is_room() {
    attempt(7, 10'000'000);
    disk_.free = 99 * kMiB;
    scan(kSecond);
    RunAnswer answer = desk_->may_run({});
    CPPUNIT_ASSERT_EQUAL(kRunLacks, answer.answer);
    CPPUNIT_ASSERT_EQUAL(std::string("the disk is nearly full"), answer.reason);
    disk_.remove_tree(attempt_folder(state_.path(), {7, 1}));
    disk_.free = 110 * kMiB;
    CPPUNIT_ASSERT_EQUAL(int64_t{2000}, scan(kSecond));  // watched until there is room
    CPPUNIT_ASSERT_EQUAL(kRunLacks, desk_->may_run({}).answer);
    CPPUNIT_ASSERT_EQUAL(1, changes_);
    disk_.free = 130 * kMiB;
    CPPUNIT_ASSERT_EQUAL(int64_t{60'000}, scan(kSecond));
    CPPUNIT_ASSERT_EQUAL(kRunAccepted, desk_->may_run({}).answer);
    CPPUNIT_ASSERT_EQUAL(2, changes_);
  }

  void without_a_reserve_nobody_leaves() {
    make_watch({state_.path(), 0, 1, 1});
    attempt(1, 10);
    disk_.free = 0;
    watch_->start();
    watch_->attempt_came();
    watch_->stop();
    CPPUNIT_ASSERT(named_.empty());
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(DiskWatchTest);

}  // namespace
}  // namespace sublet::client
