#include "client/machine/monitor_start.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <thread>

#include "base/testing/temporary_folder.h"

namespace sublet::client {
namespace {

constexpr const char* kFreezers = "/sys/fs/cgroup/freezer";

bool put(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

class MonitorStartTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(MonitorStartTest);
  CPPUNIT_TEST(one_that_cannot_be_killed_holds_up_nobody);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;

  // A frozen process of the first cgroup hierarchy takes no signal, as one that waits for a disk.
  void one_that_cannot_be_killed_holds_up_nobody() {
    const std::string freezer = std::string(kFreezers) + "/sublet-test-" + std::to_string(getpid());
    if (mkdir(freezer.c_str(), 0755) != 0) {
      std::cout << "skipped: no freezer of the first cgroup hierarchy here" << std::endl;
      return;
    }
    const std::string program = folder_ / "monitor";
    CPPUNIT_ASSERT(put(program,
                       "#!/bin/sh\n[ \"$1\" = --print-settings ] || exec sleep 1000\n"
                       "[ -e " +
                           freezer +
                           "/cgroup.procs ] || exit 0\n"
                           "echo $$ > " +
                           freezer +
                           "/cgroup.procs\n"
                           "echo FROZEN > " +
                           freezer + "/freezer.state\n"));
    CPPUNIT_ASSERT_EQUAL(0, chmod(program.c_str(), 0755));
    MonitorStart monitors({program}, folder_ / "monitor.sock");
    CPPUNIT_ASSERT(!monitors.start(false));
    CPPUNIT_ASSERT(!monitors.start(true));  // at once: the other is still there
    put(freezer + "/freezer.state", "THAWED");
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (rmdir(freezer.c_str()) != 0 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::optional<pid_t> started;
    while (!started && std::chrono::steady_clock::now() < deadline) started = monitors.start(true);
    CPPUNIT_ASSERT(started);
    kill(*started, SIGKILL);
    CPPUNIT_ASSERT_EQUAL(*started, waitpid(*started, nullptr, 0));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(MonitorStartTest);

}  // namespace
}  // namespace sublet::client
