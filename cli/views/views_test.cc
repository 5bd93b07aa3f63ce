// Output: widths, escaping, summaries; and the plans of submissions and fetches.
#include <cppunit/extensions/HelperMacros.h>

#include <sstream>

#include "base/text.h"
#include "cli/commands/waiting.h"
#include "cli/names.h"
#include "cli/transfer/fetching.h"
#include "cli/transfer/submission.h"
#include "cli/views/jobs.h"
#include "cli/views/output.h"
#include "cli/views/plan.h"

namespace sublet::cli {
namespace {

constexpr int64_t kNow = 1'700'000'000'000'000;

JobSummary job(uint64_t id, uint32_t state) {
  JobSummary j;
  j.id = id;
  j.name = "back-propagation";
  j.user = "anna";
  j.state = state;
  j.machine = "curly";
  j.changed_us = kNow - 65'000'000;
  j.progress_ppm = 370'000;
  j.cpu_kept_ms = 12'345;
  j.evictions = 3;
  j.reason = "waits for an idle machine with 2 GiB of memory";
  return j;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

class ViewsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ViewsTest);
  CPPUNIT_TEST(fits);
  CPPUNIT_TEST(empty_columns_are_left_out);
  CPPUNIT_TEST(neighbours_are_joined);
  CPPUNIT_TEST(wide_characters);
  CPPUNIT_TEST(hostile_names);
  CPPUNIT_TEST(colour_only_when_asked);
  CPPUNIT_TEST(story);
  CPPUNIT_TEST(words);
  CPPUNIT_TEST(errors);
  CPPUNIT_TEST(progress);
  CPPUNIT_TEST(fetch_targets);
  CPPUNIT_TEST(append_sizes);
  CPPUNIT_TEST(jobs_are_checked_beforehand);
  CPPUNIT_TEST(plans);
  CPPUNIT_TEST_SUITE_END();

  void fits() {
    std::vector<JobSummary> jobs = {job(17, kRunning), job(123456, kWaiting)};
    for (size_t width : {20u, 40u, 80u, 200u}) {
      std::vector<std::string> table = lines(jobs_table(jobs, kNow, width, false));
      CPPUNIT_ASSERT_EQUAL(size_t{3}, table.size());
      for (const std::string& line : table) CPPUNIT_ASSERT(display_width(line) <= width);
      CPPUNIT_ASSERT(table[2].find("123456") != std::string::npos);
    }
    std::string narrow = jobs_table(jobs, kNow, 20, false);
    CPPUNIT_ASSERT(narrow.find("running") != std::string::npos);
    CPPUNIT_ASSERT(narrow.find("REASON") == std::string::npos);
    std::string wide = jobs_table(jobs, kNow, 0, false);
    CPPUNIT_ASSERT(wide.find("with 2 GiB of memory") != std::string::npos);
    CPPUNIT_ASSERT(wide.find("37 %") != std::string::npos);
  }

  void empty_columns_are_left_out() {
    JobSummary j = job(1, kWaiting);
    j.machine = "";
    j.evictions = 0;
    std::string table = jobs_table({j}, kNow, 0, false);
    CPPUNIT_ASSERT(table.find("MACHINE") == std::string::npos);
    CPPUNIT_ASSERT(table.find("JOBS") == std::string::npos);
    j.count = 7;
    std::string array = jobs_table({j}, kNow, 0, false);
    CPPUNIT_ASSERT(array.find("JOBS") != std::string::npos);
    CPPUNIT_ASSERT(array.find("1-7 ") != std::string::npos);
    CPPUNIT_ASSERT(table.find("EVICTED") == std::string::npos);
  }

