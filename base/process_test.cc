#include "base/process.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/files.h"
#include "base/testing/temporary_folder.h"

namespace sublet {
namespace {

// The wait status; fails after 20 s.
int status_of(const SpawnedProcess& process) {
  pollfd waiting{process.pidfd.get(), POLLIN, 0};
  CPPUNIT_ASSERT_EQUAL(1, poll(&waiting, 1, 20'000));
  int status = 0;
  CPPUNIT_ASSERT_EQUAL(process.id.pid, waitpid(process.id.pid, &status, 0));
  return status;
}

}  // namespace

class ProcessTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ProcessTest);
  CPPUNIT_TEST(environment_folder_and_descriptors);
  CPPUNIT_TEST(other_descriptors_are_closed);
  CPPUNIT_TEST(signals_start_afresh);
  CPPUNIT_TEST(a_program_that_is_not_there);
  CPPUNIT_TEST(kills_only_the_process_meant);
  CPPUNIT_TEST(usage_and_boot);
  CPPUNIT_TEST_SUITE_END();

 public:
  void environment_folder_and_descriptors() {
    const UniqueFd out = new_file("out"), err = new_file("err");
    // Deliberately crossed: each source is the other's target.
    const int a = out.get(), b = err.get();
    const SpawnedProcess process =
        spawn({"/bin/sh", "-c",
               "pwd; env; echo low >&" + std::to_string(a) + "; echo high >&" + std::to_string(b)},
              {"NAME=some value"}, {{{a, 1}, {a, b}, {b, a}}, folder_.path(), true});
    CPPUNIT_ASSERT_EQUAL(process.id.pid, getsid(process.id.pid));
    CPPUNIT_ASSERT_EQUAL(0, status_of(process));
    const std::string text = system_files().read_file(folder_ / "out", 10'000);
    CPPUNIT_ASSERT(text.starts_with(folder_.path() + "\n"));
    CPPUNIT_ASSERT(text.find("NAME=some value\n") != std::string::npos);
    CPPUNIT_ASSERT(text.find("HOME=") == std::string::npos);
    CPPUNIT_ASSERT(text.ends_with("high\n"));
    CPPUNIT_ASSERT_EQUAL(std::string("low\n"), system_files().read_file(folder_ / "err", 100));
  }

  void other_descriptors_are_closed() {
    const UniqueFd out = new_file("out");
    const UniqueFd leaky(open("/dev/null", O_RDONLY));  // not close-on-exec
    const UniqueFd high(fcntl(leaky.get(), F_DUPFD, 200));
    const SpawnedProcess process =
        spawn({"/bin/sh", "-c", "echo /proc/self/fd/*"}, {}, {{{out.get(), 1}, {out.get(), 7}}});
    CPPUNIT_ASSERT_EQUAL(0, status_of(process));
    const std::string text = system_files().read_file(folder_ / "out", 10'000);
    CPPUNIT_ASSERT(text.find("/fd/7") != std::string::npos);
    CPPUNIT_ASSERT(text.find("/fd/200") == std::string::npos);
    CPPUNIT_ASSERT(text.find("/fd/" + std::to_string(leaky.get()) + " ") == std::string::npos);
  }

  void signals_start_afresh() {
    sigset_t term, old;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, &old);
    struct sigaction ignore {
    }, before{};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGTERM, &ignore, &before);
    const SpawnedProcess process = spawn({"/bin/sh", "-c", "kill -TERM $$; exit 3"}, {});
    sigaction(SIGTERM, &before, nullptr);
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    const int status = status_of(process);
    CPPUNIT_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  }

  void a_program_that_is_not_there() {
    const std::string program = folder_ / "none";
    try {
      spawn({program}, {});
      CPPUNIT_FAIL("started nothing");
    } catch (const OsError& e) {
      CPPUNIT_ASSERT_EQUAL(ENOENT, e.code());
      CPPUNIT_ASSERT_EQUAL(program, e.subject());
    }
    CPPUNIT_ASSERT_THROW(spawn({"/bin/true"}, {}, {.folder = folder_ / "no"}), OsError);
    CPPUNIT_ASSERT_THROW(spawn({"/bin/true"}, {}, {.fds = {{-1, 3}}}), OsError);
  }

  void kills_only_the_process_meant() {
    const SpawnedProcess process = spawn({"/bin/sleep", "1000"}, {});
    CPPUNIT_ASSERT(is_same_process(process.id));
    const ProcessId other{process.id.pid, process.id.start_time + 1};
    CPPUNIT_ASSERT(!is_same_process(other));
    CPPUNIT_ASSERT(!open_process(other).valid());
    CPPUNIT_ASSERT(!kill_process(other, SIGKILL));
    CPPUNIT_ASSERT(is_same_process(process.id));
    CPPUNIT_ASSERT(kill_process(process.id, SIGKILL));
    const int status = status_of(process);
    CPPUNIT_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CPPUNIT_ASSERT(!is_same_process(process.id));
    CPPUNIT_ASSERT(!kill_process(process.id, SIGKILL));
  }

  void usage_and_boot() {
    const auto before = process_usage(getpid());
    CPPUNIT_ASSERT(before.has_value());
    CPPUNIT_ASSERT(before->resident_bytes > 100'000);
    CPPUNIT_ASSERT(!process_usage(-1).has_value());
    CPPUNIT_ASSERT_EQUAL(size_t{36}, boot_id().size());
    CPPUNIT_ASSERT_EQUAL(boot_id(), boot_id());
  }

 private:
  UniqueFd new_file(const std::string& name) {
    return UniqueFd(
        open((folder_ / name).c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
  }

  TemporaryFolder folder_;
};

CPPUNIT_TEST_SUITE_REGISTRATION(ProcessTest);

}  // namespace sublet
