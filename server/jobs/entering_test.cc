// Large batches are entered in slices: the jobs, descriptions and ids are those of a batch that is
// entered at once, also when the server dies between any two transactions.
#include "server/jobs/entering.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <future>

#include "base/clock.h"
#include "base/random.h"
#include "base/testing/temporary_folder.h"
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

// A server's part for jobs, from its start to its end.
struct Life {
  Life(const std::string& path, const SliceSize& slice)
      : store(path),
        archive(path),
        pipeline(PipelineSettings{}, store, system_clock(), Pipeline::Listener{}),
        jobs(pipeline, archive, sessions, access, questions, [] {}, {.slice = slice}) {
    pipeline.start();
  }
  ~Life() {
    jobs.stop();
    pipeline.stop();
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

  void any_death_between() {
    std::vector<std::vector<SpecRange>> parts;
    for (uint64_t part = 0; part < 4; ++part) {
      parts.emplace_back();
      for (uint64_t i = 0; i < 7; ++i) parts.back().push_back(described(10 * part + i, 1 + i % 2));
    }
    for (uint64_t commits = 0;; ++commits) {
      TemporaryFolder folder;
      const std::string request = random_bytes(16);
      BatchId batch = 0;
      bool died = true;
      {
        Life life(folder / "pool.db", kTiny);
        batch = append(life, ann_, parts);
        std::future<void> death = life.store.death();
        life.pipeline.perform([&](Turn&) { life.store.die_after(commits); });
        auto committed =
            std::async(std::launch::async, [&] { life.jobs.commit_batch(ann_, request, batch); });
        while (died && death.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
          if (committed.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
            died = death.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
        life.jobs.stop();
        if (died)
          CPPUNIT_ASSERT_THROW(committed.get(), Refusal);
        else
          committed.get();
      }
      Life next(folder / "pool.db", kTiny);
      const auto before = next.archive.batch(batch);
      CPPUNIT_ASSERT(before.has_value());
      if (!before->committed) CPPUNIT_ASSERT(next.archive.count({}).empty());
      const auto range = next.jobs.commit_batch(ann_, request, batch);
      CPPUNIT_ASSERT_EQUAL(uint64_t{40}, range.second);
      if (before->committed) CPPUNIT_ASSERT_EQUAL(before->first_job, range.first);
      check(next.archive, batch, in_order(parts));
      if (!died) break;
      CPPUNIT_ASSERT(commits < 100);
    }
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
