#include "server/question_gate.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>

#include "server/refusal.h"

namespace sublet::server {
namespace {

// A question that is under way until it is let go.
class Held {
 public:
  Held(QuestionGate& gate, const std::string& user)
      : asked_(std::async(std::launch::async, [this, &gate, user] {
          gate.ask(user, [this] {
            begun_.set_value();
            end_.get_future().wait();
          });
        })) {}
  ~Held() {
    if (asked_.valid()) finish();
  }
  Held(const Held&) = delete;
  void await_begin() { begun_.get_future().wait(); }
  void let_go() { end_.set_value(); }
  void finish() {
    let_go();
    asked_.get();
  }

 private:
  std::promise<void> begun_, end_;
  std::future<void> asked_;
};

class QuestionGateTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(QuestionGateTest);
  CPPUNIT_TEST(answers_and_exceptions_come_back);
  CPPUNIT_TEST(users_take_turns);
  CPPUNIT_TEST(one_of_each_user_at_a_time);
  CPPUNIT_TEST(not_more_at_once);
  CPPUNIT_TEST(too_many_of_one_user);
  CPPUNIT_TEST(a_user_rests_after_each_answer);
  CPPUNIT_TEST(its_threads_have_a_low_priority);
  CPPUNIT_TEST(what_holds_for_each);
  CPPUNIT_TEST(waiting_questions_are_refused_at_the_end);
  CPPUNIT_TEST_SUITE_END();

  static std::string code_of(const std::function<void()>& f) {
    try {
      f();
    } catch (const Refusal& refusal) {
      return refusal.code;
    }
    return "";
  }

  // Asks in this order while the gate is held, and returns the order in which they are answered.
  static std::vector<std::string> answered(QuestionGate& gate, Held& held,
                                           const std::vector<std::string>& names) {
    std::mutex mutex;
    std::vector<std::string> order;
    std::vector<std::future<void>> asked;
    for (const std::string& name : names) {
      const std::string user = name.substr(0, 1);
      const size_t waiting = gate.waiting();
      asked.push_back(std::async(std::launch::async, [&, name, user] {
        gate.ask(user, [&] {
          std::lock_guard lock(mutex);
          order.push_back(name);
        });
      }));
      while (gate.waiting() == waiting) std::this_thread::yield();
    }
    held.finish();
    for (auto& one : asked) one.get();
    return order;
  }

  void answers_and_exceptions_come_back() {
    QuestionGate gate({});
    CPPUNIT_ASSERT_EQUAL(7, gate.ask("ann", [] { return 7; }));
    CPPUNIT_ASSERT_EQUAL(
        std::string("job.unknown"), code_of([&] {
          gate.ask("ann", [] { throw Refusal(Refusal::Kind::kNotFound, "job.unknown", "no"); });
        }));
    CPPUNIT_ASSERT_EQUAL(8, gate.ask("ann", [] { return 8; }));
  }

  void users_take_turns() {
    QuestionGate gate({.at_once = 1});
    Held held(gate, "x");
    held.await_begin();
    const std::vector<std::string> order =
        answered(gate, held, {"a1", "a2", "a3", "b1", "a4", "b2", "c1"});
    const std::vector<std::string> expected = {"a1", "b1", "c1", "a2", "b2", "a3", "a4"};
    CPPUNIT_ASSERT(order == expected);
  }

  // So that another user's need not wait for them, however long they take.
  void one_of_each_user_at_a_time() {
    QuestionGate gate({.at_once = 2});
    Held one(gate, "ann");
    one.await_begin();
    Held two(gate, "ann");
    while (gate.waiting() == 0) std::this_thread::yield();
    CPPUNIT_ASSERT_EQUAL(7, gate.ask("bob", [] { return 7; }));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, gate.waiting());
    one.finish();
    two.await_begin();
  }

  void not_more_at_once() {
    QuestionGate gate({.at_once = 2});
    std::atomic<int> now{0}, most{0};
    std::vector<std::future<void>> asked;
    for (int i = 0; i < 100; ++i)
      asked.push_back(std::async(std::launch::async, [&, i] {
        gate.ask(std::to_string(i), [&] {
          const int mine = ++now;
          for (int before = most; before < mine && !most.compare_exchange_weak(before, mine);) {
          }
          --now;
        });
      }));
    for (auto& one : asked) one.get();
    CPPUNIT_ASSERT(most >= 1 && most <= 2);
  }

  void too_many_of_one_user() {
    QuestionGate gate({.at_once = 1, .waiting_per_user = 2});
    Held held(gate, "x");
    held.await_begin();
    std::vector<std::future<int>> asked;
    for (const char* user : {"ann", "ann", "bob"}) {
      const size_t waiting = gate.waiting();
      asked.push_back(
          std::async(std::launch::async, [&, user] { return gate.ask(user, [] { return 1; }); }));
      while (gate.waiting() == waiting) std::this_thread::yield();
    }
    CPPUNIT_ASSERT_EQUAL(std::string("questions.too_many"),
                         code_of([&] { gate.ask("ann", [] {}); }));
    held.finish();
    for (auto& one : asked) CPPUNIT_ASSERT_EQUAL(1, one.get());
  }

  void a_user_rests_after_each_answer() {
    using std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kRest(30);
    QuestionGate gate({.least_rest = kRest, .longest_rest = kRest});
    const auto now = [] { return steady_clock::now(); };
    const auto first = gate.ask("ann", now);
    gate.ask("bob", now);
    CPPUNIT_ASSERT(gate.ask("ann", now) - first >= kRest);
    // The end waits for nobody who rests.
    QuestionGate other(
        {.least_rest = std::chrono::hours(1), .longest_rest = std::chrono::hours(1)});
    other.ask("ann", [] {});
    other.stop();
  }

  void its_threads_have_a_low_priority() {
    QuestionGate gate({});
    const int mine = getpriority(PRIO_PROCESS, 0);
    CPPUNIT_ASSERT(gate.ask("ann", [] { return getpriority(PRIO_PROCESS, 0); }) >
                   std::min(mine, 9));
    CPPUNIT_ASSERT_EQUAL(mine, getpriority(PRIO_PROCESS, 0));
  }

  void what_holds_for_each() {
    std::atomic<int> begun{0}, run{0};
    QuestionGate::Settings settings{.at_once = 1};
    settings.begin = [&] { ++begun; };
    settings.run = [&](const std::function<void()>& question) {
      ++run;
      question();
    };
    QuestionGate gate(settings);
    for (int i = 0; i < 3; ++i) CPPUNIT_ASSERT_EQUAL(i, gate.ask("ann", [&] { return i; }));
    CPPUNIT_ASSERT_EQUAL(1, begun.load());
    CPPUNIT_ASSERT_EQUAL(3, run.load());
  }

  void waiting_questions_are_refused_at_the_end() {
    QuestionGate gate({.at_once = 1});
    Held held(gate, "x");
    held.await_begin();
    auto waiting =
        std::async(std::launch::async, [&] { return code_of([&] { gate.ask("ann", [] {}); }); });
    while (gate.waiting() == 0) std::this_thread::yield();
    auto stopped = std::async(std::launch::async, [&] { gate.stop(); });
    CPPUNIT_ASSERT_EQUAL(std::string("server.stopping"), waiting.get());
    held.finish();
    stopped.get();
    CPPUNIT_ASSERT_EQUAL(std::string("server.stopping"), code_of([&] { gate.ask("ann", [] {}); }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(QuestionGateTest);

}  // namespace
}  // namespace sublet::server
