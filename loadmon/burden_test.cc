#include "loadmon/burden.h"

#include <cppunit/extensions/HelperMacros.h>
#include <poll.h>
#include <sched.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/testing/temporary_folder.h"

namespace sublet::loadmon {
namespace {

// Threads that use all CPU time they get, two for each core, at the weight of `policy`.
class Spinners {
 public:
  explicit Spinners(int policy) {
    const unsigned count = 2 * std::max(1u, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < count; ++i)
      threads_.emplace_back([this, policy] {
        const sched_param none = {};
        sched_setscheduler(0, policy, &none);
        while (!stop_) {
        }
      });
  }
  ~Spinners() {
    stop_ = true;
    for (auto& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// How often a file is read.
class Readings {
 public:
  explicit Readings(const std::string& path) : events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    CPPUNIT_ASSERT(inotify_add_watch(events_.get(), path.c_str(), IN_OPEN) >= 0);
  }
  // False: it is not, within 30 s.
  bool come(int times) const {
    pollfd event = {events_.get(), POLLIN, 0};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (int seen = 0; std::chrono::steady_clock::now() < end;) {
      if (poll(&event, 1, 1000) <= 0) continue;
      inotify_event one;  // of a file that is watched itself: without a name
      while (read(events_.get(), &one, sizeof one) == sizeof one)
        if (++seen == times) return true;
    }
    return false;
  }

 private:
  const UniqueFd events_;
};

bool comes(const Burden& burden) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < end) {
    if (burden.is_too_heavy()) return true;
    usleep(10'000);
  }
  return false;
}

class BurdenTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(BurdenTest);
  CPPUNIT_TEST(programs_of_the_same_weight_are_one);
  CPPUNIT_TEST(waiting_for_memory_is_one);
  CPPUNIT_TEST(suspended_jobs_only_hold_memory);
  CPPUNIT_TEST(nobody_stays);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;

  void write_pressure(long long total_us) {
    std::filesystem::create_directories(folder_ / "proc/pressure");
    std::ofstream(folder_ / "proc/pressure/memory.new")
        << "some avg10=0.00 avg60=0.00 avg300=0.00 total=" << total_us << "\nfull avg10=0.00\n";
    std::filesystem::rename(folder_ / "proc/pressure/memory.new", folder_ / "proc/pressure/memory");
  }

 public:
  void programs_of_the_same_weight_are_one() {
    Burden burden(0.2, folder_.path());
    Spinners spinners(SCHED_OTHER);
    burden.watch(true, true);
    CPPUNIT_ASSERT(comes(burden));
    burden.watch(false, false);
    CPPUNIT_ASSERT(!burden.is_too_heavy());
  }

  void waiting_for_memory_is_one() {
    write_pressure(1'000'000);
    Burden burden(0.5, folder_.path());
    burden.watch(true, false);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (long long total = 1'000'000;
         !burden.is_too_heavy() && std::chrono::steady_clock::now() < end; total += 200'000) {
      write_pressure(total);
      usleep(20'000);
    }
    CPPUNIT_ASSERT(burden.is_too_heavy());
  }

  // They wait for no CPU, so that nothing is measured of it; but of those that linger, as soon as
  // there is one.
  void suspended_jobs_only_hold_memory() {
    write_pressure(1'000'000);
    Burden burden(0, folder_.path());  // any wait is too much
    Spinners spinners(SCHED_OTHER);
    const Readings readings(folder_ / "proc/pressure/memory");
    burden.watch(true, false);
    // Each round begins with a reading: two rounds, which are enough to find a burden, are over.
    CPPUNIT_ASSERT(readings.come(3));
    CPPUNIT_ASSERT(!burden.is_too_heavy());
    burden.watch(true, true);
    CPPUNIT_ASSERT(comes(burden));
  }

  // Nothing is measured, and nothing found before counts the next time.
  void nobody_stays() {
    Burden burden(-1, folder_.path());  // whatever is measured is too much
    usleep(100'000);
    CPPUNIT_ASSERT(!burden.is_too_heavy());
    burden.watch(true, true);
    CPPUNIT_ASSERT(comes(burden));
    burden.watch(false, false);
    burden.watch(true, true);
    CPPUNIT_ASSERT(!burden.is_too_heavy());
    CPPUNIT_ASSERT(comes(burden));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(BurdenTest);

}  // namespace
}  // namespace sublet::loadmon
