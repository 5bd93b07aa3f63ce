#include "server/machines/dispatcher.h"

#include <cppunit/extensions/HelperMacros.h>

#include <atomic>
#include <chrono>
#include <map>

namespace sublet::server {
namespace {

using namespace scheduling;

// Waits for a condition; false if it does not hold within 30 s.
template <typename Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// A workstation that can be made to block inside a call.
class SlowWorkstation : public Workstation {
 public:
  std::vector<OrderAnswered> run(const std::vector<RunRequest>& requests) override {
    const int now = ++inside;
    most_inside = std::max(most_inside.load(), now);
    ++calls;
    eventually([this] { return !hold; });
    std::vector<OrderAnswered> answers;
    for (const auto& r : requests) answers.push_back({r.key, OrderAnswered::Answer::kAccepted, ""});
    --inside;
    return answers;
  }
  bool vacate(const std::vector<LeaveRequest>& requests) override {
    left += static_cast<int>(requests.size());
    return true;
  }
  bool alive() override { return true; }
  TextAnswer read_log(const TextRequest& request) override {
    ++calls;
    eventually([this] { return !hold_texts; });
    return {TextAnswer::Kind::kText, "from " + std::to_string(request.offset)};
  }

  std::atomic<bool> hold{false}, hold_texts{false};
  std::atomic<int> inside{0}, most_inside{0}, calls{0}, left{0};
};

class DispatcherTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(DispatcherTest);
  CPPUNIT_TEST(orders_gather_while_a_call_is_under_way);
  CPPUNIT_TEST(who_is_to_leave_never_starts);
  CPPUNIT_TEST(one_that_hangs_holds_up_nobody_else);
  CPPUNIT_TEST(many_that_hang_hold_up_nobody_else);
  CPPUNIT_TEST(an_order_to_nobody_is_not_delivered);
  CPPUNIT_TEST(probes_tell_the_truth);
  CPPUNIT_TEST(orders_come_before_texts);
  CPPUNIT_TEST(texts_that_hang_hold_up_no_orders);
  CPPUNIT_TEST(nobody_there_has_no_text);
  CPPUNIT_TEST(what_waits_is_not_sent_under_the_next_registration);
  CPPUNIT_TEST_SUITE_END();

  std::mutex mutex_;
  std::vector<OrderAnswered> answers_;

  Dispatcher::Hooks hooks() {
    return {[](const StartAttempt& start) -> std::optional<RunRequest> {
              if (start.key.job == 666) return std::nullopt;
              return RunRequest{start.key, "ann", {}, start.generation, 0, start.decided};
            },
            [this](std::vector<OrderAnswered> more) {
              std::lock_guard lock(mutex_);
              answers_.insert(answers_.end(), more.begin(), more.end());
            }};
  }
  size_t answered() {
    std::lock_guard lock(mutex_);
    return answers_.size();
  }

  void orders_gather_while_a_call_is_under_way() {
    auto station = std::make_shared<SlowWorkstation>();
    Dispatcher dispatcher(hooks(), 4);
    dispatcher.attach(1, station);
    station->hold = true;
    dispatcher.decided({StartAttempt{{1, 1}, 1, 0, 0}});
    CPPUNIT_ASSERT(eventually([&] { return station->inside == 1; }));
    for (JobId job = 2; job <= 250; ++job) dispatcher.decided({StartAttempt{{job, 1}, 1, 0, 0}});
    dispatcher.decided({TellToLeave{{1, 1}, 1, LeaveReason::kRemoved}});
    station->hold = false;
    CPPUNIT_ASSERT(eventually([&] { return answered() == 250; }));
    CPPUNIT_ASSERT_EQUAL(1, station->most_inside.load());
    CPPUNIT_ASSERT_EQUAL(1 + 3, station->calls.load());  // 249 in hundreds
    CPPUNIT_ASSERT(eventually([&] { return station->left == 1; }));
  }

