#include "client/machine/speed.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sched.h>

#include <semaphore>
#include <thread>

#include "base/files.h"
#include "base/testing/temporary_folder.h"

namespace sublet::client {
namespace {

constexpr int64_t kMs = 1'000'000;

class SpeedTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SpeedTest);
  CPPUNIT_TEST(the_fastest_piece_counts);
  CPPUNIT_TEST(the_owner_ends_it);
  CPPUNIT_TEST(a_piece_takes_time);
  CPPUNIT_TEST(the_load_is_the_kernels);
  CPPUNIT_TEST(it_is_measured_when_all_is_quiet);
  CPPUNIT_TEST(it_is_measured_again);
  CPPUNIT_TEST(what_was_broken_off_is_tried_again);
  CPPUNIT_TEST(a_test_may_say_it);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder root_;

  // Pieces that take 10 ms, the third half of it.
  struct Pieces {
    int done = 0;
    int64_t next() { return ++done == 3 ? 5 * kMs : 10 * kMs; }
  };
  static constexpr double kSpeed = kPieceOperations / 5e6;

  // A watch of a machine on which a piece takes 20 ms.
  struct Watched {
    std::atomic<bool> away{true};
    std::atomic<int> pieces{0};
    std::atomic<int> scheduling_class{-1};
    std::counting_semaphore<> measured{0};
    SpeedWatch watch;
    explicit Watched(const std::string& root = "")
        : watch(root, {.piece =
                           [this] {
                             ++pieces;
                             scheduling_class = sched_getscheduler(0);
                             return 20 * kMs;
                           },
                       .may_measure = [this] { return away.load(); },
                       .measured = [this] { measured.release(); }}) {}
  };

 public:
  void the_fastest_piece_counts() {
    Pieces pieces;
    CPPUNIT_ASSERT_DOUBLES_EQUAL(
        kSpeed, speed_by([&] { return pieces.next(); }, [] { return true; }), 1e-9);
    CPPUNIT_ASSERT_EQUAL(4, pieces.done);  // 35 ms
  }

  void the_owner_ends_it() {
    Pieces pieces;
    CPPUNIT_ASSERT_EQUAL(0.0,
                         speed_by([&] { return pieces.next(); }, [&] { return pieces.done < 2; }));
    CPPUNIT_ASSERT_EQUAL(2, pieces.done);
  }

  // No machine does 10^12 operations a second on one core, nor this test on one that does 10^6.
  void a_piece_takes_time() {
    const double speed = speed_by(perform_piece, [] { return true; });
    CPPUNIT_ASSERT_MESSAGE(std::to_string(speed), speed > 1e-3 && speed < 1e3);
  }

  void the_load_is_the_kernels() {
    CPPUNIT_ASSERT_EQUAL(0.0, load_average(root_.path()));
    system_files().make_folders(root_ / "proc", 0755);
    system_files().write_atomic(root_ / "proc/loadavg", "1.25 0.50 0.10 2/345 6789\n", 0600);
    CPPUNIT_ASSERT_EQUAL(1.25, load_average(root_.path()));
    system_files().write_atomic(root_ / "proc/loadavg", "nan -1 x\n", 0600);
    CPPUNIT_ASSERT_EQUAL(0.0, load_average(root_.path()));
    CPPUNIT_ASSERT(load_average("") >= 0);
  }

  void it_is_measured_when_all_is_quiet() {
    Watched it;
    it.away = false;
    CPPUNIT_ASSERT_EQUAL(0.0, it.watch.look(0, true));
    it.away = true;
    CPPUNIT_ASSERT_EQUAL(0.0, it.watch.look(1, false));
    CPPUNIT_ASSERT_EQUAL(0, it.pieces.load());
    it.watch.look(2, true);
    it.measured.acquire();
    CPPUNIT_ASSERT_EQUAL(2, it.pieces.load());
    CPPUNIT_ASSERT_EQUAL(SCHED_IDLE, it.scheduling_class.load());
    CPPUNIT_ASSERT_DOUBLES_EQUAL(kPieceOperations / 20e6, it.watch.look(3, false), 1e-9);
  }

  void it_is_measured_again() {
    Watched it;
    it.watch.look(0, true);
    it.measured.acquire();
    it.watch.look(7, true);  // sees the result
    it.watch.look(6 + SpeedWatch::kEveryNs, true);
    CPPUNIT_ASSERT_EQUAL(2, it.pieces.load());
    it.watch.look(7 + SpeedWatch::kEveryNs, true);
    it.measured.acquire();
    CPPUNIT_ASSERT_EQUAL(4, it.pieces.load());
  }

  // The owner is back after the first piece.
  void what_was_broken_off_is_tried_again() {
    std::atomic<int> pieces{0};
    std::atomic<bool> away{true};
    std::counting_semaphore<> refused{0}, measured{0};
    SpeedWatch watch("", {.piece =
                              [&] {
                                if (++pieces == 1) away = false;
                                return 20 * kMs;
                              },
                          .may_measure =
                              [&] {
                                const bool may = away;
                                if (!may) refused.release();
                                return may;
                              },
                          .measured = [&] { measured.release(); }});
    watch.look(0, true);
    refused.acquire();
    CPPUNIT_ASSERT_EQUAL(1, pieces.load());
    CPPUNIT_ASSERT_EQUAL(0.0, watch.look(1, false));
    away = true;
    // Another begins as soon as the thread has ended.
    for (; pieces < 2; std::this_thread::yield()) watch.look(1, true);
    measured.acquire();
    CPPUNIT_ASSERT(watch.look(2, false) > 0);
  }

  void a_test_may_say_it() {
    system_files().write_atomic(root_ / "speed", "2.5\n", 0600);
    Watched it(root_.path());
    CPPUNIT_ASSERT_EQUAL(2.5, it.watch.look(0, true));
    CPPUNIT_ASSERT_EQUAL(0, it.pieces.load());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(SpeedTest);
}  // namespace
}  // namespace sublet::client
