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
        std::string("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        hex(sha256("")));
    CPPUNIT_ASSERT_EQUAL(
        std::string("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        hex(sha256("abc")));
  }

  void pieces_make_no_difference() {
    CPPUNIT_ASSERT(rc::check("pieces", [](const std::string& text, uint8_t piece) {
      Sha256 hash;
      for (int round = 0; round < 2; ++round) {  // finish() starts afresh
        for (size_t i = 0; i < text.size(); i += piece + 1) {
          hash.update(std::string_view(text).substr(i, piece + 1));
        }
        RC_ASSERT(hash.finish() == sha256(text));
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
