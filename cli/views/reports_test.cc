// The formats of a report, and instants as users write them.
#include "cli/views/reports.h"

#include <cppunit/extensions/HelperMacros.h>

#include <sstream>

#include "base/text.h"
#include "cli/views/when.h"

namespace sublet::cli {
namespace {

constexpr int64_t kNow = 1'795'190'400'000'000;  // 2026-11-20 16:00 UTC

UsageLine line(const std::string& user, int64_t cpu) {
  UsageLine l;
  l.group = {{"user", user}};
  l.jobs_done = 3;
  l.attempts = 4;
  l.evictions = 1;
  l.cpu_us = cpu;
  l.kept_us = cpu - 10;
  l.lost_us = 10;
  l.wall_us = 2 * cpu;
  l.charged_us = cpu - 10;
  l.waited_us = 8'000'000;
  return l;
}

Standing standing(const std::string& user) {
  Standing s;
  s.user = user;
  s.usage = 0.1;
  s.shares = 1;
  s.active = 2;
  s.waiting = 1;
  s.place = 1;
  s.best_priority = 12.5;
  s.reason = "a share of 1 of 4: next in line, ahead of bob";
  return s;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string each; std::getline(in, each);) out.push_back(each);
  return out;
}

class ReportViewsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ReportViewsTest);
  CPPUNIT_TEST(tables_fit);
  CPPUNIT_TEST(sums_below);
  CPPUNIT_TEST(csv);
  CPPUNIT_TEST(json);
  CPPUNIT_TEST(steps);
  CPPUNIT_TEST(leverage_of_the_pool);
  CPPUNIT_TEST(instants);
  CPPUNIT_TEST_SUITE_END();

  void tables_fit() {
    const std::vector<UsageLine> usage = {line("a\x1b[31m\nnn", 90'000'000), line("bob", 1)};
    for (const size_t width : {20u, 40u, 80u, 200u}) {
      for (const std::string& l : lines(usage_table(usage, width, false)))
        CPPUNIT_ASSERT(display_width(l) <= width && l.find('\x1b') == l.npos);
      for (const std::string& l : lines(standings_table({standing("ann")}, width, false)))
        CPPUNIT_ASSERT(display_width(l) <= width);
    }
    const std::string wide = usage_table(usage, 0, false);
    CPPUNIT_ASSERT(wide.find("50 %") != wide.npos);      // CPU of wall
    CPPUNIT_ASSERT(wide.find("  2 s") != wide.npos);     // waited for each attempt
    CPPUNIT_ASSERT(wide.find("LEVERAGE") == wide.npos);  // only for the whole pool
  }

  void sums_below() {
    const auto table =
        lines(usage_table({line("ann", 60'000'000), line("bob", 60'000'000)}, 0, false));
    CPPUNIT_ASSERT_EQUAL(size_t{4}, table.size());
    CPPUNIT_ASSERT(table[3].starts_with("total"));
    CPPUNIT_ASSERT(table[3].find("2 min") != table[3].npos);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, lines(usage_table({line("ann", 60)}, 0, false)).size());
  }

  void csv() {
    Report report;
    report.usage = {line("ann, \"the\nfirst\"", 1000)};
    CPPUNIT_ASSERT_EQUAL(
        std::string("user,jobs_done,attempts,evictions,cpu_us,wall_us,kept_us,lost_us,charged_us,"
                    "waited_us,local_us\n"
                    "\"ann, \"\"the\nfirst\"\"\",3,4,1,1000,2000,990,10,990,8000000,\n"),
        report_csv(report, {"user"}));
    report.usage = {line("ann", 1000)};
    report.of_users = true;
    report.standings = {standing("ann"), standing("zoe")};
    CPPUNIT_ASSERT_EQUAL(
        std::string("user,jobs_done,attempts,evictions,cpu_us,wall_us,kept_us,lost_us,charged_us,"
                    "waited_us,local_us,usage,charges,shares,active,waiting,place,best_priority,"
                    "reason\n"
                    "ann,3,4,1,1000,2000,990,10,990,8000000,,0.1,0,1,2,1,1,12.5,"
                    "\"a share of 1 of 4: next in line, ahead of bob\"\n"
                    "zoe,,,,,,,,,,,0.1,0,1,2,1,1,12.5,"
                    "\"a share of 1 of 4: next in line, ahead of bob\"\n"),
        report_csv(report, {"user"}));
    CPPUNIT_ASSERT_EQUAL(std::string("day,jobs_done"), report_csv(Report(), {"day"}).substr(0, 13));
  }

  void json() {
    Report report;
    report.usage = {line("ann", 1000)};
    report.of_users = true;
    report.standings = {standing("ann")};
    report.policies = {{{"jobs", "fifo"}, {"floor", "0.25"}}, 7, "root"};
    JsonWriter writer;
    write_json(writer, report);
    CPPUNIT_ASSERT_EQUAL(
        std::string(
            R"({"usage":[{"group":{"user":"ann"},"jobs_done":3,"attempts":4,"evictions":1,)"
            R"("cpu_us":1000,"wall_us":2000,"cpu_ppm":500000,"kept_us":990,"lost_us":10,)"
            R"("charged_us":990,"waited_us":8000000}],)"
            R"("policies":{"parameters":{"jobs":"fifo","floor":"0.25"},"since_us":7,"by":"root"},)"
            R"("standings":[{"user":"ann","usage":0.1,)"
            R"("charges":0,"shares":1,"active":2,"waiting":1,"place":1,"best_priority":12.5,)"
            R"("reason":"a share of 1 of 4: next in line, ahead of bob"}]})"),
        writer.str());
    report.of_users = false;
    report.usage.clear();
    JsonWriter empty;
    write_json(empty, report);
    CPPUNIT_ASSERT_EQUAL(std::string(R"({"usage":[]})"), empty.str());
  }

  void steps() {
    Report report;
    report.of_steps = true;
    report.usage = {line("ann", 1000), line("bob", 1)};
    report.usage[0].steps = {{"save_asked", 3, 120, 9'999, 10'000, 2'400'000}};
    CPPUNIT_ASSERT_EQUAL(
        std::string("USER   STEP        OF      P50      P95      P99         MAX\n"
                    "ann    save asked   3  0.12 ms  10.0 ms  10.0 ms       2.4 s\n"
                    "total  gone         4  0.00 ms  0.00 ms  0.01 ms  1 min 30 s\n"),
        steps_table(report.usage, {{"gone", 4, 1, 2, 7, 90'000'000}}, 0, false));
    CPPUNIT_ASSERT_EQUAL(std::string("user,step,count,p50_us,p95_us,p99_us,most_us\n"
                                     "ann,save_asked,3,120,9999,10000,2400000\n"),
                         steps_csv(report, {"user"}));
    JsonWriter writer;
    write_json(writer, report);
    CPPUNIT_ASSERT(writer.str().find(R"("waited_us":8000000,"steps":[{"step":"save_asked",)"
                                     R"("count":3,"p50_us":120,"p95_us":9999,"p99_us":10000,)"
                                     R"("most_us":2400000}]})") != std::string::npos);
    CPPUNIT_ASSERT(writer.str().ends_with(R"("steps":[]})"));
  }

  void leverage_of_the_pool() {
    UsageLine l = line("", 500'010);
    l.group.clear();
    CPPUNIT_ASSERT_EQUAL(0.0, leverage(l));
    l.local_us = 1000;
    CPPUNIT_ASSERT_EQUAL(500.0, leverage(l));
    CPPUNIT_ASSERT(usage_table({l}, 0, false).find("LEVERAGE") != std::string::npos);
    l.wall_us = 0;
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, cpu_ppm(l));
  }

  void instants() {
    const auto when = [](const std::string& text) { return parse_when("--since", text, kNow); };
    CPPUNIT_ASSERT_EQUAL(kNow - 16 * 3'600'000'000, when("2026-11-20"));
    CPPUNIT_ASSERT_EQUAL(kNow - 2 * 3'600'000'000, when("2026-11-20 14:00"));
    CPPUNIT_ASSERT_EQUAL(kNow + 5'000'000, when("2026-11-20T16:00:05Z"));
    CPPUNIT_ASSERT_EQUAL(kNow - 7 * 86'400'000'000, when("7 d"));
    CPPUNIT_ASSERT_EQUAL(kNow - 30'000'000, when("30"));
    CPPUNIT_ASSERT_EQUAL(when("2028-02-28") + 86'400'000'000, when("2028-02-29"));
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, when("100000 d"));  // before 1970
    for (const char* bad :
         {"", "yesterday", "2026-02-29", "2026-13-01", "2026-11-20 24:00", "2026-11-20 14:60",
          "2026-11-2", "2026-11-20 14", "2026-11-20Z", "-7 d", "2026-11-20 14:00:00+01"}) {
      try {
        when(bad);
        CPPUNIT_FAIL(bad);
      } catch (const PoolError& e) {
        CPPUNIT_ASSERT_EQUAL(std::string("usage.since"), e.code);
      }
    }
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(ReportViewsTest);

}  // namespace
}  // namespace sublet::cli
