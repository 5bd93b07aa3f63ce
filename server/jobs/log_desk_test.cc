#include "server/jobs/log_desk.h"

#include <cppunit/extensions/HelperMacros.h>

#include <atomic>
#include <thread>
#include <vector>

namespace sublet::server {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Kind = TextAnswer::Kind;

constexpr auto kLong = 60s;  // a deadline that a passing test never reaches

template <typename Condition>
bool eventually(Condition condition) {
  const auto end = Clock::now() + kLong;
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

class LogDeskTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LogDeskTest);
  CPPUNIT_TEST(text_ends_the_wait);
  CPPUNIT_TEST(one_answer_at_least);
  CPPUNIT_TEST(silence_is_asked_again);
  CPPUNIT_TEST(askers_share_a_question);
  CPPUNIT_TEST(an_answer_under_way_is_no_answer_to_a_newcomer);
  CPPUNIT_TEST(other_octets_are_another_question);
  CPPUNIT_TEST(failures_end_the_wait);
  CPPUNIT_TEST(no_answer_in_time_is_a_failure);
  CPPUNIT_TEST(places_are_bounded);
  CPPUNIT_TEST(unanswered_questions_take_places);
  CPPUNIT_TEST(stop_lets_everybody_go);
  CPPUNIT_TEST_SUITE_END();

  struct Put {
    TextRequest request;
    std::function<void(TextAnswer)> answered;
  };
  std::mutex mutex_;
  std::vector<Put> puts_;

  LogDesk::Ask keep() {
    return [this](auto, const TextRequest& request, auto answered) {
      std::lock_guard lock(mutex_);
      puts_.push_back({request, std::move(answered)});
    };
  }
  size_t puts() {
    std::lock_guard lock(mutex_);
    return puts_.size();
  }
  void answer(size_t which, const TextAnswer& with) {
    std::function<void(TextAnswer)> answered;
    {
      std::lock_guard lock(mutex_);
      answered = puts_.at(which).answered;
    }
    answered(with);
  }

  static LogDeskSettings quick() {
    LogDeskSettings settings;
    settings.first_pause = settings.longest_pause = 1ms;
    settings.answer_within = kLong;
    return settings;
  }
  static LogDesk::Ask always(const TextAnswer& what) {
    return [what](auto, const auto&, auto answered) { answered(what); };
  }
  static TextRequest request(uint64_t offset = 0) { return {{7, 1}, FileKind::kStdout, offset}; }

  struct Asker {
    Asker(LogDesk& desk, uint64_t offset, LogDesk::TimePoint until)
        : thread([this, &desk, offset, until] {
            result = desk.ask(1, request(offset), until);
            done = true;
          }) {}
    ~Asker() { thread.join(); }
    TextAnswer result;
    std::atomic<bool> done{false};
    std::thread thread;
  };

 public:
  void setUp() override { puts_.clear(); }

 private:
  void text_ends_the_wait() {
    LogDesk desk(quick(), always({Kind::kText, "hello"}));
    CPPUNIT_ASSERT_EQUAL(std::string("hello"), desk.ask(1, request(), Clock::now() + kLong).text);
  }

  void one_answer_at_least() {
    LogDesk desk(quick(), always({Kind::kText, "late"}));
    CPPUNIT_ASSERT_EQUAL(std::string("late"), desk.ask(1, request(), Clock::now() - 1s).text);
  }

  void silence_is_asked_again() {
    std::atomic<int> asked{0};
    LogDesk desk(quick(), [&](auto, const auto&, auto answered) {
      answered({Kind::kText, ++asked < 5 ? "" : "at last"});
    });
    CPPUNIT_ASSERT_EQUAL(std::string("at last"), desk.ask(1, request(), Clock::now() + kLong).text);
    CPPUNIT_ASSERT_EQUAL(5, asked.load());
    LogDesk mute(quick(), always({Kind::kText, ""}));
    const auto until = Clock::now() + 20ms;
    CPPUNIT_ASSERT(mute.ask(1, request(), until).text.empty());
    CPPUNIT_ASSERT(Clock::now() >= until);
  }

