// Who may read a job's output, where it is read from in each state of the job, and
// which refusals there are if there is none.
#include "server/jobs/log_service.h"

#include <cppunit/extensions/HelperMacros.h>

#include <atomic>
#include <thread>

#include "server/services_testing.h"

namespace sublet::server {
namespace {

using testing::code;
using namespace scheduling;
using namespace std::chrono_literals;
using Kind = TextAnswer::Kind;

class LogServiceTest : public testing::ServicesFixture {
  CPPUNIT_TEST_SUITE(LogServiceTest);
  CPPUNIT_TEST(submitter_and_administrators_only);
  CPPUNIT_TEST(unknown_jobs_attempts_and_streams);
  CPPUNIT_TEST(running_is_asked_of_its_machine);
  CPPUNIT_TEST(a_machine_that_does_not_answer);
  CPPUNIT_TEST(a_machine_that_has_lost_it);
  CPPUNIT_TEST(it_ended_while_it_was_asked_for);
  CPPUNIT_TEST(ended_is_read_in_the_spool);
  CPPUNIT_TEST(what_an_evicted_attempt_wrote_is_not_kept);
  CPPUNIT_TEST(the_next_attempt_is_waited_for);
  CPPUNIT_TEST(a_removed_job_that_never_ran);
  CPPUNIT_TEST(too_many_are_told_so);
  CPPUNIT_TEST_SUITE_END();

  std::unique_ptr<Spool> spool_;
  std::unique_ptr<LogDesk> desk_;
  std::unique_ptr<LogService> logs_;
  uint64_t last_file_ = 0;
  // What the machine answers.
  std::function<TextAnswer(const TextRequest&)> answer_;
  std::atomic<int> asked_{0};

 public:
  void setUp() override {
    ServicesFixture::setUp();
    SpoolSettings settings;
    settings.folder = folder_.path() + "/spool";
    spool_ = std::make_unique<Spool>(settings, *archive_, system_clock());
    LogDeskSettings desk;
    desk.first_pause = desk.longest_pause = 1ms;
    desk.held_per_user = 1;
    desk_ = std::make_unique<LogDesk>(
        desk, [this](MachineId machine, const TextRequest& request, auto answered) {
          ++asked_;
          answered(machine == machine_ ? answer_(request) : TextAnswer{Kind::kFailed, "who?"});
        });
    logs_ = std::make_unique<LogService>(*archive_, *spool_, access_, *desk_);
    asked_ = 0;
    answer_ = [](const TextRequest&) { return TextAnswer{Kind::kText, ""}; };
    curly_joins();
  }

 private:
  std::string refused(const LogQuery& query) {
    return code([&] { logs_->read(ann_, query); });
  }

  AttemptKey running() { return start({waiting(), 1}); }
  JobId waiting() {
    JobDescription spec;
    spec.retries = 1;
    return submit(spec);
  }
  void end(AttemptKey key, EndReason how, const std::string& text = "", bool cut = false) {
    pipeline_->perform([&](Turn& turn) {
      turn.apply(MachineReported{machine_, false, 1ull << 30, 1ull << 30});
      if (!text.empty()) {
        FileRow row;
        row.id = ++last_file_;
        row.kind = FileKind::kStdout;
        row.job = key.job;
        row.attempt = key.attempt;
        row.size = text.size();
        row.in_row = true;
        row.body = text;
        turn.changes().files[row.id] = row;
        turn.changes().counted_files.push_back({row.id, key});
      }
      turn.apply(AttemptEnded{key, machine_, how, "", 2, 1, 3});
      EndRow facts;
      facts.key = key;
      facts.stdout_cut = cut;
      turn.changes().ends.push_back(facts);
    });
  }

