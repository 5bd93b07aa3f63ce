// Keys at terminals and events of input devices.
#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "loadmon/senses/input_devices.h"
#include "loadmon/senses/terminals.h"
#include "loadmon/testing/devices.h"

namespace sublet::loadmon {
namespace {
using protocol::PresenceSample;
using testing::press;
using testing::PseudoTerminal;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'000'000 * kSecond;

bool ready(int fd, int ms = 0) {
  pollfd event = {fd, POLLIN, 0};
  return poll(&event, 1, ms) > 0;
}
}  // namespace

class InputTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(InputTest);
  CPPUNIT_TEST(a_device_is_noticed_once_a_second);
  CPPUNIT_TEST(devices_come_and_go);
  CPPUNIT_TEST(a_device_that_may_not_be_read_is_named);
  CPPUNIT_TEST(no_devices_at_all);
  CPPUNIT_TEST(a_key_is_noticed_and_output_is_not);
  CPPUNIT_TEST(keys_during_the_rest_count);
  CPPUNIT_TEST(a_terminal_that_opens_is_somebody);
  CPPUNIT_TEST(terminals_of_jobs_never_count);
  CPPUNIT_TEST(terminals_of_jobs_accounts_never_count);
  CPPUNIT_TEST(the_owner_gets_the_number_of_a_jobs_terminal);
  CPPUNIT_TEST(a_flood_of_terminals_is_survived);
  CPPUNIT_TEST(terminals_of_processes_are_found);
  CPPUNIT_TEST(a_daemons_own_terminal_is_the_owners);
  CPPUNIT_TEST(another_namespace_hides_nothing);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    char name[] = "/tmp/sublet-input-XXXXXX";
    CPPUNIT_ASSERT(mkdtemp(name) != nullptr);
    root_ = name;
    std::filesystem::create_directories(root_ + "/dev/input");
    std::filesystem::create_directories(root_ + "/dev/pts");
  }
  void tearDown() override {
    if (mounted_) umount2((root_ + "/dev/pts").c_str(), MNT_DETACH);
    std::filesystem::remove_all(root_);
  }

  void a_device_is_noticed_once_a_second() {
    const UniqueFd keyboard = device("event0");
    InputDevices sense(root_);
    CPPUNIT_ASSERT(sense.can_see());
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, notice(sense, kStart));
    press(keyboard);
    CPPUNIT_ASSERT(ready(sense.handle()));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, notice(sense, kStart));
    // A mouse goes on: it wakes nobody until a sample after the rest.
    for (int i = 0; i < 1000; ++i) press(keyboard);
    CPPUNIT_ASSERT(!ready(sense.handle()));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, sample(sense, kStart + kSecond / 2));
    CPPUNIT_ASSERT(!ready(sense.handle()));
    CPPUNIT_ASSERT_EQUAL(int64_t{2000}, sample(sense, kStart + kSecond / 2 + 2 * kSecond));
    press(keyboard);
    CPPUNIT_ASSERT(ready(sense.handle()));
  }

  void devices_come_and_go() {
    std::filesystem::remove(root_ + "/dev/input");
    InputDevices sense(root_);
    CPPUNIT_ASSERT(!sense.can_see());
    std::filesystem::create_directory(root_ + "/dev/input");
    const UniqueFd mouse = device("event7");
    for (int64_t i = 0; i < 2; ++i) sample(sense, kStart + i);
    CPPUNIT_ASSERT(sense.can_see());
    const UniqueFd keyboard = device("event8");
    CPPUNIT_ASSERT(ready(sense.handle()));
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, sample(sense, kStart + 2));  // a name is no input
    press(keyboard);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, notice(sense, kStart + 3));
  }

  void a_device_that_may_not_be_read_is_named() {
    if (geteuid() != 0) return skip("only root can take on another account");
    const UniqueFd keyboard = device("event3");
    CPPUNIT_ASSERT_EQUAL(0, chmod((root_ + "/dev/input/event3").c_str(), 0600));
    CPPUNIT_ASSERT_EQUAL(0, chmod(root_.c_str(), 0755));
    CPPUNIT_ASSERT_EQUAL(0, seteuid(65534));
    InputDevices sense(root_);
    const std::string absence = sense.absence();
    const bool sees = sense.can_see();
    CPPUNIT_ASSERT_EQUAL(0, seteuid(0));
    CPPUNIT_ASSERT(!sees);
    CPPUNIT_ASSERT_EQUAL("cannot read " + root_ +
                             "/dev/input/event3: Permission denied (run the client as root, or put "
                             "its account into the group of the device)",
                         absence);
    // It may be read now.
    CPPUNIT_ASSERT_EQUAL(0, chmod((root_ + "/dev/input/event3").c_str(), 0666));
    sample(sense, kStart);
    CPPUNIT_ASSERT(sense.can_see());
    CPPUNIT_ASSERT_EQUAL(std::string(), sense.absence());
  }

  void no_devices_at_all() {
    InputDevices sense(root_);
    CPPUNIT_ASSERT_EQUAL("there are none in " + root_ + "/dev/input", sense.absence());
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, sample(sense, kStart));
  }

  void a_key_is_noticed_and_output_is_not() {
    if (!mount_terminals()) return;
    PseudoTerminal terminal(root_);
    terminal.aged();
    Terminals sense(root_, [] { return JobTerminals{}; });
    CPPUNIT_ASSERT(sample(sense, kStart) >= 0);  // when it was last read from
    terminal.print();
    CPPUNIT_ASSERT(!ready(sense.handle()));
    terminal.type();
    CPPUNIT_ASSERT(ready(sense.handle()));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, notice(sense, kStart + 100 * kSecond));
  }

  void keys_during_the_rest_count() {
    if (!mount_terminals()) return;
    PseudoTerminal terminal(root_);
    terminal.aged();
    Terminals sense(root_, [] { return JobTerminals{}; });
    sample(sense, kStart);
    terminal.type();
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, notice(sense, kStart + kSecond));
    terminal.type();
    CPPUNIT_ASSERT(!ready(sense.handle()));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, sample(sense, kStart + 3 * kSecond / 2));
    CPPUNIT_ASSERT_EQUAL(int64_t{3000}, sample(sense, kStart + 9 * kSecond / 2));
    terminal.type();
    CPPUNIT_ASSERT(ready(sense.handle()));
  }

  void a_terminal_that_opens_is_somebody() {
    if (!mount_terminals()) return;
    Terminals sense(root_, [] { return JobTerminals{}; });
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, sample(sense, kStart));
    PseudoTerminal terminal(root_);
    CPPUNIT_ASSERT(ready(sense.handle()));
    noticed(sense, kStart + kSecond);
  }

  void terminals_of_jobs_never_count() {
    if (!mount_terminals()) return;
    JobTerminals jobs;
    int looks = 0;
    Terminals sense(root_, [&] {
      ++looks;
      return jobs;
    });
    sample(sense, kStart);
    PseudoTerminal terminal(root_);
    jobs.numbers.insert(terminal.number);
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, notice(sense, kStart + kSecond));
    CPPUNIT_ASSERT_EQUAL(1, looks);
    terminal.type();
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, notice(sense, kStart + 2 * kSecond));
    CPPUNIT_ASSERT(!ready(sense.handle()));  // it is not even watched
    CPPUNIT_ASSERT_EQUAL(1, looks);
    // The owner's terminal beside it is.
    PseudoTerminal other(root_);
    noticed(sense, kStart + 3 * kSecond);
  }

  void terminals_of_jobs_accounts_never_count() {
    if (!mount_terminals()) return;
    JobTerminals jobs;
    jobs.accounts.insert(geteuid());
    PseudoTerminal terminal(root_);
    Terminals sense(root_, [&] { return jobs; });
    notice(sense, kStart);
    terminal.type();
    // When it was opened is not known to be the job's doing before the first look.
    const int64_t age = sample(sense, kStart + kSecond);
    terminal.type();
    CPPUNIT_ASSERT_EQUAL(age < 0 ? age : age + 1000, sample(sense, kStart + 2 * kSecond));
  }

  void the_owner_gets_the_number_of_a_jobs_terminal() {
    if (!mount_terminals()) return;
    JobTerminals jobs;
    Terminals sense(root_, [&] { return jobs; });
    sample(sense, kStart);
    {
      PseudoTerminal terminal(root_);
      jobs.numbers.insert(terminal.number);
      CPPUNIT_ASSERT_EQUAL(int64_t{-1}, notice(sense, kStart + kSecond));
    }
    jobs.numbers.clear();
    PseudoTerminal terminal(root_);
    noticed(sense, kStart + 2 * kSecond);
  }

  void a_flood_of_terminals_is_survived() {
    if (!mount_terminals()) return;
    Terminals sense(root_, [] { return JobTerminals{}; });
    sample(sense, kStart);
    for (int i = 0; i < 10'000; ++i) PseudoTerminal terminal(root_);
    int64_t now = kStart;
    while (ready(sense.handle()) || sense.next_notice(now) != Sense::kNever)
      notice(sense, now += kSecond);
    // The kernel has dropped events, which counts as somebody.
    sample(sense, now += 10 * kSecond);
    sample(sense, now += 10 * kSecond);
    PseudoTerminal terminal(root_);
    noticed(sense, now + kSecond);
  }

  void terminals_of_processes_are_found() {
    unsigned childs = 0;
    const pid_t child = start(
        [](int to_parent) {
          const PseudoTerminal own("");
          tell(to_parent, own.number);
          pause();
        },
        &childs);
    PseudoTerminal mine("");
    const JobTerminals found = find_job_terminals({child}, {});
    end(child);
    CPPUNIT_ASSERT(found.numbers.contains(childs));
    CPPUNIT_ASSERT(!found.numbers.contains(mine.number));
    CPPUNIT_ASSERT(found.accounts.empty());
  }

  void a_daemons_own_terminal_is_the_owners() {
    // The child's terminal is one whose master the parent holds.
    PseudoTerminal terminal("");
    unsigned told = 0;
    const pid_t child = start(
        [&terminal](int to_parent) {
          setsid();
          terminal.master.reset();
          CPPUNIT_ASSERT_EQUAL(0, ioctl(terminal.slave.get(), TIOCSCTTY, 0));
          tell(to_parent, 1);
          pause();
        },
        &told);
    const JobTerminals jobs = find_job_terminals({child}, {});
    const JobTerminals daemons = find_job_terminals({child}, {child});
    end(child);
    CPPUNIT_ASSERT(jobs.numbers.contains(terminal.number));
    CPPUNIT_ASSERT(daemons.numbers.empty());
  }

  void another_namespace_hides_nothing() {
    if (geteuid() != 0) return skip("only root can make mount namespaces");
    unsigned childs = 0;
    const pid_t child = start(
        [](int to_parent) {
          CPPUNIT_ASSERT_EQUAL(0, unshare(CLONE_NEWNS));
          const PseudoTerminal own("");
          tell(to_parent, own.number);
          pause();
        },
        &childs);
    const JobTerminals found = find_job_terminals({child}, {});
    end(child);
    CPPUNIT_ASSERT(found.numbers.empty());
  }

 private:
  static void skip(const std::string& why) { std::cout << "skipped: " << why << std::endl; }
  static void tell(int fd, unsigned number) {
    CPPUNIT_ASSERT(write(fd, &number, sizeof number) == sizeof number);
  }

  bool mount_terminals() { return mounted_ = testing::mount_terminals(root_); }
  UniqueFd device(const std::string& name) { return testing::make_device(root_, name); }
  // The age of the last input; -1: none.
  static int64_t sample(Sense& sense, int64_t now) {
    PresenceSample sample;
    CPPUNIT_ASSERT(sense.sample(now, {}, &sample));
    return sample.input_age_ms;
  }
  static int64_t notice(Sense& sense, int64_t now) {
    PresenceSample sample;
    CPPUNIT_ASSERT(sense.notice(now, &sample));
    return sample.input_age_ms;
  }
  // Waits until a terminal that has just opened is old enough to be judged.
  static void noticed(Sense& sense, int64_t now) {
    const int64_t end = system_clock().boot_ns() + 30 * kSecond;
    while (notice(sense, now) != 0) {
      CPPUNIT_ASSERT(sense.next_notice(now) != Sense::kNever);
      CPPUNIT_ASSERT(system_clock().boot_ns() < end);
      now = sense.next_notice(now);
      usleep(1000);
    }
  }
  // Runs `work` in a child until it has told a number.
  template <typename Work>
  static pid_t start(Work work, unsigned* number) {
    int ends[2];
    CPPUNIT_ASSERT_EQUAL(0, pipe2(ends, O_CLOEXEC));
    const pid_t child = fork();
    CPPUNIT_ASSERT(child >= 0);
    if (child == 0) {
      try {
        work(ends[1]);
      } catch (const std::exception&) {
      }
      _exit(1);
    }
    ::close(ends[1]);
    const ssize_t got = read(ends[0], number, sizeof *number);
    ::close(ends[0]);
    CPPUNIT_ASSERT_EQUAL(static_cast<ssize_t>(sizeof *number), got);
    return child;
  }
  static void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }

  std::string root_;
  bool mounted_ = false;
};

CPPUNIT_TEST_SUITE_REGISTRATION(InputTest);

}  // namespace sublet::loadmon
