#include "loadmon/attempts.h"

#include <cppunit/extensions/HelperMacros.h>

#include <vector>

namespace sublet::loadmon {
namespace {
constexpr int64_t kMs = 1'000'000;

struct FakeJob {
  int frozen = 0;
  int killed = 0;
  bool gone = false;
  bool shepherd_stopped = false;
};

class FakeHold : public JobHold {
 public:
  explicit FakeHold(FakeJob* job) : job_(job) {}
  void freeze() noexcept override {
    CPPUNIT_ASSERT_EQUAL(job_->killed, job_->frozen);  // frozen before it is killed
    ++job_->frozen;
  }
  void kill() noexcept override { ++job_->killed; }
  bool gone() noexcept override { return job_->gone; }
  bool shepherd_stopped() noexcept override { return job_->shepherd_stopped; }

 private:
  FakeJob* job_;
};

sublet_frame told(uint32_t sequence, sublet_presence_reason reason = SUBLET_PRESENCE_INPUT,
                  sublet_presence state = SUBLET_PRESENCE_ACTIVE) {
  sublet_frame frame = {};
  frame.sequence = sequence;
  frame.state = state;
  frame.reason = reason;
  return frame;
}
sublet_frame answer(uint32_t sequence, sublet_shepherd_state state = SUBLET_SHEPHERD_SAVING) {
  sublet_frame frame = {};
  frame.sequence = sequence;
  frame.state = state;
  return frame;
}
}  // namespace

class AttemptsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(AttemptsTest);
  CPPUNIT_TEST(rests_for_ever);
  CPPUNIT_TEST(silent_shepherd);
  CPPUNIT_TEST(acknowledged_and_gone_in_time);
  CPPUNIT_TEST(acknowledged_but_late);
  CPPUNIT_TEST(acknowledged_then_stopped);
  CPPUNIT_TEST(deadline_read_later);
  CPPUNIT_TEST(old_acknowledgement_says_nothing);
  CPPUNIT_TEST(sequence_wraps);
  CPPUNIT_TEST(asked_once);
  CPPUNIT_TEST(who_stays_is_watched);
  CPPUNIT_TEST(who_stays_may_leave_later);
  CPPUNIT_TEST(who_may_not_stay_must_leave);
  CPPUNIT_TEST(told_strictly_before_it_has_answered);
  CPPUNIT_TEST(whose_order_lets_it_not_stay);
  CPPUNIT_TEST(lost_shepherd);
  CPPUNIT_TEST(ended_in_good_order);
  CPPUNIT_TEST(nobody_speaks_for_it);
  CPPUNIT_TEST(killed_until_it_is_gone);
  CPPUNIT_TEST(folder_that_cannot_be_read);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    job_ = {};
    attempts_ = std::make_unique<Attempts>();
    attempt_ = attempts_->add(7, 1, 0);
    attempt_->hold = std::make_unique<FakeHold>(&job_);
    attempt_->save_ms = 2000;
    attempt_->attended = true;
  }

  void rests_for_ever() {
    attempts_->enforce(1'000'000'000 * kMs);
    CPPUNIT_ASSERT_EQUAL(0, job_.killed);
    CPPUNIT_ASSERT_EQUAL(Attempts::kNever, attempts_->due());
    CPPUNIT_ASSERT(attempts_->find(7, 1) == attempt_);
    CPPUNIT_ASSERT(attempts_->find(7, 2) == nullptr);
    CPPUNIT_ASSERT(attempts_->find(1, 7) == nullptr);
  }

  void silent_shepherd() {
    attempts_->ask(attempt_, told(5), 0, 300 * kMs);
    attempts_->enforce(299 * kMs);
    CPPUNIT_ASSERT_EQUAL(0, job_.frozen);
    CPPUNIT_ASSERT_EQUAL(300 * kMs, attempts_->due());
    attempts_->enforce(300 * kMs);
    CPPUNIT_ASSERT_EQUAL(1, job_.frozen);
    CPPUNIT_ASSERT_EQUAL(1, job_.killed);
    CPPUNIT_ASSERT(attempt_->kill == Attempt::Kill::silent);
    // A late acknowledgement changes nothing.
    attempts_->acknowledged(attempt_, answer(5), 0);
    CPPUNIT_ASSERT(attempt_->stage == Attempt::Stage::killed);
  }

  void acknowledged_and_gone_in_time() {
    attempts_->ask(attempt_, told(5), 0, 300 * kMs);
    attempts_->acknowledged(attempt_, answer(5), 0);
    attempts_->enforce(2999 * kMs);
    CPPUNIT_ASSERT_EQUAL(0, job_.killed);
    job_.gone = true;
    attempts_->enforce(3000 * kMs);
    CPPUNIT_ASSERT_EQUAL(0, job_.killed);
    CPPUNIT_ASSERT_EQUAL(Attempts::kNever, attempts_->due());
  }

  void acknowledged_but_late() {
    attempts_->ask(attempt_, told(5), 100 * kMs, 400 * kMs);
    attempts_->acknowledged(attempt_, answer(6), 0);  // of a heartbeat after it
    CPPUNIT_ASSERT_EQUAL(400 * kMs, attempts_->due());
    attempts_->enforce(3099 * kMs);
    CPPUNIT_ASSERT_EQUAL(0, job_.killed);
    CPPUNIT_ASSERT_EQUAL(3100 * kMs, attempts_->due());
    attempts_->enforce(3100 * kMs);
    CPPUNIT_ASSERT_EQUAL(1, job_.killed);
    CPPUNIT_ASSERT(attempt_->kill == Attempt::Kill::late);
  }

  void acknowledged_then_stopped() {
    attempts_->ask(attempt_, told(5), 0, 300 * kMs);
    attempts_->acknowledged(attempt_, answer(5), 0);
    attempts_->enforce(300 * kMs);
    CPPUNIT_ASSERT_EQUAL(600 * kMs, attempts_->due());
    job_.shepherd_stopped = true;
    attempts_->enforce(600 * kMs);
    CPPUNIT_ASSERT_EQUAL(1, job_.killed);
    CPPUNIT_ASSERT(attempt_->kill == Attempt::Kill::stopped);
  }

  void deadline_read_later() {
    attempts_->ask(attempt_, told(5), 0, 300 * kMs);
    attempts_->set_save_deadline(attempt_, 60'000);
    CPPUNIT_ASSERT_EQUAL(300 * kMs, attempts_->due());
    attempts_->acknowledged(attempt_, answer(5), 0);
    CPPUNIT_ASSERT_EQUAL(61'000 * kMs, attempt_->deadline);
    attempts_->set_save_deadline(attempt_, 100);
    CPPUNIT_ASSERT_EQUAL(1100 * kMs, attempt_->deadline);
    CPPUNIT_ASSERT_EQUAL(300 * kMs, attempts_->due());
  }

  void old_acknowledgement_says_nothing() {
    attempts_->ask(attempt_, told(5), 0, 300 * kMs);
    attempts_->acknowledged(attempt_, answer(4), 0);
    attempts_->enforce(300 * kMs);
    CPPUNIT_ASSERT_EQUAL(1, job_.killed);
  }

  void sequence_wraps() {
    attempts_->ask(attempt_, told(0xffffffff), 0, 300 * kMs);
    attempts_->acknowledged(attempt_, answer(0), 0);
    CPPUNIT_ASSERT(attempt_->stage == Attempt::Stage::leaving);
  }

  void asked_once() {
    attempts_->ask(attempt_, told(5), 0, 300 * kMs);
    attempts_->ask(attempt_, told(9), 200 * kMs, 500 * kMs);  // the owner left and came back
    attempts_->enforce(300 * kMs);
    CPPUNIT_ASSERT_EQUAL(1, job_.killed);
  }

  void who_stays_is_watched() {
    attempts_->ask(attempt_, told(5), 0, 300 * kMs);
    attempts_->acknowledged(attempt_, answer(5, SUBLET_SHEPHERD_SUSPENDED), kMs);
    CPPUNIT_ASSERT(attempts_->anyone_stays());
    // For hours, as long as its shepherd answers.
    for (int64_t at = 300 * kMs; at < 7'200'000 * kMs; at += 300 * kMs) {
      attempts_->reminded(attempt_);
      attempts_->acknowledged(attempt_, answer(6, SUBLET_SHEPHERD_SUSPENDED), at);
      attempts_->enforce(at);
    }
    CPPUNIT_ASSERT_EQUAL(0, job_.killed);
    for (int i = 0; i < 8; ++i) attempts_->reminded(attempt_);
    attempts_->enforce(7'201'000 * kMs);
    CPPUNIT_ASSERT_EQUAL(0, job_.killed);
    attempts_->reminded(attempt_);
    attempts_->enforce(7'202'000 * kMs);
    CPPUNIT_ASSERT_EQUAL(1, job_.killed);
    CPPUNIT_ASSERT(attempt_->kill == Attempt::Kill::silent);
  }

  void who_stays_may_leave_later() {
    attempts_->ask(attempt_, told(5), 0, 300 * kMs);
    attempts_->acknowledged(attempt_, answer(5, SUBLET_SHEPHERD_LINGERING), kMs);
    attempts_->owner_away();
    CPPUNIT_ASSERT(!attempts_->anyone_stays());
    CPPUNIT_ASSERT_EQUAL(Attempts::kNever, attempts_->due());
    attempts_->ask(attempt_, told(9), 10'000 * kMs, 10'300 * kMs);
    attempts_->acknowledged(attempt_, answer(9, SUBLET_SHEPHERD_SUSPENDED), 10'001 * kMs);
    // Its time to save begins when it says that it leaves.
    attempts_->acknowledged(attempt_, answer(30), 20'000 * kMs);
    attempts_->enforce(22'999 * kMs);
    CPPUNIT_ASSERT_EQUAL(0, job_.killed);
    attempts_->enforce(23'000 * kMs);
    CPPUNIT_ASSERT_EQUAL(1, job_.killed);
    CPPUNIT_ASSERT(attempt_->kill == Attempt::Kill::late);
  }

  void who_may_not_stay_must_leave() {
    const std::vector<sublet_frame> strict = {
        told(9, SUBLET_PRESENCE_PAUSED), told(9, SUBLET_PRESENCE_SLEEP),
        told(9, SUBLET_PRESENCE_RULE),   told(9, SUBLET_PRESENCE_BLIND),
        told(9, SUBLET_PRESENCE_UNSEEN), told(9, SUBLET_PRESENCE_INPUT, SUBLET_PRESENCE_BURDENED)};
    for (const sublet_frame& frame : strict) {
      setUp();
      attempts_->ask(attempt_, told(5), 0, 300 * kMs);
      attempts_->acknowledged(attempt_, answer(5, SUBLET_SHEPHERD_SUSPENDED), kMs);
      attempts_->ask(attempt_, frame, 1000 * kMs, 1300 * kMs);
      attempts_->acknowledged(attempt_, answer(9, SUBLET_SHEPHERD_SUSPENDED), 1001 * kMs);
      CPPUNIT_ASSERT(!attempts_->anyone_stays());
      attempts_->enforce(4000 * kMs);
      CPPUNIT_ASSERT(attempt_->kill == Attempt::Kill::late);
    }
  }

  void told_strictly_before_it_has_answered() {
    attempts_->ask(attempt_, told(5), 0, 300 * kMs);
    attempts_->ask(attempt_, told(9, SUBLET_PRESENCE_PAUSED), 200 * kMs, 500 * kMs);
    // An answer to the first does not count, and the time for the answer is what it was.
    attempts_->acknowledged(attempt_, answer(5, SUBLET_SHEPHERD_SUSPENDED), 201 * kMs);
    CPPUNIT_ASSERT(!attempts_->anyone_stays());
    CPPUNIT_ASSERT_EQUAL(300 * kMs, attempts_->due());
    attempts_->acknowledged(attempt_, answer(9), 202 * kMs);
    CPPUNIT_ASSERT(attempt_->stage == Attempt::Stage::leaving);
  }

  void whose_order_lets_it_not_stay() {
    attempt_->can_stay = false;
    attempts_->ask(attempt_, told(5), 0, 300 * kMs);
    attempts_->acknowledged(attempt_, answer(5, SUBLET_SHEPHERD_SUSPENDED), kMs);
    CPPUNIT_ASSERT(!attempts_->anyone_stays());
    attempts_->enforce(3000 * kMs);
    CPPUNIT_ASSERT(attempt_->kill == Attempt::Kill::late);
  }

  void lost_shepherd() {
    attempts_->shepherd_lost(attempt_, 10 * kMs);
    CPPUNIT_ASSERT_EQUAL(1, job_.killed);
    CPPUNIT_ASSERT(attempt_->kill == Attempt::Kill::shepherd_lost);
    job_.gone = true;
    attempts_->tidy(11 * kMs);
    CPPUNIT_ASSERT(attempts_->all().empty());
  }

  void ended_in_good_order() {
    job_.gone = true;
    attempts_->shepherd_lost(attempt_, 10 * kMs);
    CPPUNIT_ASSERT_EQUAL(0, job_.killed);
    attempts_->tidy(10 * kMs);
    CPPUNIT_ASSERT(attempts_->all().empty());
  }

  void nobody_speaks_for_it() {
    attempt_->attended = false;
    FakeJob other_job;
    Attempt* other = attempts_->add(8, 1, 0);
    other->hold = std::make_unique<FakeHold>(&other_job);
    other->attended = true;
    attempts_->ask_unattended(told(5), 0, 300 * kMs);
    attempts_->enforce(300 * kMs);
    CPPUNIT_ASSERT_EQUAL(1, job_.killed);
    CPPUNIT_ASSERT(attempt_->kill == Attempt::Kill::unattended);
    CPPUNIT_ASSERT_EQUAL(0, other_job.killed);
  }

  void killed_until_it_is_gone() {
    attempts_->ask(attempt_, told(5), 0, 0);
    for (int64_t at = 0; at < 10; ++at) {
      attempts_->enforce(at * 100 * kMs);
      CPPUNIT_ASSERT_EQUAL(static_cast<int>(at + 1), job_.killed);
    }
    attempts_->tidy(kMs);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, attempts_->all().size());
    job_.gone = true;
    attempts_->enforce(1000 * kMs);
    CPPUNIT_ASSERT_EQUAL(10, job_.killed);
    CPPUNIT_ASSERT_EQUAL(Attempts::kNever, attempts_->due());
  }

  void folder_that_cannot_be_read() {
    attempt_->hold.reset();
    attempts_->ask(attempt_, told(5), 0, 0);
    attempts_->enforce(0);
    attempts_->shepherd_lost(attempt_, kMs);
    attempts_->tidy(kMs);
    CPPUNIT_ASSERT(attempts_->all().empty());
  }

 private:
  FakeJob job_;
  std::unique_ptr<Attempts> attempts_;
  Attempt* attempt_ = nullptr;
};
CPPUNIT_TEST_SUITE_REGISTRATION(AttemptsTest);

}  // namespace sublet::loadmon
