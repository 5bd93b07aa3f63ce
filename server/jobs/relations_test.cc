// What jobs of a batch wait for: which references are taken, and what is stored.
#include "server/jobs/relations.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sqlite3.h>

#include "server/services_testing.h"
#include "server/store/queries_testing.h"

namespace sublet::server {
namespace {

class RelationsServiceTest : public testing::ServicesFixture {
  CPPUNIT_TEST_SUITE(RelationsServiceTest);
  CPPUNIT_TEST(indices_become_ids);
  CPPUNIT_TEST(others_jobs_and_none);
  CPPUNIT_TEST(what_has_ended_already);
  CPPUNIT_TEST(how_others_have_ended);
  CPPUNIT_TEST(what_cannot_be_read_counts_as_removed_in_the_end);
  CPPUNIT_TEST(many_others_take_several_turns);
  CPPUNIT_TEST(cycles_are_refused);
  CPPUNIT_TEST(too_many_others);
  CPPUNIT_TEST(single_others_are_looked_up_together);
  CPPUNIT_TEST(the_committer_does_not_look_up_what_has_ended);
  CPPUNIT_TEST(sources_count_as_jobs_waited_for);
  CPPUNIT_TEST(a_single_job_waits_too);
  CPPUNIT_TEST(a_restarted_server_knows);
  CPPUNIT_TEST(outputs_that_feed_others_are_needed);
  CPPUNIT_TEST(inputs_from_one_producer_are_looked_up_together);
  CPPUNIT_TEST(outputs_of_each_job_of_an_array);
  CPPUNIT_TEST_SUITE_END();

  static SpecRange job(JobReferences after, uint64_t count = 1) {
    SpecRange range;
    range.spec.name = "j";
    range.spec.program = "true";
    range.spec.waits_for.after = std::move(after);
    range.is_array = count > 1;
    range.count = count;
    return range;
  }
  static JobDescription waiting(Dependences waits_for) {
    JobDescription spec;
    spec.program = "true";
    spec.waits_for = std::move(waits_for);
    return spec;
  }
  JobId submit_all(const std::vector<SpecRange>& specs, OnNever on_never = OnNever::kHold) {
    const BatchId batch = jobs_->open_batch(ann_, random_bytes(16), {"b", "desk", {}, on_never});
    jobs_->append(ann_, batch, 0, specs);
    return jobs_->commit_batch(ann_, random_bytes(16), batch).first;
  }
  JobId submit_single(const Caller& caller, const JobDescription& spec) {
    return jobs_->submit(caller, random_bytes(16), "desk", spec);
  }
  std::string refused(const Caller& caller, const Dependences& waits_for) {
    return testing::code([&] { submit_single(caller, waiting(waits_for)); });
  }
  // A job that leaves so many outputs; those of the producer, if there is one, are its inputs.
  static SpecRange passing_on(std::optional<JobId> producer, size_t files) {
    SpecRange range = job({});
    for (size_t i = 0; i < files; ++i) {
      const std::string name = "part-" + std::to_string(i);
      range.spec.outputs.push_back({name, true});
      if (producer) range.spec.inputs.push_back({0, name, false, {false, *producer, name}});
    }
    return range;
  }
  void end(JobId job, scheduling::EndReason ended) {
    apply(scheduling::AttemptEnded{start({job, 1}), machine_, ended, ""});
  }

 public:
  void setUp() override {
    const testing::CountQueries of_its_connections;
    ServicesFixture::setUp();
  }

  void indices_become_ids() {
    const JobId first = submit_all({job({}, 10), job({{true, 2, 3}, {true, 11, 1}}), job({})});
    CPPUNIT_ASSERT((archive_->spec(first + 10)->waits_for.after ==
                    JobReferences{{false, first + 2, 3}, {false, first + 11, 1}}));
    CPPUNIT_ASSERT_EQUAL(std::string("waits until jobs 3 to 5 are done (3 to go); 1 more"),
                         jobs_->show(ann_, first + 10).row.job.reason);
  }

