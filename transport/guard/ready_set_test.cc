#include "transport/guard/ready_set.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace sublet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kDeadline{20};

// One end waits in the set, the other is the peer's.
struct Pair : ReadySet::Member {
  Pair() {
    int ends[2];
    CPPUNIT_ASSERT_EQUAL(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    own.reset(ends[0]);
    peer.reset(ends[1]);
  }
  void say(char word) { CPPUNIT_ASSERT_EQUAL(ssize_t{1}, ::write(peer.get(), &word, 1)); }
  void hear() {
    char word;
    CPPUNIT_ASSERT_EQUAL(ssize_t{1}, ::read(own.get(), &word, 1));
  }

  UniqueFd own;
  UniqueFd peer;
  std::atomic<int> announced{0};
};

void count(ReadySet::Member& member) { ++static_cast<Pair&>(member).announced; }

bool eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + kDeadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

bool becomes(const std::atomic<int>& value, int expected) {
  return eventually([&] { return value == expected; });
}

}  // namespace

class ReadySetTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ReadySetTest);
  CPPUNIT_TEST(each_wait_is_announced_once);
  CPPUNIT_TEST(peer_that_closes_is_announced);
  CPPUNIT_TEST(announced_at_once);
  CPPUNIT_TEST(what_cannot_be_watched_is_announced);
  CPPUNIT_TEST(forgotten_is_not_announced);
  CPPUNIT_TEST(forget_waits_for_the_call);
  CPPUNIT_TEST(settles_when_the_ended_are_announced);
  CPPUNIT_TEST(no_call_after_stop);
  CPPUNIT_TEST(many_threads);
  CPPUNIT_TEST_SUITE_END();

 public:
  void each_wait_is_announced_once() {
    Pair pair;
    ReadySet set;
    set.start(count);
    pair.say('a');
    set.wait(pair, pair.own.get());
    CPPUNIT_ASSERT(becomes(pair.announced, 1));
    pair.say('b');  // nobody waits: not announced, ...
    Pair other;
    set.wait(other, other.own.get());
    other.say('c');
    CPPUNIT_ASSERT(becomes(other.announced, 1));
    CPPUNIT_ASSERT_EQUAL(1, pair.announced.load());
    // ... but as soon as it waits again.
    set.wait(pair, pair.own.get());
    CPPUNIT_ASSERT(becomes(pair.announced, 2));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, set.size());
    set.forget(pair);
    set.forget(other);
    CPPUNIT_ASSERT_EQUAL(size_t{0}, set.size());
  }

  void peer_that_closes_is_announced() {
    Pair pair;
    ReadySet set;
    set.start(count);
    set.wait(pair, pair.own.get());
    pair.peer.reset();
    CPPUNIT_ASSERT(becomes(pair.announced, 1));
    set.forget(pair);
  }

  void announced_at_once() {
    Pair pair;
    ReadySet set;
    set.start(count);
    for (int i = 1; i <= 1000; ++i) {
      set.wait(pair, pair.own.get(), true);
      CPPUNIT_ASSERT(becomes(pair.announced, i));
    }
    set.forget(pair);
  }

  void what_cannot_be_watched_is_announced() {
    Pair pair;
    ReadySet set;
    set.start(count);
    set.wait(pair, -1);
    CPPUNIT_ASSERT(becomes(pair.announced, 1));
    set.forget(pair);
  }

  void forgotten_is_not_announced() {
    Pair pair, other;
    ReadySet set;
    pair.say('a');
    other.say('b');
    set.wait(pair, pair.own.get());
    set.wait(other, other.own.get());
    set.forget(pair);
    set.start(count);
    CPPUNIT_ASSERT(becomes(other.announced, 1));
    CPPUNIT_ASSERT_EQUAL(0, pair.announced.load());
    set.forget(other);
  }

  void forget_waits_for_the_call() {
    ReadySet set;
    std::atomic<int> begun{0};
    std::promise<void> go_on;
    std::atomic<bool> freed{false};
    set.start([&](ReadySet::Member& member) {
      ++begun;
      go_on.get_future().wait();
      CPPUNIT_ASSERT(!freed);
      count(member);
    });
    auto pair = std::make_unique<Pair>();
    set.wait(*pair, pair->own.get(), true);
    CPPUNIT_ASSERT(becomes(begun, 1));
    std::thread forgets([&] {
      set.forget(*pair);
      freed = true;
      pair.reset();
    });
    // Out of the set already, while the call for it is in progress.
    const bool out = eventually([&] { return set.size() == 0; });
    const bool freed_early = freed;
    go_on.set_value();
    forgets.join();
    CPPUNIT_ASSERT(out && !freed_early);
    CPPUNIT_ASSERT(freed);
  }

  void settles_when_the_ended_are_announced() {
    constexpr size_t kMany = 200;
    std::vector<std::unique_ptr<Pair>> pairs;
    ReadySet set;
    for (size_t i = 0; i < kMany; ++i) {
      pairs.push_back(std::make_unique<Pair>());
      set.wait(*pairs.back(), pairs.back()->own.get());
    }
    CPPUNIT_ASSERT(set.settle(milliseconds(0)));
    for (const auto& pair : pairs) {
      CPPUNIT_ASSERT_EQUAL(0, ::shutdown(pair->own.get(), SHUT_RDWR));
      set.ended(*pair);
    }
    CPPUNIT_ASSERT(!set.settle(milliseconds(0)));
    set.forget(*pairs[0]);
    set.start(count);
    CPPUNIT_ASSERT(set.settle(kDeadline));
    set.stop();
    CPPUNIT_ASSERT_EQUAL(0, pairs[0]->announced.load());
    for (size_t i = 1; i < kMany; ++i) CPPUNIT_ASSERT_EQUAL(1, pairs[i]->announced.load());
    // One that waits again counts again.
    set.wait(*pairs[1], pairs[1]->own.get());
    CPPUNIT_ASSERT(!set.settle(milliseconds(0)));
    for (const auto& pair : pairs) set.forget(*pair);
    CPPUNIT_ASSERT(set.settle(milliseconds(0)));
  }

  void no_call_after_stop() {
    Pair pair;
    ReadySet set;
    for (int life = 1; life <= 20; ++life) {
      set.start(count);
      set.wait(pair, pair.own.get(), true);
      CPPUNIT_ASSERT(becomes(pair.announced, life));
      set.stop();
      set.wait(pair, pair.own.get());
    }
    pair.say('a');
    CPPUNIT_ASSERT_EQUAL(20, pair.announced.load());
    set.forget(pair);
  }

  // As connections do it: announced by the set, served by others, gone at any time.
  void many_threads() {
    constexpr int kThreads = 4, kRounds = 300;
    ReadySet set;
    set.start(count);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&set, t] {
        for (int i = 0; i < kRounds; ++i) {
          Pair pair;
          set.wait(pair, pair.own.get());
          if (i % 3 == t % 3) {
            ::shutdown(pair.own.get(), SHUT_RDWR);
            set.ended(pair);
          } else if (i % 3 == (t + 1) % 3) {
            pair.say('x');
            CPPUNIT_ASSERT(becomes(pair.announced, 1));
            pair.hear();
            set.wait(pair, pair.own.get(), i % 2 == 0);
          }
          set.forget(pair);
        }
      });
    for (auto& thread : threads) thread.join();
    CPPUNIT_ASSERT(set.settle(milliseconds(0)));
    CPPUNIT_ASSERT_EQUAL(size_t{0}, set.size());
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(ReadySetTest);

}  // namespace sublet
