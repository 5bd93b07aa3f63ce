#include "base/hash.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

#include "base/random.h"

namespace sublet {

class HashTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(HashTest);
  CPPUNIT_TEST(known_digests);
  CPPUNIT_TEST(pieces_make_no_difference);
  CPPUNIT_TEST(random_ids_differ);
  CPPUNIT_TEST_SUITE_END();

 public:
  void known_digests() {
    CPPUNIT_ASSERT_EQUAL(
        std::string("0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"),
        hex(digest_of("")));
    CPPUNIT_ASSERT_EQUAL(
        std::string("bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"),
        hex(digest_of("abc")));
  }

  void pieces_make_no_difference() {
    CPPUNIT_ASSERT(rc::check("pieces", [](const std::string& text, uint8_t piece) {
      Hasher hash;
      for (int round = 0; round < 2; ++round) {  // finish() resets the object
        for (size_t i = 0; i < text.size(); i += piece + 1) {
          hash.update(std::string_view(text).substr(i, piece + 1));
        }
        RC_ASSERT(hash.finish() == digest_of(text));
      }
    }));
  }

  void random_ids_differ() {
    std::set<std::array<uint8_t, 16>> ids;
    for (int i = 0; i < 100; ++i) ids.insert(random_id());
    CPPUNIT_ASSERT_EQUAL(size_t{100}, ids.size());
    CPPUNIT_ASSERT_EQUAL(size_t{100'000}, random_bytes(100'000).size());
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(HashTest);

}  // namespace sublet
