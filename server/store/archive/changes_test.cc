#include "server/commit/changes.h"

#include <cppunit/extensions/HelperMacros.h>

#include <atomic>
#include <future>
#include <string>

#include "base/testing/temporary_folder.h"
#include "server/store/archive/archive.h"
#include "server/store/sql_store.h"

namespace sublet::server {
namespace {

class ArchiveChangesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ArchiveChangesTest);
  CPPUNIT_TEST(the_first_one_leaves_no_gap);
  CPPUNIT_TEST_SUITE_END();

  // The number of the next change is in the pool's row from the start, or comes with the first.
  static Changes numbered(uint64_t next, bool with_one) {
    Changes changes;
    changes.pool.next_change = next;
    changes.has_pool = true;
    if (with_one) changes.changes.emplace_back().number = next - 1;
    return changes;
  }

 public:
  // The oldest change that is kept is never seen behind the next one, while it is committed either.
  void the_first_one_leaves_no_gap() {
    for (int round = 0; round < 40; ++round) {
      TemporaryFolder folder;
      const std::string path = folder.path() + "/pool.db";
      SqlStore store(path);
      if (round % 2 == 1) store.commit(numbered(2, false));
      Archive archive(path);
      CPPUNIT_ASSERT_EQUAL(uint64_t{2}, archive.first_change());
      std::promise<void> reading;
      std::atomic<bool> stop{false};
      auto seen = std::async(std::launch::async, [&] {
        reading.set_value();
        while (!stop && archive.first_change() == 2)
          if (archive.last_change() == 2) return true;
        return false;
      });
      reading.get_future().wait();
      try {
        store.commit(numbered(3, true));
      } catch (...) {
        stop = true;
        throw;
      }
      CPPUNIT_ASSERT(seen.get());
    }
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ArchiveChangesTest);

}  // namespace
}  // namespace sublet::server
