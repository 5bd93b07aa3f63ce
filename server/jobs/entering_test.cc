// Large batches are entered in slices: the jobs, descriptions and ids are those of a batch that is
// entered at once, also when the server dies between any two transactions.
#include "server/jobs/entering.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>
#include <sqlite3.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "base/testing/temporary_folder.h"
#include "job/codec.h"
#include "server/jobs/service.h"
#include "server/refusal_testing.h"
#include "server/store/sql_store.h"

namespace sublet::server {
namespace {

// Commits no more when it has done so many; what was not committed is lost, as in a crash.
class MortalStore : public Store {
 public:
  explicit MortalStore(const std::string& path) : real_(path) {}
  scheduling::Snapshot load(std::vector<std::string>* damage) override {
    return real_.load(damage);
  }
  void commit(const Changes& changes) override {
    if (left_ == 0) {
      if (!died_) death_.set_value();
      died_ = true;
      throw StoreError("dead");
    }
    --left_;
    real_.commit(changes);
  }
  std::optional<RequestRow> find_request(const std::string& key) override {
    return real_.find_request(key);
  }
  // On the committer only, as all above.
  void die_after(uint64_t commits) { left_ = commits; }
  std::future<void> death() { return death_.get_future(); }

 private:
  SqlStore real_;
  uint64_t left_ = UINT64_MAX;
  bool died_ = false;
  std::promise<void> death_;
};

// A server's part for jobs, from its start to its end. `damage`: done to the database before.
struct Life {
  Life(const std::string& path, const SliceSize& slice, const std::string& damage = "")
      : store((change(path, damage), path)),
        archive(path),
        pipeline(PipelineSettings{}, store, system_clock(), Pipeline::Listener{}),
        jobs(pipeline, archive, sessions, access, questions, [] {}, {.slice = slice}) {
    pipeline.start();
  }
  ~Life() {
    jobs.stop();
    pipeline.stop();
  }

  static void change(const std::string& path, const std::string& statement) {
    if (statement.empty()) return;
    sqlite3* handle = nullptr;
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK, sqlite3_open(path.c_str(), &handle));
    CPPUNIT_ASSERT_EQUAL(SQLITE_OK,
                         sqlite3_exec(handle, statement.c_str(), nullptr, nullptr, nullptr));
    sqlite3_close(handle);
  }

  MortalStore store;
  Archive archive;
  Pipeline pipeline;
  Sessions sessions;
  Access access{{}};
  QuestionGate questions{{}};
  JobService jobs;
};

constexpr SliceSize kTiny{3, 5, 1 << 20};

SpecRange described(uint64_t number, uint64_t count = 1) {
  SpecRange range;
  range.spec.program = "true";
  range.spec.name = "n" + std::to_string(number);
  range.spec.retries = number % 3 == 0 ? 1 : 0;
  range.is_array = count > 1;
  range.count = count;
  return range;
}

class EnteringTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(EnteringTest);
  CPPUNIT_TEST(all_jobs_are_there);
  CPPUNIT_TEST(any_death_between);
  CPPUNIT_TEST(jobs_that_wait_for_others_of_the_batch);
  CPPUNIT_TEST(any_death_between_jobs_that_wait);
  CPPUNIT_TEST(jobs_that_wait_for_another_batch);
  CPPUNIT_TEST(any_death_between_jobs_of_two_batches);
  CPPUNIT_TEST(large_batches_with_relations_are_checked);
  CPPUNIT_TEST(outputs_within_a_large_batch_are_noted);
  CPPUNIT_TEST(a_gate_opens_even_if_its_batch_is_lost);
  CPPUNIT_TEST(batches_take_turns);
  CPPUNIT_TEST(a_batch_is_not_changed_before_its_end);
  CPPUNIT_TEST(inputs_stay);
  CPPUNIT_TEST(appends_meanwhile_are_refused);
  CPPUNIT_TEST_SUITE_END();

