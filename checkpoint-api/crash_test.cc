// Interrupts a save before each of its steps, once by a power failure (unsynced data is
// lost) and once by an error of that step; and kills it before and after each of its system
// calls. A complete generation must always exist, and the next save must work.
#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/ptrace.h>

#include <cerrno>
#include <iostream>
#include <optional>
#include <vector>

#include "checkpoint-api/internal.h"
#include "checkpoint-api/testing.h"

namespace {
using namespace sublet::testing;

constexpr int kCrashed = 42;
constexpr int kNothingFailed = 43;

// Controls the disk below; in the child only.
struct Trouble {
  int steps_left = 0;  // until the failure; 0: no failure
  int error = 0;       // 0: power failure
  bool has_links = true;
  int unsynced = -1;  // a duplicate descriptor of the file that would lose its contents
} trouble;

// False: this step fails with errno set.
bool step() {
  if (trouble.steps_left == 0 || --trouble.steps_left != 0) return true;
  if (trouble.error != 0) {
    errno = trouble.error;
    return false;
  }
  if (trouble.unsynced >= 0 && ftruncate(trouble.unsynced, 0) != 0) _exit(1);
  _exit(kCrashed);
}

int create_file(int folder, const char* name) {
  if (!step()) return -1;
  const int fd = sublet_system_disk.create(folder, name);
  trouble.unsynced = dup(fd);
  return fd;
}
ssize_t write_bytes(int fd, const void* bytes, size_t size, off_t offset) {
  // Only half of it: a write is not atomic either. Not down to single bytes, which would be a
  // step each.
  if (!step()) return -1;
  return sublet_system_disk.write(fd, bytes, size > 256 ? size / 2 : size, offset);
}
int sync_file(int fd) {
  if (!step()) return -1;
  trouble.unsynced = -1;
  return sublet_system_disk.sync(fd);
}
int close_file(int fd) {
  const bool works = step();
  sublet_system_disk.close(fd);
  return works ? 0 : -1;
}
int link_file(int folder, const char* from, const char* to) {
  if (!step()) return -1;
  if (trouble.has_links) return sublet_system_disk.link(folder, from, to);
  errno = EPERM;
  return -1;
}
int rename_file(int folder, const char* from, const char* to) {
  return step() ? sublet_system_disk.rename(folder, from, to) : -1;
}
int remove_file(int folder, const char* name) {
  return step() ? sublet_system_disk.remove(folder, name) : -1;
}
const sublet_disk kTroubledDisk = {create_file, write_bytes, sync_file,  close_file,
                                   link_file,   rename_file, remove_file};

struct Program {
  std::vector<std::uint64_t> steps;
  sublet_checkpoint* c = sublet_checkpoint_open("crash", 1);
  explicit Program(size_t size = 100) : steps(size) {
    sublet_checkpoint_variable(c, "steps", steps.data(), size, SUBLET_UINT64);
  }
  ~Program() { sublet_checkpoint_close(c); }
  int start(const std::string& path) {
    const sublet_checkpoint_options options{path.c_str(), SUBLET_CHECKPOINT_NEVER, 0};
    return sublet_checkpoint_start(c, &options);
  }
  int save(std::uint64_t value) {
    for (std::uint64_t& step : steps) step = value;
    return sublet_checkpoint_save(c);
  }
};

// The step from which a new run resumes; nullopt if it starts from scratch.
std::optional<std::uint64_t> resumed_step(const std::string& path, size_t size = 100) {
  Program program(size);
  if (program.start(path) != SUBLET_RESUMED) return std::nullopt;
  for (const std::uint64_t step : program.steps) CPPUNIT_ASSERT_EQUAL(program.steps[0], step);
  // The remains of the last save must not disturb the next two.
  CPPUNIT_ASSERT_EQUAL(0, sublet_checkpoint_save(program.c));
  CPPUNIT_ASSERT_EQUAL(0, sublet_checkpoint_save(program.c));
  return program.steps[0];
}

class CrashTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(CrashTest);
  CPPUNIT_TEST(power_fails_before_every_step);
  CPPUNIT_TEST(power_fails_before_every_step_without_links);
  CPPUNIT_TEST(power_fails_in_the_first_save);
  CPPUNIT_TEST(power_fails_after_a_fallback);
  CPPUNIT_TEST(killed_at_every_system_call);
  CPPUNIT_TEST(every_step_fails_with_an_error);
  CPPUNIT_TEST(power_fails_in_the_save_after_a_failed_one);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    unsetenv("SUBLET_CHECKPOINT_DIR");
    unsetenv("SUBLET_STATUS");
  }

  void power_fails_before_every_step() { crash_everywhere(2, true, false); }
  void power_fails_before_every_step_without_links() { crash_everywhere(2, false, false); }
  void power_fails_in_the_first_save() { crash_everywhere(0, true, false); }
  void power_fails_after_a_fallback() { crash_everywhere(2, true, true); }

  void killed_at_every_system_call() {
    if (!can_trace()) {
      std::cout << "skipped: a process may not be traced here" << std::endl;
      return;
    }
    QuietStderr quiet;
    for (const size_t size : {size_t{100}, size_t{1} << 17}) {
      for (const std::uint64_t generations : {0, 2}) {
        int at = 1;
        while (kill_at(at, generations, size)) ++at;
        CPPUNIT_ASSERT(at > 30);
      }
    }
  }

  void every_step_fails_with_an_error() {
    QuietStderr quiet;
    for (const int error : {ENOSPC, EIO}) {
      int last_step = 0;
      for (int at = 1; last_step == 0; ++at) {
        TempFolder folder;
        const std::string path = folder / "state";
        prepare(path, 2);
        const int end = run_child(path, at, error, true);
        CPPUNIT_ASSERT(WIFEXITED(end));
        if (WEXITSTATUS(end) == 0) last_step = at;  // the save had fewer steps
        const auto step = resumed_step(path);
        CPPUNIT_ASSERT(step.has_value());
        CPPUNIT_ASSERT(*step == 2 || *step == 3);
        if (last_step != 0) CPPUNIT_ASSERT_EQUAL(std::uint64_t{3}, *step);
      }
      CPPUNIT_ASSERT(last_step > 8);
    }
  }

  void power_fails_in_the_save_after_a_failed_one() {
    QuietStderr quiet;
    for (const bool has_links : {true, false}) {
      int fails = 1;
      while (crash_after_failure(fails, has_links) != kNothingFailed) ++fails;
      CPPUNIT_ASSERT(fails > 8);
    }
  }

 private:
  // A power failure before every step of the save that follows one in which step `fails` failed.
  // Returns the exit status of the run in which no step was left for it.
  static int crash_after_failure(int fails, bool has_links) {
    for (int crashes = 1;; ++crashes) {
      TempFolder folder;
      const std::string path = folder / "state";
      prepare(path, 2);
      const int end = run_child_twice(path, fails, crashes, has_links);
      CPPUNIT_ASSERT(WIFEXITED(end));
      const auto step = resumed_step(path);
      CPPUNIT_ASSERT_MESSAGE(std::to_string(fails) + ", " + std::to_string(crashes), step);
      const bool crashed = WEXITSTATUS(end) == kCrashed;
      CPPUNIT_ASSERT(*step >= 2 && (crashed || *step == 4));
      if (!crashed) return WEXITSTATUS(end);
    }
  }

  // Saves the value 3, in which disk step `fails` fails, and then the value 4, with a power
  // failure before disk step `crashes`. Exit status kCrashed; if no step was left for the latter
  // 0, or kNothingFailed if none was left for the former either.
  static int run_child_twice(const std::string& path, int fails, int crashes, bool has_links) {
    return end_of(start_child([&] {
      Program program;
      program.start(path);
      program.c->disk = &kTroubledDisk;
      trouble = {fails, EIO, has_links, -1};
      program.save(3);
      const bool failed = trouble.steps_left == 0;
      trouble = {crashes, 0, has_links, -1};
      program.save(4);
      return failed ? 0 : kNothingFailed;
    }));
  }

  // Kills the save after `generations` others where it enters or leaves a system call for the
  // at-th time. False: it has ended before.
  static bool kill_at(int at, std::uint64_t generations, size_t size) {
    TempFolder folder;
    const std::string path = folder / "state";
    prepare(path, generations, size);
    const bool killed = was_killed_at(at, start_child([&] {
                                        Program program(size);
                                        program.start(path);
                                        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0)
                                          return 1;
                                        raise(SIGSTOP);
                                        return program.save(3);
                                      }));
    const auto step = resumed_step(path, size);
    const bool kept = generations > 0 ? step == generations : !step && saves_anew(path, size);
    CPPUNIT_ASSERT_MESSAGE(std::to_string(at), step == std::uint64_t{3} || (killed && kept));
    return killed;
  }

  static bool saves_anew(const std::string& path, size_t size) {
    Program program(size);
    return program.start(path) == SUBLET_NEW && program.save(1) == 0;
  }

  static bool can_trace() {
    return end_of(start_child(
               [] { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1; })) == 0;
  }

  static bool was_killed_at(int at, pid_t pid) {
    int status = 0;
    CPPUNIT_ASSERT_EQUAL(pid, waitpid(pid, &status, 0));
    CPPUNIT_ASSERT(WIFSTOPPED(status));
    ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    for (int calls = 0; WIFSTOPPED(status);) {
      if (WSTOPSIG(status) == (SIGTRAP | 0x80)) ++calls;
      if (calls == at)
        kill(pid, SIGKILL);
      else
        ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr);
      CPPUNIT_ASSERT_EQUAL(pid, waitpid(pid, &status, 0));
    }
    return WIFSIGNALED(status);
  }

  static void prepare(const std::string& path, std::uint64_t generations, size_t size = 100) {
    Program program(size);
    program.start(path);
    for (std::uint64_t i = 1; i <= generations; ++i) CPPUNIT_ASSERT_EQUAL(0, program.save(i));
  }

  // Saves the value 3 with a failure before disk step `at`. Exit status 0: saved.
  static int run_child(const std::string& path, int at, int error, bool has_links) {
    return end_of(start_child([&] {
      Program program;
      program.start(path);
      program.c->disk = &kTroubledDisk;
      trouble = {at, error, has_links, -1};
      return program.save(3) == 0 && trouble.steps_left != 0 ? 0 : 1;
    }));
  }

  void crash_everywhere(std::uint64_t generations, bool has_links, bool damage_newest) {
    QuietStderr quiet;
    bool complete = false;
    int at = 0;
    while (!complete) {
      TempFolder folder;
      const std::string path = folder / "state";
      prepare(path, generations);
      if (damage_newest) write_file(path, "rubbish");
      const int end = run_child(path, ++at, 0, has_links);
      CPPUNIT_ASSERT(WIFEXITED(end));
      complete = WEXITSTATUS(end) == 0;
      CPPUNIT_ASSERT(complete || WEXITSTATUS(end) == kCrashed);
      const auto step = resumed_step(path);
      if (complete) CPPUNIT_ASSERT(step == std::uint64_t{3});
      const std::uint64_t before = damage_newest ? 1 : 2;
      CPPUNIT_ASSERT(step == std::uint64_t{3} || step == before ||
                     (generations == 0 && !step.has_value()));
    }
    CPPUNIT_ASSERT(at > 6);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(CrashTest);

}  // namespace
