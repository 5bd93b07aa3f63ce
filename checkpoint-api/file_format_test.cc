#include "checkpoint-api/file_format.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <cstring>
#include <vector>

#include "checkpoint-api/crc64.h"
#include "checkpoint-api/little_endian.h"
#include "checkpoint-api/sublet_checkpoint.hpp"
#include "checkpoint-api/testing.h"

namespace {
using sublet::testing::read_file;
using sublet::testing::TempFolder;
using sublet::testing::write_file;

// Made by hand from docs/checkpoint-format.md, not by this library: program "golden",
// layout 3, generation 7, progress 25 %, seven sections.
const unsigned char kGolden[] = {
    0x89, 0x53, 0x42, 0x43, 0x4b, 0x0d, 0x0a, 0x1a, 0x01, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00,
    0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x27, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x40, 0x1e, 0x18, 0x24, 0x0a, 0x06, 0x00, 0x90, 0xd0, 0x03, 0x00, 0x03, 0x00, 0x00, 0x00,
    0x67, 0x6f, 0x6c, 0x64, 0x65, 0x6e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x4f, 0x3f, 0xc6, 0xc5, 0x68, 0xf4, 0x6c, 0xc1, 0x0b, 0x31, 0x2f, 0x99, 0xd7, 0x6a, 0xb3, 0xd8,
    0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x62, 0x79, 0x74, 0x65, 0x73, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x73, 0x68, 0x6f, 0x72, 0x74, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x63, 0x6f, 0x75, 0x6e, 0x74, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x62, 0x69, 0x67, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x70, 0x69, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x68, 0x61, 0x6c, 0x66, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x6e, 0x6f, 0x74, 0x65, 0x73, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x02, 0xff, 0xfe, 0xff, 0x04, 0x03, 0x02, 0x01, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02,
    0x01, 0x18, 0x2d, 0x44, 0x54, 0xfb, 0x21, 0x09, 0x40, 0x00, 0x00, 0x00, 0x3f, 0x02, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x68, 0x69,
};
const std::string kGoldenFile(reinterpret_cast<const char*>(kGolden), sizeof kGolden);
constexpr std::size_t kGenerationAt = 16, kSavedAt = 32, kHeadCrcAt = 120;

// The variables of the golden file.
struct Golden {
  std::uint8_t bytes[3] = {};
  std::int16_t small = 0;
  std::uint32_t count = 0;
  std::uint64_t big = 0;
  double pi = 0;
  float half = 0;
  std::string notes;
  sublet::Checkpoint checkpoint{"golden", 3};

  Golden() {
    checkpoint.variable("bytes", bytes, 3);
    checkpoint.variable("short", small);
    checkpoint.variable("count", count);
    checkpoint.variable("big", big);
    checkpoint.variable("pi", pi);
    checkpoint.variable("half", half);
    checkpoint.callbacks(
        "notes",
        [this](sublet::CheckpointStream& out) {
          out.write<std::uint64_t>(notes.size());
          out.write(notes.data(), notes.size());
        },
        [this](sublet::CheckpointStream& in) {
          const auto size = in.read<std::uint64_t>();
          if (size > in.remaining()) throw std::length_error("notes");
          notes.resize(size);
          in.read(notes.data(), notes.size());
        });
  }
};

class FileFormatTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(FileFormatTest);
  CPPUNIT_TEST(checksum_is_crc64_xz);
  CPPUNIT_TEST(checksum_of_every_length);
  CPPUNIT_TEST(checksum_continues);
  CPPUNIT_TEST(golden_file_is_read);
  CPPUNIT_TEST(golden_file_is_written);
  CPPUNIT_TEST(elements_are_swapped_for_a_big_endian_machine);
  CPPUNIT_TEST(header_round_trip);
  CPPUNIT_TEST(every_bit_of_a_head_is_sealed);
  CPPUNIT_TEST(impossible_entries_are_refused);
  CPPUNIT_TEST_SUITE_END();