  // Even if many starts are queued before it.
  void who_is_to_leave_never_starts() {
    auto station = std::make_shared<SlowWorkstation>();
    Dispatcher dispatcher(hooks(), 4);
    dispatcher.attach(1, station);
    station->hold = true;
    dispatcher.decided({StartAttempt{{1, 1}, 1, 0, 0}});
    CPPUNIT_ASSERT(eventually([&] { return station->inside == 1; }));
    for (JobId job = 2; job <= 250; ++job) dispatcher.decided({StartAttempt{{job, 1}, 1, 0, 0}});
    dispatcher.decided({TellToLeave{{2, 1}, 1, LeaveReason::kRemoved},
                        TellToLeave{{250, 1}, 1, LeaveReason::kRemoved}});
    station->hold = false;
    CPPUNIT_ASSERT(eventually([&] { return answered() == 250; }));
    std::lock_guard lock(mutex_);
    for (const OrderAnswered& one : answers_) {
      const bool left = one.key.job == 2 || one.key.job == 250;
      CPPUNIT_ASSERT_EQUAL(left, one.answer == OrderAnswered::Answer::kNotDelivered);
    }
  }

  void one_that_hangs_holds_up_nobody_else() {
    auto slow = std::make_shared<SlowWorkstation>();
    auto quick = std::make_shared<SlowWorkstation>();
    Dispatcher dispatcher(hooks(), 2);
    dispatcher.attach(1, slow);
    dispatcher.attach(2, quick);
    slow->hold = true;
    dispatcher.decided({StartAttempt{{1, 1}, 1, 0, 0}, StartAttempt{{2, 1}, 2, 0, 0}});
    CPPUNIT_ASSERT(eventually([&] { return answered() == 1; }));
    slow->hold = false;
    CPPUNIT_ASSERT(eventually([&] { return answered() == 2; }));
  }

  // More of them than there are threads.
  void many_that_hang_hold_up_nobody_else() {
    std::vector<std::shared_ptr<SlowWorkstation>> slow;
    Dispatcher dispatcher(hooks(), 2);
    for (JobId i = 1; i <= 16; ++i) {
      slow.push_back(std::make_shared<SlowWorkstation>());
      slow.back()->hold = true;
      dispatcher.attach(i, slow.back());
      dispatcher.decided({StartAttempt{{i, 1}, i, 0, 0}});
    }
    dispatcher.attach(17, std::make_shared<SlowWorkstation>());
    dispatcher.decided({StartAttempt{{17, 1}, 17, 0, 0}});
    CPPUNIT_ASSERT(eventually([&] { return answered() == 1; }));
    {
      std::lock_guard lock(mutex_);
      CPPUNIT_ASSERT_EQUAL(JobId{17}, answers_[0].key.job);
    }
    for (const auto& station : slow) station->hold = false;
    CPPUNIT_ASSERT(eventually([&] { return answered() == 17; }));
  }

  void an_order_to_nobody_is_not_delivered() {
    Dispatcher dispatcher(hooks(), 1);
    dispatcher.decided({StartAttempt{{1, 1}, 1, 0, 0}});
    CPPUNIT_ASSERT(eventually([&] { return answered() == 1; }));
    CPPUNIT_ASSERT(answers_[0].answer == OrderAnswered::Answer::kNotDelivered);
    dispatcher.attach(1, std::make_shared<SlowWorkstation>());
    dispatcher.decided({StartAttempt{{666, 1}, 1, 0, 0}});
    CPPUNIT_ASSERT(eventually([&] { return answered() == 2; }));
    CPPUNIT_ASSERT(answers_[1].answer == OrderAnswered::Answer::kNotDelivered);
  }

  void probes_tell_the_truth() {
    Dispatcher dispatcher(hooks(), 1);
    std::atomic<int> dead{0}, alive{0};
    auto count = [&](bool yes) { ++(yes ? alive : dead); };
    dispatcher.probe(1, count);
    CPPUNIT_ASSERT(eventually([&] { return dead == 1; }));
    dispatcher.attach(1, std::make_shared<SlowWorkstation>());
    dispatcher.probe(1, count);
    CPPUNIT_ASSERT(eventually([&] { return alive == 1; }));
    dispatcher.detach(1);
    dispatcher.probe(1, count);
    CPPUNIT_ASSERT(eventually([&] { return dead == 2; }));
  }

