#include "examples/code-breaking/key_range.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <algorithm>
#include <stdexcept>

namespace {
using namespace sublet::code_breaking;

class KeyRangeTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(KeyRangeTest);
  CPPUNIT_TEST(keys_are_numbered_as_they_are_written);
  CPPUNIT_TEST(parts_hold_every_key_once);
  CPPUNIT_TEST(parts_of_all_keys_of_eight_bytes);
  CPPUNIT_TEST(impossible_parts);
  CPPUNIT_TEST_SUITE_END();

 public:
  void keys_are_numbered_as_they_are_written() {
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{0x27d86dd243}, key_number(from_hex("27d86dd243")));
    CPPUNIT_ASSERT(key_bytes(0x01ff, 3) == from_hex("0001ff"));
    CPPUNIT_ASSERT(rc::check([] {
      const auto length = *rc::gen::inRange<unsigned>(1, kMaxKeyBytes + 1);
      const auto key = *rc::gen::container<Bytes>(length, rc::gen::arbitrary<std::uint8_t>());
      RC_ASSERT(key_bytes(key_number(key), length) == key);
    }));
  }

  // Each part begins where the one before it ended, and their sizes differ by at most one.
  void parts_hold_every_key_once() {
    CPPUNIT_ASSERT(rc::check([] {
      const auto first = *rc::gen::arbitrary<std::uint64_t>();
      const auto last = first + *rc::gen::inRange<std::uint64_t>(0, UINT64_MAX - first) / 2;
      const KeyRange range{first, last, 8};
      const auto most = std::min<std::uint64_t>(range.count(), 2000);
      const auto of = *rc::gen::inRange<std::uint64_t>(1, most + 1);
      std::uint64_t next = first;
      for (std::uint64_t index = 0; index < of; ++index) {
        const KeyRange part = range.part(index, of);
        RC_ASSERT(part.first == next);
        RC_ASSERT(part.last >= part.first);
        RC_ASSERT(part.length == range.length);
        const std::uint64_t even = range.count() / of;
        RC_ASSERT(part.count() == even || part.count() == even + 1);
        next = part.last + 1;
      }
      RC_ASSERT(next == last + 1);
    }));
  }

  void parts_of_all_keys_of_eight_bytes() {
    const KeyRange all{0, UINT64_MAX, 8};
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{0}, all.count());
    CPPUNIT_ASSERT_EQUAL(UINT64_MAX, all.part(0, 1).last);
    CPPUNIT_ASSERT_EQUAL(UINT64_MAX / 2, all.part(0, 2).last);
    CPPUNIT_ASSERT_EQUAL(UINT64_MAX / 2 + 1, all.part(1, 2).first);
    CPPUNIT_ASSERT_EQUAL(UINT64_MAX, all.part(999'999, 1'000'000).last);
  }

  void impossible_parts() {
    const KeyRange range{10, 14, 1};
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{1}, range.part(4, 5).count());
    CPPUNIT_ASSERT_THROW(range.part(5, 5), std::invalid_argument);
    CPPUNIT_ASSERT_THROW(range.part(0, 0), std::invalid_argument);
    CPPUNIT_ASSERT_THROW(range.part(0, 6), std::invalid_argument);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(KeyRangeTest);

}  // namespace
