// Batches under concurrency: what was acknowledged is stored exactly once.
#include "server/jobs/service.h"

#include <cppunit/extensions/HelperMacros.h>

#include <atomic>
#include <future>
#include <thread>

#include "server/services_testing.h"

namespace sublet::server {
namespace {

using testing::code;

class JobServiceTest : public testing::ServicesFixture {
  CPPUNIT_TEST_SUITE(JobServiceTest);
  CPPUNIT_TEST(a_batch_is_committed_once);
  CPPUNIT_TEST(what_is_appended_is_committed_or_refused);
  CPPUNIT_TEST(repeats_give_the_first_answer);
  CPPUNIT_TEST(appends_are_put_in_order);
  CPPUNIT_TEST(a_discarded_batch_is_gone);
  CPPUNIT_TEST(others_cannot_touch_a_batch);
  CPPUNIT_TEST(an_array_is_one_record);
  CPPUNIT_TEST(neighbours_of_many_programs_are_kept_together_in_the_end);
  CPPUNIT_TEST(neighbours_with_equal_needs_are_kept_together);
  CPPUNIT_TEST(too_many_are_refused);
  CPPUNIT_TEST(a_repeated_control_gets_its_first_answer);
  CPPUNIT_TEST(runs_are_listed_as_one);
  CPPUNIT_TEST(states_narrow_what_is_controlled);
  CPPUNIT_TEST(a_priority_is_set_once);
  CPPUNIT_TEST(conditions_are_checked_and_kept);
  CPPUNIT_TEST(limited_batches_are_few);
  CPPUNIT_TEST(hours_are_few);
  CPPUNIT_TEST(arrays_of_none_and_too_many_are_refused);
  CPPUNIT_TEST(others_see_states_only);
  CPPUNIT_TEST(the_nameless_submit_nothing);
  CPPUNIT_TEST(the_first_change_is_not_missed);
  CPPUNIT_TEST(who_waits_is_woken_by_his_own_changes);
  CPPUNIT_TEST(what_no_machine_could_run_is_refused);
  CPPUNIT_TEST_SUITE_END();

 public:
  // Each work item has a transaction of its own.
  JobServiceTest() : ServicesFixture(one_at_a_time()) {}

 private:
  static PipelineSettings one_at_a_time() {
    PipelineSettings settings;
    settings.group_limit = 1;
    return settings;
  }
  static SpecRange job() {
    SpecRange range;
    range.spec.program = "true";
    return range;
  }
  BatchId open() { return open_batch(ann_); }
  static JobQuery these(JobId first, uint64_t count = 1) {
    JobQuery query;
    query.ids = {{first, count}};
    return query;
  }
  uint64_t jobs_of(BatchId batch) {
    JobQuery query;
    query.batch = batch;
    uint64_t sum = 0;
    for (auto [state, count] : archive_->count(query)) sum += count;
    return sum;
  }
  void what_no_machine_could_run_is_refused() {
    JobDescription large;
    large.program = "true";
    large.needs.memory = 64ull << 30;
    const auto submit_single = [&] { jobs_->submit(ann_, random_bytes(16), "desk", large); };
    submit_single();  // no machine is known yet
    curly_joins();
    CPPUNIT_ASSERT_EQUAL(std::string("needs.unmet"), code(submit_single));
    const BatchId batch = open();
    SpecRange fits = job(), large_one = job();
    large_one.spec = large;
    jobs_->append(ann_, batch, 0, {fits, large_one});
    const auto commit = [&] { jobs_->commit_batch(ann_, random_bytes(16), batch); };
    CPPUNIT_ASSERT_EQUAL(std::string("needs.unmet"), code(commit));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, jobs_of(batch));
    large.even_so = true;
    submit_single();
    const BatchId other = open();
    large_one.spec = large;
    jobs_->append(ann_, other, 0, {fits, large_one});
    jobs_->commit_batch(ann_, random_bytes(16), other);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, jobs_of(other));
    // A few different needs more than are looked at cost nothing else.
    const BatchId many = open();
    std::vector<SpecRange> jobs(500, job());
    for (size_t n = 0; n < jobs.size(); ++n) jobs[n].spec.needs.memory = n + 1;
    jobs_->append(ann_, many, 0, jobs);
    jobs_->commit_batch(ann_, random_bytes(16), many);
    CPPUNIT_ASSERT_EQUAL(uint64_t{500}, jobs_of(many));
  }

