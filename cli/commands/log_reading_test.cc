// Follows a job through all its transitions, with a scripted server.
#include "cli/commands/log_reading.h"

#include <cppunit/extensions/HelperMacros.h>

#include <map>

namespace sublet::cli {
namespace {

// Scripted answers: the n-th call of read_log runs the n-th step.
class FakeLogs : public LogCalls {
 public:
  using Step = std::function<LogPart()>;
  LogPart read_log(uint64_t job, uint32_t attempt, FileKind kind, uint64_t offset,
                   int64_t hold_ms) override {
    CPPUNIT_ASSERT_EQUAL(uint64_t{17}, job);
    asked.push_back(std::to_string(attempt) + (kind == FileKind::kStdout ? "o" : "e") +
                    std::to_string(offset) + (hold_ms == 0 ? "" : " held"));
    CPPUNIT_ASSERT_MESSAGE("more calls than expected", asked.size() <= steps.size());
    return steps[asked.size() - 1]();
  }
  JobDetail show(uint64_t) override {
    CPPUNIT_ASSERT(shown < jobs.size());
    return jobs[shown++];
  }

  std::vector<Step> steps;
  std::vector<JobDetail> jobs;  // answers of show(), one after the other
  std::vector<std::string> asked;
  size_t shown = 0;
};

class Gathered : public LogOutput {
 public:
  void attempt(uint32_t number, const std::string& machine) override {
    lines.push_back("attempt " + std::to_string(number) + " on " + machine);
  }
  void text(FileKind kind, uint64_t offset, const std::string& text) override {
    lines.push_back((kind == FileKind::kStdout ? "o" : "e") + std::to_string(offset) + ":" + text);
  }
  void end(FileKind kind, bool cut) override {
    lines.push_back((kind == FileKind::kStdout ? std::string("o") : "e") + (cut ? " cut" : " end"));
  }
  void note(const std::string& sentence) override { lines.push_back("! " + sentence); }
  std::vector<std::string> lines;
};

using Lines = std::vector<std::string>;

class LogReadingTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LogReadingTest);
  CPPUNIT_TEST(what_is_there);
  CPPUNIT_TEST(last_lines_then_all);
  CPPUNIT_TEST(followed_over_an_eviction);
  CPPUNIT_TEST(over_before_the_last_is_read);
  CPPUNIT_TEST(waited_for_and_removed);
  CPPUNIT_TEST(both_streams);
  CPPUNIT_TEST(one_attempt_only);
  CPPUNIT_TEST(nothing_is_kept);
  CPPUNIT_TEST(away_and_back);
  CPPUNIT_TEST(away_too_long);
  CPPUNIT_TEST(too_many_readers);
  CPPUNIT_TEST_SUITE_END();

  FakeLogs calls_;
  Gathered output_;
  std::chrono::milliseconds paused_{0};

 public:
  void setUp() override {
    calls_ = {};
    output_ = {};
    paused_ = {};
  }

 private:
  std::optional<JobDetail> read(LogRequest request) {
    request.job = 17;
    if (request.kinds.empty()) request.kinds = {FileKind::kStdout};
    LogReader reader(calls_, output_, request,
                     [this](std::chrono::milliseconds ms) { paused_ += ms; });
    return reader.run();
  }
  static LogRequest following() {
    LogRequest request;
    request.follow = true;
    return request;
  }
  static LogPart part(uint32_t attempt, const std::string& text, bool ended = false,
                      const std::string& machine = "curly") {
    LogPart p;
    p.attempt = attempt;
    p.text = text;
    p.ended = ended;
    p.machine = machine;
    return p;
  }
  void say(const LogPart& p) {
    calls_.steps.push_back([p] { return p; });
  }
  void fail(ErrorKind kind, const std::string& code) {
    calls_.steps.push_back([=]() -> LogPart { throw PoolError(kind, code, code); });
  }
  void gone() { fail(ErrorKind::not_found, "log.gone"); }
  // A job with attempts that ended in these ways.
  void job(uint32_t state, const std::vector<uint32_t>& ends) {
    JobDetail detail;
    detail.summary.state = state;
    for (uint32_t ended : ends) {
      AttemptInfo a;
      a.number = static_cast<uint32_t>(detail.attempts.size()) + 1;
      a.ended = ended;
      detail.attempts.push_back(a);
    }
    calls_.jobs.push_back(detail);
  }
  void expect(const Lines& output, const Lines& asked) {
    CPPUNIT_ASSERT(output == output_.lines);
    CPPUNIT_ASSERT(asked == calls_.asked);
  }

  void what_is_there() {
    say(part(2, "ab"));
    say(part(2, "cd"));
    say(part(2, ""));
    CPPUNIT_ASSERT(!read({}));
    expect({"attempt 2 on curly", "o0:ab", "o2:cd"}, {"0o0", "2o2", "2o4"});
  }

