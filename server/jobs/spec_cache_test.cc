#include "server/jobs/spec_cache.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet::server {
namespace {

class SpecCacheTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SpecCacheTest);
  CPPUNIT_TEST(finds_the_array_of_a_job);
  CPPUNIT_TEST(the_least_recently_used_goes);
  CPPUNIT_TEST(what_is_too_large_is_not_kept);
  CPPUNIT_TEST(names_of_sources_take_room_too);
  CPPUNIT_TEST_SUITE_END();

  static std::shared_ptr<const SpecRange> array(uint64_t count, size_t octets = 0) {
    SpecRange range;
    range.is_array = true;
    range.count = count;
    range.axes = {{{"line"}, {std::string(octets, 'x')}, 0, 0, 1}};
    return std::make_shared<const SpecRange>(std::move(range));
  }

  void finds_the_array_of_a_job() {
    SpecCache cache(1'000'000);
    const auto ten = array(10);
    cache.keep(5, ten);
    uint64_t first = 0;
    CPPUNIT_ASSERT(cache.find(4, &first) == nullptr);
    CPPUNIT_ASSERT(cache.find(5, &first) == ten && first == 5);
    CPPUNIT_ASSERT(cache.find(14, &first) == ten && first == 5);
    CPPUNIT_ASSERT(cache.find(15, &first) == nullptr);
    const size_t size = cache.size();
    cache.keep(5, array(10));
    CPPUNIT_ASSERT_EQUAL(size, cache.size());
  }

  void the_least_recently_used_goes() {
    SpecCache cache(25'000);
    for (uint64_t first : {0, 10}) cache.keep(first, array(10, 10'000));
    uint64_t first = 0;
    CPPUNIT_ASSERT(cache.find(0, &first) != nullptr);  // so the other is older
    cache.keep(20, array(10, 10'000));
    CPPUNIT_ASSERT(cache.find(10, &first) == nullptr);
    CPPUNIT_ASSERT(cache.find(0, &first) != nullptr);
    CPPUNIT_ASSERT(cache.find(20, &first) != nullptr);
    CPPUNIT_ASSERT(cache.size() <= 25'000);
  }

  void what_is_too_large_is_not_kept() {
    SpecCache cache(25'000);
    cache.keep(0, array(10, 10'000));
    cache.keep(10, array(10, 30'000));
    uint64_t first = 0;
    CPPUNIT_ASSERT(cache.find(10, &first) == nullptr);
    CPPUNIT_ASSERT(cache.find(0, &first) != nullptr);
  }

  void names_of_sources_take_room_too() {
    SpecRange range;
    range.spec.inputs = {{0, "in", false, {false, 1, std::string(30'000, 'x')}}};
    SpecCache cache(25'000);
    cache.keep(0, std::make_shared<const SpecRange>(std::move(range)));
    CPPUNIT_ASSERT_EQUAL(size_t{0}, cache.size());
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(SpecCacheTest);

}  // namespace
}  // namespace sublet::server