  void neighbours_are_joined() {
    const auto of_batch = [](uint64_t id, uint32_t state) {
      JobSummary j = job(id, state);
      j.batch = 5;
      return j;
    };
    std::vector<JobSummary> jobs = {
        of_batch(17, kDone),    of_batch(18, kDone),    of_batch(19, kRunning),
        of_batch(20, kRunning), of_batch(21, kWaiting), of_batch(22, kWaiting),
        of_batch(30, kWaiting), of_batch(31, kFailed),  of_batch(32, kFailed)};
    jobs[1].machine = "moe";
    jobs[1].reason = "attempt 2 done";
    jobs[1].progress_ppm = 1'000'000;
    jobs[1].changed_us = kNow - 5'000'000;
    jobs[5].count = 8;  // 22-29
    jobs[5].reason = "evicted";
    jobs[8].reason = "exit status 2";
    const auto rows = joined(jobs);
    std::string ids;
    for (const JobSummary& j : rows) ids += format_ids({{j.id, j.count}}) + " ";
    CPPUNIT_ASSERT_EQUAL(std::string("17-18 19 20 21-30 31 32 "), ids);
    CPPUNIT_ASSERT_EQUAL(std::string(""), rows[0].machine);
    CPPUNIT_ASSERT_EQUAL(std::string(""), rows[0].reason);
    CPPUNIT_ASSERT_EQUAL(int64_t{2 * 12'345}, rows[0].cpu_kept_ms);
    CPPUNIT_ASSERT_EQUAL(uint32_t{6}, rows[0].evictions);
    CPPUNIT_ASSERT_EQUAL(int32_t{370'000}, rows[0].progress_ppm);
    CPPUNIT_ASSERT_EQUAL(kNow - 5'000'000, rows[0].changed_us);
    CPPUNIT_ASSERT_EQUAL(std::string("curly"), rows[3].machine);
    CPPUNIT_ASSERT_EQUAL(std::string(""), rows[3].reason);
    // Not joined: jobs without a batch, of two batches, of other users (names not shown).
    jobs = {job(1, kDone), job(2, kDone), of_batch(3, kDone), of_batch(4, kDone)};
    jobs[3].batch = 6;
    CPPUNIT_ASSERT_EQUAL(size_t{4}, joined(jobs).size());
  }

  void wide_characters() {
    JobSummary j = job(17, kRunning);
    j.name = "\xe8\xa8\x93\xe7\xb7\xb4\xe3\x83\x87\xe3\x83\xbc\xe3\x82\xbf";  // twelve columns
    for (size_t width = 20; width < 60; ++width)
      for (const std::string& line : lines(jobs_table({j}, kNow, width, false))) {
        CPPUNIT_ASSERT(display_width(line) <= width);
        CPPUNIT_ASSERT(is_utf8(line));
      }
    CPPUNIT_ASSERT(jobs_table({j}, kNow, 40, false).find("…") != std::string::npos);
  }

  void hostile_names() {
    JobSummary j = job(1, kRunning);
    j.name = "a\x1b[2J\nb\xff";
    j.reason = "\xe2\x80\xaegnp.exe";
    std::string table = jobs_table({j}, kNow, 0, false);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, lines(table).size());
    for (char c : table) CPPUNIT_ASSERT(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
    CPPUNIT_ASSERT(table.find("\xe2\x80\xae") == std::string::npos);
    JobDetail detail;
    detail.summary = j;
    detail.description.program = "x\x1b";
    detail.outputs.push_back({"o\x07", 3, {}, false});
    std::string text = job_story(detail, kNow, 80, false);
    for (char c : text) CPPUNIT_ASSERT(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  }

  void colour_only_when_asked() {
    CPPUNIT_ASSERT(jobs_table({job(1, kFailed)}, kNow, 80, false).find('\x1b') ==
                   std::string::npos);
    CPPUNIT_ASSERT(jobs_table({job(1, kFailed)}, kNow, 80, true).find("\x1b[31m") !=
                   std::string::npos);
  }

  void story() {
    JobDetail detail;
    detail.summary = job(17, kDone);
    detail.description.program = "./train";
    detail.description.arguments = {"a b", "it's"};
    AttemptInfo a;
    a.number = 1;
    a.machine_name = "moe";
    a.state = 5;
    a.ended = 16;
    a.started_us = kNow - 105'000'000;
    a.finished_us = kNow - 5'000'000;
    a.cpu_ms = 2'000;
    a.cpu_lost_ms = 500;
    a.steps.gone = 12'300;
    detail.attempts.push_back(a);
    for (size_t width : {20u, 80u}) {
      std::string text = job_story(detail, kNow, width, false);
      for (const std::string& line : lines(text)) CPPUNIT_ASSERT(display_width(line) <= width);
    }
    std::string text = job_story(detail, kNow, 0, false);
    CPPUNIT_ASSERT(text.find("./train 'a b' 'it'") != std::string::npos);
    CPPUNIT_ASSERT(text.find("owner came back") != std::string::npos);
    CPPUNIT_ASSERT(text.find("13 ms") != std::string::npos);
    for (const char* part : {"RAN", "100 s", "KEPT", "1.5 s", "LOST", "500 ms"})
      CPPUNIT_ASSERT_MESSAGE(text, text.find(part) != std::string::npos);
  }

  void words() {
    CPPUNIT_ASSERT_EQUAL(std::string("5 s"), age(kNow - 5'900'000, kNow));
    CPPUNIT_ASSERT_EQUAL(std::string("3 min"), age(kNow - 200'000'000, kNow));
    CPPUNIT_ASSERT_EQUAL(std::string("0 s"), age(kNow + 5'000'000, kNow));
    CPPUNIT_ASSERT_EQUAL(std::string("3 d"), age(kNow - int64_t{80} * 3'600'000'000, kNow));
    CPPUNIT_ASSERT_EQUAL(std::string("-"), age(0, kNow));
    CPPUNIT_ASSERT_EQUAL(std::string("37 %"), percent(379'999));
    CPPUNIT_ASSERT_EQUAL(std::string(""), percent(-1));
    JobSummary j = job(17, kWaiting);
    CPPUNIT_ASSERT_EQUAL(std::string("job 17 back-propagation: waiting for 65 s: waits for an idle "
                                     "machine with 2 GiB of memory"),
                         why_line(j, kNow));
    j.count = 1'000'000;
    CPPUNIT_ASSERT(
        why_line(j, kNow).starts_with("jobs 17-1000016 back-propagation: waiting for "
                                      "65 s; job 17: waits"));
    j = job(17, kDone);
    j.reason = "attempt 1 done";
    CPPUNIT_ASSERT_EQUAL(
        std::string("job 17 back-propagation: done 65 s ago on curly: attempt 1 done"),
        why_line(j, kNow));
    CPPUNIT_ASSERT_EQUAL(std::string("8 jobs: 7 done, 1 failed"),
                         counts_line({0, 0, 0, 0, 7, 1, 0}));
  }

  void errors() {
    PoolError e(ErrorKind::not_found, "job.unknown", "there is no job 99.",
                "See `sublet ls --all`.", "job 99");
    CPPUNIT_ASSERT_EQUAL(std::string("sublet: there is no job 99; see `sublet ls --all`"),
                         error_line(e));
    CPPUNIT_ASSERT_EQUAL(4, exit_status(e.kind));
    CPPUNIT_ASSERT_EQUAL(
        std::string("{\"error\":{\"code\":\"job.unknown\",\"message\":\"there is no job 99.\","
                    "\"advice\":\"See `sublet ls --all`.\",\"subject\":\"job 99\"}}\n"),
        error_json(e));
    CPPUNIT_ASSERT(error_line({ErrorKind::invalid, "x", "a\x1b[2J"}).find('\x1b') ==
                   std::string::npos);
  }

  void progress() {
    CPPUNIT_ASSERT(!time_left(2, 8, 60'000));
    CPPUNIT_ASSERT(!time_left(5, 8, 4'000));
    CPPUNIT_ASSERT_EQUAL(int64_t{20'000}, *time_left(4, 8, 10'000));
    CPPUNIT_ASSERT_EQUAL(
        std::string("3 of 9 done, 1 failed, 4 running, 1 waiting, 12 evictions, about 3 min left"),
        progress_line({1, 0, 4, 0, 3, 1, 0}, 12, 180'400));
  }

  void fetch_targets() {
    JobDetail a;
    a.summary = job(17, kDone);
    a.summary.name = "../evil/\n";
    a.outputs = {{"result", 5, {}, false}, {"stdout", 5, {}, false}, {"stderr", 0, {}, false}};
    std::vector<PlannedFile> files = plan_fetch({a}, false);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, files.size());
    CPPUNIT_ASSERT_EQUAL(std::string("result"), files[0].target);
    CPPUNIT_ASSERT_EQUAL(FileKind::kOutput, files[0].place.kind);
    CPPUNIT_ASSERT_EQUAL(std::string("job..%2Fevil%2F%0A.17.out"), files[1].target);
    CPPUNIT_ASSERT_EQUAL(FileKind::kStdout, files[1].place.kind);
    JobDetail b = a;
    b.summary.id = 18;
    CPPUNIT_ASSERT_THROW(plan_fetch({a, b}, false), PoolError);
    CPPUNIT_ASSERT_EQUAL(std::string("18/result"), plan_fetch({a, b}, true)[2].target);
    for (const char* name : {"../x", "/etc/passwd", "a/../../x"}) {
      b.outputs = {{name, 5, {}, false}};
      CPPUNIT_ASSERT_THROW(plan_fetch({b}, true), PoolError);
    }
    // One job's file has the name of another job's folder.
    a.outputs = {{"r", 5, {}, false}};
    b.outputs = {{"r/x", 5, {}, false}, {"r-x", 5, {}, false}};
    CPPUNIT_ASSERT_THROW(plan_fetch({a, b}, false), PoolError);
    CPPUNIT_ASSERT_EQUAL(size_t{3}, plan_fetch({a, b}, true).size());
  }

  void append_sizes() {
    BatchPlan plan;
    plan.jobs.resize(2500);
    CPPUNIT_ASSERT(
        append_calls(plan) ==
        (std::vector<AppendCall>{{0, 1000, false}, {1000, 2000, false}, {2000, 2500, false}}));
    plan.jobs.resize(4);
    plan.jobs[1].count = 7;
    CPPUNIT_ASSERT(append_calls(plan) ==
                   (std::vector<AppendCall>{{0, 1, false}, {1, 2, true}, {2, 4, false}}));
    plan.jobs.assign(5, PlannedJob{});
    for (PlannedJob& j : plan.jobs) j.what.arguments = {std::string(400'000, 'x')};
    CPPUNIT_ASSERT_EQUAL(size_t{3}, append_calls(plan).size());
    plan.jobs[0].what.arguments = {std::string(1'100'000, 'x')};
    CPPUNIT_ASSERT_EQUAL(size_t{3}, append_calls(plan).size());
  }

  // Errors as from the server, before anything is sent.
  void jobs_are_checked_beforehand() {
    const auto refused = [](const PlannedJob& job) {
      try {
        check_plan({"", {}, {job}});
      } catch (const PoolError& e) {
        return e.code + " " + e.message;
      }
      return std::string();
    };
    PlannedJob job;
    job.what.name = "one";
    job.what.program = "true";
    job.inputs = {{"/etc/hosts", "hosts"}};
    CPPUNIT_ASSERT_EQUAL(std::string(), refused(job));
    job.what.outputs = {{"{x}", true}};
    job.axes = {{{"x"}, {"a", "../b"}, 0, 0, 1}};
    job.count = 2;
    CPPUNIT_ASSERT(refused(job).starts_with("field.invalid job 'one': the output name `{x}` with"));
    job.axes[0].values[1] = "b";
    CPPUNIT_ASSERT_EQUAL(std::string(), refused(job));
    job.what.arguments = {std::string(1'100'000, 'x')};
    CPPUNIT_ASSERT(refused(job).starts_with("field.too_large job 'one': "));
  }

  void plans() {
    BatchPlan plan;
    plan.jobs.resize(1);
    PlannedJob& job = plan.jobs[0];
    job.what.name = "train";
    job.what.program = "./a.linux-x86_64";
    job.what.programs = {{"linux/x86_64", "./a.linux-x86_64"}, {"linux/aarch64", "./a.arm"}};
    job.axes = {{{"rate", "x"}, {"0.1", "evil\x1b", "0.5", std::string(50, 'y')}, 0, 0, 1},
                {{"seed"}, {}, 100, 1, 1}};
    job.count = 200;
    const std::string text = plan_text(plan, InputFiles(), Terminal());
    const auto has = [&](const std::string& part) {
      CPPUNIT_ASSERT_MESSAGE(part + " in " + text, text.find(part) != std::string::npos);
    };
    has("train: 200 jobs, from rate=0.1 x=evil\\x1b seed=1 to rate=0.5 x=yyy");
    has("… seed=100\n");
    has("train: ./a.linux-x86_64 on linux/x86_64, ./a.arm on linux/aarch64\n");
    has("would submit 200 jobs and send 0 files");
    CPPUNIT_ASSERT(plan_json(plan, InputFiles())
                       .find(R"("sweep":{"first":{"rate":"0.1","x":"evil\u001b","seed":"1"},)") !=
                   std::string::npos);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ViewsTest);

}  // namespace
}  // namespace sublet::cli
