// A batch that is never committed expires, together with its files.
#include <cppunit/extensions/HelperMacros.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/testing/temporary_folder.h"
#include "server/housekeeper.h"
#include "server/jobs/service.h"
#include "server/refusal.h"
#include "server/store/sql_store.h"

namespace sublet::server {
namespace {

class OpenBatchTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OpenBatchTest);
  CPPUNIT_TEST(an_unfinished_batch_expires);
  CPPUNIT_TEST(a_finished_one_stays);
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
  JobService jobs_{pipeline_, archive_, sessions_, access_, questions_, [] {}};
  SpoolService files_{spool_, pipeline_, archive_, sessions_, access_, [] {}, SpoolLimits{}};
  const Caller ann_{1000, "ann", false, true};

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
