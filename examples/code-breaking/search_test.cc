// Compares every scanner that this machine supports with the simple cipher: any key length,
// any position in a group of lanes, any range.
#include "examples/code-breaking/search.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>
#include <stdlib.h>

#include <algorithm>

namespace {
using namespace sublet::code_breaking;

std::uint64_t last_key(unsigned length) { return UINT64_MAX >> (64 - 8 * length); }

Message make_message(std::uint64_t key, unsigned length, std::size_t blocks) {
  Message message;
  message.iv = {0x01020304, 0xfffefdfc};
  for (std::size_t i = 0; i < blocks * kBlockBytes; ++i) {
    message.plaintext.push_back(static_cast<std::uint8_t>(3 * i + 1));
  }
  message.ciphertext = Rc5(key_bytes(key, length)).encrypt_chained(message.iv, message.plaintext);
  return message;
}

class SearchTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SearchTest);
  CPPUNIT_TEST(every_scanner_finds_the_key);
  CPPUNIT_TEST(no_scanner_looks_outside_the_range);
  CPPUNIT_TEST(ends_of_the_key_space);
  CPPUNIT_TEST(all_known_blocks_must_fit);
  CPPUNIT_TEST(keys_tried_do_not_depend_on_the_packet);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    unsetenv("SUBLET_CHECKPOINT_DIR");
    unsetenv("SUBLET_STATUS");
  }

  void every_scanner_finds_the_key() {
    CPPUNIT_ASSERT(rc::check([] {
      const auto length = *rc::gen::inRange<unsigned>(1, kMaxKeyBytes + 1);
      const auto key = *rc::gen::arbitrary<std::uint64_t>() & last_key(length);
      const auto before = std::min<std::uint64_t>(*rc::gen::inRange(0, 300), key);
      const auto after = std::min<std::uint64_t>(*rc::gen::inRange(0, 300), last_key(length) - key);
      const Message message = make_message(key, length, 2);
      for (const Scanner* s = scanners(); s->name != nullptr; ++s) {
        RC_ASSERT(find_key(message, s->scan, length, key - before, key + after) == key);
      }
    }));
  }

  void no_scanner_looks_outside_the_range() {
    CPPUNIT_ASSERT(rc::check([] {
      const auto length = *rc::gen::inRange<unsigned>(2, kMaxKeyBytes + 1);
      const auto key = 1000 + *rc::gen::arbitrary<std::uint64_t>() % (last_key(length) - 2000);
      const auto count = *rc::gen::inRange<std::uint64_t>(1, 300);
      const Message message = make_message(key, length, 1);
      for (const Scanner* s = scanners(); s->name != nullptr; ++s) {
        RC_ASSERT(!find_key(message, s->scan, length, key - count, key - 1));
        RC_ASSERT(!find_key(message, s->scan, length, key + 1, key + count));
      }
    }));
  }

  void ends_of_the_key_space() {
    for (unsigned length = 1; length <= kMaxKeyBytes; ++length) {
      const std::uint64_t last = last_key(length);
      const std::uint64_t keys[] = {0, last};
      for (const std::uint64_t key : keys) {
        const Message message = make_message(key, length, 1);
        const std::uint64_t from = key == 0 ? 0 : last - 200;
        for (const Scanner* s = scanners(); s->name != nullptr; ++s) {
          CPPUNIT_ASSERT(find_key(message, s->scan, length, from, from + 200) == key);
        }
      }
    }
  }

  // A key that matches only the first block is skipped, even as the last of the range.
  void all_known_blocks_must_fit() {
    Message message = make_message(500, 4, 3);
    message.ciphertext.back() ^= 1;
    CPPUNIT_ASSERT(!find_key(message, scanners()->scan, 4, 0, 2000));
    CPPUNIT_ASSERT(!find_key(message, scanners()->scan, 4, 0, 500));
    message.plaintext.resize(2 * kBlockBytes);
    CPPUNIT_ASSERT(find_key(message, scanners()->scan, 4, 0, 2000) == 500u);
  }

  void keys_tried_do_not_depend_on_the_packet() {
    CPPUNIT_ASSERT(rc::check([] {
      const auto keys = *rc::gen::inRange<std::uint64_t>(1, 3000);
      const auto place = *rc::gen::inRange<std::uint64_t>(0, 2 * keys);
      const auto packet = *rc::gen::inRange<std::uint64_t>(1, 4000);
      const std::uint64_t first = 0xabcdef0123;
      Search search(make_message(first + place, 6, 1), {first, first + keys - 1, 6}, packet);
      search.start("");
      const auto found = search.run();
      RC_ASSERT(found.has_value() == (place < keys));
      RC_ASSERT(search.tried() == std::min(place + 1, keys));
      search.finish();
    }));
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(SearchTest);

}  // namespace
