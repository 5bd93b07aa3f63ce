// The output is stored durably before the shepherd records the attempt's end.
#include "client/shepherd/output.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/testing/temporary_folder.h"
#include "base/unique_fd.h"

namespace {

// The size of each file when it was synced. The linker replaces the calls (CMakeLists.txt).
std::vector<off_t> synced;

}  // namespace

extern "C" int __wrap_fdatasync(int fd) {
  struct stat of = {};
  if (fstat(fd, &of) == 0) synced.push_back(of.st_size);
  return 0;
}

namespace sublet::shepherd {
namespace {

class OutputTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OutputTest);
  CPPUNIT_TEST(all_that_is_stored_is_synced);
  CPPUNIT_TEST(a_flood_costs_little);
  CPPUNIT_TEST(without_output_there_are_no_files);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  UniqueFd at_{open(folder_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  Output output_;

 public:
  void setUp() override {
    synced.clear();
    CPPUNIT_ASSERT(output_.open(at_.get(), 100, 8));
  }

  void all_that_is_stored_is_synced() {
    print(0, "a result");
    output_.start();
    print(1, "a long warning");
    output_.close_job_ends();
    output_.finish();
    CPPUNIT_ASSERT(synced == (std::vector<off_t>{8, 8}));
    CPPUNIT_ASSERT_EQUAL(int64_t{8}, output_.kept(0));
    CPPUNIT_ASSERT_EQUAL(int64_t{8}, output_.kept(1));
    CPPUNIT_ASSERT_EQUAL(int64_t{6}, output_.dropped(1));
  }

  // Copied without a limit, it would cost most of a core.
  void a_flood_costs_little() {
    const pid_t writer = fork();
    if (writer == 0) {
      const std::vector<char> block(65536);
      while (write(output_.job_end(0), block.data(), block.size()) > 0 &&
             write(output_.job_end(1), block.data(), block.size()) > 0) {
      }
      _exit(0);
    }
    output_.close_job_ends();
    const int64_t before = cpu_ms();
    output_.start();
    usleep(2'000'000);
    const int64_t used = cpu_ms() - before;
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    output_.finish();
    CPPUNIT_ASSERT_MESSAGE(std::to_string(used) + " ms", used < 200);
    CPPUNIT_ASSERT_EQUAL(int64_t{100}, output_.kept(0));
    CPPUNIT_ASSERT(output_.dropped(0) > 1 << 20);
  }

  void without_output_there_are_no_files() {
    output_.close_job_ends();
    output_.finish();
    CPPUNIT_ASSERT(synced.empty());
    CPPUNIT_ASSERT(access((folder_ / "stdout").c_str(), F_OK) != 0);
  }

 private:
  static int64_t cpu_ms() {
    timespec used = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * 1000 + used.tv_nsec / 1'000'000;
  }
  void print(int stream, const std::string& text) {
    CPPUNIT_ASSERT_EQUAL(static_cast<ssize_t>(text.size()),
                         write(output_.job_end(stream), text.data(), text.size()));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(OutputTest);

}  // namespace
}  // namespace sublet::shepherd
