#include "server/store/pool_id.h"

#include <cppunit/TestFixture.h>
#include <cppunit/extensions/HelperMacros.h>

#include "base/testing/temporary_folder.h"
#include "server/store/sql_store.h"

namespace sublet::server {
namespace {

class PoolIdTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PoolIdTest);
  CPPUNIT_TEST(made_once);
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
};
CPPUNIT_TEST_SUITE_REGISTRATION(PoolIdTest);

}  // namespace
}  // namespace sublet::server
