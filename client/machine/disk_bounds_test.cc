#include "client/machine/disk_bounds.h"

#include <cppunit/extensions/HelperMacros.h>
#include <unistd.h>

#include <algorithm>

#include "attempt/folder.h"
#include "base/testing/temporary_folder.h"

namespace sublet::client {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr int64_t kSecond = 1'000'000'000;

class DiskBoundsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(DiskBoundsTest);
  CPPUNIT_TEST(who_exceeds_its_bound_is_named);
  CPPUNIT_TEST(the_copy_of_checkpoint_files_does_not_count);
  CPPUNIT_TEST(without_a_bound_nobody_is);
  CPPUNIT_TEST(a_folder_is_not_measured_in_vain);
  CPPUNIT_TEST(who_has_ended_is_left_alone);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder state_;
  DiskBounds bounds_{system_files(), state_.path()};
  int64_t now_ = 1000 * kSecond;
  std::vector<AttemptName> here_;

  std::string attempt(uint64_t job, uint64_t bound) {
    const AttemptName name = {job, 1};
    const std::string folder = attempt_folder(state_.path(), name);
    make_attempt_folder(system_files(), folder, -1, -1);
    AttemptOrder order;
    order.job = static_cast<int64_t>(job);
    order.attempt = 1;
    order.program = "/bin/true";
    order.arguments = {"true"};
    order.monitor = "monitor";
    order.boot_id = "boot";
    order.limit_disk = static_cast<int64_t>(bound);
    write_order(system_files(), folder, order);
    here_.push_back(name);
    std::ranges::sort(here_);
    return folder;
  }
  static void write(const std::string& folder, uint64_t bytes) {
    system_files().write_atomic(folder + "/work/data", std::string(bytes, 'x'));
  }
  std::vector<std::pair<AttemptName, Shortage>> look(uint64_t free) {
    return bounds_.exceeded(here_, free, now_ += kSecond);
  }

  void who_exceeds_its_bound_is_named() {
    const std::string one = attempt(1, 3 * kMiB), other = attempt(2, 3 * kMiB);
    write(one, kMiB);
    write(other, kMiB);
    CPPUNIT_ASSERT(look(100 * kMiB).empty());
    write(other, 4 * kMiB);
    CPPUNIT_ASSERT(bounds_.used().at({2, 1}) < 2 * kMiB);
    const auto found = look(97 * kMiB);
    CPPUNIT_ASSERT(bounds_.used().at({2, 1}) >= 4 * kMiB);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, found.size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, found[0].first.job);
    CPPUNIT_ASSERT(found[0].second.of == Shortage::Of::kDiskBound);
    CPPUNIT_ASSERT(found[0].second.used >= 4 * kMiB);
    CPPUNIT_ASSERT_EQUAL(3 * kMiB, found[0].second.free);
    // Again, until it has gone.
    CPPUNIT_ASSERT_EQUAL(size_t{1}, look(97 * kMiB).size());
  }

  void the_copy_of_checkpoint_files_does_not_count() {
    const std::string one = attempt(1, 3 * kMiB);
    write(one, 2 * kMiB);
    system_files().write_atomic(one + "/packed", std::string(2 * kMiB, 'x'));
    CPPUNIT_ASSERT(look(100 * kMiB).empty());
    CPPUNIT_ASSERT(bounds_.used().at({1, 1}) < 3 * kMiB);
  }

  void without_a_bound_nobody_is() {
    write(attempt(1, 0), 4 * kMiB);
    make_attempt_folder(system_files(), attempt_folder(state_.path(), {2, 1}), -1, -1);
    here_.push_back({2, 1});  // being staged
    CPPUNIT_ASSERT(look(100 * kMiB).empty());
    CPPUNIT_ASSERT(look(1).empty());
  }

  // What it would find shows whether it looked.
  void a_folder_is_not_measured_in_vain() {
    const std::string folder = attempt(1, 3 * kMiB);
    CPPUNIT_ASSERT(look(100 * kMiB).empty());
    write(folder, 4 * kMiB);  // somebody has freed as much at the same time
    CPPUNIT_ASSERT(look(100 * kMiB).empty());
    now_ += 60 * kSecond;
    CPPUNIT_ASSERT_EQUAL(size_t{1}, look(100 * kMiB).size());
    write(folder, kMiB);
    CPPUNIT_ASSERT(look(100 * kMiB).empty());
    write(folder, 4 * kMiB);
    CPPUNIT_ASSERT(look(99 * kMiB).empty());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, look(97 * kMiB).size());
    // What it uses is known although it cannot be over its bound.
    write(folder, kMiB / 2);
    CPPUNIT_ASSERT(look(98 * kMiB).empty());
    CPPUNIT_ASSERT(bounds_.used().begin()->second < kMiB);
    write(folder, 2 * kMiB);
    CPPUNIT_ASSERT(look(96 * kMiB).empty());
    CPPUNIT_ASSERT(bounds_.used().begin()->second >= 2 * kMiB);
  }

  void who_has_ended_is_left_alone() {
    const std::string folder = attempt(1, 3 * kMiB);
    write(folder, 4 * kMiB);
    system_files().write_atomic(folder + "/" SUBLET_EXIT_FILE, "x");
    CPPUNIT_ASSERT(look(100 * kMiB).empty());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(DiskBoundsTest);

}  // namespace
}  // namespace sublet::client
