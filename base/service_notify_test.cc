#include "base/service_notify.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/testing/temporary_folder.h"

namespace sublet {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// The manager's end: a datagram socket bound to the address in NOTIFY_SOCKET.
class Manager {
 public:
  explicit Manager(const std::string& name) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = 0;
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    CPPUNIT_ASSERT_EQUAL(0, bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), length));
  }

  // The next datagram; empty if there is none.
  std::string hears() const {
    char text[256];
    const ssize_t n = recv(fd_.get(), text, sizeof text, MSG_DONTWAIT);
    return n > 0 ? std::string(text, static_cast<size_t>(n)) : "";
  }

 private:
  UniqueFd fd_;
};

const char kReady[] = "READY=1\nWATCHDOG=1";
const char kAlive[] = "WATCHDOG=1";

}  // namespace

class ServiceNotifyTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ServiceNotifyTest);
  CPPUNIT_TEST(speaks_to_a_path_and_to_an_abstract_name);
  CPPUNIT_TEST(is_alive_twice_in_each_period);
  CPPUNIT_TEST(without_a_watchdog_it_is_ready_only);
  CPPUNIT_TEST(a_full_manager_is_not_waited_for);
  CPPUNIT_TEST(a_manager_that_is_away_is_told_later);
  CPPUNIT_TEST(without_a_manager_nothing_is_said);
  CPPUNIT_TEST(takes_its_environment_with_it);
  CPPUNIT_TEST(anothers_watchdog_is_not_ours);
  CPPUNIT_TEST_SUITE_END();

 public:
  void speaks_to_a_path_and_to_an_abstract_name() {
    const std::string abstract = "@sublet-test-" + std::to_string(getpid());
    for (const std::string& name : {path_, abstract}) {
      const Manager manager(name);
      ServiceNotify notify(name, 0);
      CPPUNIT_ASSERT_EQUAL(std::string(), manager.hears());
      notify.ready(1);
      CPPUNIT_ASSERT_EQUAL(std::string(kReady), manager.hears());
      notify.ready(2);
      CPPUNIT_ASSERT_EQUAL(std::string(), manager.hears());
    }
  }

  void is_alive_twice_in_each_period() {
    const Manager manager(path_);
    ServiceNotify notify(path_, 10'000'000);
    notify.alive(kSecond);
    CPPUNIT_ASSERT_EQUAL(std::string(), manager.hears());  // not before it is ready
    CPPUNIT_ASSERT_EQUAL(ServiceNotify::kNever, notify.next_due());
    notify.ready(2 * kSecond);
    manager.hears();
    CPPUNIT_ASSERT_EQUAL(7 * kSecond, notify.next_due());
    notify.alive(7 * kSecond - 1);
    CPPUNIT_ASSERT_EQUAL(std::string(), manager.hears());
    notify.alive(7 * kSecond);
    CPPUNIT_ASSERT_EQUAL(std::string(kAlive), manager.hears());
    CPPUNIT_ASSERT_EQUAL(12 * kSecond, notify.next_due());
  }

  void without_a_watchdog_it_is_ready_only() {
    const Manager manager(path_);
    ServiceNotify notify(path_, 0);
    notify.ready(kSecond);
    manager.hears();
    CPPUNIT_ASSERT_EQUAL(ServiceNotify::kNever, notify.next_due());
    notify.alive(1000 * kSecond);
    CPPUNIT_ASSERT_EQUAL(std::string(), manager.hears());
  }

  void a_full_manager_is_not_waited_for() {
    const Manager manager(path_);
    ServiceNotify notify(path_, 10'000'000);
    notify.ready(0);
    int64_t now = 0;
    // Ends only if a full queue is detected; a blocking send would hang here.
    while (notify.next_due() == now + 5 * kSecond) {
      now = notify.next_due();
      notify.alive(now);
    }
    CPPUNIT_ASSERT(notify.next_due() > now);
    CPPUNIT_ASSERT(notify.next_due() <= now + kSecond);
    while (!manager.hears().empty()) {
    }
    notify.alive(notify.next_due());
    CPPUNIT_ASSERT_EQUAL(std::string(kAlive), manager.hears());
  }

  void a_manager_that_is_away_is_told_later() {
    ServiceNotify notify(path_, 0);
    notify.ready(0);
    notify.alive(notify.next_due());
    const Manager manager(path_);
    notify.alive(notify.next_due());
    CPPUNIT_ASSERT_EQUAL(std::string(kReady), manager.hears());
    CPPUNIT_ASSERT_EQUAL(ServiceNotify::kNever, notify.next_due());
  }

  void without_a_manager_nothing_is_said() {
    for (const std::string& name :
         {std::string(), std::string("relative"), "/" + std::string(200, 'x'), std::string("@")}) {
      ServiceNotify notify(name, 1'000'000);
      notify.ready(0);
      CPPUNIT_ASSERT_EQUAL(ServiceNotify::kNever, notify.next_due());
    }
  }

  void takes_its_environment_with_it() {
    const Manager manager(path_);
    set_environment(std::to_string(getpid()));
    ServiceNotify notify = ServiceNotify::from_environment();
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
      CPPUNIT_ASSERT(getenv(name) == nullptr);
    notify.ready(0);
    CPPUNIT_ASSERT_EQUAL(std::string(kReady), manager.hears());
    CPPUNIT_ASSERT_EQUAL(2 * kSecond, notify.next_due());
  }

  void anothers_watchdog_is_not_ours() {
    const Manager manager(path_);
    set_environment(std::to_string(getppid()));
    ServiceNotify notify = ServiceNotify::from_environment();
    notify.ready(0);
    CPPUNIT_ASSERT_EQUAL(std::string(kReady), manager.hears());
    CPPUNIT_ASSERT_EQUAL(ServiceNotify::kNever, notify.next_due());
  }

  void tearDown() override { unlink(path_.c_str()); }

 private:
  void set_environment(const std::string& pid) const {
    setenv("NOTIFY_SOCKET", path_.c_str(), 1);
    setenv("WATCHDOG_USEC", "4000000", 1);
    setenv("WATCHDOG_PID", pid.c_str(), 1);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "notify";
};
CPPUNIT_TEST_SUITE_REGISTRATION(ServiceNotifyTest);

}  // namespace sublet
