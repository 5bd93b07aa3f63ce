#include "client/shepherd/walls/domain.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>

#include "attempt/landlock.h"
#include "base/testing/temporary_folder.h"
#include "base/unique_fd.h"

using namespace sublet;
using namespace sublet::shepherd;

namespace {

class DomainTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(DomainTest);
  CPPUNIT_TEST(nobody_else_is_traced_or_read);
  CPPUNIT_TEST(nobody_else_is_signalled);
  CPPUNIT_TEST(abstract_sockets_of_others_are_out_of_reach);
  CPPUNIT_TEST(files_move_between_folders);
  CPPUNIT_TEST(its_own_are_within_reach);
  CPPUNIT_TEST_SUITE_END();

  static bool skip_before(int version) {
    if (landlock_version() >= version) return false;
    std::cerr << "skipped, this kernel's Landlock is too old\n";
    return true;
  }
  // What `act` returns (0 to 99) in a process of the domain.
  static int in_domain(int version, const std::function<int()>& act) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
      _exit(enter_domain(version) ? act() : 100);
    }
    int status = 0;
    CPPUNIT_ASSERT_EQUAL(child, waitpid(child, &status, 0));
    CPPUNIT_ASSERT(WIFEXITED(status));
    CPPUNIT_ASSERT(WEXITSTATUS(status) != 100);
    return WEXITSTATUS(status);
  }
  // A process that waits, of our account.
  struct Victim {
    std::array<int, 2> ready = pipe_ends();
    static std::array<int, 2> pipe_ends() {
      std::array<int, 2> ends;
      CPPUNIT_ASSERT_EQUAL(0, pipe2(ends.data(), O_CLOEXEC));
      return ends;
    }
    Victim() : pid(fork()) {
      if (pid == 0) {
        // Else Yama may be what protects it.
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        close(ready[1]);
        while (true) pause();
      }
      close(ready[1]);
      char none;
      CPPUNIT_ASSERT_EQUAL(ssize_t{0}, read(ready[0], &none, 1));
      close(ready[0]);
    }
    ~Victim() {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    const pid_t pid;
  };

  static int error_of(bool done) { return done ? 0 : errno; }
  static int error_of_memory(pid_t pid) {
    const std::string path = "/proc/" + std::to_string(pid) + "/mem";
    return error_of(open(path.c_str(), O_RDWR) >= 0);
  }

  void nobody_else_is_traced_or_read() {
    if (skip_before(kFirstLandlock)) return;
    {  // By whom it may be, if not for the domain.
      const Victim victim;
      const pid_t other = fork();
      if (other == 0) _exit(error_of_memory(victim.pid));
      int status = -1;
      CPPUNIT_ASSERT_EQUAL(other, waitpid(other, &status, 0));
      CPPUNIT_ASSERT_EQUAL(0, status);
    }
    for (const int version : {kFirstLandlock, landlock_version()}) {
      const Victim victim;
      CPPUNIT_ASSERT_EQUAL(
          EPERM, in_domain(version, [&] {
            return error_of(ptrace(PTRACE_SEIZE, victim.pid, nullptr, nullptr) == 0);
          }));
      CPPUNIT_ASSERT_EQUAL(EACCES, in_domain(version, [&] { return error_of_memory(victim.pid); }));
    }
  }

  void nobody_else_is_signalled() {
    if (skip_before(kScopingLandlock)) return;
    const Victim victim;
    for (const int signal : {SIGKILL, SIGSTOP})
      CPPUNIT_ASSERT_EQUAL(EPERM, in_domain(landlock_version(), [&] {
                             return error_of(kill(victim.pid, signal) == 0);
                           }));
    CPPUNIT_ASSERT_EQUAL(pid_t{0}, waitpid(victim.pid, nullptr, WNOHANG | WUNTRACED));
  }

  void abstract_sockets_of_others_are_out_of_reach() {
    if (skip_before(kScopingLandlock)) return;
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "sublet-test-%d", getpid());
    const auto* address = reinterpret_cast<const sockaddr*>(&name);
    const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    CPPUNIT_ASSERT(bind(listener.get(), address, sizeof name) == 0 &&
                   listen(listener.get(), 1) == 0);
    const auto connect_there = [&] {
      const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      return error_of(connect(fd.get(), address, sizeof name) == 0);
    };
    CPPUNIT_ASSERT_EQUAL(0, connect_there());
    CPPUNIT_ASSERT_EQUAL(EPERM, in_domain(landlock_version(), connect_there));
  }

  void files_move_between_folders() {
    if (skip_before(kFirstLandlock)) return;
    TemporaryFolder folder;
    for (const int version : {kFirstLandlock, landlock_version()})
      CPPUNIT_ASSERT_EQUAL(
          0, in_domain(version, [&] {
            const std::string from = folder / "a", to = folder / "b";
            mkdir(from.c_str(), 0700);
            mkdir(to.c_str(), 0700);
            close(open((from + "/x").c_str(), O_CREAT | O_WRONLY, 0600));
            return error_of(rename((from + "/x").c_str(), (to + "/x").c_str()) == 0);
          }));
  }

  void its_own_are_within_reach() {
    CPPUNIT_ASSERT_EQUAL(0, in_domain(landlock_version(), [] {
                           const pid_t child = fork();
                           while (child == 0) pause();
                           const bool signalled = kill(child, SIGKILL) == 0;
                           const int error = error_of(signalled);
                           if (signalled) waitpid(child, nullptr, 0);
                           return error;
                         }));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(DomainTest);

}  // namespace
