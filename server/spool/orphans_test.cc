#include "server/spool/orphans.h"

#include <cppunit/extensions/HelperMacros.h>

#include "base/testing/faulty_files.h"
#include "base/testing/temporary_folder.h"

namespace sublet::server {
namespace {

constexpr Micros kNow = 1'770'091'445'000'000;  // 2026-02-03
constexpr Micros kDay = 86'400'000'000;

class OrphansTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OrphansTest);
  CPPUNIT_TEST(what_is_not_known_is_set_aside_and_comes_back);
  CPPUNIT_TEST(orphans_are_kept_for_thirty_days);
  CPPUNIT_TEST(folders_of_others_stay);
  CPPUNIT_TEST(an_error_loses_nothing);
  CPPUNIT_TEST(a_spool_without_its_database_is_refused);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  FaultyFiles files_;
  const std::string spool_ = folder_ / "spool";

  void put(const std::string& name) {
    files_.make_folders(folder_of(spool_ + "/" + name));
    files_.write_atomic(spool_ + "/" + name, "contents of " + name);
  }
  bool has(const std::string& name) { return files_.exists(spool_ + "/" + name); }
  std::string refusal() {
    try {
      require_database(files_, folder_ / "pool.db", spool_);
    } catch (const StoreError& error) {
      return error.what();
    }
    return "";
  }

 public:
  void setUp() override { files_.make_folders(spool_); }

  void what_is_not_known_is_set_aside_and_comes_back() {
    for (const char* name : {"1", "2", "3.part"}) put(name);
    const std::string two = files_.read_file(spool_ + "/2", 100);
    sort_out_orphans(files_, spool_, {"1"}, kNow);
    CPPUNIT_ASSERT(has("1") && !has("2") && has("orphans/2026-02-03/2"));
    CPPUNIT_ASSERT(!has("3.part") && !has("orphans/2026-02-03/3.part"));
    sort_out_orphans(files_, spool_, {"1", "2"}, kNow + 3 * kDay);
    CPPUNIT_ASSERT(has("1") && !has("orphans/2026-02-03/2"));
    CPPUNIT_ASSERT_EQUAL(two, files_.read_file(spool_ + "/2", 100));
  }

  void orphans_are_kept_for_thirty_days() {
    put("1");
    sort_out_orphans(files_, spool_, {}, kNow);
    sort_out_orphans(files_, spool_, {}, kNow + 30 * kDay);
    CPPUNIT_ASSERT(has("orphans/2026-02-03/1"));
    sort_out_orphans(files_, spool_, {}, kNow + 31 * kDay);
    CPPUNIT_ASSERT(!has("orphans/2026-02-03"));
  }

  void folders_of_others_stay() {
    for (const char* name : {"lost+found/1", "orphans/0-keep-me/1", "orphans/1"}) put(name);
    sort_out_orphans(files_, spool_, {}, kNow);
    for (const char* name : {"lost+found/1", "orphans/0-keep-me/1", "orphans/1"})
      CPPUNIT_ASSERT_MESSAGE(name, has(name));
  }

  // Whichever step fails: the next start finds each content in one place or the other.
  void an_error_loses_nothing() {
    put("1");
    put("orphans/2026-02-01/2");
    uint64_t steps = 0;
    for (uint64_t failing = 0; failing <= steps; ++failing) {
      const uint64_t before = files_.steps();
      files_.fail_from(failing, EIO);
      try {
        sort_out_orphans(files_, spool_, {"2"}, kNow);
      } catch (const FileError&) {
        // Only some failures keep the server from starting.
      }
      files_.fail_from(0, 0);
      steps = files_.steps() - before;
      CPPUNIT_ASSERT(has("1") != has("orphans/2026-02-03/1"));
      CPPUNIT_ASSERT(has("2") != has("orphans/2026-02-01/2"));
    }
    sort_out_orphans(files_, spool_, {"2"}, kNow);
    CPPUNIT_ASSERT(has("2") && has("orphans/2026-02-03/1"));
  }

  void a_spool_without_its_database_is_refused() {
    CPPUNIT_ASSERT_EQUAL(std::string(), refusal());
    put("1.part");
    put("orphans/2026-02-01/2");
    CPPUNIT_ASSERT_EQUAL(std::string(), refusal());
    put("1");
    CPPUNIT_ASSERT_EQUAL("the database " + (folder_ / "pool.db") + " is missing, but " + spool_ +
                             " has 1 file (13 B) of a pool: put its database back, or, for a new "
                             "pool, move that folder away",
                         refusal());
    files_.write_atomic(folder_ / "pool.db", "");
    CPPUNIT_ASSERT(!refusal().empty());
    files_.write_atomic(folder_ / "pool.db", "SQLite format 3");
    CPPUNIT_ASSERT_EQUAL(std::string(), refusal());
    CPPUNIT_ASSERT_THROW(require_empty_spool(files_, spool_), StoreError);
    files_.remove_file(folder_ / "pool.db");
    files_.remove_tree(spool_);
    files_.make_folders(spool_);
    CPPUNIT_ASSERT_EQUAL(std::string(), refusal());
    files_.write_atomic(folder_ / "pool.db-wal", "the newest commits");
    CPPUNIT_ASSERT(refusal().find("its newest part") != std::string::npos);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(OrphansTest);

}  // namespace
}  // namespace sublet::server
