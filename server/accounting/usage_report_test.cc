// Reports are consistent: for any history, all groupings give the same sums, to the
// microsecond, and used = kept + lost.
#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <ctime>

#include "server/accounting/usage_testing.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {
using scheduling::EndReason;
using testing::kDay;
using testing::kSecond;
using testing::kStart;
using testing::UsedPool;

const std::vector<std::vector<GroupBy>> kGroupings = {
    {},
    {GroupBy::kUser},
    {GroupBy::kMachine},
    {GroupBy::kBatch},
    {GroupBy::kDay},
    {GroupBy::kWeek},
    {GroupBy::kJob},
    {GroupBy::kUser, GroupBy::kDay},
    {GroupBy::kJob, GroupBy::kMachine},
    {GroupBy::kWeek, GroupBy::kMachine, GroupBy::kUser, GroupBy::kBatch}};

void add(UsageRow& sum, const UsageRow& row) {
  sum.jobs_done += row.jobs_done;
  sum.attempts += row.attempts;
  sum.evictions += row.evictions;
  sum.used += row.used;
  sum.kept += row.kept;
  sum.lost += row.lost;
  sum.wall += row.wall;
  sum.charged += row.charged;
  sum.waited += row.waited;
}

std::string text_of(const UsageRow& r) {
  std::string text;
  for (const auto& [name, value] : r.group) text += name + "=" + value + " ";
  for (const int64_t n : {int64_t(r.jobs_done), int64_t(r.attempts), int64_t(r.evictions), r.used,
                          r.kept, r.lost, r.wall, r.charged, r.waited, r.server_cpu.value_or(-1)})
    text += std::to_string(n) + " ";
  return text;
}

UsageRow sum_of(const std::vector<UsageRow>& rows) {
  UsageRow sum;
  for (const auto& row : rows) {
    RC_ASSERT(row.used == row.kept + row.lost);
    RC_ASSERT(row.attempts > 0u);
    add(sum, row);
  }
  return sum;
}

std::vector<UsageRow> in_pages(Archive& archive, UsageQuery query, uint32_t size) {
  std::vector<UsageRow> all;
  query.limit = size;
  while (true) {
    const auto page = archive.usage(query);
    all.insert(all.end(), page.begin(), page.end());
    if (page.size() < size) return all;
    query.after.clear();
    for (const auto& [name, value] : page.back().group) query.after.push_back(value);
  }
}

// Computed from the attempts' own rows; also appends the instants at which they ended.
UsageRow sum_over_attempts(UsedPool& pool, std::vector<Micros>* ends) {
  UsageRow sum;
  const JobId last = pool.last_job();
  for (JobId job = 1; job <= last; ++job) {
    for (const AttemptRow& row : pool.archive.attempts(job)) {
      const scheduling::AttemptRecord& a = row.attempt;
      if (a.state != scheduling::AttemptState::kEnded) continue;
      ends->push_back(a.finished);
      ++sum.attempts;
      sum.jobs_done += a.ended == scheduling::EndReason::kDone;
      sum.evictions += is_eviction(a.ended);
      sum.used += a.cpu;
      sum.lost += a.cpu_lost;
      sum.kept += a.cpu - a.cpu_lost;
      sum.waited += (a.started != 0 ? a.started : a.finished) - a.ready;
    }
  }
  return sum;
}

struct Left {
  scheduling::UseRecord use;
  EndRow end;
};

std::vector<Left> some_ends() {
  static constexpr EndReason kAll[] = {EndReason::kDone,          EndReason::kOwner,
                                       EndReason::kOwner,         EndReason::kBlind,
                                       EndReason::kAdministrator, EndReason::kHeld};
  std::vector<Left> all;
  const auto numbers = *rc::gen::arbitrary<std::vector<uint8_t>>();
  for (JobId job = 1; job <= numbers.size(); ++job) {
    const uint32_t bits = numbers[job - 1] * 2654435761u >> 8;
    Left left;
    left.use.key = left.end.key = {job, 1};
    left.use.user = std::string(1, static_cast<char>('a' + bits % 3));
    left.use.machine = 1 + bits / 3 % 3;
    left.use.batch = 1;
    left.use.ended = kAll[bits / 9 % 6];
    left.use.finished = kStart + bits / 54 % 3 * kDay;
    left.end.steps.told = bits % 1000;
    if (bits % 4 != 0) left.end.steps.saved = left.end.steps.told + bits % 17;
    left.end.steps.gone = left.end.steps.told + bits % 100'000;
    all.push_back(left);
  }
  return all;
}

// Slower, and written without the other: the smallest value that p percent do not exceed.
int64_t percentile(const std::vector<int64_t>& values, size_t p) {
  int64_t found = INT64_MAX;
  for (const int64_t value : values) {
    const auto up_to = static_cast<size_t>(
        std::count_if(values.begin(), values.end(), [&](int64_t v) { return v <= value; }));
    if (up_to * 100 >= p * values.size()) found = std::min(found, value);
  }
  return found;
}

