// The real program on the real data: a run that is evicted many times ends with the same
// output and bit-identical weights as an uninterrupted one.
#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <iostream>
#include <vector>

#include "checkpoint-api/sublet_status.h"
#include "checkpoint-api/testing.h"

namespace {
using namespace sublet::testing;

constexpr int kEvictions = 15;
constexpr std::uint64_t kBudgetBytes = 21850;
// The output of 3 epochs, on every machine and with every compiler.
constexpr char kOutput[] =
    "epochs 3\n"
    "training correctness 0.648 (10372 of 16000)\n"
    "test correctness 0.630 (2521 of 4000)\n"
    "weights 4808d781cc4c8259\n";

class InterruptionTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(InterruptionTest);
  CPPUNIT_TEST(evicted_run_is_identical);
  CPPUNIT_TEST(killed_run_is_identical);
  CPPUNIT_TEST(other_settings_are_refused);
  CPPUNIT_TEST(bad_command_lines);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override { leave_pool(); }
  void tearDown() override { leave_pool(); }

  void evicted_run_is_identical() {
    TempFolder folder;
    run_undisturbed(folder);
    enter_pool(folder);
    const sublet_status* page = map_page(folder);
    std::vector<double> quiesce_ms;
    for (int i = 0; i < kEvictions; ++i) {
      const std::int32_t before = page->progress_ppm;
      const pid_t pid = start(folder, "evicted", {});
      // Beyond what the last attempt saved, by a different amount each time.
      const std::int32_t target = std::max(before, 0) + 1000 + i * 3000 % 35000;
      CPPUNIT_ASSERT(wait_for(
          [&] { return page->aware == 1 && page->left == 0 && page->progress_ppm >= target; }));
      const auto asked = std::chrono::steady_clock::now();
      kill(pid, SIGTERM);
      const int end = end_of(pid);
      quiesce_ms.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - asked)
              .count());
      CPPUNIT_ASSERT(WIFEXITED(end) && WEXITSTATUS(end) == SUBLET_EXIT_LEFT);
      CPPUNIT_ASSERT_EQUAL(1u, page->left);
      CPPUNIT_ASSERT_EQUAL(static_cast<std::uint64_t>(i + 1), page->generation);
      CPPUNIT_ASSERT_EQUAL(static_cast<std::uint64_t>(i), page->resumed_generation);
      CPPUNIT_ASSERT(page->progress_ppm >= target && page->progress_ppm < 1000000);
      CPPUNIT_ASSERT(page->checkpoint_bytes <= kBudgetBytes);
      CPPUNIT_ASSERT_EQUAL(page->checkpoint_bytes,
                           std::filesystem::file_size(folder / "checkpoint"));
      CPPUNIT_ASSERT(read_file(folder / "evicted.out").empty());
    }
    CPPUNIT_ASSERT_EQUAL(0, end_of(start(folder, "evicted", {})));
    CPPUNIT_ASSERT_EQUAL(static_cast<std::uint64_t>(kEvictions), page->resumed_generation);
    expect_identical(folder, "evicted");
    std::sort(quiesce_ms.begin(), quiesce_ms.end());
    std::cout << "\n  " << kEvictions << " evictions, checkpoint " << page->checkpoint_bytes
              << " bytes; asked to leave -> gone: p50 " << quiesce_ms[kEvictions / 2] << " ms, max "
              << quiesce_ms.back() << " ms\n";
    munmap(const_cast<sublet_status*>(page), SUBLET_STATUS_BYTES);
  }

  // Killed without warning: it resumes from the last requested save.
  void killed_run_is_identical() {
    TempFolder folder;
    run_undisturbed(folder);
    enter_pool(folder);
    const sublet_status* page = map_page(folder);
    for (std::uint64_t i = 1; i <= 3; ++i) {
      const pid_t pid = start(folder, "killed", {});
      CPPUNIT_ASSERT(wait_for([&] {
        return page->aware == 1 && page->resumed_generation == i - 1 &&
               page->progress_ppm > page->resumed_progress_ppm + 1000;
      }));
      kill(pid, SIGUSR1);
      CPPUNIT_ASSERT(wait_for([&] { return page->generation == i; }));
      const std::int32_t saved = page->progress_ppm;
      CPPUNIT_ASSERT(wait_for([&] { return page->progress_ppm > saved; }));
      kill(pid, SIGKILL);
      end_of(pid);
    }
    CPPUNIT_ASSERT_EQUAL(0, end_of(start(folder, "killed", {})));
    expect_identical(folder, "killed");
    munmap(const_cast<sublet_status*>(page), SUBLET_STATUS_BYTES);
  }

  void other_settings_are_refused() {
    TempFolder folder;
    enter_pool(folder);
    const sublet_status* page = map_page(folder);
    const pid_t pid = start(folder, "first", {});
    CPPUNIT_ASSERT(wait_for([&] { return page->aware == 1 && page->progress_ppm > 500000; }));
    kill(pid, SIGTERM);
    CPPUNIT_ASSERT(WEXITSTATUS(end_of(pid)) == SUBLET_EXIT_LEFT);
    const std::string checkpoint = read_file(folder / "checkpoint");
    const std::vector<std::vector<std::string>> others = {
        {"--seed", "9"}, {"--rate", "0.3"}, {"--hidden", "54"}, {"--epochs", "1"}};
    for (const auto& other : others) {
      const int end = end_of(start(folder, "other", other));
      CPPUNIT_ASSERT(WIFEXITED(end) && WEXITSTATUS(end) == 1);
      CPPUNIT_ASSERT(!read_file(folder / "other.err").empty());
      CPPUNIT_ASSERT(read_file(folder / "checkpoint") == checkpoint);
    }
    munmap(const_cast<sublet_status*>(page), SUBLET_STATUS_BYTES);
  }

  void bad_command_lines() {
    TempFolder folder;
    const std::vector<std::vector<std::string>> bad = {
        {"--epochs", "-1"}, {"--epochs", "1x"}, {"--rate", "nan"}, {"--rate", "0"},
        {"--hidden", "0"},  {"--hidden"},       {"--unknown", "1"}};
    for (const auto& arguments : bad) {
      const int end = end_of(start(folder, "bad", arguments));
      CPPUNIT_ASSERT(WIFEXITED(end) && WEXITSTATUS(end) == 2);
      CPPUNIT_ASSERT(read_file(folder / "bad.err").find("usage:") != std::string::npos);
    }
    write_file(folder / "few", "T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\n");
    for (const char* data : {"few", "missing"}) {
      const int end = end_of(start(folder, "bad", {"--data", folder / data}));
      CPPUNIT_ASSERT(WIFEXITED(end) && WEXITSTATUS(end) == 1);
      CPPUNIT_ASSERT(read_file(folder / "bad.err").find(data) != std::string::npos);
    }
  }

 private:
  // Starts it with NAME.out, NAME.err and NAME.bin in the folder; `more` overrides options.
  static pid_t start(const TempFolder& folder, const std::string& name,
                     const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        BACK_PROPAGATION,        "--data", LETTERS, "--epochs", "3", "--weights",
        folder / (name + ".bin")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start_child([&] {
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
      dup2(open((folder / (name + ".out")).c_str(), flags, 0600), 1);
      dup2(open((folder / (name + ".err")).c_str(), flags, 0600), 2);
      execv(argv[0], argv.data());
      return 127;
    });
  }

  static void run_undisturbed(const TempFolder& folder) {
    CPPUNIT_ASSERT_EQUAL(0, end_of(start(folder, "whole", {})));
    CPPUNIT_ASSERT(!exists(folder / "checkpoint"));
  }

  static void expect_identical(const TempFolder& folder, const std::string& name) {
    const std::string output = kOutput;
    CPPUNIT_ASSERT_EQUAL(output, read_file(folder / "whole.out"));
    CPPUNIT_ASSERT_EQUAL(output, read_file(folder / (name + ".out")));
    CPPUNIT_ASSERT_EQUAL(std::uintmax_t{2391 * 8},
                         std::filesystem::file_size(folder / "whole.bin"));
    CPPUNIT_ASSERT(read_file(folder / "whole.bin") == read_file(folder / (name + ".bin")));
  }

  static void enter_pool(const TempFolder& folder) {
    write_file(folder / "status", std::string(SUBLET_STATUS_BYTES, '\0'));
    setenv("SUBLET_CHECKPOINT_DIR", folder.path().c_str(), 1);
    setenv("SUBLET_STATUS", (folder / "status").c_str(), 1);
  }

  static void leave_pool() {
    unsetenv("SUBLET_CHECKPOINT_DIR");
    unsetenv("SUBLET_STATUS");
  }

  static const sublet_status* map_page(const TempFolder& folder) {
    const int fd = open((folder / "status").c_str(), O_RDWR);
    void* page = mmap(nullptr, SUBLET_STATUS_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    CPPUNIT_ASSERT(page != MAP_FAILED);
    return static_cast<const sublet_status*>(page);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(InterruptionTest);

}  // namespace
