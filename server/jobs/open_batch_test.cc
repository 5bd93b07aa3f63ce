// A batch that is never committed expires, together with its files; until then what was appended to
// it counts in its user's quota.
#include <cppunit/extensions/HelperMacros.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/testing/temporary_folder.h"
#include "server/housekeeper.h"
#include "server/jobs/service.h"
#include "server/refusal_testing.h"
#include "server/store/sql_store.h"

namespace sublet::server {
namespace {

class OpenBatchTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OpenBatchTest);
  CPPUNIT_TEST(an_unfinished_batch_expires);
  CPPUNIT_TEST(a_finished_one_stays);
  CPPUNIT_TEST(open_batches_count_in_the_quota);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  SqlStore store_{folder_ / "pool.db"};
  Archive archive_{folder_ / "pool.db"};
  EventFiles event_files_{folder_ / "pool.db", folder_ / "history", system_files()};
  EventHistory events_{{.most_bytes = UINT64_MAX}, event_files_, system_clock().utc_us()};
  Pipeline pipeline_{PipelineSettings{}, store_, system_clock(), Pipeline::Listener{}};
  Spool spool_{spool_settings(), archive_, system_clock()};
  Sessions sessions_;
  Access access_{{}};
  DiskGuard disk_{folder_.path(), 4096};
  QuestionGate questions_{{}};
  JobService jobs_{pipeline_, archive_, sessions_, access_, questions_, [] {}, job_settings()};
  SpoolService files_{spool_, pipeline_, archive_, sessions_, access_, [] {}, {kQuota, {}, 0}};
  const Caller ann_{1000, "ann", false, true};

  static constexpr uint64_t kQuota = 100'000;

  JobSettings job_settings() {
    JobSettings settings;
    settings.check_room = [this](const std::string& user, uint64_t bytes) {
      files_.check_room(user, bytes);
    };
    return settings;
  }
  SpoolSettings spool_settings() const {
    SpoolSettings settings;
    settings.folder = folder_ / "spool";
    return settings;
  }

 public:
  void setUp() override { pipeline_.start(); }
  void tearDown() override {
    jobs_.stop();
    pipeline_.stop();
  }

 private:
  void tidy(Micros batch_idle) {
    HousekeeperSettings settings;
    settings.batch_idle = batch_idle;
    Housekeeper(settings, pipeline_, archive_, files_, disk_, sessions_, events_).tidy();
  }
  BatchId open_with_input(uint64_t* file) {
    const BatchId batch = jobs_.open_batch(ann_, random_bytes(16), {"b", "desk"});
    FilePlace place;
    place.batch = batch;
    place.name = "data";
    const std::string bytes = "contents";
    const Digest digest = digest_of(bytes);
    const uint64_t id =
        files_
            .open(ann_, random_bytes(16), place, bytes.size(),
                  std::string(reinterpret_cast<const char*>(digest.data()), digest.size()))
            .id;
    files_.put(ann_, id, 0, bytes);
    *file = files_.close(ann_, id);
    SpecRange range;
    range.spec.program = "true";
    range.spec.inputs = {{*file, "data", false}};
    jobs_.append(ann_, batch, 0, {range});
    return batch;
  }

  void an_unfinished_batch_expires() {
    uint64_t file = 0;
    const BatchId batch = open_with_input(&file);
    tidy(3600ll * 1'000'000);
    CPPUNIT_ASSERT(archive_.batch(batch) && archive_.file(file));
    tidy(0);  // it was touched before this instant
    CPPUNIT_ASSERT(!archive_.batch(batch));
    CPPUNIT_ASSERT(!archive_.part(batch, 0));
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, archive_.draft(batch).parts);
    CPPUNIT_ASSERT(!archive_.file(file));
    try {
      jobs_.commit_batch(ann_, random_bytes(16), batch);
      CPPUNIT_FAIL("an expired batch was committed");
    } catch (const Refusal& refusal) {
      CPPUNIT_ASSERT_EQUAL(std::string("batch.unknown"), refusal.code);
    }
    CPPUNIT_ASSERT(archive_.count({}).empty());
  }

  uint64_t held() { return archive_.spool_use("ann").files; }

  void open_batches_count_in_the_quota() {
    const auto open = [&] { return jobs_.open_batch(ann_, random_bytes(16), {"b", "desk"}); };
    SpecRange large;
    large.spec.program = "true";
    large.spec.arguments = {std::string(20'000, 'x')};
    const auto append = [&](BatchId batch, uint32_t number) {
      return testing::code([&] { jobs_.append(ann_, batch, number, {large}); });
    };
    const BatchId first = open(), second = open(), third = open();
    for (const auto& [batch, number] :
         {std::pair(first, 0u), {first, 0u}, {second, 0u}, {second, 1u}, {third, 0u}})
      CPPUNIT_ASSERT_EQUAL(std::string(), append(batch, number));
    CPPUNIT_ASSERT(held() > 80'000 && held() < kQuota);
    CPPUNIT_ASSERT_EQUAL(std::string("batch.quota"), append(third, 1));
    jobs_.discard_batch(ann_, first);
    CPPUNIT_ASSERT_EQUAL(std::string(), append(third, 1));
    CPPUNIT_ASSERT_EQUAL(std::string("batch.quota"), append(third, 2));
    jobs_.commit_batch(ann_, random_bytes(16), second);
    CPPUNIT_ASSERT(held() > 40'000 && held() < 50'000);
    tidy(0);  // the third expires
    CPPUNIT_ASSERT_EQUAL(uint64_t{0}, held());
  }

  void a_finished_one_stays() {
    uint64_t file = 0;
    const BatchId batch = open_with_input(&file);
    jobs_.commit_batch(ann_, random_bytes(16), batch);
    tidy(0);
    CPPUNIT_ASSERT(archive_.batch(batch) && archive_.file(file));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(OpenBatchTest);

}  // namespace
}  // namespace sublet::server