  void others_jobs_and_none() {
    const JobId anns = submit_single(ann_, waiting({}));
    CPPUNIT_ASSERT_EQUAL(std::string("job.not_yours"), refused(bob_, {{{false, anns, 1}}, {}, {}}));
    CPPUNIT_ASSERT_EQUAL(std::string(), refused(root_, {{{false, anns, 1}}, {}, {}}));
    CPPUNIT_ASSERT_EQUAL(std::string("relation.unknown"),
                         refused(ann_, {{}, {{false, 500, 2}}, {}}));
    CPPUNIT_ASSERT_EQUAL(std::string("relation.unknown"), refused(ann_, {{}, {}, {{false, 0, 1}}}));
    CPPUNIT_ASSERT_EQUAL(std::string("field.invalid"), refused(ann_, {{{false, 1, 0}}, {}, {}}));
    CPPUNIT_ASSERT_EQUAL(std::string("relation.itself"), refused(ann_, {{{true, 0, 1}}, {}, {}}));
    CPPUNIT_ASSERT_EQUAL(std::string("relation.unknown"), refused(ann_, {{{true, 1, 1}}, {}, {}}));
  }

  void what_has_ended_already() {
    curly_joins();
    const JobId done = submit_single(ann_, waiting({}));
    end(done, scheduling::EndReason::kDone);
    const JobId failed = submit_single(ann_, waiting({}));
    end(failed, scheduling::EndReason::kExit);
    const JobId next = submit_single(
        ann_, waiting({{{false, done, 1}}, {{false, failed, 1}}, {{false, failed, 1}}}));
    CPPUNIT_ASSERT(jobs_->show(ann_, next).row.job.state == scheduling::JobState::kPlaced);
    CPPUNIT_ASSERT_EQUAL(std::string("relation.never"),
                         refused(ann_, {{{false, done, 2}}, {}, {}}));
    const JobId removed = submit_single(ann_, waiting({}));
    apply(scheduling::JobsRemoved{{{removed}}});
    CPPUNIT_ASSERT_EQUAL(std::string("relation.never"),
                         refused(ann_, {{}, {}, {{false, removed, 1}}}));
  }

  void how_others_have_ended() {
    using scheduling::After, scheduling::JobState, scheduling::LostDependence;
    curly_joins();
    const JobId first = submit_all({job({}, 6)});
    end(first, scheduling::EndReason::kDone);
    end(first + 1, scheduling::EndReason::kDone);
    end(first + 2, scheduling::EndReason::kExit);
    pipeline_->perform([&](Turn& turn) {
      turn.apply(scheduling::JobsRemoved{{{first + 4}}});  // in this very turn
      EndedOthers ended;
      const std::vector<LostDependence> two = {
          {{{first, 5}, After::kDone}, first + 2, JobState::kFailed},
          {{{first, 5}, After::kStarted}, first + 4, JobState::kRemoved}};
      const std::vector<scheduling::JobRange> gone = {{first, 3}, {first + 4}};
      CPPUNIT_ASSERT(ended.lost(turn, *archive_,
                                {{{{first, 2}, After::kDone}, {{first, 2}}},
                                 {two[0].dependence, gone},
                                 {two[1].dependence, gone},
                                 {{{first, 4}, After::kStarted}, {{first, 3}}}},
                                false) == two);
      const auto queries = testing::queries_during([&] {
        CPPUNIT_ASSERT(ended.lost(turn, *archive_, {{two[0].dependence, gone}}, false)->at(0) ==
                       two[0]);
      });
      CPPUNIT_ASSERT_EQUAL(uint64_t{0}, queries);  // it is known by now
    });
  }

  void what_cannot_be_read_counts_as_removed_in_the_end() {
    using scheduling::After;
    curly_joins();
    const JobId first = submit_all({job({}, 2)});
    end(first, scheduling::EndReason::kDone);
    const scheduling::UnclearDependence one{{{first, 1}, After::kDone}, {{first, 1}}};
    sqlite3* database = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open((folder_ / "pool.db").c_str(), &database));
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_exec(database, "alter table jobs rename to elsewhere",
                                                 nullptr, nullptr, nullptr));
    sqlite3_close(database);
    pipeline_->perform([&](Turn& turn) {
      EndedOthers ended;
      CPPUNIT_ASSERT_THROW(ended.lost(turn, *archive_, {one}, false), StoreError);
      const auto lost = ended.lost(turn, *archive_, {one}, true);
      CPPUNIT_ASSERT(lost->at(0).by == first && lost->at(0).as == scheduling::JobState::kRemoved);
    });
  }

