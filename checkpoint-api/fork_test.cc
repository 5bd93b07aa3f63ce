// What a child process may do to its parent's checkpoint: nothing. Each test's parent is
// itself a child of the test, so that its signals are its own.
#include <cppunit/extensions/HelperMacros.h>

#include <cerrno>
#include <cstring>

#include "checkpoint-api/pool_testing.h"

namespace {
using namespace sublet::testing;

void wait_for_ever() {
  for (;;) pause();
}

class ForkTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ForkTest);
  CPPUNIT_TEST(a_child_changes_nothing);
  CPPUNIT_TEST(a_child_cannot_start);
  CPPUNIT_TEST(signals_end_a_child_as_before_start);
  CPPUNIT_TEST(a_child_without_fork_handlers_ends_too);
  CPPUNIT_TEST(the_parent_goes_on);
  CPPUNIT_TEST_SUITE_END();

 public:
  void a_child_changes_nothing() {
    Pool pool;
    CPPUNIT_ASSERT_EQUAL(0, end_of(start_child([&] {
                           const Handle handle;
                           sublet_checkpoint_progress(handle.c, 1, 2);
                           sublet_checkpoint_save(handle.c);
                           raise(SIGUSR1);  // a request that is the parent's
                           const sublet_status before = pool.page();
                           const std::string file = read_file(pool.folder() / "checkpoint");
                           const int end = end_of(start_child([&] {
                             sublet_checkpoint_progress(handle.c, 3, 4);
                             if (sublet_checkpoint_point(handle.c) != SUBLET_GO_ON) return 1;
                             if (sublet_checkpoint_wanted(handle.c)) return 2;
                             if (sublet_checkpoint_save(handle.c) != ECHILD) return 3;
                             if (sublet_checkpoint_descriptor(handle.c) != -1 || errno != ECHILD)
                               return 4;
                             raise(SIGUSR1);
                             sublet_checkpoint_finish(handle.c);
                             sublet_checkpoint_close(handle.c);
                             return 0;
                           }));
                           if (end != 0) return WEXITSTATUS(end);
                           if (memcmp(&before, &pool.page(), sizeof before) != 0) return 10;
                           if (read_file(pool.folder() / "checkpoint") != file) return 11;
                           return sublet_checkpoint_wanted(handle.c) ? 0 : 12;
                         })));
  }

  void a_child_cannot_start() {
    Pool pool;
    CPPUNIT_ASSERT_EQUAL(0, end_of(start_child([] {
                           const Handle handle;
                           return WEXITSTATUS(end_of(start_child([] {
                             QuietStderr quiet;
                             sublet_checkpoint* c = sublet_checkpoint_open("counter", 1);
                             const int result = sublet_checkpoint_start(c, nullptr);
                             sublet_checkpoint_close(c);
                             return result == SUBLET_REFUSED ? 0 : 1;
                           })));
                         })));
  }

  void signals_end_a_child_as_before_start() {
    Pool pool;
    CPPUNIT_ASSERT_EQUAL(0, end_of(start_child([&] {
                           const Handle handle;
                           const pid_t child = start_child([] {
                             wait_for_ever();
                             return 1;
                           });
                           kill(child, SIGTERM);
                           const int end = end_of(child);
                           if (!WIFSIGNALED(end) || WTERMSIG(end) != SIGTERM) return 1;
                           return pool.page().leave_seen == 0 && !handle.asks() ? 0 : 2;
                         })));
  }

  // _Fork runs no handlers after it: the library's signal handler is still installed there.
  void a_child_without_fork_handlers_ends_too() {
    Pool pool;
    CPPUNIT_ASSERT_EQUAL(0, end_of(start_child([&] {
                           const Handle handle;
                           const pid_t child = _Fork();
                           if (child == 0) {
                             raise(SIGUSR1);
                             if (sublet_checkpoint_save(handle.c) != ECHILD) _exit(1);
                             wait_for_ever();
                           }
                           kill(child, SIGTERM);
                           const int end = end_of(child);
                           if (!WIFSIGNALED(end) || WTERMSIG(end) != SIGTERM) return 1;
                           if (pool.page().leave_seen != 0 || handle.asks()) return 2;
                           return sublet_checkpoint_generation(handle.c) == 0 ? 0 : 3;
                         })));
  }

  void the_parent_goes_on() {
    Pool pool;
    const int end = end_of(start_child([] {
      const Handle handle;
      if (end_of(start_child([] { return 0; })) != 0) return 1;
      raise(SIGTERM);
      sublet_checkpoint_point(handle.c);
      return 2;
    }));
    CPPUNIT_ASSERT(exited_with(end, SUBLET_EXIT_LEFT));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{1}, pool.generation());
    CPPUNIT_ASSERT_EQUAL(1u, pool.page().leave_seen);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(ForkTest);

}  // namespace