std::string group_of(const Left& left, const std::vector<GroupBy>& by) {
  std::string text;
  for (const GroupBy one : by)
    text += (one == GroupBy::kUser      ? left.use.user
             : one == GroupBy::kMachine ? "m" + std::to_string(left.use.machine)
             : one == GroupBy::kDay     ? group_text(one, left.use.finished / kDay)
                                        : std::to_string(left.use.key.job)) +
            " ";
  return text;
}

std::string steps_of(const std::vector<Left>& all, const std::vector<GroupBy>& by,
                     const std::string& group) {
  std::string text;
  for (const protocol::EvictionStep& step : protocol::kEvictionSteps) {
    std::vector<int64_t> values;
    for (const Left& left : all)
      if (group_of(left, by) == group && is_eviction(left.use.ended) &&
          left.end.steps.*step.after_us >= 0)
        values.push_back(left.end.steps.*step.after_us);
    if (values.empty()) continue;
    text += std::to_string(step.number) + ":" + std::to_string(values.size());
    for (const size_t p : {50, 95, 99, 100}) text += "," + std::to_string(percentile(values, p));
    text += " ";
  }
  return text;
}

std::string steps_of(const UsageRow& row) {
  std::string text;
  for (const StepSpread& s : row.steps) {
    text += std::to_string(s.step) + ":" + std::to_string(s.count);
    for (const int64_t us : {s.p50, s.p95, s.p99, s.most}) text += "," + std::to_string(us);
    text += " ";
  }
  return text;
}

class UsageReportTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(UsageReportTest);
  CPPUNIT_TEST(reports_add_up);
  CPPUNIT_TEST(days_and_weeks_end_at_midnight_utc);
  CPPUNIT_TEST(days_and_weeks_are_named_as_iso_8601_does);
  CPPUNIT_TEST(waiting_is_from_ready_to_start);
  CPPUNIT_TEST(what_the_server_spent_belongs_to_its_day);
  CPPUNIT_TEST(names_are_only_text);
  CPPUNIT_TEST(steps_are_those_of_the_lines_evictions);
  CPPUNIT_TEST(a_report_that_takes_too_long_is_ended);
  CPPUNIT_TEST_SUITE_END();

 public:
  void reports_add_up() {
    UsageRow seen;
    uint64_t histories = 0;
    CPPUNIT_ASSERT(rc::check("all groupings have the same sum", [&](uint32_t bits) {
      UsedPool pool;
      pool.live(*rc::gen::scale(2.0, rc::gen::arbitrary<std::vector<uint32_t>>()));
      UsageQuery query;
      query.until = kStart + 10'000 * kDay;
      std::vector<Micros> ends = {kStart};
      const UsageRow attempts = sum_over_attempts(pool, &ends);
      const Micros middle = ends[bits % ends.size()];
      add(seen, attempts);
      ++histories;
      for (const auto& by : kGroupings) {
        query.by = by;
        const auto rows = pool.archive.usage(query);
        UsageRow sum = sum_of(rows);
        const UsageRow whole = sum;
        // The attempts' rows do not have these.
        sum.wall = sum.charged = 0;
        RC_ASSERT(text_of(sum) == text_of(attempts));
        // The same in pages, and in two periods.
        const auto pages = in_pages(pool.archive, query, 2 + bits % 9);
        RC_ASSERT(pages.size() == rows.size());
        for (size_t i = 0; i < rows.size(); ++i) RC_ASSERT(text_of(pages[i]) == text_of(rows[i]));
        UsageQuery early = query, late = query;
        early.until = late.since = middle;
        UsageRow both = sum_of(pool.archive.usage(early));
        add(both, sum_of(pool.archive.usage(late)));
        RC_ASSERT(text_of(both) == text_of(whole));
        // The reports of the individual users add up to the whole report.
        for (const char* user : {"a", "b", "c"}) {
          query.user = user;
          add(both = UsageRow(), sum_of(pool.archive.usage(query)));
          sum.used -= both.used;
        }
        RC_ASSERT(sum.used == 0);
        query.user.clear();
      }
    }));
    // The random histories were not trivial.
    CPPUNIT_ASSERT(seen.jobs_done > histories / 2 && seen.evictions > histories / 2);
    CPPUNIT_ASSERT(seen.attempts > 5 * histories);
    CPPUNIT_ASSERT(seen.kept > 0 && seen.lost > 0 && seen.waited > 0);
  }

  static std::vector<std::string> values(UsedPool& pool, GroupBy by) {
    UsageQuery query;
    query.until = kStart + 10'000 * kDay;
    query.by = {by};
    std::vector<std::string> values;
    for (const auto& row : pool.archive.usage(query))
      values.push_back(row.group[0].second + ":" + std::to_string(row.used));
    return values;
  }

  void days_and_weeks_end_at_midnight_utc() {
    UsedPool pool;
    const Micros midnight = kStart - kStart % kDay + 3 * kDay;  // the start of 2027
    pool.clock.advance_ms((midnight - kStart) / 1000);
    pool.use("ann", 1);  // 2026-12-31 23:59:59.999…
    pool.clock.advance_ms(1);
    pool.use("ann", 20);
    pool.clock.advance_ms(3 * kDay / 1000 - 1);
    pool.use("ann", 300);  // Sunday
    pool.clock.advance_ms(1);
    pool.use("ann", 4000);  // Monday
    CPPUNIT_ASSERT(values(pool, GroupBy::kDay) ==
                   (std::vector<std::string>{"2026-12-31:1", "2027-01-01:20", "2027-01-03:300",
                                             "2027-01-04:4000"}));
    CPPUNIT_ASSERT(values(pool, GroupBy::kWeek) ==
                   (std::vector<std::string>{"2026-W53:321", "2027-W01:4000"}));
  }

  void days_and_weeks_are_named_as_iso_8601_does() {
    CPPUNIT_ASSERT(rc::check("as the C library names them", [] {
      const int64_t day = *rc::gen::inRange<int64_t>(0, 366 * 200), week = (day + 3) / 7;
      const time_t seconds = day * 86'400;
      tm date;
      gmtime_r(&seconds, &date);
      char text[32];
      strftime(text, sizeof text, "%Y-%m-%d", &date);
      RC_ASSERT(group_text(GroupBy::kDay, day) == text);
      RC_ASSERT(group_number(GroupBy::kDay, text) == day);
      strftime(text, sizeof text, "%G-W%V", &date);
      RC_ASSERT(group_text(GroupBy::kWeek, week) == text);
      RC_ASSERT(group_number(GroupBy::kWeek, text) == week);
    }));
    for (const char* text : {"", "2026", "2026-02-29", "2026-13-01", "2026-1-001", "2026-01-01 "})
      CPPUNIT_ASSERT(!group_number(GroupBy::kDay, text));
    for (const char* text : {"", "2026", "2026-W00", "2027-W53", "2026-W1 ", "2026-01-01"})
      CPPUNIT_ASSERT(!group_number(GroupBy::kWeek, text));
    for (const char* text : {"", "-1", "01", "7x", "99999999999999999999"})
      CPPUNIT_ASSERT(!group_number(GroupBy::kJob, text));
    CPPUNIT_ASSERT(group_number(GroupBy::kJob, "17") == 17);
  }

  void waiting_is_from_ready_to_start() {
    using namespace scheduling;
    UsedPool pool;
    JobId job = 0;
    const auto on_machine = [&](const std::function<void(Turn&, AttemptKey)>& what) {
      pool.pipeline.perform([&](Turn& t) { what(t, t.pool().attempt(job)->key); });
    };
    const auto report = [&](bool away) {
      pool.pipeline.perform([&](Turn& t) { t.apply(MachineReported{1, away, 1 << 30, 1 << 30}); });
    };
    pool.pipeline.perform([&](Turn& t) {
      UsedPool::owners(t, 0);
      job = t.apply(Submitted{1, "ann", "desk", {{}}}).answer.first_job;
    });
    pool.clock.advance_ms(5'000);
    report(true);
    pool.clock.advance_ms(1'000);
    on_machine([&](Turn& t, AttemptKey key) {  // never ran: 6 s
      t.apply(MachineReported{1, false, 1 << 30, 1 << 30});
      t.apply(OrderAnswered{key, OrderAnswered::Answer::kRefused, "no"});
    });
    pool.clock.advance_ms(2'000);
    report(true);
    pool.clock.advance_ms(500);
    on_machine([&](Turn& t, AttemptKey key) { t.apply(AttemptStarted{key, 1}); });  // 2.5 s
    pool.clock.advance_ms(10'000);
    on_machine([&](Turn& t, AttemptKey key) {
      t.apply(MachineReported{1, false, 1 << 30, 1 << 30});
      t.apply(AttemptEnded{key, 1, EndReason::kOwner, "", 9 * kSecond, -1, 10 * kSecond});
      t.apply(JobsHeld{{job}});
    });
    pool.clock.advance_ms(20'000);
    pool.pipeline.perform([&](Turn& t) { t.apply(JobsReleased{{job}}); });
    pool.clock.advance_ms(3'000);
    report(true);
    on_machine([&](Turn& t, AttemptKey key) {  // 3 s
      t.apply(AttemptStarted{key, 1});
      t.apply(AttemptEnded{key, 1, EndReason::kDone, "", kSecond, -1, kSecond});
    });
    UsageQuery query;
    query.until = kStart + kDay;
    query.by = {GroupBy::kJob};
    const UsageRow row = pool.archive.usage(query).at(0);
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, row.attempts);
    CPPUNIT_ASSERT_EQUAL(6 * kSecond + 2'500'000 + 3 * kSecond, row.waited);
  }

  void what_the_server_spent_belongs_to_its_day() {
    UsedPool pool;
    const Micros minute = kStart - kStart % (60 * kSecond);
    pool.use("ann", 700);
    pool.pipeline.perform([&](Turn& t) {
      t.changes().spent = {{minute, 5}, {minute + 60 * kSecond, 6}, {minute + kDay, 70}};
    });
    pool.pipeline.perform([&](Turn& t) { t.changes().spent = {{minute, 100}}; });  // adds up
    UsageQuery query;
    query.until = kStart + 10 * kDay;
    query.with_server = true;
    auto rows = pool.archive.usage(query);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, rows.size());
    CPPUNIT_ASSERT_EQUAL(int64_t{181}, rows[0].server_cpu.value());
    CPPUNIT_ASSERT_EQUAL(int64_t{700}, rows[0].used);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, rows[0].attempts);
    query.by = {GroupBy::kDay};
    rows = pool.archive.usage(query);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, rows.size());  // the second has only the server's CPU time
    CPPUNIT_ASSERT_EQUAL(int64_t{111}, rows[0].server_cpu.value());
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, rows[1].attempts);
    CPPUNIT_ASSERT_EQUAL(int64_t{70}, rows[1].server_cpu.value());
  }

  void steps_are_those_of_the_lines_evictions() {
    CPPUNIT_ASSERT(rc::check("steps by any grouping, in pages of any size", [] {
      UsedPool pool;
      const std::vector<Left> all = some_ends();
      pool.pipeline.perform([&](Turn& t) {
        for (const Left& left : all) {
          t.changes().uses.push_back(left.use);
          t.changes().ends.push_back(left.end);
        }
        t.remember("key", "digest", "answer");
      });
      UsageQuery query;
      query.until = kStart + 10 * kDay;
      query.with_steps = true;
      for (const auto& by : std::vector<std::vector<GroupBy>>{
               {}, {GroupBy::kUser}, {GroupBy::kDay, GroupBy::kMachine}, {GroupBy::kJob}}) {
        query.by = by;
        query.limit = 0;
        for (const auto& rows :
             {pool.archive.usage(query), in_pages(pool.archive, query, by.empty() ? 2 : 3)}) {
          RC_ASSERT(!rows.empty() || all.empty());
          for (const UsageRow& row : rows) {
            std::string group;
            for (const auto& [name, value] : row.group) group += value + " ";
            RC_ASSERT(steps_of(row) == steps_of(all, by, group));
          }
        }
      }
      query.with_steps = false;
      for (const UsageRow& row : pool.archive.usage(query)) RC_ASSERT(row.steps.empty());
    }));
  }

  void a_report_that_takes_too_long_is_ended() {
    UsedPool pool;
    pool.pipeline.perform([](Turn& t) {
      for (JobId job = 1; job <= 5000; ++job)
        t.changes().uses.push_back(
            {{job, 1}, "ann", 1, 1, scheduling::EndReason::kDone, kStart, 1, 1, 1, 0, 1});
      t.remember("key", "digest", "answer");
    });
    UsageQuery query;
    query.until = kStart + kDay;
    query.by = {GroupBy::kUser};
    query.may_take = 0;
    try {
      pool.archive.usage(query);
      CPPUNIT_FAIL("it took no time");
    } catch (const Refusal& refusal) {
      CPPUNIT_ASSERT_EQUAL(std::string("report.too_long"), refusal.code);
    }
    query.may_take = kLongestReport;  // the next report succeeds
    CPPUNIT_ASSERT_EQUAL(uint64_t{5000}, pool.archive.usage(query).at(0).attempts);
  }

  void names_are_only_text() {
    UsedPool pool;
    const std::string hostile = "x' or 1=1; --\n:a";
    pool.use(hostile, 5);
    pool.use("ann", 7);
    UsageQuery query;
    query.until = kStart + kDay;
    query.by = {GroupBy::kUser};
    query.user = hostile;
    CPPUNIT_ASSERT_EQUAL(int64_t{5}, pool.archive.usage(query).at(0).used);
    query.user.clear();
    query.after = {hostile};
    CPPUNIT_ASSERT(pool.archive.usage(query).empty());
    query.after = {"ann"};
    CPPUNIT_ASSERT_EQUAL(hostile, pool.archive.usage(query).at(0).group[0].second);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(UsageReportTest);

}  // namespace
}  // namespace sublet::server