  // Each turn looks up some, so that others' work comes between.
  void many_others_take_several_turns() {
    constexpr uint64_t kMany = 5 * EndedOthers::kAtATime / 2;
    const JobId first = submit_all({job({}, kMany)});
    apply(scheduling::JobsRemoved{{{first, kMany}}});
    const scheduling::UnclearDependence all{{{first, kMany}, scheduling::After::kDone},
                                            {{first, kMany}}};
    EndedOthers ended;
    for (const bool is_last : {false, false, true})
      pipeline_->perform([&](Turn& turn) {
        CPPUNIT_ASSERT_EQUAL(is_last, ended.lost(turn, *archive_, {all}, false).has_value());
      });
  }

  void cycles_are_refused() {
    CPPUNIT_ASSERT_EQUAL(std::string("relation.cycle"), testing::code([&] {
                           submit_all({job({{true, 1, 1}}), job({{true, 0, 1}})});
                         }));
    CPPUNIT_ASSERT(archive_->count({}).empty());
  }

  void too_many_others() {
    const JobId first = submit_all({job({}, kOthersPerBatch + 1)});
    CPPUNIT_ASSERT_EQUAL(std::string("relation.too_many"),
                         refused(ann_, {{{false, first, kOthersPerBatch + 1}}, {}, {}}));
    CPPUNIT_ASSERT_EQUAL(std::string(), refused(ann_, {{{false, first, kOthersPerBatch}}, {}, {}}));
  }

  // Live ones and ones that have ended.
  void single_others_are_looked_up_together() {
    const JobId first = submit_all({job({}, 400)});
    const auto queries = [&](uint64_t count) {
      Dependences others;
      for (uint64_t i = 0; i < count; ++i) others.after_any.push_back({false, first + i, 1});
      return testing::queries_during([&] { submit_single(ann_, waiting(others)); });
    };
    const uint64_t live = queries(100);
    CPPUNIT_ASSERT_EQUAL(live, queries(200));
    apply(scheduling::JobsRemoved{{{first, 400}}});
    const uint64_t ended = queries(100);
    CPPUNIT_ASSERT_EQUAL(ended, queries(200));
  }

  uint64_t committers_queries() {
    uint64_t queries = 0;
    pipeline_->perform([&](Turn&) { queries = testing::executed_by_this_thread; });
    return queries;
  }

  // Everybody would wait for that.
  void the_committer_does_not_look_up_what_has_ended() {
    const JobId first = submit_all({job({}, 4000)});
    // So far apart that each costs a query.
    const auto queries = [&](uint64_t count, bool in_batch) {
      Dependences others;
      for (uint64_t i = 0; i < count; ++i) others.after_any.push_back({false, first + 20 * i, 1});
      const uint64_t before = committers_queries();
      SpecRange range = job({});
      range.spec.waits_for = others;
      in_batch ? submit_all({range}) : submit_single(ann_, range.spec);
      return committers_queries() - before;
    };
    apply(scheduling::JobsRemoved{{{first, 4000}}});
    for (const bool in_batch : {false, true}) {
      queries(1, in_batch);  // the first of all makes more rows
      const uint64_t one = queries(1, in_batch);
      CPPUNIT_ASSERT_EQUAL(one, queries(200, in_batch));
    }
  }

  // The limit holds for each append, long before the commit.
  void sources_count_as_jobs_waited_for() {
    SpecRange consumer = job({});
    for (uint64_t i = 0; i <= kReferencesPerJob; ++i)
      consumer.spec.inputs.push_back({0, std::to_string(i), false, {true, i + 1, "grid"}});
    const BatchId batch = open_batch(ann_);
    CPPUNIT_ASSERT_EQUAL(std::string("relation.too_many"),
                         testing::code([&] { jobs_->append(ann_, batch, 0, {consumer}); }));
    consumer.spec.inputs.pop_back();
    jobs_->append(ann_, batch, 0, {consumer});
  }

