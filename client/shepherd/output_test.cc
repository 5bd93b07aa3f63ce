// The output is stored before the shepherd records the attempt's end.
#include "client/shepherd/output.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/testing/temporary_folder.h"
#include "base/unique_fd.h"

namespace sublet::shepherd {
namespace {

class OutputTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OutputTest);
  CPPUNIT_TEST(what_is_in_the_pipes_is_stored);
  CPPUNIT_TEST(a_flood_costs_little);
  CPPUNIT_TEST(what_is_not_kept_is_counted);
  CPPUNIT_TEST(without_output_there_are_no_files);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  UniqueFd at_{open(folder_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  Output output_;
  UniqueFd job_ends_[2];  // the job's own
  void close_job_ends() {
    for (UniqueFd& end : job_ends_) end.reset();
  }

 public:
  void setUp() override {
    CPPUNIT_ASSERT(output_.open(at_.get(), 100, 8));
    for (int i = 0; i < 2; ++i) job_ends_[i].reset(dup(output_.job_end(i)));
  }

  void what_is_in_the_pipes_is_stored() {
    print(0, "a result");
    output_.start();
    print(1, "a long warning");
    close_job_ends();
    output_.finish();
    for (const char* name : {"stdout", "stderr"}) {
      struct stat of = {};
      CPPUNIT_ASSERT(stat((folder_ / name).c_str(), &of) == 0);
      CPPUNIT_ASSERT_EQUAL(off_t{8}, of.st_size);
    }
    CPPUNIT_ASSERT_EQUAL(int64_t{8}, output_.kept(0));
    CPPUNIT_ASSERT_EQUAL(int64_t{8}, output_.kept(1));
    CPPUNIT_ASSERT_EQUAL(int64_t{6}, output_.dropped(1));
  }

  // Whose thread is always busy, in virtual time; then after an hour of quiet.
  void a_flood_costs_little() {
    constexpr int64_t kStep = 100'000, kMs = 1'000'000, kHour = 3'600'000 * kMs;
    CpuShare share;
    int64_t now = 1, used = 1, rests = 0;
    const auto flood = [&](int64_t length) {
      const int64_t end = now + length, before = used;
      while (now < end) {
        now += kStep;
        used += kStep;
        const int rest = share.rest_ms(now, used);
        rests += rest > 0;
        now += rest * kMs;
      }
      return used - before;
    };
    CPPUNIT_ASSERT_EQUAL(0, share.rest_ms(now, used));
    const int64_t allowed = CpuShare::kBurstNs + 10'000 * kMs / CpuShare::kPart + kMs;
    CPPUNIT_ASSERT(flood(10'000 * kMs) <= allowed);
    now += kHour;
    CPPUNIT_ASSERT(flood(10'000 * kMs) <= allowed);
    CPPUNIT_ASSERT(rests < 2 * 10 * 10);  // it wakes up ten times a second
    CPPUNIT_ASSERT(used >= 2 * 10'000 * kMs / CpuShare::kPart);
  }

  void what_is_not_kept_is_counted() {
    constexpr int64_t kBytes = 8 << 20;
    const pid_t writer = fork();
    if (writer == 0) {
      const std::string block(1 << 16, 'x');
      for (int64_t sent = 0; sent < kBytes; sent += 1 << 16)
        if (write(job_ends_[0].get(), block.data(), block.size()) != 1 << 16) _exit(1);
      _exit(0);
    }
    close_job_ends();
    output_.start();
    int status = 0;
    CPPUNIT_ASSERT_EQUAL(writer, waitpid(writer, &status, 0));
    CPPUNIT_ASSERT_EQUAL(0, status);
    output_.finish();
    CPPUNIT_ASSERT_EQUAL(int64_t{100}, output_.kept(0));
    CPPUNIT_ASSERT_EQUAL(kBytes - 100, output_.dropped(0));
  }

  void without_output_there_are_no_files() {
    close_job_ends();
    output_.finish();
    CPPUNIT_ASSERT(access((folder_ / "stdout").c_str(), F_OK) != 0);
  }

 private:
  void print(int stream, const std::string& text) {
    CPPUNIT_ASSERT_EQUAL(static_cast<ssize_t>(text.size()),
                         write(job_ends_[stream].get(), text.data(), text.size()));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(OutputTest);

}  // namespace
}  // namespace sublet::shepherd
