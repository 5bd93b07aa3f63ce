#include "server/store/pool_id.h"

#include <cppunit/TestFixture.h>
#include <cppunit/extensions/HelperMacros.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include "base/testing/temporary_folder.h"
#include "server/store/sql_store.h"

namespace sublet::server {
namespace {

class PoolIdTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PoolIdTest);
  CPPUNIT_TEST(made_once);
  CPPUNIT_TEST(a_damaged_one_is_replaced);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;

  std::string id_of(const std::string& name) {
    const std::string path = folder_.path() + "/" + name;
    const SqlStore store(path);
    return pool_id(path);
  }

 public:
  void made_once() {
    const std::string id = id_of("a.db");
    CPPUNIT_ASSERT_EQUAL(size_t{16}, id.size());
    CPPUNIT_ASSERT_EQUAL(id, id_of("a.db"));
    CPPUNIT_ASSERT(id != id_of("b.db"));
  }

  void a_damaged_one_is_replaced() {
    const std::string path = folder_.path() + "/a.db";
    const std::string before = id_of("a.db");
    for (const std::string damaged : {"", "xyz", "00ff"}) {
      {
        soci::session sql(soci::sqlite3, "db=" + path);
        sql << "update pool_id set id = :id", soci::use(damaged, "id");
      }
      const std::string id = id_of("a.db");
      CPPUNIT_ASSERT_EQUAL(size_t{16}, id.size());
      CPPUNIT_ASSERT(id != before);
      CPPUNIT_ASSERT_EQUAL(id, id_of("a.db"));
    }
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(PoolIdTest);

}  // namespace
}  // namespace sublet::server