  void last_lines_then_all() {
    say(part(1, "1\n2\n"));
    say(part(1, "3\n"));
    say(part(1, ""));
    say(part(1, "4\n", true));
    job(kDone, {1});
    LogRequest request = following();
    request.tail = 1;
    CPPUNIT_ASSERT(read(request));
    expect({"attempt 1 on curly", "o4:3\n", "o6:4\n", "o end"}, {"0o0", "1o4", "1o6", "1o6 held"});
  }

  void followed_over_an_eviction() {
    say(part(1, "one"));
    say(part(1, ""));
    gone();
    job(kWaiting, {16});
    say(part(2, "", false, ""));
    say(part(2, "two", false, "moe"));
    say(part(2, "!", true, "moe"));
    job(kDone, {16, 1});
    CPPUNIT_ASSERT_EQUAL(uint32_t{kDone}, read(following())->summary.state);
    expect({"attempt 1 on curly", "o0:one", "o end",
            "! attempt 1 ended: owner came back; its last output is not kept", "attempt 2 on ",
            "attempt 2 on moe", "o0:two", "o3:!", "o end"},
           {"0o0", "1o3", "1o3 held", "2o0 held", "2o0 held", "2o3 held"});
  }

  void over_before_the_last_is_read() {
    say(part(1, ""));
    gone();
    job(kFailed, {16, 2, 2});
    gone();
    job(kFailed, {16, 2, 2});
    say(part(3, "last words", true));
    job(kFailed, {16, 2, 2});
    CPPUNIT_ASSERT(read(following()));
    expect({"attempt 1 on curly", "o end",
            "! attempt 1 ended: owner came back; its last output is not kept", "o end",
            "! attempt 2 ended: exit status; its last output is not kept", "attempt 3 on curly",
            "o0:last words", "o end"},
           {"0o0", "1o0 held", "2o0 held", "3o0 held"});
  }

  void waited_for_and_removed() {
    say(part(1, "", false, ""));
    fail(ErrorKind::not_found, "attempt.unknown");
    job(kRemoved, {});
    CPPUNIT_ASSERT_EQUAL(uint32_t{kRemoved}, read(following())->summary.state);
    expect({"attempt 1 on ", "o end"}, {"0o0", "1o0 held"});
  }

  void both_streams() {
    LogRequest request = following();
    request.kinds = {FileKind::kStdout, FileKind::kStderr};
    say(part(1, ""));
    say(part(1, "e"));
    say(part(1, ""));
    say(part(1, "o"));
    say(part(1, "", true));
    LogPart last = part(1, "O", true);
    last.cut = true;
    say(last);
    job(kFailed, {2});
    CPPUNIT_ASSERT(read(request));
    expect({"attempt 1 on curly", "e0:e", "o0:o", "e end", "o1:O", "o cut"},
           {"0o0", "1e0", "1e1", "1o0 held", "1e1 held", "1o1 held"});
  }

  void one_attempt_only() {
    LogRequest request = following();
    request.attempt = 2;
    say(part(2, ""));
    gone();
    CPPUNIT_ASSERT(!read(request));
    expect({"attempt 2 on curly", "o end"}, {"2o0", "2o0 held"});
  }

  void nothing_is_kept() {
    gone();
    CPPUNIT_ASSERT_THROW(read({}), PoolError);
    calls_ = {};
    fail(ErrorKind::not_found, "job.unknown");
    CPPUNIT_ASSERT_THROW(read(following()), PoolError);
  }

  void away_and_back() {
    say(part(1, ""));
    fail(ErrorKind::unavailable, "server.down");
    fail(ErrorKind::unavailable, "log.machine");
    say(part(1, "x", true));
    job(kDone, {1});
    CPPUNIT_ASSERT(read(following()));
    expect({"attempt 1 on curly", "! sublet: server.down (still following)", "o0:x", "o end"},
           {"0o0", "1o0 held", "1o0 held", "1o0 held"});
    calls_ = {};
    fail(ErrorKind::unavailable, "log.machine");
    CPPUNIT_ASSERT_THROW(read({}), PoolError);
  }

  void away_too_long() {
    say(part(1, ""));
    for (int i = 0; i < 1000; ++i) fail(ErrorKind::unavailable, "server.down");
    CPPUNIT_ASSERT_THROW(read(following()), PoolError);
    CPPUNIT_ASSERT(paused_ >= std::chrono::minutes(10));
  }

  void too_many_readers() {
    LogPart busy;
    busy.busy = true;
    say(busy);
    say(part(1, "x", true));
    CPPUNIT_ASSERT(!read({}));
    expect({"attempt 1 on curly", "o0:x", "o end"}, {"0o0", "0o0"});
    calls_ = {};
    for (int i = 0; i < 1000; ++i) say(busy);
    try {
      read({});
      CPPUNIT_FAIL("read");
    } catch (const PoolError& e) {
      CPPUNIT_ASSERT_EQUAL(std::string("log.busy"), e.code);
    }
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(LogReadingTest);

}  // namespace
}  // namespace sublet::cli