  void submitter_and_administrators_only() {
    const AttemptKey key = running();
    answer_ = [](const TextRequest&) { return TextAnswer{Kind::kText, "secret"}; };
    CPPUNIT_ASSERT_EQUAL(std::string("job.not_yours"), code([&] { logs_->read(bob_, {key.job}); }));
    CPPUNIT_ASSERT_EQUAL(0, asked_.load());
    CPPUNIT_ASSERT_EQUAL(std::string("secret"), logs_->read(root_, {key.job}).text);
    CPPUNIT_ASSERT_EQUAL(std::string("secret"), logs_->read(ann_, {key.job}).text);
    end(key, EndReason::kDone, "secret");
    CPPUNIT_ASSERT_EQUAL(std::string("job.not_yours"), code([&] { logs_->read(bob_, {key.job}); }));
  }

  void unknown_jobs_attempts_and_streams() {
    const AttemptKey key = running();
    CPPUNIT_ASSERT_EQUAL(std::string("job.unknown"), refused({key.job + 1}));
    CPPUNIT_ASSERT_EQUAL(std::string("attempt.unknown"), refused({key.job, 3}));
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), refused({key.job, 1, FileKind::kOutput}));
  }

  void running_is_asked_of_its_machine() {
    const AttemptKey key = running();
    answer_ = [&](const TextRequest& request) {
      CPPUNIT_ASSERT(request.key == key && request.stream == FileKind::kStderr);
      return TextAnswer{Kind::kText, "from " + std::to_string(request.offset)};
    };
    const LogPiece piece = logs_->read(ann_, {key.job, 0, FileKind::kStderr, 7});
    CPPUNIT_ASSERT_EQUAL(std::string("from 7"), piece.text);
    CPPUNIT_ASSERT_EQUAL(std::string("curly"), piece.machine);
    CPPUNIT_ASSERT_EQUAL(1u, piece.attempt);
    CPPUNIT_ASSERT(!piece.ended && !piece.busy);
    answer_ = [](const TextRequest&) { return TextAnswer{Kind::kText, ""}; };
    CPPUNIT_ASSERT_EQUAL(std::string(""), logs_->read(ann_, {key.job}).text);
    CPPUNIT_ASSERT(!logs_->read(ann_, {key.job}).ended);
  }

  void a_machine_that_does_not_answer() {
    const AttemptKey key = running();
    answer_ = [](const TextRequest&) { return TextAnswer{Kind::kFailed, "lost"}; };
    try {
      logs_->read(ann_, {key.job});
      CPPUNIT_FAIL("not refused");
    } catch (const Refusal& r) {
      CPPUNIT_ASSERT(r.kind == Refusal::Kind::kUnavailable);
      CPPUNIT_ASSERT_EQUAL(std::string("log.machine"), r.code);
      CPPUNIT_ASSERT(r.message.starts_with("curly, which runs attempt 1 of job"));
      CPPUNIT_ASSERT(!r.advice.empty());
    }
  }

  // The report of its end has not arrived yet.
  void a_machine_that_has_lost_it() {
    const AttemptKey key = running();
    answer_ = [](const TextRequest&) { return TextAnswer{Kind::kNoAttempt, ""}; };
    const LogPiece piece = logs_->read(ann_, {key.job});
    CPPUNIT_ASSERT(piece.text.empty() && !piece.ended);
  }

  void it_ended_while_it_was_asked_for() {
    const AttemptKey key = running();
    answer_ = [&](const TextRequest&) {
      end(key, EndReason::kDone, "all of it");
      return TextAnswer{Kind::kFailed, "lost"};
    };
    const LogPiece piece = logs_->read(ann_, {key.job});
    CPPUNIT_ASSERT_EQUAL(std::string("all of it"), piece.text);
    CPPUNIT_ASSERT(piece.ended);
  }