  void a_batch_is_committed_once() {
    for (int round = 0; round < 20; ++round) {
      const BatchId batch = open();
      jobs_->append(ann_, batch, 0, {job()});
      std::atomic<int> committed{0}, discarded{0};
      std::vector<std::thread> threads;
      for (int t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
          if (t < 2)
            committed += code([&] { jobs_->commit_batch(ann_, random_bytes(16), batch); }).empty();
          else
            discarded += code([&] { jobs_->discard_batch(ann_, batch); }).empty();
        });
      for (auto& t : threads) t.join();
      CPPUNIT_ASSERT_EQUAL(1, committed + discarded);
      CPPUNIT_ASSERT_EQUAL(uint64_t(committed.load()), jobs_of(batch));
    }
  }

  void what_is_appended_is_committed_or_refused() {
    for (int round = 0; round < 20; ++round) {
      const BatchId batch = open();
      jobs_->append(ann_, batch, 0, {job()});
      std::atomic<uint64_t> taken{1};
      std::thread appender([&] {
        for (uint32_t n = 1; n < 20; ++n)
          taken += code([&] { jobs_->append(ann_, batch, n, {job()}); }).empty();
      });
      const auto range = jobs_->commit_batch(ann_, random_bytes(16), batch);
      appender.join();
      CPPUNIT_ASSERT_EQUAL(taken.load(), range.second);
      CPPUNIT_ASSERT_EQUAL(taken.load(), jobs_of(batch));
      CPPUNIT_ASSERT(archive_->batch(batch)->committed);
    }
  }

  void repeats_give_the_first_answer() {
    const std::string request = random_bytes(16);
    const BatchId batch = jobs_->open_batch(ann_, request, {"b", "desk"});
    CPPUNIT_ASSERT_EQUAL(batch, jobs_->open_batch(ann_, request, {"b", "desk"}));
    CPPUNIT_ASSERT_EQUAL(std::string("request.reused"), code([&] {
                           jobs_->open_batch(ann_, request, {"other", "desk"});
                         }));
    jobs_->append(ann_, batch, 0, {job(), job()});
    jobs_->append(ann_, batch, 0, {job(), job()});
    CPPUNIT_ASSERT_EQUAL(std::string("batch.number"),
                         code([&] { jobs_->append(ann_, batch, 0, {job()}); }));
    const std::string commit = random_bytes(16);
    const auto range = jobs_->commit_batch(ann_, commit, batch);
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, range.second);
    CPPUNIT_ASSERT(range == jobs_->commit_batch(ann_, commit, batch));
    CPPUNIT_ASSERT_EQUAL(std::string("batch.committed"),
                         code([&] { jobs_->commit_batch(ann_, random_bytes(16), batch); }));
  }

  void appends_are_put_in_order() {
    const BatchId batch = open();
    const auto append = [&](uint32_t number, const std::string& name) {
      SpecRange one = job();
      one.spec.name = name;
      jobs_->append(ann_, batch, number, {one});
    };
    append(2, "third");
    append(0, "first");
    CPPUNIT_ASSERT_EQUAL(std::string("batch.gap"),
                         code([&] { jobs_->commit_batch(ann_, random_bytes(16), batch); }));
    append(1, "second");
    const JobId first = jobs_->commit_batch(ann_, random_bytes(16), batch).first;
    CPPUNIT_ASSERT_EQUAL(std::string("first"), archive_->job(first)->name);
    CPPUNIT_ASSERT_EQUAL(std::string("second"), archive_->job(first + 1)->name);
    CPPUNIT_ASSERT_EQUAL(std::string("third"), archive_->job(first + 2)->name);
  }

  void a_discarded_batch_is_gone() {
    const BatchId batch = open();
    jobs_->append(ann_, batch, 0, {job()});
    jobs_->discard_batch(ann_, batch);
    CPPUNIT_ASSERT_EQUAL(std::string("batch.unknown"),
                         code([&] { jobs_->commit_batch(ann_, random_bytes(16), batch); }));
    CPPUNIT_ASSERT(!archive_->part(batch, 0));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, archive_->draft(batch).parts);
  }

  void others_cannot_touch_a_batch() {
    const BatchId batch = open();
    const Caller bob{1001, "bob", false, true};
    CPPUNIT_ASSERT_EQUAL(std::string("batch.unknown"),
                         code([&] { jobs_->append(bob, batch, 0, {job()}); }));
    CPPUNIT_ASSERT_EQUAL(std::string("batch.unknown"),
                         code([&] { jobs_->discard_batch(bob, batch); }));
  }

  void an_array_is_one_record() {
    const BatchId batch = open();
    SpecRange array = job();
    array.count = 1'000'000;
    jobs_->append(ann_, batch, 0, {array});
    const auto range = jobs_->commit_batch(ann_, random_bytes(16), batch);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1'000'000}, range.second);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1'000'000}, jobs_of(batch));
    CPPUNIT_ASSERT_EQUAL(size_t{1}, archive_->runs({}, 0, 10).rows.size());
    JobQuery some;
    some.ids = {{range.first + 10, 5}, {range.first + 100, 899'900}};
    const auto act = [&](JobService::Action action) {
      return jobs_->control(ann_, random_bytes(16), action, some);
    };
    CPPUNIT_ASSERT_EQUAL(uint64_t{899'905}, act(JobService::Action::kHold).changed);
    CPPUNIT_ASSERT_EQUAL(uint64_t{899'905}, act(JobService::Action::kHold).unchanged);
    CPPUNIT_ASSERT_EQUAL(uint64_t{899'905}, act(JobService::Action::kRelease).changed);
    CPPUNIT_ASSERT_EQUAL(uint64_t{899'905}, act(JobService::Action::kRemove).changed);
    CPPUNIT_ASSERT_EQUAL(size_t{5}, archive_->runs({}, 0, 10).rows.size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{1'000'000}, jobs_of(batch));
    CPPUNIT_ASSERT(archive_->job(range.first + 500)->job.state == scheduling::JobState::kRemoved);
    CPPUNIT_ASSERT_EQUAL(500u, archive_->job(range.first + 500)->job.index);
  }

  // Each is what its runs are learnt for, as long as the batch has few.
  void neighbours_of_many_programs_are_kept_together_in_the_end() {
    const BatchId batch = open();
    std::vector<SpecRange> specs(100, job());
    for (size_t i = 0; i < specs.size(); ++i) specs[i].spec.program = std::to_string(i);
    jobs_->append(ann_, batch, 0, specs);
    jobs_->commit_batch(ann_, random_bytes(16), batch);
    JobQuery query;
    query.batch = batch;
    const auto records = archive_->runs(query, 0, 100).rows;
    CPPUNIT_ASSERT_EQUAL(size_t{65}, records.size());
    CPPUNIT_ASSERT(records[0].job.program != records[1].job.program);
    CPPUNIT_ASSERT(records[63].job.program != 0);
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, records[64].job.program);
    CPPUNIT_ASSERT_EQUAL(uint64_t{36}, records[64].job.count);
  }

  // Jobs of one program that differ only in its arguments are one record, but are listed one by
  // one.
  void neighbours_with_equal_needs_are_kept_together() {
    const BatchId batch = open();
    std::vector<SpecRange> specs(6, job());
    for (size_t i = 0; i < specs.size(); ++i)
      specs[i].spec.arguments = {specs[i].spec.name = std::string(1, static_cast<char>('a' + i))};
    specs[2].count = 10;
    specs[5].spec.retries = 1;
    jobs_->append(ann_, batch, 0, {specs[0], specs[1], specs[2]});
    jobs_->append(ann_, batch, 1, {specs[3], specs[4], specs[5]});
    const JobId first = jobs_->commit_batch(ann_, random_bytes(16), batch).first;
    JobQuery query;
    query.batch = batch;
    const auto records = archive_->runs(query, 0, 10).rows;
    CPPUNIT_ASSERT_EQUAL(size_t{2}, records.size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{14}, records[0].job.count);
    for (const uint32_t limit : {1u, 2u, 3u, 4u, 10u}) {
      std::string runs, jobs;
      query.runs = true;
      for (JobId after = 0;;) {
        const JobPage page = jobs_->list(ann_, query, after, limit);
        CPPUNIT_ASSERT(page.rows.size() <= limit);
        for (const auto& row : page.rows) runs += row.name + std::to_string(row.job.count);
        if ((after = page.next) == 0) break;
      }
      query.runs = false;
      for (JobId after = 0;;) {
        const JobPage page = jobs_->list(ann_, query, after, limit);
        for (const auto& row : page.rows) {
          CPPUNIT_ASSERT_EQUAL(row.job.id - first, JobId{row.job.index});
          CPPUNIT_ASSERT_EQUAL(row.name, archive_->spec(row.job.id)->arguments.at(0));
          jobs += row.name;
        }
        if ((after = page.next) == 0) break;
      }
      CPPUNIT_ASSERT_EQUAL(std::string("a1b1c10d1e1f1"), runs);
      CPPUNIT_ASSERT_EQUAL(std::string("abccccccccccdef"), jobs);
    }
    CPPUNIT_ASSERT_EQUAL(std::string("d"), jobs_->show(ann_, first + 12).row.name);
    jobs_->control(ann_, random_bytes(16), JobService::Action::kRemove, these(first + 11, 2));
    CPPUNIT_ASSERT_EQUAL(std::string("e"), archive_->job(first + 13)->name);
    CPPUNIT_ASSERT(archive_->job(first + 12)->job.state == scheduling::JobState::kRemoved);
    CPPUNIT_ASSERT(archive_->job(first + 13)->job.state == scheduling::JobState::kWaiting);
  }

  void too_many_are_refused() {
    JobService narrow(*pipeline_, *archive_, sessions_, access_, questions_, [] {},
                      {.most_controlled = 2});
    const BatchId batch = open();
    SpecRange array = job();
    SpecRange other = job();
    array.count = 100;
    other.spec.retries = 1;
    jobs_->append(ann_, batch, 0, {array, other, job()});
    const JobId first = jobs_->commit_batch(ann_, random_bytes(16), batch).first;
    const auto hold = [&](const JobQuery& query) {
      return narrow.control(ann_, random_bytes(16), JobService::Action::kHold, query).changed;
    };
    CPPUNIT_ASSERT_EQUAL(std::string("control.too_many"), code([&] { hold(these(first, 102)); }));
    CPPUNIT_ASSERT(archive_->job(first)->job.state == scheduling::JobState::kWaiting);
    CPPUNIT_ASSERT_EQUAL(uint64_t{101}, hold(these(first, 101)));
  }

  // Even if the request would be refused by now.
  void a_repeated_control_gets_its_first_answer() {
    JobService narrow(*pipeline_, *archive_, sessions_, access_, questions_, [] {},
                      {.most_controlled = 1});
    JobQuery all;
    all.user = "ann";
    const std::string request = random_bytes(16);
    const auto hold = [&] {
      return narrow.control(ann_, request, JobService::Action::kHold, all).changed;
    };
    jobs_->submit(ann_, random_bytes(16), "desk", job().spec);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, hold());
    jobs_->submit(ann_, random_bytes(16), "desk", job().spec);
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, hold());
    CPPUNIT_ASSERT_EQUAL(std::string("control.too_many"), code([&] {
                           narrow.control(ann_, random_bytes(16), JobService::Action::kHold, all);
                         }));
  }

  void runs_are_listed_as_one() {
    const BatchId batch = open();
    SpecRange array = job();
    array.count = 100;
    jobs_->append(ann_, batch, 0, {array});
    const JobId first = jobs_->commit_batch(ann_, random_bytes(16), batch).first;
    jobs_->control(ann_, random_bytes(16), JobService::Action::kHold, these(first + 40, 10));
    JobQuery query;
    query.runs = true;
    JobPage page = jobs_->list(ann_, query, 0, 2);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, page.rows.size());
    CPPUNIT_ASSERT_EQUAL(uint64_t{40}, page.rows[0].job.count);
    CPPUNIT_ASSERT_EQUAL(uint64_t{10}, page.rows[1].job.count);
    CPPUNIT_ASSERT_EQUAL(std::string("held by ann until it is released"), page.rows[1].job.reason);
    page = jobs_->list(Caller{1001, "bob", false, true}, query, page.next, 2);
    CPPUNIT_ASSERT_EQUAL(first + 50, page.rows.at(0).job.id);
    CPPUNIT_ASSERT_EQUAL(uint64_t{50}, page.rows[0].job.count);
    CPPUNIT_ASSERT_EQUAL(JobId{0}, page.next);
  }

  void states_narrow_what_is_controlled() {
    const BatchId batch = open();
    jobs_->append(ann_, batch, 0, {job(), job(), job()});
    const JobId first = jobs_->commit_batch(ann_, random_bytes(16), batch).first;
    const auto act = [&](JobService::Action action, const JobQuery& query) {
      return jobs_->control(ann_, random_bytes(16), action, query).changed;
    };
    act(JobService::Action::kHold, these(first));
    JobQuery held;
    held.user = "ann";
    held.states = {static_cast<uint32_t>(scheduling::JobState::kHeld)};
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, act(JobService::Action::kRemove, held));
    CPPUNIT_ASSERT_EQUAL(std::string("removed by ann"), archive_->job(first)->job.reason);
    // An existing job in another state is not unknown.
    held.ids = {scheduling::JobRange(first + 1)};
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, act(JobService::Action::kRemove, held));
    CPPUNIT_ASSERT(archive_->job(first + 1)->job.state == scheduling::JobState::kWaiting);
  }

  // A part of an array, and only one's own; the request with another priority is another one.
  void a_priority_is_set_once() {
    const BatchId batch = open();
    SpecRange array = job();
    array.count = 100;
    array.spec.priority = 1;
    jobs_->append(ann_, batch, 0, {array});
    const JobId first = jobs_->commit_batch(ann_, random_bytes(16), batch).first;
    const std::string request = random_bytes(16);
    const auto set = [&](const Caller& caller, int32_t priority) {
      return jobs_->control(caller, request, {JobService::Action::kSetPriority, priority},
                            these(first + 40, 10));
    };
    CPPUNIT_ASSERT_EQUAL(uint64_t{10}, set(ann_, -7).changed);
    CPPUNIT_ASSERT_EQUAL(uint64_t{10}, set(ann_, -7).changed);
    CPPUNIT_ASSERT_EQUAL(std::string("request.reused"), code([&] { set(ann_, -8); }));
    CPPUNIT_ASSERT_EQUAL(std::string("job.not_yours"), code([&] {
                           set(Caller{1001, "bob", false, true}, -7);
                         }));
    CPPUNIT_ASSERT_EQUAL(1, archive_->job(first + 39)->job.priority);
    CPPUNIT_ASSERT_EQUAL(-7, archive_->job(first + 49)->job.priority);
    CPPUNIT_ASSERT_EQUAL(-7, jobs_->show(ann_, first + 40).row.job.priority);
    CPPUNIT_ASSERT_EQUAL(1, jobs_->show(ann_, first + 40).spec.priority);
  }

  // One whose limit is no limit does not count, nor one that has ended.
  void limited_batches_are_few() {
    const auto submit = [&](uint64_t jobs, uint64_t at_most) {
      const BatchRequest request{"b", "desk", {}, OnNever::kHold, at_most};
      const BatchId batch = jobs_->open_batch(ann_, random_bytes(16), request);
      jobs_->append(ann_, batch, 0, std::vector<SpecRange>(jobs, job()));
      return jobs_->commit_batch(ann_, random_bytes(16), batch).first;
    };
    const JobId first = submit(3, 2);
    submit(2, 2);
    for (int i = 1; i < 100; ++i) submit(2, 1);
    CPPUNIT_ASSERT_EQUAL(std::string("batch.at_most"), code([&] { submit(2, 1); }));
    jobs_->control(ann_, random_bytes(16), JobService::Action::kRemove, these(first, 3));
    submit(2, 1);
  }

  // However they are written, and however many jobs name them.
  void hours_are_few() {
    const auto submit = [&](std::vector<std::string> hours) {
      const BatchId batch = jobs_->open_batch(ann_, random_bytes(16), {"b", "desk", {}});
      std::vector<SpecRange> ranges;
      for (const std::string& text : hours) ranges.emplace_back(job()).spec.hours = text;
      jobs_->append(ann_, batch, 0, ranges);
      return jobs_->commit_batch(ann_, random_bytes(16), batch).first;
    };
    std::vector<std::string> all;
    for (int i = 0; i < 32; ++i) all.push_back("sat 10:" + std::to_string(10 + i) + "-11:00");
    const JobId first = submit(all);
    CPPUNIT_ASSERT_EQUAL(std::string("hours.too_many"), code([&] { submit({"sun"}); }));
    JobDescription single = job().spec;
    single.hours = "sun";
    const auto submit_single = [&] { jobs_->submit(ann_, random_bytes(16), "desk", single); };
    CPPUNIT_ASSERT_EQUAL(std::string("hours.too_many"), code(submit_single));
    submit({"SAT 10:10-11:00", "sat 10:11-11:00"});
    CPPUNIT_ASSERT_EQUAL(std::string("sat 10:10-11:00"),
                         archive_->job(first + 32)->job.needs.hours.str());
    jobs_->control(ann_, random_bytes(16), JobService::Action::kRemove, these(first + 20, 1));
    submit({"sun"});
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), code([&] { submit({"always"}); }));
  }

  void conditions_are_checked_and_kept() {
    const std::string request = random_bytes(16);
    const BatchId batch = jobs_->open_batch(ann_, request, {"b", "desk", {0, 0, "key"}});
    CPPUNIT_ASSERT_EQUAL(std::string("request.reused"), code([&] {
                           jobs_->open_batch(ann_, request, {"b", "desk", {0, 1, "key"}});
                         }));
    jobs_->append(ann_, batch, 0, {job()});
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"),
                         code([&] { jobs_->commit_batch(ann_, random_bytes(16), batch); }));
    SpecRange finder = job();
    finder.spec.outputs = {{"key", false}};
    jobs_->append(ann_, batch, 1, {finder});
    const JobId first = jobs_->commit_batch(ann_, random_bytes(16), batch).first;
    CPPUNIT_ASSERT_EQUAL(std::string("key"), archive_->awaited_output(first));
    JobQuery query;
    query.batch = batch;
    query.stopped = JobQuery::Stopped::kOnly;
    const auto stopped = [&] {
      const auto counts = archive_->count(query);
      return counts.empty() ? 0 : counts[0].second;
    };
    pipeline_->perform([&](Turn& t) { t.apply(scheduling::JobsRemoved{{first}}); });
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, stopped());
    CPPUNIT_ASSERT(archive_->job(first)->job.state == scheduling::JobState::kRemoved);
    pipeline_->perform([&](Turn& t) {
      t.apply(scheduling::TimePassed{});
      t.changes().stops[batch] = {batch, {0, 0, "key"}, 1, 0, first + 1};
    });
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, stopped());
    query.stopped = JobQuery::Stopped::kWithout;
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, stopped());
    CPPUNIT_ASSERT_EQUAL(std::string(), archive_->awaited_output(first + 1));
  }

  void arrays_of_none_and_too_many_are_refused() {
    const BatchId batch = open();
    const auto refusal = [&](uint64_t first, uint64_t count) {
      SpecRange array = job();
      array.is_array = true;
      array.first_index = first;
      array.count = count;
      return code([&] { jobs_->append(ann_, batch, 0, {array}); });
    };
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), refusal(0, 0));
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), refusal(UINT64_MAX, 2));
    for (const uint64_t count : {uint64_t{1'000'001}, uint64_t{1'000'000'000'000}, UINT64_MAX})
      CPPUNIT_ASSERT_EQUAL(std::string("batch.jobs"), refusal(0, count));
    CPPUNIT_ASSERT_EQUAL(std::string("batch.empty"),
                         code([&] { jobs_->commit_batch(ann_, random_bytes(16), batch); }));
  }

  void others_see_states_only() {
    const BatchId batch = open();
    SpecRange secret = job();
    secret.spec.name = "secret";
    jobs_->append(ann_, batch, 0, {secret, secret});
    jobs_->commit_batch(ann_, random_bytes(16), batch);
    const Caller bob{1001, "bob", false, true};
    const JobRow row = jobs_->list(bob, {}, 0, 10).rows.at(1);
    CPPUNIT_ASSERT_EQUAL(std::string("ann"), row.job.user);
    CPPUNIT_ASSERT(row.job.state == scheduling::JobState::kWaiting && row.job.submitted > 0);
    CPPUNIT_ASSERT_EQUAL(std::string(""), row.name + row.job.reason + row.job.submit_host);
    CPPUNIT_ASSERT_EQUAL(BatchId{0}, row.job.batch + row.job.index);
    CPPUNIT_ASSERT_EQUAL(std::string("secret"), jobs_->list(ann_, {}, 0, 10).rows.at(1).name);
    CPPUNIT_ASSERT(code([&] { jobs_->show(bob, row.job.id); }) != "");
  }

  void the_nameless_submit_nothing() {
    const Caller slot{61184, "uid61184", false, false};
    CPPUNIT_ASSERT_EQUAL(std::string("caller.nameless"),
                         code([&] { jobs_->submit(slot, random_bytes(16), "desk", job().spec); }));
  }

  // Whatever others' jobs do meanwhile.
  void who_waits_is_woken_by_his_own_changes() {
    const Caller bob{1001, "bob", false, true}, root{0, "root", true, true};
    const uint64_t before = jobs_->changes_since(ann_, 0, 0).last;
    const auto waits = [&](const Caller& who) {
      return std::async(std::launch::async,
                        [&, who] { return jobs_->changes_since(who, before, 10'000); });
    };
    auto of_ann = waits(ann_), of_anybody = waits(root);
    const JobId first = jobs_->submit(bob, random_bytes(16), "desk", job().spec);
    jobs_->grown(before + 1, {"bob"});
    CPPUNIT_ASSERT_EQUAL(first, of_anybody.get().items.at(0).job);
    const JobId second = jobs_->submit(ann_, random_bytes(16), "desk", job().spec);
    jobs_->grown(before + 2, {"ann"});
    const ChangeList list = of_ann.get();
    CPPUNIT_ASSERT_EQUAL(size_t{1}, list.items.size());
    CPPUNIT_ASSERT_EQUAL(second, list.items[0].job);
    CPPUNIT_ASSERT(jobs_->changes_since(bob, before + 1, 0).items.empty());
  }

  // By somebody who began to follow them before there was any.
  void the_first_change_is_not_missed() {
    const uint64_t before = jobs_->changes_since(ann_, 0, 0).last;
    CPPUNIT_ASSERT(before > 0);
    CPPUNIT_ASSERT(jobs_->changes_since(ann_, before, 0).items.empty());
    const JobId job_id = jobs_->submit(ann_, random_bytes(16), "desk", job().spec);
    const ChangeList list = jobs_->changes_since(ann_, before, 0);
    CPPUNIT_ASSERT(!list.gap);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, list.items.size());
    CPPUNIT_ASSERT_EQUAL(job_id, list.items[0].job);
    CPPUNIT_ASSERT_EQUAL(list.last, jobs_->changes_since(ann_, 0, 0).last);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(JobServiceTest);

}  // namespace
}  // namespace sublet::server