  void askers_share_a_question() {
    LogDesk desk(quick(), keep());
    Asker first(desk, 5, Clock::now() + kLong);
    CPPUNIT_ASSERT(eventually([&] { return puts() == 1; }));
    Asker second(desk, 5, Clock::now() + kLong), third(desk, 5, Clock::now() + kLong);
    // They would have sent requests of their own before they wait.
    CPPUNIT_ASSERT(eventually([&] { return desk.waiting() == 3; }));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, puts());
    answer(0, {Kind::kText, ""});
    CPPUNIT_ASSERT(eventually([&] { return puts() == 2; }));
    answer(1, {Kind::kText, "both"});
    CPPUNIT_ASSERT(eventually([&] { return first.done && second.done && third.done; }));
    CPPUNIT_ASSERT_EQUAL(std::string("both"), first.result.text);
    CPPUNIT_ASSERT_EQUAL(std::string("both"), third.result.text);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, puts());
  }

  void an_answer_under_way_is_no_answer_to_a_newcomer() {
    LogDesk desk(quick(), keep());
    Asker first(desk, 5, Clock::now());
    CPPUNIT_ASSERT(eventually([&] { return puts() == 1; }));
    Asker second(desk, 5, Clock::now());
    CPPUNIT_ASSERT(eventually([&] { return desk.waiting() == 2; }));
    answer(0, {Kind::kText, ""});
    CPPUNIT_ASSERT(eventually([&] { return first.done.load(); }));
    CPPUNIT_ASSERT(eventually([&] { return puts() == 2; }));
    CPPUNIT_ASSERT(!second.done);
    answer(1, {Kind::kText, "news"});
    CPPUNIT_ASSERT(eventually([&] { return second.done.load(); }));
    CPPUNIT_ASSERT_EQUAL(std::string("news"), second.result.text);
  }

  void other_octets_are_another_question() {
    LogDesk desk(quick(), keep());
    Asker first(desk, 5, Clock::now() + kLong), second(desk, 6, Clock::now() + kLong);
    CPPUNIT_ASSERT(eventually([&] { return puts() == 2; }));
    for (size_t i : {0, 1})
      answer(i, {Kind::kText, "from " + std::to_string(puts_.at(i).request.offset)});
    CPPUNIT_ASSERT(eventually([&] { return first.done && second.done; }));
    CPPUNIT_ASSERT_EQUAL(std::string("from 5"), first.result.text);
    CPPUNIT_ASSERT_EQUAL(std::string("from 6"), second.result.text);
  }

  void failures_end_the_wait() {
    for (Kind kind : {Kind::kFailed, Kind::kNoAttempt}) {
      LogDesk desk(quick(), always({kind, "why"}));
      CPPUNIT_ASSERT(desk.ask(1, request(), Clock::now() + kLong).kind == kind);
    }
  }

  void no_answer_in_time_is_a_failure() {
    LogDeskSettings settings = quick();
    settings.answer_within = 20ms;
    LogDesk desk(settings, keep());
    CPPUNIT_ASSERT(desk.ask(1, request(), Clock::now()).kind == Kind::kFailed);
    answer(0, {Kind::kText, "too late"});  // has no effect, since nobody waits for it
  }

  void places_are_bounded() {
    LogDeskSettings settings = quick();
    settings.held = 3;
    settings.held_per_user = 2;
    LogDesk desk(settings, keep());
    auto a = desk.enter("ann"), b = desk.enter("ann");
    CPPUNIT_ASSERT(a && b);
    CPPUNIT_ASSERT(!desk.enter("ann"));
    auto c = desk.enter("bob");
    CPPUNIT_ASSERT(c);
    CPPUNIT_ASSERT(!desk.enter("eve"));
    b.reset();
    CPPUNIT_ASSERT(desk.enter("eve"));
    CPPUNIT_ASSERT(desk.enter("ann"));
  }

  void unanswered_questions_take_places() {
    LogDeskSettings settings = quick();
    settings.held = 2;
    settings.answer_within = 1ms;
    LogDesk desk(settings, keep());
    for (uint64_t offset : {1, 2}) desk.ask(1, request(offset), Clock::now());
    CPPUNIT_ASSERT(!desk.enter("ann"));
    answer(0, {Kind::kText, ""});
    CPPUNIT_ASSERT(desk.enter("ann"));
  }

  void stop_lets_everybody_go() {
    LogDesk desk(quick(), keep());
    Asker asker(desk, 0, Clock::now() + kLong);
    std::atomic<bool> woken{false};
    std::thread idle([&] {
      desk.pause(Clock::now() + kLong);
      woken = true;
    });
    CPPUNIT_ASSERT(eventually([&] { return puts() == 1; }));
    desk.stop();
    CPPUNIT_ASSERT(eventually([&] { return asker.done && woken; }));
    idle.join();
    CPPUNIT_ASSERT(asker.result.kind == Kind::kFailed);
    CPPUNIT_ASSERT(!desk.enter("ann"));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(LogDeskTest);

}  // namespace
}  // namespace sublet::server
