// Runs programs in child processes, with a pool's environment and a status page.
#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "checkpoint-api/pool_testing.h"
#include "checkpoint-api/sublet_checkpoint.hpp"

namespace {
using namespace sublet::testing;

// Counts as fast as it can and saves when asked. Never ends by itself.
int count_for_ever(sublet_checkpoint_options options = {}) {
  std::uint64_t step = 0;
  sublet::Checkpoint checkpoint("counter", 1);
  checkpoint.variable("step", step);
  checkpoint.start(options);
  for (;;) {
    ++step;
    checkpoint.progress(step, std::uint64_t{1} << 30);
    if (!checkpoint.point()) return 7;
  }
}

std::uint64_t resumed_step() {
  std::uint64_t step = 0;
  sublet::Checkpoint checkpoint("counter", 1);
  checkpoint.variable("step", step);
  return checkpoint.start() ? step : 0;
}

bool readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return poll(&one, 1, 0) == 1 && (one.revents & POLLIN) != 0;
}

class SignalsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SignalsTest);
  CPPUNIT_TEST(sigterm_saves_and_leaves);
  CPPUNIT_TEST(the_handler_itself_counts_the_request);
  CPPUNIT_TEST(a_rehearsal_leaves_at_a_point);
  CPPUNIT_TEST(sigusr1_saves_and_goes_on);
  CPPUNIT_TEST(the_program_may_leave_by_itself);
  CPPUNIT_TEST(a_request_during_a_save_is_answered_by_that_save);
  CPPUNIT_TEST(leaves_even_when_the_save_fails);
  CPPUNIT_TEST(saves_periodically);
  CPPUNIT_TEST(a_due_save_waits_for_the_next_point);
  CPPUNIT_TEST(each_save_starts_the_period_anew);
  CPPUNIT_TEST(never_means_no_timer);
  CPPUNIT_TEST(a_request_can_be_waited_for);
  CPPUNIT_TEST(an_earlier_request_is_not_missed);
  CPPUNIT_TEST(a_program_that_waits_is_woken);
  CPPUNIT_TEST(there_is_no_descriptor_without_a_place_to_save);
  CPPUNIT_TEST(without_a_pool_sigterm_ends_it);
  CPPUNIT_TEST(late_requests_do_no_harm);
  CPPUNIT_TEST(a_large_first_save_is_put_off);
  CPPUNIT_TEST(says_a_line);
  CPPUNIT_TEST(a_bad_status_page_is_done_without);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    for (const char* name : {"SUBLET_CHECKPOINT_DIR", "SUBLET_STATUS", "SUBLET_CHECKPOINT_PERIOD",
                             "SUBLET_CHECKPOINT_STOP_AT"}) {
      unsetenv(name);
    }
  }

  void sigterm_saves_and_leaves() {
    Pool pool;
    std::uint64_t before = 0;
    for (std::uint64_t round = 1; round <= 5; ++round) {
      const std::int32_t start_ppm = round == 1 ? 0 : pool.page().progress_ppm;
      const pid_t pid = start_child([] { return count_for_ever(); });
      CPPUNIT_ASSERT(wait_for([&] {
        return pool.aware() && pool.page().left == 0 && pool.page().progress_ppm > start_ppm;
      }));
      kill(pid, SIGTERM);
      CPPUNIT_ASSERT(exited_with(end_of(pid), SUBLET_EXIT_LEFT));
      const sublet_status& page = pool.page();
      CPPUNIT_ASSERT_EQUAL(std::uint32_t{SUBLET_STATUS_MAGIC}, page.magic);
      CPPUNIT_ASSERT_EQUAL(std::uint32_t{SUBLET_STATUS_VERSION}, page.version);
      CPPUNIT_ASSERT_EQUAL(1u, page.left);
      CPPUNIT_ASSERT_EQUAL(round, page.generation);
      CPPUNIT_ASSERT_EQUAL(round - 1, page.resumed_generation);
      CPPUNIT_ASSERT_EQUAL(1u, page.wants_seen);
      CPPUNIT_ASSERT_EQUAL(1u, page.leave_seen);
      CPPUNIT_ASSERT_EQUAL(0u, page.save_failed_errno);
      CPPUNIT_ASSERT_EQUAL(round == 1 ? -1 : start_ppm, page.resumed_progress_ppm);
      CPPUNIT_ASSERT(page.saved_boot_ns > 0 && page.save_ns > 0);
      CPPUNIT_ASSERT_EQUAL(std::uint64_t{128 + 64 + 8}, page.checkpoint_bytes);
      unsetenv("SUBLET_STATUS");
      const std::uint64_t step = resumed_step();
      setenv("SUBLET_STATUS", (pool.folder() / "status").c_str(), 1);
      CPPUNIT_ASSERT(step > before);
      before = step;
    }
  }

  // The program is far from its next safe point; only SIGTERM counts, and no longer after
  // finish.
  void the_handler_itself_counts_the_request() {
    Pool pool;
    const int end = end_of(start_child([&] {
      sublet::Checkpoint checkpoint("counter", 1);
      checkpoint.start();
      if (pool.page().leave_seen != 0) return 1;
      raise(SIGUSR1);
      if (pool.page().leave_seen != 0) return 2;
      raise(SIGTERM);
      if (pool.page().leave_seen != 1) return 3;
      checkpoint.finish();
      signal(SIGTERM, SIG_IGN);
      raise(SIGTERM);
      return pool.page().leave_seen == 1 ? 0 : 4;
    }));
    CPPUNIT_ASSERT_EQUAL(0, end);
    CPPUNIT_ASSERT_EQUAL(0u, pool.page().wants_seen);
  }

  // It counts a step before each point.
  void a_rehearsal_leaves_at_a_point() {
    Pool pool;
    for (const char* point : {"3", "4"}) {
      setenv("SUBLET_CHECKPOINT_STOP_AT", point, 1);
      const pid_t pid = start_child([] { return count_for_ever(); });
      CPPUNIT_ASSERT(exited_with(end_of(pid), SUBLET_EXIT_LEFT));
      CPPUNIT_ASSERT_EQUAL(std::uint64_t(point[0] - '0'), pool.page().points);
      CPPUNIT_ASSERT_EQUAL(1u, pool.page().left);
    }
    unsetenv("SUBLET_CHECKPOINT_STOP_AT");
    unsetenv("SUBLET_STATUS");
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{7}, resumed_step());
  }

  void sigusr1_saves_and_goes_on() {
    Pool pool;
    const pid_t pid = start_child([] { return count_for_ever(); });
    CPPUNIT_ASSERT(wait_for([&] { return pool.aware(); }));
    for (std::uint64_t i = 1; i <= 3; ++i) {
      kill(pid, SIGUSR1);
      CPPUNIT_ASSERT(wait_for([&] { return pool.generation() == i; }));
      CPPUNIT_ASSERT_EQUAL(static_cast<std::uint32_t>(i), pool.page().wants_seen);
      const std::int32_t ppm = pool.page().progress_ppm;
      CPPUNIT_ASSERT(wait_for([&] { return pool.page().progress_ppm > ppm; }));
    }
    CPPUNIT_ASSERT_EQUAL(0u, pool.page().left);
    kill(pid, SIGTERM);
    CPPUNIT_ASSERT(exited_with(end_of(pid), SUBLET_EXIT_LEFT));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{4}, pool.generation());
  }

  void the_program_may_leave_by_itself() {
    Pool pool;
    const pid_t pid = start_child([] { return count_for_ever({nullptr, 0, 1}); });
    CPPUNIT_ASSERT(wait_for([&] { return pool.has_worked(); }));
    kill(pid, SIGTERM);
    CPPUNIT_ASSERT(exited_with(end_of(pid), 7));
    CPPUNIT_ASSERT_EQUAL(1u, pool.page().left);
    CPPUNIT_ASSERT(resumed_step() > 0);
  }

  void a_request_during_a_save_is_answered_by_that_save() {
    Pool pool;
    const int end = end_of(start_child([] {
      sublet::Checkpoint checkpoint("counter", 1);
      checkpoint.callbacks(
          "empty", [](sublet::CheckpointStream&) { raise(SIGTERM); },
          [](sublet::CheckpointStream&) {});
      checkpoint.start();
      raise(SIGUSR1);
      checkpoint.point();
      return 1;
    }));
    CPPUNIT_ASSERT(exited_with(end, SUBLET_EXIT_LEFT));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{1}, pool.generation());
    CPPUNIT_ASSERT_EQUAL(2u, pool.page().wants_seen);
  }

  void leaves_even_when_the_save_fails() {
    Pool pool;
    const pid_t pid = start_child([] {
      QuietStderr quiet;
      const rlimit limit{100, 100};
      setrlimit(RLIMIT_FSIZE, &limit);
      return count_for_ever();
    });
    CPPUNIT_ASSERT(wait_for([&] { return pool.aware(); }));
    kill(pid, SIGUSR1);
    CPPUNIT_ASSERT(wait_for([&] { return pool.page().save_failed_errno == EFBIG; }));
    const std::int32_t ppm = pool.page().progress_ppm;
    CPPUNIT_ASSERT(wait_for([&] { return pool.page().progress_ppm > ppm; }));  // it continues
    kill(pid, SIGTERM);
    CPPUNIT_ASSERT(exited_with(end_of(pid), SUBLET_EXIT_LEFT));
    CPPUNIT_ASSERT_EQUAL(1u, pool.page().left);
    CPPUNIT_ASSERT_EQUAL(static_cast<std::uint32_t>(EFBIG), pool.page().save_failed_errno);
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{0}, pool.generation());
  }

  void saves_periodically() {
    Pool pool;
    setenv("SUBLET_CHECKPOINT_PERIOD", "1", 1);
    const pid_t pid = start_child([] { return count_for_ever({nullptr, 100000, 0}); });
    CPPUNIT_ASSERT(wait_for([&] { return pool.generation() >= 2; }));
    CPPUNIT_ASSERT_EQUAL(0u, pool.page().wants_seen);
    kill(pid, SIGTERM);
    CPPUNIT_ASSERT(exited_with(end_of(pid), SUBLET_EXIT_LEFT));
  }

  // However rare the points are: the timer tells, no point counts.
  void a_due_save_waits_for_the_next_point() {
    Pool pool;
    setenv("SUBLET_CHECKPOINT_PERIOD", "1", 1);
    const int end = end_of(start_child([] {
      const Handle handle;
      sublet_checkpoint_point(handle.c);
      if (sublet_checkpoint_generation(handle.c) != 0) return 1;
      if (!wait_for([&] { return handle.asks(); })) return 2;
      sublet_checkpoint_point(handle.c);
      return sublet_checkpoint_generation(handle.c) == 1 && !handle.asks() ? 0 : 3;
    }));
    CPPUNIT_ASSERT_EQUAL(0, end);
    CPPUNIT_ASSERT_EQUAL(0u, pool.page().wants_seen);
  }

  void each_save_starts_the_period_anew() {
    Pool pool;
    setenv("SUBLET_CHECKPOINT_PERIOD", "1", 1);
    const int end = end_of(start_child([] {
      const Handle handle;
      if (!wait_for([&] { return handle.asks(); })) return 1;
      sublet_checkpoint_save(handle.c);  // instead of the one that is due
      sublet_checkpoint_point(handle.c);
      if (sublet_checkpoint_generation(handle.c) != 1) return 2;
      return wait_for([&] { return handle.asks(); }) ? 0 : 3;
    }));
    CPPUNIT_ASSERT_EQUAL(0, end);
  }

  void never_means_no_timer() {
    Pool pool;
    const int end = end_of(start_child([] {
      const auto timers = [] { return read_file("/proc/self/timers"); };
      {
        const Handle handle;
        if (timers().empty()) return 1;
      }
      if (!timers().empty()) return 2;  // close deletes it
      setenv("SUBLET_CHECKPOINT_PERIOD", "0", 1);
      const Handle handle;
      return timers().empty() ? 0 : 3;
    }));
    CPPUNIT_ASSERT_EQUAL(0, end);
  }

  void a_request_can_be_waited_for() {
    Pool pool;
    setenv("SUBLET_CHECKPOINT_PERIOD", "1", 1);
    const int end = end_of(start_child([] {
      const Handle handle;
      const int fd = sublet_checkpoint_descriptor(handle.c);
      if (fd < 0 || fcntl(fd, F_GETFD) != FD_CLOEXEC) return 1;
      if (readable(fd) || sublet_checkpoint_wanted(handle.c)) return 2;
      raise(SIGUSR1);
      if (!readable(fd) || !sublet_checkpoint_wanted(handle.c)) return 3;
      sublet_checkpoint_point(handle.c);
      if (readable(fd) || sublet_checkpoint_wanted(handle.c)) return 4;
      // The same when a periodic save is due.
      if (!wait_for([&] { return readable(fd); })) return 5;
      if (!sublet_checkpoint_wanted(handle.c)) return 6;
      sublet_checkpoint_point(handle.c);
      return sublet_checkpoint_generation(handle.c) == 2 && !readable(fd) ? 0 : 7;
    }));
    CPPUNIT_ASSERT_EQUAL(0, end);
  }

  void an_earlier_request_is_not_missed() {
    Pool pool;
    const int end = end_of(start_child([] {
      const Handle handle;
      raise(SIGUSR1);
      return readable(sublet_checkpoint_descriptor(handle.c)) ? 0 : 1;
    }));
    CPPUNIT_ASSERT_EQUAL(0, end);
  }

  void a_program_that_waits_is_woken() {
    Pool pool;
    const pid_t pid = start_child([] {
      sublet::Checkpoint checkpoint("counter", 1);
      checkpoint.start();
      pollfd one{checkpoint.descriptor(), POLLIN, 0};
      for (;;) {
        poll(&one, 1, -1);
        checkpoint.point();
      }
      return 0;
    });
    CPPUNIT_ASSERT(wait_for([&] { return pool.aware(); }));
    kill(pid, SIGUSR1);
    CPPUNIT_ASSERT(wait_for([&] { return pool.generation() == 1; }));
    kill(pid, SIGTERM);
    CPPUNIT_ASSERT(exited_with(end_of(pid), SUBLET_EXIT_LEFT));
  }

  void there_is_no_descriptor_without_a_place_to_save() {
    sublet::Checkpoint checkpoint("counter", 1);
    CPPUNIT_ASSERT_THROW(checkpoint.descriptor(), std::system_error);
    checkpoint.start();
    CPPUNIT_ASSERT_THROW(checkpoint.descriptor(), std::system_error);
    CPPUNIT_ASSERT(!checkpoint.wanted());
  }

  void without_a_pool_sigterm_ends_it() {
    int ready[2];
    CPPUNIT_ASSERT(pipe(ready) == 0);
    const pid_t pid = start_child([&] {
      sublet::Checkpoint checkpoint("counter", 1);
      checkpoint.start();
      if (write(ready[1], "x", 1) != 1) return 1;
      for (;;) checkpoint.point();
    });
    char x;
    CPPUNIT_ASSERT(read(ready[0], &x, 1) == 1);
    kill(pid, SIGTERM);
    const int end = end_of(pid);
    CPPUNIT_ASSERT(WIFSIGNALED(end) && WTERMSIG(end) == SIGTERM);
    close(ready[0]);
    close(ready[1]);
  }

  void late_requests_do_no_harm() {
    Pool pool;
    const int end = end_of(start_child([&] {
      sublet::Checkpoint checkpoint("counter", 1);
      checkpoint.start();
      checkpoint.finish();
      if (pool.aware()) return 1;
      raise(SIGUSR1);
      checkpoint.point();
      raise(SIGTERM);
      return 0;
    }));
    CPPUNIT_ASSERT(WIFSIGNALED(end) && WTERMSIG(end) == SIGTERM);
    CPPUNIT_ASSERT_EQUAL(std::int32_t{1000000}, pool.page().progress_ppm);
  }

  // What it takes is not known yet. What is asked for is done at once.
  void a_large_first_save_is_put_off() {
    Pool pool;
    std::vector<char> large(40'000'000);  // 40 s of a run are a hundred times 0.4 s
    sublet_checkpoint* const c = sublet_checkpoint_open("large", 1);
    sublet_checkpoint_variable(c, "large", large.data(), large.size(), SUBLET_UINT8);
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_NEW}, sublet_checkpoint_start(c, nullptr));
    const auto after = [&](std::uint64_t seconds) {
      c->started_ns -= seconds * 1'000'000'000;
      siginfo_t due = {};
      due.si_code = SI_TIMER;  // as the timer of periodic saves
      CPPUNIT_ASSERT_EQUAL(0l, syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &due));
      CPPUNIT_ASSERT_EQUAL(int{SUBLET_GO_ON}, sublet_checkpoint_point(c));
      return pool.generation();
    };
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{0}, after(30));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{1}, after(10));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{2}, after(0));  // by its cost from now on
    sublet_checkpoint_close(c);
  }

  void says_a_line() {
    Pool pool;
    std::optional<Handle> handle(std::in_place);
    const auto said = [&](const std::string& text) {
      const std::uint32_t before = pool.page().message_count;
      sublet_checkpoint_say(handle->c, text.c_str());
      CPPUNIT_ASSERT_EQUAL((before & ~1u) + 2, pool.page().message_count);
      return std::string(pool.page().message, strnlen(pool.page().message, SUBLET_MESSAGE_BYTES));
    };
    CPPUNIT_ASSERT_EQUAL(std::string("epoch 12: error 0.031"), said("epoch 12: error 0.031"));
    CPPUNIT_ASSERT_EQUAL(std::string("\n"), said("\n"));
    CPPUNIT_ASSERT_EQUAL(std::string(160, 'x'), said(std::string(160, 'x')));
    CPPUNIT_ASSERT_EQUAL(std::string(160, 'x'), said(std::string(161, 'x')));
    // Not in the middle of a character.
    CPPUNIT_ASSERT_EQUAL(std::string(159, 'x'), said(std::string(159, 'x') + "\u00e9"));
    CPPUNIT_ASSERT_EQUAL(std::string(158, 'x'), said(std::string(158, 'x') + "\u20ac"));
    CPPUNIT_ASSERT_EQUAL(std::string(158, 'x') + "\u00e9", said(std::string(158, 'x') + "\u00e9!"));
    CPPUNIT_ASSERT_EQUAL(std::string(157, '\x80'), said(std::string(161, '\x80')));
    // An earlier run was killed in the middle of one.
    handle->c->status->message_count = UINT32_MAX;
    CPPUNIT_ASSERT_EQUAL(std::string("wrapped"), said("wrapped"));
    handle.reset();
    handle.emplace();
    CPPUNIT_ASSERT_EQUAL('\0', pool.page().message[0]);
  }

  void a_bad_status_page_is_done_without() {
    Pool pool;
    write_file(pool.folder() / "short", "too short");
    QuietStderr quiet;
    for (const std::string& path :
         {pool.folder() / "short", pool.folder() / "missing", pool.folder().path()}) {
      setenv("SUBLET_STATUS", path.c_str(), 1);
      sublet::Checkpoint checkpoint("counter", 1);
      checkpoint.start();
      checkpoint.save();
      CPPUNIT_ASSERT(checkpoint.point());
    }
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(SignalsTest);

}  // namespace
