// The report of a child that cannot become the job; and how names are counted.
#include "client/shepherd/launch.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>

#include "base/testing/temporary_folder.h"
#include "base/unique_fd.h"
#include "client/shepherd/walls/places.h"

using namespace sublet;
using namespace sublet::shepherd;

namespace {

class LaunchTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LaunchTest);
  CPPUNIT_TEST(a_failure_is_heard_after_an_unread_word);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  const std::string before_ = std::filesystem::current_path();

 public:
  // As the shepherd does: where it is, the walls of a job are built.
  void setUp() override {
    const std::string attempt = folder_ / "attempts/1.1";
    std::filesystem::create_directories(attempt);
    std::filesystem::current_path(attempt);
  }
  void tearDown() override { std::filesystem::current_path(before_); }

 private:
  void a_failure_is_heard_after_an_unread_word() {
    const auto order = std::make_unique<sublet_order>();
    order->uid = order->gid = -1;
    order->program = "/bin/true";
    order->work = "/no/such/folder";
    order->cgroup_unified = order->cgroup_cpu = order->cgroup_memory = "";
    order->cgroup_processes = order->server = "";
    UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    Cgroups cgroups(-1);
    CPPUNIT_ASSERT(cgroups.prepare(order.get()) == nullptr);
    AttemptProcesses processes;
    CPPUNIT_ASSERT(processes.open(""));
    Weight weight;
    CPPUNIT_ASSERT(weight.open(*order, processes) == nullptr);
    Launch launch;
    CPPUNIT_ASSERT(launch.fork(*order, cgroups, weight, nullptr, null.get(), null.get()) ==
                   nullptr);
    launch.go();  // long before the child would read it
    CPPUNIT_ASSERT_EQUAL(launch.pid(), waitpid(launch.pid(), nullptr, 0));
    LaunchFailure failure = {};
    CPPUNIT_ASSERT(launch.read_failure(&failure));
    CPPUNIT_ASSERT_EQUAL(std::string(SUBLET_STEP_CHDIR), std::string(failure.step));
    CPPUNIT_ASSERT_EQUAL(ENOENT, failure.error);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(LaunchTest);

class NamesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(NamesTest);
  CPPUNIT_TEST(are_counted_each_time_from_the_beginning);
  CPPUNIT_TEST(a_folder_that_takes_long_to_read_is_not_read);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  UniqueFd opened_{open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  std::string file(int number) const {
    return folder_ / (std::string(200, 'x') + std::to_string(number));
  }
  void make(int number) const {
    CPPUNIT_ASSERT(UniqueFd(open(file(number).c_str(), O_CREAT | O_WRONLY, 0600)).valid());
  }

  void are_counted_each_time_from_the_beginning() {
    for (int i = 0; i < 20; ++i) {
      CPPUNIT_ASSERT(has_names(opened_.get(), i));
      make(i);
      CPPUNIT_ASSERT(!has_names(opened_.get(), i));
    }
    for (int i = 20; i > 0; --i) {
      CPPUNIT_ASSERT(has_names(opened_.get(), i));
      CPPUNIT_ASSERT_EQUAL(0, unlink(file(i - 1).c_str()));
    }
    CPPUNIT_ASSERT(has_names(opened_.get(), 0));
    make(0);
    CPPUNIT_ASSERT_EQUAL(1, count_names(AT_FDCWD, folder_.path().c_str()));
  }

  // Though it is empty again.
  void a_folder_that_takes_long_to_read_is_not_read() {
    constexpr int kMany = 1000;
    for (int i = 0; i < kMany; ++i) make(i);
    CPPUNIT_ASSERT(!has_names(opened_.get(), 0));
    for (int i = 0; i < kMany; ++i) CPPUNIT_ASSERT_EQUAL(0, unlink(file(i).c_str()));
    struct stat about;
    CPPUNIT_ASSERT(fstat(opened_.get(), &about) == 0);
    CPPUNIT_ASSERT_EQUAL(about.st_size <= 64 << 10, has_names(opened_.get(), 0));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(NamesTest);

}  // namespace