  void ended_is_read_in_the_spool() {
    const AttemptKey key = running();
    const std::string text(kTextOctets + 5, 'x');
    end(key, EndReason::kDone, text, true);
    LogPiece piece = logs_->read(ann_, {key.job});
    CPPUNIT_ASSERT_EQUAL(size_t{kTextOctets}, piece.text.size());
    CPPUNIT_ASSERT(!piece.ended);
    piece = logs_->read(ann_, {key.job, 1, FileKind::kStdout, kTextOctets, 10'000});
    CPPUNIT_ASSERT_EQUAL(std::string("xxxxx"), piece.text);
    CPPUNIT_ASSERT(piece.ended && piece.cut);
    piece = logs_->read(ann_, {key.job, 1, FileKind::kStdout, UINT64_MAX});
    CPPUNIT_ASSERT(piece.text.empty() && piece.ended);
    piece = logs_->read(ann_, {key.job, 1, FileKind::kStderr});  // nothing was written there
    CPPUNIT_ASSERT(piece.text.empty() && piece.ended && !piece.cut);
    pipeline_->perform([&](Turn& turn) {
      turn.apply(scheduling::TimePassed{});
      turn.changes().removed_outputs[key.job] = turn.now();
    });
    CPPUNIT_ASSERT_EQUAL(std::string("spool.removed"), refused({key.job, 1, FileKind::kStderr}));
    CPPUNIT_ASSERT_EQUAL(0, asked_.load());
  }

  void what_an_evicted_attempt_wrote_is_not_kept() {
    const AttemptKey key = running();
    end(key, EndReason::kOwner);
    CPPUNIT_ASSERT_EQUAL(std::string("log.gone"), refused({key.job, 1}));
    LogPiece piece = logs_->read(ann_, {key.job});  // selects the next attempt
    CPPUNIT_ASSERT_EQUAL(2u, piece.attempt);
    CPPUNIT_ASSERT(!piece.ended && piece.machine.empty());
    start({key.job, 2});
    end({key.job, 2}, EndReason::kExit, "first failure");  // one retry is left
    piece = logs_->read(ann_, {key.job});
    CPPUNIT_ASSERT_EQUAL(std::string("first failure"), piece.text);
    start({key.job, 3});
    CPPUNIT_ASSERT_EQUAL(std::string("log.gone"), refused({key.job, 2}));
    end({key.job, 3}, EndReason::kDone);
    CPPUNIT_ASSERT_EQUAL(3u, logs_->read(ann_, {key.job}).attempt);
    CPPUNIT_ASSERT_EQUAL(std::string("attempt.unknown"), refused({key.job, 4}));
  }

  void the_next_attempt_is_waited_for() {
    const JobId job = waiting();
    answer_ = [](const TextRequest&) { return TextAnswer{Kind::kText, "begun"}; };
    CPPUNIT_ASSERT_EQUAL(std::string(""), logs_->read(ann_, {job}).text);
    LogPiece piece;
    std::thread waiting([&] {
      // Each call waits at most 10 s, which may be too short on a slow computer.
      while (piece.text.empty()) piece = logs_->read(ann_, {job, 0, FileKind::kStdout, 0, 60'000});
    });
    start({job, 1});
    waiting.join();
    CPPUNIT_ASSERT_EQUAL(std::string("begun"), piece.text);
    CPPUNIT_ASSERT_EQUAL(1u, piece.attempt);
  }

  void a_removed_job_that_never_ran() {
    const JobId job = waiting();
    apply(JobsRemoved{{{job, 1}}});
    const LogPiece piece = logs_->read(ann_, {job, 0, FileKind::kStdout, 0, 10'000});
    CPPUNIT_ASSERT_EQUAL(0u, piece.attempt);
    CPPUNIT_ASSERT(piece.ended && piece.text.empty());
    CPPUNIT_ASSERT_EQUAL(std::string("attempt.unknown"), refused({job, 1}));
  }

  void too_many_are_told_so() {
    const AttemptKey key = running();
    auto place = desk_->enter("ann");
    CPPUNIT_ASSERT(logs_->read(ann_, {key.job, 0, FileKind::kStdout, 0, 10'000}).busy);
    CPPUNIT_ASSERT_EQUAL(0, asked_.load());
    CPPUNIT_ASSERT(!logs_->read(root_, {key.job}).busy);
    place.reset();
    CPPUNIT_ASSERT(!logs_->read(ann_, {key.job}).busy);
    end(key, EndReason::kDone, "kept");
    place = desk_->enter("ann");
    CPPUNIT_ASSERT_EQUAL(std::string("kept"), logs_->read(ann_, {key.job}).text);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(LogServiceTest);

}  // namespace
}  // namespace sublet::server