 public:
  void checksum_is_crc64_xz() {
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{0x995dc9bbdf1939fa}, sublet_crc64(0, "123456789", 9));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{0}, sublet_crc64(0, "", 0));
  }

  // Long ones are computed in another way, in blocks.
  void checksum_of_every_length() {
    std::vector<unsigned char> bytes(1000);
    std::uint32_t random = 1;
    for (unsigned char& b : bytes) b = static_cast<unsigned char>((random *= 69069u) >> 24);
    for (std::size_t begin = 0; begin < 20; ++begin) {
      std::uint64_t expected = ~std::uint64_t{0};
      for (std::size_t end = begin; end < bytes.size(); ++end) {
        CPPUNIT_ASSERT_EQUAL(~expected, sublet_crc64(0, &bytes[begin], end - begin));
        const std::size_t middle = begin + (end - begin) / 3;
        const std::uint64_t first = sublet_crc64(0, &bytes[begin], middle - begin);
        CPPUNIT_ASSERT_EQUAL(~expected, sublet_crc64(first, &bytes[middle], end - middle));
        expected ^= bytes[end];
        for (int bit = 0; bit < 8; ++bit) {
          expected = (expected >> 1) ^ ((expected & 1) != 0 ? 0xc96c5795d7870f42u : 0);
        }
      }
    }
  }

  void checksum_continues() {
    CPPUNIT_ASSERT(rc::check([](const std::string& a, const std::string& b) {
      const std::string both = a + b;
      const std::uint64_t crc = sublet_crc64(0, a.data(), a.size());
      RC_ASSERT(sublet_crc64(crc, b.data(), b.size()) == sublet_crc64(0, both.data(), both.size()));
    }));
  }

  void golden_file_is_read() {
    TempFolder folder;
    write_file(folder / "state", kGoldenFile);
    Golden golden;
    const std::string path = folder / "state";
    CPPUNIT_ASSERT(golden.checkpoint.start({path.c_str(), 0, 0}));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{7}, golden.checkpoint.generation());
    CPPUNIT_ASSERT(golden.bytes[0] == 1 && golden.bytes[1] == 2 && golden.bytes[2] == 255);
    CPPUNIT_ASSERT_EQUAL(std::int16_t{-2}, golden.small);
    CPPUNIT_ASSERT_EQUAL(std::uint32_t{0x01020304}, golden.count);
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{0x0102030405060708}, golden.big);
    CPPUNIT_ASSERT(golden.pi == 3.141592653589793 && golden.half == 0.5f);
    CPPUNIT_ASSERT_EQUAL(std::string("hi"), golden.notes);
  }

  // The next generation of the golden file differs only in its number, time and checksum.
  void golden_file_is_written() {
    TempFolder folder;
    write_file(folder / "state", kGoldenFile);
    Golden golden;
    const std::string path = folder / "state";
    golden.checkpoint.start({path.c_str(), 0, 0});
    golden.checkpoint.save();
    std::string written = read_file(path);
    CPPUNIT_ASSERT_EQUAL(kGoldenFile.size(), written.size());
    CPPUNIT_ASSERT_EQUAL('\x08', written[kGenerationAt]);
    for (const std::size_t at : {kGenerationAt, kSavedAt, kHeadCrcAt}) {
      written.replace(at, 8, kGoldenFile, at, 8);
    }
    CPPUNIT_ASSERT(written == kGoldenFile);
  }

  void elements_are_swapped_for_a_big_endian_machine() {
    const std::uint8_t file[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const std::uint8_t by_width[4][8] = {{1, 2, 3, 4, 5, 6, 7, 8},
                                         {2, 1, 4, 3, 6, 5, 8, 7},
                                         {4, 3, 2, 1, 8, 7, 6, 5},
                                         {8, 7, 6, 5, 4, 3, 2, 1}};
    for (int i = 0; i < 4; ++i) {
      std::uint8_t memory[8], back[8];
      sublet_copy_elements(memory, file, 8, std::size_t{1} << i, 1);
      CPPUNIT_ASSERT(std::memcmp(memory, by_width[i], 8) == 0);
      sublet_copy_elements(back, memory, 8, std::size_t{1} << i, 1);
      CPPUNIT_ASSERT(std::memcmp(back, file, 8) == 0);
      sublet_copy_elements(memory, file, 8, std::size_t{1} << i, 0);
      CPPUNIT_ASSERT(std::memcmp(memory, file, 8) == 0);
    }
    // With the byte order of this machine the values are right.
    std::uint64_t value;
    sublet_copy_elements(&value, file, 8, 8, sublet_host_swaps());
    CPPUNIT_ASSERT_EQUAL(sublet_load_u64(file), value);
  }

  void header_round_trip() {
    CPPUNIT_ASSERT(
        rc::check([](std::uint64_t payload_crc, std::uint32_t layout, std::int64_t saved) {
          sublet_header header{};
          header.version = SUBLET_FORMAT_VERSION;
          header.sections = *rc::gen::inRange<std::uint32_t>(0, 20);
          header.generation = *rc::gen::inRange<std::uint64_t>(1, INT64_MAX);
          header.payload_bytes = *rc::gen::inRange<std::uint64_t>(0, 1u << 30);
          header.saved_utc_us = saved;
          header.progress_ppm = *rc::gen::inRange(-1, SUBLET_PPM_MAX + 1);
          header.layout = layout;
          header.payload_crc = payload_crc;
          std::strcpy(header.program, "a program");
          std::vector<unsigned char> head(sublet_head_bytes(header.sections));
          sublet_head_encode(&header, head.data());
          sublet_header back{};
          RC_ASSERT(sublet_header_decode(head.data(), head.size() + header.payload_bytes, &back) ==
                    nullptr);
          RC_ASSERT(sublet_head_sealed(head.data(), back.sections));
          RC_ASSERT(std::memcmp(&back, &header, sizeof back) == 0);
          RC_ASSERT(sublet_header_decode(head.data(), head.size() + header.payload_bytes + 1,
                                         &back) != nullptr);
        }));
  }

  void every_bit_of_a_head_is_sealed() {
    const std::uint32_t sections = kGolden[12];
    CPPUNIT_ASSERT(sublet_head_sealed(kGolden, sections));
    std::vector<unsigned char> head(kGolden, kGolden + sublet_head_bytes(sections));
    for (std::size_t bit = 0; bit < head.size() * 8; ++bit) {
      head[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
      CPPUNIT_ASSERT(!sublet_head_sealed(head.data(), sections));
      head[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
    }
  }

  void impossible_entries_are_refused() {
    sublet_entry entry{3, SUBLET_UINT64, "name"}, back;
    unsigned char bytes[SUBLET_ENTRY_BYTES];
    sublet_entry_encode(&entry, bytes);
    CPPUNIT_ASSERT(sublet_entry_decode(bytes, &back) == nullptr);
    CPPUNIT_ASSERT(back.count == 3 && back.type == SUBLET_UINT64 &&
                   std::string("name") == back.name);
    const auto refused = [&](std::size_t at, unsigned char value) {
      unsigned char changed[SUBLET_ENTRY_BYTES];
      std::memcpy(changed, bytes, sizeof changed);
      changed[at] = value;
      return sublet_entry_decode(changed, &back) != nullptr;
    };
    CPPUNIT_ASSERT(refused(7, 0x20));  // 8 * count overflows
    CPPUNIT_ASSERT(refused(8, 11));    // unknown type
    CPPUNIT_ASSERT(refused(8, 0));     // no type
    CPPUNIT_ASSERT(refused(12, 1));    // reserved
    CPPUNIT_ASSERT(refused(16, 0));    // empty name
    CPPUNIT_ASSERT(refused(63, 'x'));  // bytes after the name's end
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(FileFormatTest);

}  // namespace
