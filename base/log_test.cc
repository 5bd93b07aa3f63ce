#include "base/log.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/os_error.h"
#include "base/testing/temporary_folder.h"
#include "base/unique_fd.h"

namespace sublet {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++n;
  return n;
}

// Records whether it was formatted.
struct Costly {
  bool* formatted;
};

std::ostream& operator<<(std::ostream& out, const Costly& costly) {
  *costly.formatted = true;
  return out;
}

// Lines lost as reported in the log.
uint64_t lost_by(const std::string& text) {
  const std::string before = "warning test: ", after = " lines of this log were lost\n";
  uint64_t sum = 0;
  for (size_t i = text.find(after); i != std::string::npos; i = text.find(after, i + 1)) {
    sum += std::stoull(text.substr(text.rfind(before, i) + before.size()));
  }
  return sum;
}

// Reads from the pipe until `enough`; fails after 20 s without data.
std::string read_until(int fd, const std::function<bool(const std::string&)>& enough) {
  std::string text;
  char bytes[1 << 16];
  while (!enough(text)) {
    pollfd waiting{fd, POLLIN, 0};
    CPPUNIT_ASSERT_MESSAGE("nothing more came", poll(&waiting, 1, 20'000) == 1);
    const ssize_t n = read(fd, bytes, sizeof bytes);
    if (n > 0) text.append(bytes, static_cast<size_t>(n));
  }
  return text;
}

}  // namespace

class LogTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LogTest);
  CPPUNIT_TEST(lines_have_their_form);
  CPPUNIT_TEST(hostile_text_stays_in_its_line);
  CPPUNIT_TEST(levels_filter_before_formatting);
  CPPUNIT_TEST(files_turn_over);
  CPPUNIT_TEST(a_file_that_cannot_be_opened_costs_no_old_ones);
  CPPUNIT_TEST(overflow_drops_counts_and_says_so);
  CPPUNIT_TEST(many_threads_lose_nothing);
  CPPUNIT_TEST(works_without_start);
  CPPUNIT_TEST(a_bad_file_is_an_error);
  CPPUNIT_TEST_SUITE_END();

 public:
  void tearDown() override {
    log_stop();
    log_level(Severity::info);
  }

  void lines_have_their_form() {
    start({});
    log(Severity::warning) << "machine "
                           << "curly"
                           << " has " << 4 << " cores";
    log_stop();
    const std::string text = written();
    CPPUNIT_ASSERT_EQUAL(std::string("Z warning test: machine curly has 4 cores\n"),
                         text.substr(23));
    CPPUNIT_ASSERT_EQUAL('T', text[10]);
    CPPUNIT_ASSERT_EQUAL('.', text[19]);
  }

  void hostile_text_stays_in_its_line() {
    start({});
    log(Severity::info) << "job \n2026-01-01T00:00:00.000Z error server: forged \x1b[2J \xff";
    log(Severity::info) << std::string(1 << 20, 'x');
    log_stop();
    const std::string text = written();
    CPPUNIT_ASSERT_EQUAL(ptrdiff_t{2}, std::count(text.begin(), text.end(), '\n'));
    CPPUNIT_ASSERT(text.find("\\n2026") != std::string::npos);
    CPPUNIT_ASSERT(text.find("\\x1b[2J \\xff") != std::string::npos);
    CPPUNIT_ASSERT(text.size() < 10'000);
  }

  void levels_filter_before_formatting() {
    start({.level = Severity::warning});
    CPPUNIT_ASSERT(!log_enabled(Severity::info));
    CPPUNIT_ASSERT(log_enabled(Severity::error));
    bool formatted = false;
    log(Severity::info) << "not this" << Costly{&formatted};
    CPPUNIT_ASSERT(!formatted);
    log(Severity::error) << Costly{&formatted};
    CPPUNIT_ASSERT(formatted);
    log(Severity::error) << "but this";
    log_level(Severity::debug);
    log(Severity::debug) << "and that";
    log_stop();
    const std::string text = written();
    CPPUNIT_ASSERT(text.find("not this") == std::string::npos);
    CPPUNIT_ASSERT(text.find("but this") != std::string::npos);
    CPPUNIT_ASSERT(text.find("and that") != std::string::npos);
    CPPUNIT_ASSERT(severity_from("error") == Severity::error);
    CPPUNIT_ASSERT(!severity_from("loud"));
  }

  void files_turn_over() {
    start({.rotate_bytes = 1000, .keep = 2});
    for (int i = 0; i < 100; ++i) log(Severity::info) << "line " << i << ".";
    log_stop();
    const std::vector<FolderEntry> files = system_files().list(folder_.path());
    CPPUNIT_ASSERT_EQUAL(size_t{3}, files.size());
    for (const FolderEntry& file : files) CPPUNIT_ASSERT(file.size <= 1000);
    CPPUNIT_ASSERT(written().find("line 99.") != std::string::npos);
    const std::string before = system_files().read_file(folder_ / "log.1", 1000);
    const std::string first = written().substr(written().find("line "), 8);
    CPPUNIT_ASSERT(before.find(first) == std::string::npos);
    CPPUNIT_ASSERT(count(before, "line ") > 5);
  }

  // Every line that finds no file once shifted all old ones.
  void a_file_that_cannot_be_opened_costs_no_old_ones() {
    start({.rotate_bytes = 1000, .keep = 8});
    rlimit files{};
    CPPUNIT_ASSERT_EQUAL(0, getrlimit(RLIMIT_NOFILE, &files));
    const rlimit none{3, files.rlim_max};
    CPPUNIT_ASSERT_EQUAL(0, setrlimit(RLIMIT_NOFILE, &none));
    const uint64_t before = log_dropped();
    for (int i = 0; i < 100; ++i) log(Severity::info) << "line " << i << ".";
    const int64_t end = system_clock().boot_ns() + 60'000'000'000;
    while (log_dropped() < before + 50 && system_clock().boot_ns() < end) usleep(1000);
    CPPUNIT_ASSERT_EQUAL(0, setrlimit(RLIMIT_NOFILE, &files));
    CPPUNIT_ASSERT(log_dropped() >= before + 50);
    CPPUNIT_ASSERT(system_files().exists(folder_ / "log.1"));
    log(Severity::info) << "back";
    log_stop();
    CPPUNIT_ASSERT(written().find("back") != std::string::npos);
    // What waited in the queue may have turned the files over again since.
    bool kept = false;
    for (const FolderEntry& file : system_files().list(folder_.path()))
      kept |=
          system_files().read_file(folder_ / file.name, 1000).find("line 0.") != std::string::npos;
    CPPUNIT_ASSERT(kept);
  }

  void overflow_drops_counts_and_says_so() {
    // A pipe that is not read simulates a disk that hangs.
    CPPUNIT_ASSERT_EQUAL(0, mkfifo((folder_ / "log").c_str(), 0600));
    const UniqueFd reader(open((folder_ / "log").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    start({});
    const uint64_t before = log_dropped();
    uint64_t sent = 0;
    // More than fits into the queue and the pipe: must return without blocking.
    for (; sent < kLogQueueRecords + 10'000; ++sent) log(Severity::info) << "flood " << sent;
    const uint64_t lost = log_dropped() - before;
    CPPUNIT_ASSERT(lost > 0);
    CPPUNIT_ASSERT(lost <= 10'000);  // the queue itself is kept
    const std::string text = read_until(reader.get(), [&](const std::string& so_far) {
      return lost_by(so_far) >= lost && count(so_far, "flood ") >= sent - lost;
    });
    CPPUNIT_ASSERT_EQUAL(lost, lost_by(text));
    CPPUNIT_ASSERT_EQUAL(sent - lost, uint64_t{count(text, "flood ")});
    log(Severity::info) << "afterwards";
    read_until(reader.get(), [](const std::string& so_far) {
      return so_far.find("afterwards\n") != std::string::npos;
    });
    CPPUNIT_ASSERT_EQUAL(lost, log_dropped() - before);
  }

  void many_threads_lose_nothing() {
    start({});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 1000; ++i) log(Severity::info) << "line";
      });
    }
    for (std::thread& thread : threads) thread.join();
    log_stop();
    CPPUNIT_ASSERT_EQUAL(size_t{4000}, count(written(), ": line\n"));
  }

  void works_without_start() {
    const UniqueFd kept(dup(STDERR_FILENO));
    const UniqueFd file(open((folder_ / "log").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    dup2(file.get(), STDERR_FILENO);
    log(Severity::error) << "early";
    dup2(kept.get(), STDERR_FILENO);
    CPPUNIT_ASSERT(written().find(std::string(" error ") + program_invocation_short_name +
                                  ": early\n") != std::string::npos);
  }

  void a_bad_file_is_an_error() {
    CPPUNIT_ASSERT_THROW(log_start({.component = "test", .file = folder_ / "none/log"}), OsError);
    log(Severity::debug) << "still safe to log";
  }

 private:
  void start(LogSettings settings) {
    settings.component = "test";
    settings.file = folder_ / "log";
    log_start(settings);
  }
  std::string written() { return system_files().read_file(folder_ / "log", 10 << 20); }

  TemporaryFolder folder_;
};

CPPUNIT_TEST_SUITE_REGISTRATION(LogTest);

}  // namespace sublet
