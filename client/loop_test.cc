#include "client/loop.h"

#include <cppunit/extensions/HelperMacros.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace sublet::client {
namespace {

class LoopTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LoopTest);
  CPPUNIT_TEST(any_thread_may_post_and_stop);
  CPPUNIT_TEST(descriptors_and_the_tick_are_heard);
  CPPUNIT_TEST_SUITE_END();

  void any_thread_may_post_and_stop() {
    constexpr int kPosters = 4, kEach = 500;
    Loop loop;
    int ran = 0;  // used by the loop's thread only
    std::vector<std::thread> posters;
    for (int i = 0; i < kPosters; ++i)
      posters.emplace_back([&] {
        for (int j = 0; j < kEach; ++j)
          loop.post([&] {
            if (++ran == kPosters * kEach) std::thread([&] { loop.stop(); }).join();
          });
      });
    loop.run();
    for (auto& poster : posters) poster.join();
    CPPUNIT_ASSERT_EQUAL(kPosters * kEach, ran);
  }

  void descriptors_and_the_tick_are_heard() {
    Loop loop;
    int ends[2];
    CPPUNIT_ASSERT_EQUAL(0, pipe(ends));
    const UniqueFd reader(ends[0]), writer(ends[1]);
    char heard = 0;
    bool ticked = false;
    loop.watch(reader.get(), [&] {
      CPPUNIT_ASSERT_EQUAL(ssize_t{1}, read(reader.get(), &heard, 1));
      loop.unwatch(reader.get());  // from within it
      loop.wake_at(system_clock().boot_ns() + 1'000'000);
    });
    loop.on_tick([&] {
      ticked = true;
      loop.stop();
    });
    std::thread other([&] { CPPUNIT_ASSERT_EQUAL(ssize_t{1}, write(writer.get(), "x", 1)); });
    loop.run();
    other.join();
    CPPUNIT_ASSERT_EQUAL('x', heard);
    CPPUNIT_ASSERT(ticked);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(LoopTest);

}  // namespace
}  // namespace sublet::client
