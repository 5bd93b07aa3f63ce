#include "client/machine/idle_history.h"

#include <cppunit/extensions/HelperMacros.h>

#include "base/testing/temporary_folder.h"
#include "client/attempts/record.h"

namespace sublet::client {
namespace {

constexpr int64_t kSecond = 1'000'000'000, kHour = 3600 * kSecond;

class IdleHistoryTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(IdleHistoryTest);
  CPPUNIT_TEST(the_mean);
  CPPUNIT_TEST(the_present_time_counts);
  CPPUNIT_TEST(what_was_is_forgotten);
  CPPUNIT_TEST(outlives_the_process);
  CPPUNIT_TEST(a_damaged_file_is_set_aside);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "idle-history";
  int64_t now_ = 5 * kSecond;

  void idle_for(IdleHistory& history, int64_t ns) {
    history.note(true, now_);
    CPPUNIT_ASSERT(!history.note(true, now_ + 1));  // known
    now_ += ns;
    CPPUNIT_ASSERT(!history.note(false, now_));
    CPPUNIT_ASSERT(!history.note(false, now_ + 1));
    now_ += kHour;  // the owner's
  }

  void the_mean() {
    IdleHistory history(system_files(), path_);
    CPPUNIT_ASSERT_EQUAL(int64_t{7200}, history.mean_s(now_));
    CPPUNIT_ASSERT(!history.note(false, now_));  // as it was
    idle_for(history, kHour);
    CPPUNIT_ASSERT_EQUAL(int64_t{(7200 + 3600) / 2}, history.mean_s(now_));
    idle_for(history, 10 * kSecond);
    CPPUNIT_ASSERT_EQUAL(int64_t{(7200 + 3600 + 10) / 3}, history.mean_s(now_));
    for (int i = 0; i < 100; ++i) idle_for(history, 0);
    CPPUNIT_ASSERT(history.mean_s(now_) >= 1 && history.mean_s(now_) < 400);
  }

  void the_present_time_counts() {
    IdleHistory history(system_files(), path_);
    idle_for(history, kHour);
    history.note(true, now_);
    CPPUNIT_ASSERT_EQUAL(int64_t{5400}, history.mean_s(now_));
    CPPUNIT_ASSERT_EQUAL(int64_t{5400 + 7200}, history.mean_s(now_ + 4 * kHour));
  }

  void what_was_is_forgotten() {
    IdleHistory history(system_files(), path_);
    for (int i = 0; i < 1000; ++i) idle_for(history, 10 * kHour);
    CPPUNIT_ASSERT(history.mean_s(now_) > 35'000);
    for (int i = 0; i < 300; ++i) idle_for(history, 60 * kSecond);
    CPPUNIT_ASSERT(history.mean_s(now_) < 600);
  }

  void outlives_the_process() {
    {
      IdleHistory history(system_files(), path_);
      CPPUNIT_ASSERT(!history.note(true, now_));  // nothing to store
      idle_for(history, kHour);
      CPPUNIT_ASSERT(history.note(true, now_));
      history.store();
    }
    IdleHistory history(system_files(), path_);
    CPPUNIT_ASSERT_EQUAL(int64_t{5400}, history.mean_s(now_ + kHour));
  }

  void a_damaged_file_is_set_aside() {
    RecordWriter newer("sublet-idle-history 2"), too_many("sublet-idle-history");
    newer.add("idle_ms", uint64_t{1}).add("ends", uint64_t{1});
    too_many.add("idle_ms", uint64_t{1}).add("ends", uint64_t{65});
    for (const std::string& bytes :
         {std::string(), std::string("rubbish"), newer.finish(), too_many.finish()}) {
      system_files().write_atomic(path_, bytes);
      IdleHistory history(system_files(), path_);
      CPPUNIT_ASSERT_EQUAL(int64_t{7200}, history.mean_s(now_));
      CPPUNIT_ASSERT(!system_files().exists(path_));
      CPPUNIT_ASSERT_EQUAL(bytes, system_files().read_file(path_ + ".damaged", 1000));
    }
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(IdleHistoryTest);

}  // namespace
}  // namespace sublet::client
