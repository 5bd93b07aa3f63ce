#include "cli/transfer/submission_outcome.h"

#include <cppunit/extensions/HelperMacros.h>

#include <string>

namespace sublet::cli {
namespace {

class SubmissionOutcomeTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SubmissionOutcomeTest);
  CPPUNIT_TEST(one_thing_is_said_whenever_it_is_interrupted);
  CPPUNIT_TEST(what_is_said_to_who_interrupts_a_batch);
  CPPUNIT_TEST_SUITE_END();

  std::string said_;
  uint64_t discard_ = 0;

  void interrupt(SubmissionOutcome& outcome) {
    discard_ = outcome.interrupt(
        [&](const PoolError& error) { said_ += error.code + ";" + error.subject + ";"; },
        [&](const Submitted& submitted) {
          said_ += "submitted " + std::to_string(submitted.jobs.first) + ";";
        });
  }

  // Interrupted before step `at`: batch opened, commit begun, committed, announced, told.
  std::string interrupted_before(int at, uint64_t batch) {
    SubmissionOutcome outcome;
    said_.clear();
    const auto step = [&](int number) {
      if (number == at) interrupt(outcome);
    };
    step(0);
    if (batch != 0) outcome.batch_opened(batch);
    step(1);
    if (!outcome.begin_commit()) return said_;
    step(2);
    outcome.committed({7, 2});
    step(3);
    outcome.announce([&] { said_ += "announced;"; });
    step(4);
    outcome.tell([&] { said_ += "told;"; });
    step(5);
    return said_;
  }

  void one_thing_is_said_whenever_it_is_interrupted() {
    CPPUNIT_ASSERT_EQUAL(std::string("submit.interrupted;;"), interrupted_before(0, 0));
    CPPUNIT_ASSERT_EQUAL(std::string("submit.interrupted;;"), interrupted_before(1, 0));
    // The server's answer may still come: it is not said, too.
    CPPUNIT_ASSERT_EQUAL(std::string("submit.uncertain;;"), interrupted_before(2, 0));
    CPPUNIT_ASSERT_EQUAL(std::string("submitted 7;"), interrupted_before(3, 0));
    CPPUNIT_ASSERT_EQUAL(std::string("announced;submitted 7;"), interrupted_before(4, 0));
    CPPUNIT_ASSERT_EQUAL(std::string("announced;told;"), interrupted_before(5, 0));
    CPPUNIT_ASSERT_EQUAL(std::string("announced;told;"), interrupted_before(6, 0));
  }

  void what_is_said_to_who_interrupts_a_batch() {
    CPPUNIT_ASSERT_EQUAL(std::string("submit.interrupted;;"), interrupted_before(1, 5));
    CPPUNIT_ASSERT_EQUAL(uint64_t{5}, discard_);
    CPPUNIT_ASSERT_EQUAL(std::string("submit.uncertain;5;"), interrupted_before(2, 5));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, discard_);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(SubmissionOutcomeTest);

}  // namespace
}  // namespace sublet::cli