  void orders_come_before_texts() {
    auto station = std::make_shared<SlowWorkstation>();
    Dispatcher dispatcher(hooks(), 2);
    dispatcher.attach(1, station);
    station->hold_texts = true;
    std::mutex mutex;
    std::vector<std::string> answers;
    const auto tell = [&](const TextAnswer& answer) {
      std::lock_guard lock(mutex);
      answers.push_back(answer.text + " after " + std::to_string(answered()));
    };
    for (uint64_t offset : {1, 2, 3})
      dispatcher.read_log(1, {{1, 1}, FileKind::kStdout, offset}, tell);
    CPPUNIT_ASSERT(eventually([&] { return station->calls == 1; }));
    dispatcher.decided({StartAttempt{{2, 1}, 1, 0, 0}});
    station->hold_texts = false;
    CPPUNIT_ASSERT(eventually([&] {
      std::lock_guard lock(mutex);
      return answers.size() == 3;
    }));
    CPPUNIT_ASSERT_EQUAL(std::string("from 1 after 0"), answers[0]);
    CPPUNIT_ASSERT_EQUAL(std::string("from 2 after 1"), answers[1]);
    CPPUNIT_ASSERT_EQUAL(std::string("from 3 after 1"), answers[2]);
  }

  void texts_that_hang_hold_up_no_orders() {
    constexpr MachineId kHung = 20;
    auto hung = std::make_shared<SlowWorkstation>();
    hung->hold_texts = true;
    std::atomic<MachineId> answers{0};
    Dispatcher dispatcher(hooks(), 4);
    // Each on a different machine, all at the same time.
    for (MachineId machine = 1; machine <= kHung; ++machine) {
      dispatcher.attach(machine, hung);
      dispatcher.read_log(machine, {{machine, 1}, FileKind::kStdout, 0},
                          [&](const TextAnswer&) { ++answers; });
    }
    CPPUNIT_ASSERT(eventually([&] { return hung->calls == 2; }));
    auto quick = std::make_shared<SlowWorkstation>();
    dispatcher.attach(kHung + 1, quick);
    dispatcher.decided({StartAttempt{{100, 1}, kHung + 1, 0, 0}});
    CPPUNIT_ASSERT(eventually([&] { return answered() == 1; }));
    dispatcher.decided({TellToLeave{{100, 1}, kHung + 1, LeaveReason::kRemoved}});
    CPPUNIT_ASSERT(eventually([&] { return quick->left == 1; }));
    CPPUNIT_ASSERT_EQUAL(2, hung->calls.load());
    hung->hold_texts = false;
    CPPUNIT_ASSERT(eventually([&] { return answers == kHung; }));
  }

  // The machine registers again while an order waits behind a call that hangs.
  void what_waits_is_not_sent_under_the_next_registration() {
    auto hung = std::make_shared<SlowWorkstation>(), anew = std::make_shared<SlowWorkstation>();
    Dispatcher dispatcher(hooks(), 2);
    dispatcher.attach(1, hung);
    hung->hold = true;
    dispatcher.decided({StartAttempt{{1, 1}, 1, 0, 0}});
    CPPUNIT_ASSERT(eventually([&] { return hung->inside == 1; }));
    dispatcher.decided({StartAttempt{{2, 1}, 1, 0, 0}});
    dispatcher.detach(1);
    dispatcher.attach(1, anew);
    dispatcher.decided({StartAttempt{{3, 1}, 1, 0, 0}});
    hung->hold = false;
    CPPUNIT_ASSERT(eventually([&] { return answered() == 3; }));
    std::map<JobId, OrderAnswered::Answer> by_job;
    for (const auto& one : answers_) by_job[one.key.job] = one.answer;
    CPPUNIT_ASSERT(by_job[1] == OrderAnswered::Answer::kAccepted);
    CPPUNIT_ASSERT(by_job[2] == OrderAnswered::Answer::kNotDelivered);
    CPPUNIT_ASSERT(by_job[3] == OrderAnswered::Answer::kAccepted);
    CPPUNIT_ASSERT_EQUAL(1, anew->calls.load());
    CPPUNIT_ASSERT_EQUAL(1, hung->calls.load());
  }

  void nobody_there_has_no_text() {
    Dispatcher dispatcher(hooks(), 1);
    std::atomic<bool> failed{false};
    dispatcher.read_log(1, {{1, 1}, FileKind::kStdout, 0}, [&](const TextAnswer& answer) {
      failed = answer.kind == TextAnswer::Kind::kFailed;
    });
    CPPUNIT_ASSERT(eventually([&] { return failed.load(); }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(DispatcherTest);

}  // namespace
}  // namespace sublet::server