  const Caller ann_{1000, "ann", false, true};
  const Caller bob_{1001, "bob", false, true};

  BatchId append(Life& life, const Caller& caller, const std::vector<std::vector<SpecRange>>& parts,
                 const BatchRequest& request = {"b", "desk"}) {
    const BatchId batch = life.jobs.open_batch(caller, random_bytes(16), request);
    for (uint32_t number = 0; number < parts.size(); ++number)
      life.jobs.append(caller, batch, number, parts[number]);
    return batch;
  }

  static std::vector<SpecRange> in_order(const std::vector<std::vector<SpecRange>>& parts) {
    std::vector<SpecRange> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  static void check(Archive& archive, BatchId batch, const std::vector<SpecRange>& specs) {
    const auto row = archive.batch(batch);
    CPPUNIT_ASSERT(row && row->committed);
    JobId id = row->first_job;
    for (const SpecRange& range : specs)
      for (uint64_t k = 0; k < range.count; ++k, ++id) {
        const auto job = archive.job(id);
        CPPUNIT_ASSERT_MESSAGE("job " + std::to_string(id), job.has_value());
        CPPUNIT_ASSERT_EQUAL(batch, job->job.batch);
        CPPUNIT_ASSERT_EQUAL(static_cast<uint32_t>(id - row->first_job), job->job.index);
        CPPUNIT_ASSERT_EQUAL(range.spec.name, archive.spec(id)->name);
        CPPUNIT_ASSERT_EQUAL(range.spec.retries, job->job.retries_left);
      }
    CPPUNIT_ASSERT_EQUAL(row->first_job + row->count, id);
    JobQuery query;
    query.batch = batch;
    uint64_t jobs = 0;
    for (const auto& [state, count] : archive.count(query)) jobs += count;
    CPPUNIT_ASSERT_EQUAL(row->count, jobs);
    CPPUNIT_ASSERT(!archive.part(batch, 0));
    CPPUNIT_ASSERT_EQUAL(DraftRow{}.parts, archive.draft(batch).parts);
    CPPUNIT_ASSERT(archive.entering().empty());
  }

 public:
  void all_jobs_are_there() {
    CPPUNIT_ASSERT(rc::check([this] {
      std::vector<std::vector<SpecRange>> parts = {{described(0)}};
      uint64_t number = 1;
      for (auto appends = *rc::gen::inRange(0, 5); appends > 0; --appends) {
        parts.emplace_back();
        for (auto jobs = *rc::gen::inRange(0, 9); jobs > 0; --jobs)
          parts.back().push_back(described(++number, *rc::gen::element<uint64_t>(1, 1, 1, 30)));
      }
      const SliceSize size{*rc::gen::inRange<size_t>(1, 9), *rc::gen::inRange<size_t>(1, 9),
                           *rc::gen::inRange<size_t>(1, 1000)};
      TemporaryFolder folder;
      Life life(folder / "pool.db", size);
      const std::string request = random_bytes(16);
      const BatchId batch = append(life, ann_, parts);
      const auto range = life.jobs.commit_batch(ann_, request, batch);
      check(life.archive, batch, in_order(parts));
      RC_ASSERT(life.jobs.commit_batch(ann_, request, batch) == range);
    }));
  }

  // 28 descriptions, 40 jobs.
  static std::vector<std::vector<SpecRange>> four_parts() {
    std::vector<std::vector<SpecRange>> parts;
    for (uint64_t part = 0; part < 4; ++part) {
      parts.emplace_back();
      for (uint64_t i = 0; i < 7; ++i) parts.back().push_back(described(10 * part + i, 1 + i % 2));
    }
    return parts;
  }

  // What each job waits for, or what else is said of it, and its description.
  static std::vector<std::string> told_of(Life& life, const Caller& caller, BatchId batch) {
    const auto row = life.archive.batch(batch);
    std::vector<std::string> told;
    for (JobId id = row->first_job; id < row->first_job + row->count; ++id)
      told.push_back(life.jobs.show(caller, id).row.job.reason +
                     encode(std::vector<SpecRange>{{*life.archive.spec(id), false, 0, 1}}));
    return told;
  }
  // The same of a batch that is entered at once. `others`: the jobs of one before it.
  std::vector<std::string> at_once(const std::vector<std::vector<SpecRange>>& parts,
                                   uint64_t others = 0) {
    TemporaryFolder folder;
    Life life(folder / "pool.db", SliceSize{SIZE_MAX, SIZE_MAX, SIZE_MAX});
    submit_others(life, others);
    const BatchId batch = append(life, ann_, parts);
    life.jobs.commit_batch(ann_, random_bytes(16), batch);
    remove_others(life, others);
    return told_of(life, ann_, batch);
  }

  // From 1 on.
  void submit_others(Life& life, uint64_t count) {
    if (count == 0) return;
    const BatchId batch = append(life, ann_, {{described(0, count)}});
    CPPUNIT_ASSERT_EQUAL(JobId{1}, life.jobs.commit_batch(ann_, random_bytes(16), batch).first);
  }
  // But for the last.
  void remove_others(Life& life, uint64_t count) {
    if (count == 0) return;
    JobQuery query;
    query.ids = {{1, count - 1}};
    life.jobs.control(ann_, random_bytes(16), {JobService::Action::kRemove}, query);
  }

  void jobs_that_wait_for_others_of_the_batch() {
    CPPUNIT_ASSERT(rc::check([this] {
      std::vector<std::vector<SpecRange>> parts = four_parts();
      const bool backward = *rc::gen::arbitrary<bool>();
      uint64_t first = 0;
      for (auto& part : parts)
        for (SpecRange& range : part) {
          const uint64_t low = backward ? 0 : first + range.count;
          const uint64_t high = backward ? first : 40;
          if (low < high && *rc::gen::arbitrary<bool>()) {
            const auto of = *rc::gen::inRange<uint64_t>(low, high);
            auto& waits_for = range.spec.waits_for;
            JobReferences& list =
                *rc::gen::arbitrary<bool>() ? waits_for.after : waits_for.after_any;
            list.push_back({true, of, *rc::gen::inRange<uint64_t>(1, high - of + 1)});
          }
          first += range.count;
        }
      TemporaryFolder folder;
      Life life(folder / "pool.db", kTiny);
      const BatchId batch = append(life, ann_, parts);
      life.jobs.commit_batch(ann_, random_bytes(16), batch);
      check(life.archive, batch, in_order(parts));
      RC_ASSERT(told_of(life, ann_, batch) == at_once(parts));
    }));
  }

  void any_death_between_jobs_that_wait() {
    std::vector<std::vector<SpecRange>> parts = four_parts();
    parts[0][1].spec.waits_for.after = {{true, 39, 1}};
    parts[1][0].spec.waits_for.after = {{true, 0, 1}, {true, 3, 2}};
    parts[3][6].spec.waits_for.after_any = {{true, 5, 30}};
    die_between(parts, at_once(parts));
  }

  // Some of which are removed meanwhile.
  static std::vector<std::vector<SpecRange>> four_parts_after_others() {
    std::vector<std::vector<SpecRange>> parts = four_parts();
    parts[0][1].spec.waits_for.after = {{false, 1, 1}};
    parts[1][0].spec.waits_for.after = {{true, 0, 1}, {false, 4, 1}};
    parts[2][3].spec.waits_for.after_any = {{false, 1, 3}};
    parts[3][0].spec.waits_for.after_start = {{false, 2, 3}};
    parts[3][6].spec.waits_for.after_any = {{true, 2, 1}, {false, 3, 2}};
    return parts;
  }

  void jobs_that_wait_for_another_batch() {
    const auto parts = four_parts_after_others();
    TemporaryFolder folder;
    Life life(folder / "pool.db", kTiny);
    submit_others(life, 4);
    const BatchId batch = append(life, ann_, parts);
    auto committed = std::async(
        std::launch::async, [&] { return life.jobs.commit_batch(ann_, random_bytes(16), batch); });
    while (!life.archive.batch(batch)->committed &&
           committed.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      std::this_thread::yield();
    remove_others(life, 4);
    const JobId first = committed.get().first;
    check(life.archive, batch, in_order(parts));
    const auto told = told_of(life, ann_, batch);
    CPPUNIT_ASSERT(told == at_once(parts, 4));
    const std::string never = "held: it can never run: job 1, which it waits for, was removed";
    CPPUNIT_ASSERT_EQUAL(never, life.jobs.show(ann_, first + 1).row.job.reason);
  }

  void any_death_between_jobs_of_two_batches() {
    const auto parts = four_parts_after_others();
    die_between(parts, at_once(parts, 4), 4);
  }

  void large_batches_with_relations_are_checked() {
    TemporaryFolder folder;
    Life life(folder / "pool.db", kTiny);
    std::vector<std::vector<SpecRange>> parts = four_parts();
    const auto refused = [&] {
      const BatchId batch = append(life, ann_, parts);
      return testing::code([&] { life.jobs.commit_batch(ann_, random_bytes(16), batch); });
    };
    parts[0][0].spec.waits_for.after = {{true, 39, 1}};
    parts[3][6].spec.waits_for.after = {{true, 0, 1}};
    CPPUNIT_ASSERT_EQUAL(std::string("relation.cycle"), refused());
    parts[0][0].spec.waits_for.after = {{true, 40, 1}};
    CPPUNIT_ASSERT_EQUAL(std::string("relation.unknown"), refused());
    parts[0][0].spec.waits_for.after = {{false, 500, 1}};
    CPPUNIT_ASSERT_EQUAL(std::string("relation.unknown"), refused());
    const BatchId others = append(life, bob_, {{described(0, kOthersPerBatch + 1)}});
    const JobId first = life.jobs.commit_batch(bob_, random_bytes(16), others).first;
    parts[0][0].spec.waits_for.after = {{false, first, 1}};
    CPPUNIT_ASSERT_EQUAL(std::string("job.not_yours"), refused());
    parts[0][0].spec.waits_for.after = {{false, first, kOthersPerBatch}, {false, first, 1}};
    CPPUNIT_ASSERT_EQUAL(std::string("relation.too_many"), refused());
    const BatchId own = append(life, ann_, {{described(0)}});
    const JobId removed = life.jobs.commit_batch(ann_, random_bytes(16), own).first;
    JobQuery query;
    query.ids = {{removed, 1}};
    life.jobs.control(ann_, random_bytes(16), {JobService::Action::kRemove}, query);
    parts[0][0].spec.waits_for.after = {{false, removed, 1}};
    CPPUNIT_ASSERT_EQUAL(std::string("relation.never"), refused());
    parts[0][0].spec.waits_for.after = {};
    parts[3][6].spec.inputs.push_back({0, "grid", false, {true, 0, "grid"}});
    CPPUNIT_ASSERT_EQUAL(std::string("relation.output"), refused());
    life.pipeline.ask([&](const scheduling::Pool& pool, Micros) {
      CPPUNIT_ASSERT_EQUAL(removed + 1, pool.counters().next_job);  // they have got no ids
    });
  }

  void outputs_within_a_large_batch_are_noted() {
    TemporaryFolder folder;
    Life life(folder / "pool.db", kTiny);
    std::vector<std::vector<SpecRange>> parts = four_parts();
    parts[0][0].spec.outputs.push_back({"grid", true});
    parts[3][6].spec.inputs.push_back({0, "grid", false, {true, 0, "grid"}});
    const BatchId batch = append(life, ann_, parts);
    const JobId first = life.jobs.commit_batch(ann_, random_bytes(16), batch).first;
    CPPUNIT_ASSERT(life.archive.spec(first + 39)->inputs.at(0).source ==
                   (OutputOfJob{false, first, "grid"}));
    CPPUNIT_ASSERT(life.archive.needed_outputs(first) == std::set<std::string>{"grid"});
  }

  void any_death_between() { die_between(four_parts(), {}); }

  // At every commit in turn. `told`: of each job in the end, unless it is empty. `others`: the jobs
  // of a batch before it, which are removed as soon as it is certain that this one will be entered.
  void die_between(const std::vector<std::vector<SpecRange>>& parts,
                   const std::vector<std::string>& told, uint64_t others = 0) {
    for (uint64_t commits = 0;; ++commits) {
      TemporaryFolder folder;
      const std::string request = random_bytes(16);
      BatchId batch = 0;
      bool died = true;
      {
        Life life(folder / "pool.db", kTiny);
        submit_others(life, others);
        batch = append(life, ann_, parts);
        std::future<void> death = life.store.death();
        life.pipeline.perform([&](Turn&) { life.store.die_after(commits); });
        auto committed =
            std::async(std::launch::async, [&] { life.jobs.commit_batch(ann_, request, batch); });
        std::atomic<bool> is_over = false;
        const auto removed = std::async(std::launch::async, [&] {
          while (!is_over && !life.archive.batch(batch)->committed) std::this_thread::yield();
          testing::code([&] { remove_others(life, others); });  // unless it is dead by now
        });
        while (died && death.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
          if (committed.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
            died = death.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
        is_over = true;
        removed.wait();
        life.jobs.stop();
        if (died)
          CPPUNIT_ASSERT_THROW(committed.get(), Refusal);
        else
          committed.get();
      }
      Life next(folder / "pool.db", kTiny);
      const auto before = next.archive.batch(batch);
      CPPUNIT_ASSERT(before.has_value());
      if (!before->committed && others == 0) CPPUNIT_ASSERT(next.archive.count({}).empty());
      const auto range = next.jobs.commit_batch(ann_, request, batch);
      remove_others(next, others);
      CPPUNIT_ASSERT_EQUAL(uint64_t{40}, range.second);
      if (before->committed) CPPUNIT_ASSERT_EQUAL(before->first_job, range.first);
      check(next.archive, batch, in_order(parts));
      if (!told.empty()) {
        const auto after = told_of(next, ann_, batch);
        for (size_t i = 0; i < told.size(); ++i)
          CPPUNIT_ASSERT_EQUAL_MESSAGE(std::to_string(commits), told[i], after[i]);
      }
      if (!died) {
        CPPUNIT_ASSERT(commits > 5);  // not at once
        break;
      }
      CPPUNIT_ASSERT(commits < 200);
    }
  }

  // A damaged row costs itself only: here that of the draft, while jobs are behind the gate.
  void a_gate_opens_even_if_its_batch_is_lost() {
    TemporaryFolder folder;
    std::vector<std::vector<SpecRange>> parts = four_parts();
    parts[0][1].spec.waits_for.after = {{true, 0, 1}};
    JobId first = 0;
    const std::string request = random_bytes(16);
    BatchId batch = 0;
    {
      Life life(folder / "pool.db", kTiny);
      batch = append(life, ann_, parts);
      life.pipeline.perform([&](Turn&) { life.store.die_after(3); });  // the first comes in the 2nd
      CPPUNIT_ASSERT_THROW(life.jobs.commit_batch(ann_, request, batch), Refusal);
      first = life.archive.batch(batch)->first_job;
    }
    Life next(folder / "pool.db", kTiny, "delete from drafts");
    next.jobs.commit_batch(ann_, request, batch);  // waits
    const auto reason = [&](JobId id) { return next.jobs.show(ann_, id).row.job.reason; };
    CPPUNIT_ASSERT_EQUAL(
        std::string("no machine is in the pool: start sublet-client on a workstation"),
        reason(first));
    CPPUNIT_ASSERT_EQUAL("waits until job " + std::to_string(first) + " is done",
                         reason(first + 1));
  }

  void batches_take_turns() {
    TemporaryFolder folder;
    Life life(folder / "pool.db", kTiny);
    std::vector<std::vector<SpecRange>> large(20), small(1);
    for (auto& part : large)
      for (uint64_t i = 0; i < 50; ++i) part.push_back(described(i));
    for (uint64_t i = 0; i < 20; ++i) small[0].push_back(described(i));
    const BatchId of_ann = append(life, ann_, large), of_bob = append(life, bob_, small);
    auto committed = std::async(std::launch::async,
                                [&] { life.jobs.commit_batch(ann_, random_bytes(16), of_ann); });
    while (life.archive.entering().empty() && !life.archive.batch(of_ann)->committed)
      std::this_thread::yield();
    life.jobs.commit_batch(bob_, random_bytes(16), of_bob);
    const DraftRow left = life.archive.draft(of_ann);
    CPPUNIT_ASSERT_MESSAGE("bob did not wait for ann's", left.entering);
    committed.get();
    check(life.archive, of_ann, in_order(large));
    check(life.archive, of_bob, in_order(small));
  }

  void a_batch_is_not_changed_before_its_end() {
    TemporaryFolder folder;
    Life life(folder / "pool.db", kTiny);
    const BatchId batch = append(life, ann_, {{described(1), described(2)}});
    life.pipeline.perform([&](Turn& turn) {
      DraftRow draft = life.archive.draft(batch);
      draft.entering = true;
      turn.changes().drafts[batch] = draft;
    });
    JobQuery query;
    query.batch = batch;
    const auto remove = [&] {
      life.jobs.control(ann_, random_bytes(16), JobService::Action::kRemove, query);
    };
    CPPUNIT_ASSERT_EQUAL(std::string("batch.entering"), testing::code(remove));
  }

  void inputs_stay() {
    TemporaryFolder folder;
    Life life(folder / "pool.db", kTiny);
    const BatchId batch = append(life, ann_, {{described(1)}});
    life.pipeline.perform([&](Turn& turn) {
      BatchRow row = *life.archive.batch(batch);
      row.committed = true;
      turn.changes().batches[batch] = row;
      FileRow input;
      input.id = 1;
      input.batch = batch;
      input.user = "ann";
      turn.changes().files[1] = input;
    });
    uint64_t after = 0;
    CPPUNIT_ASSERT(life.archive.unneeded_files(after, 10).empty());
    life.pipeline.perform([&](Turn& turn) { turn.changes().dropped_parts.push_back(batch); });
    CPPUNIT_ASSERT_EQUAL(size_t{1}, life.archive.unneeded_files(after = 0, 10).size());
  }

  void appends_meanwhile_are_refused() {
    TemporaryFolder folder;
    Life life(folder / "pool.db", kTiny);
    const BatchId batch = append(life, ann_, {{described(1)}});
    std::vector<std::vector<SpecRange>> more(1);
    for (uint64_t i = 0; i < 20; ++i) more[0].push_back(described(i));
    life.jobs.append(ann_, batch, 1, more[0]);
    life.jobs.commit_batch(ann_, random_bytes(16), batch);
    CPPUNIT_ASSERT_EQUAL(std::string("batch.committed"),
                         testing::code([&] { life.jobs.append(ann_, batch, 2, more[0]); }));
    CPPUNIT_ASSERT_EQUAL(std::string("batch.committed"), testing::code([&] {
                           life.jobs.commit_batch(ann_, random_bytes(16), batch);
                         }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(EnteringTest);

}  // namespace
}  // namespace sublet::server