  void a_single_job_waits_too() {
    const JobId first = submit_single(ann_, waiting({}));
    const JobId second = submit_single(ann_, waiting({{}, {{false, first, 1}}, {}}));
    CPPUNIT_ASSERT_EQUAL(std::string("waits until job 1 has ended"),
                         jobs_->show(ann_, second).row.job.reason);
  }

  void a_restarted_server_knows() {
    curly_joins();
    const JobId first =
        submit_all({job({}), job({{true, 0, 1}}, 3), job({{true, 1, 3}})}, OnNever::kRemove);
    std::vector<std::string> damage;
    CPPUNIT_ASSERT_EQUAL(size_t{2}, store_->load(&damage).relations.size());
    end(first, scheduling::EndReason::kExit);
    CPPUNIT_ASSERT(store_->load(&damage).relations.empty() && damage.empty());
    const auto last = archive_->job(first + 4)->job;
    CPPUNIT_ASSERT(last.state == scheduling::JobState::kRemoved);
    CPPUNIT_ASSERT_EQUAL(std::string("it could never run: job 2, which it waits for, was removed"),
                         last.reason);
  }

  // As long as one of the jobs that they feed has not ended.
  void outputs_that_feed_others_are_needed() {
    SpecRange producer = job({}), consumer = job({}, 3);
    producer.spec.outputs = {{"grid", true}, {"maybe", false}};
    consumer.spec.inputs = {{0, "in", false, {true, 0, "maybe"}}};
    CPPUNIT_ASSERT_EQUAL(std::string("relation.output"), testing::code([&] {
                           submit_all({producer, consumer});
                         }));
    consumer.spec.inputs[0].source.name = "grid";
    const JobId first = submit_all({producer, consumer});
    const JobDescription spec = *archive_->spec(first + 2);
    CPPUNIT_ASSERT((spec.inputs.at(0).source == OutputOfJob{false, first, "grid"}));
    CPPUNIT_ASSERT((spec.waits_for.after == JobReferences{{false, first, 1}}));
    const std::set<std::string> grid = {"grid"};
    CPPUNIT_ASSERT(archive_->needed_outputs(first) == grid);
    apply(scheduling::JobsRemoved{{{first + 1}, {first + 3}}});
    CPPUNIT_ASSERT(archive_->needed_outputs(first) == grid);
    apply(scheduling::JobsRemoved{{{first + 2}}});
    CPPUNIT_ASSERT(archive_->needed_outputs(first).empty());
  }

  // A chain of three jobs, submitted one by one: the producer has inputs of its own.
  void inputs_from_one_producer_are_looked_up_together() {
    const auto queries = [&](size_t files) {
      const JobId first = submit_all({passing_on(std::nullopt, files)});
      const JobId second = submit_all({passing_on(first, files)});
      return testing::queries_during([&] { submit_all({passing_on(second, files)}); });
    };
    const uint64_t of_few = queries(50), of_many = queries(200);
    CPPUNIT_ASSERT_GREATER(uint64_t{50}, of_few);  // each one's row in table feeds
    CPPUNIT_ASSERT_LESSEQUAL(of_few * 5, of_many);
  }

  void outputs_of_each_job_of_an_array() {
    SpecRange producer = job({}, 3), consumer = job({});
    producer.spec.outputs = {{"log", true}, {"part-{index}", true}};
    consumer.spec.inputs = {{0, "log", false, {true, 2, "log"}},
                            {0, "two", false, {true, 2, "part-2"}},
                            {0, "one", false, {true, 1, "part-1"}}};
    submit_all({producer, consumer});
    consumer.spec.inputs[1].source.name = "part-1";
    CPPUNIT_ASSERT_EQUAL(std::string("relation.output"), testing::code([&] {
                           submit_all({producer, consumer});
                         }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(RelationsServiceTest);

}  // namespace
}  // namespace sublet::server
