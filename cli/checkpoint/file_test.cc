// What is refused of a checkpoint file, and where it is said to be wrong.
#include "cli/checkpoint/file.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "cli/checkpoint/check.h"
#include "cli/checkpoint/testing.h"

namespace sublet::cli {
namespace {

const MadeFile kTwo = {
    .sections = {numbers<int32_t>("x", SUBLET_INT32, {-2, 7}), stream("notes", "hi")}};

class CheckpointFileTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(CheckpointFileTest);
  CPPUNIT_TEST(sections_lie_where_they_are_said_to_be);
  CPPUNIT_TEST(every_changed_byte_is_found);
  CPPUNIT_TEST(every_length_but_its_own_is_refused);
  CPPUNIT_TEST(the_place_of_damage_is_named);
  CPPUNIT_TEST(hostile_sections_are_refused);
  CPPUNIT_TEST(a_newer_format_is_not_damage);
  CPPUNIT_TEST(what_is_no_file_is_refused);
  CPPUNIT_TEST(sparse_files_cost_nothing);
  CPPUNIT_TEST(a_folder_stands_for_its_generations);
  CPPUNIT_TEST_SUITE_END();

  CheckpointFolder folder_;

  void sections_lie_where_they_are_said_to_be() {
    const CheckpointFile file = folder_.file(kTwo);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, file.sections().size());
    const CheckpointSection* notes = file.find("notes");
    CPPUNIT_ASSERT(notes != nullptr);
    CPPUNIT_ASSERT_EQUAL(uint64_t{128 + 2 * 64 + 8}, notes->offset);
    unsigned char bytes[2];
    file.read(*notes, 0, bytes);
    CPPUNIT_ASSERT_EQUAL(std::string("hi"), std::string(bytes, bytes + 2));
    CPPUNIT_ASSERT(file.find("note") == nullptr);
  }

  void every_changed_byte_is_found() {
    const std::string whole = kTwo.bytes();
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ 0x10);
      CPPUNIT_ASSERT_EQUAL(std::string("checkpoint.damaged"),
                           CheckpointFolder::fault(folder_.put("file", changed)).code);
    }
  }

  void every_length_but_its_own_is_refused() {
    const std::string whole = kTwo.bytes();
    for (size_t size = 0; size < whole.size(); ++size)
      CheckpointFolder::fault(folder_.put("file", whole.substr(0, size)));
    CheckpointFolder::fault(folder_.put("file", whole + "x"));
  }

  // Changes a byte in a field and seals the head again.
  CheckpointFault resealed(size_t at, unsigned char value) {
    std::string bytes = kTwo.bytes();
    bytes[at] = static_cast<char>(value);
    const uint64_t crc = sublet_crc64(sublet_crc64(0, bytes.data(), 120), bytes.data() + 128, 128);
    for (int i = 0; i < 8; ++i) bytes[120 + i] = static_cast<char>(crc >> 8 * i);
    return CheckpointFolder::fault(folder_.put("file", bytes));
  }

  void the_place_of_damage_is_named() {
    const std::string whole = kTwo.bytes();
    const auto changed_at = [&](size_t at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 1);
      return CheckpointFolder::fault(folder_.put("file", changed));
    };
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, changed_at(0).at);
    CPPUNIT_ASSERT_EQUAL(std::string("head_crc"), changed_at(130).checksum);
    CPPUNIT_ASSERT_EQUAL(int64_t{120}, changed_at(130).at);
    const CheckpointFault contents = changed_at(whole.size() - 1);
    CPPUNIT_ASSERT_EQUAL(std::string("payload_crc"), contents.checksum);
    CPPUNIT_ASSERT_EQUAL(int64_t{112}, contents.at);
    CPPUNIT_ASSERT(contents.message.find("bytes 256 to 266") != std::string::npos);
    CPPUNIT_ASSERT_EQUAL(int64_t{12}, resealed(14, 1).at);     // sections
    CPPUNIT_ASSERT_EQUAL(int64_t{24}, resealed(24, 9).at);     // payload_bytes
    CPPUNIT_ASSERT_EQUAL(int64_t{16}, resealed(16, 0).at);     // generation 0
    CPPUNIT_ASSERT_EQUAL(int64_t{16}, resealed(23, 0x80).at);  // above 2^63 - 1
    CPPUNIT_ASSERT_EQUAL(int64_t{40}, resealed(40, 0xfe).at);  // progress
    CPPUNIT_ASSERT_EQUAL(int64_t{48}, resealed(48, 0).at);     // program
    CPPUNIT_ASSERT_EQUAL(int64_t{48}, resealed(111, 'x').at);
    CPPUNIT_ASSERT_EQUAL(int64_t{192}, resealed(192 + 12, 1).at);   // the second entry
    CPPUNIT_ASSERT_EQUAL(int64_t{128}, resealed(128 + 8, 200).at);  // an unknown type
  }

  void hostile_sections_are_refused() {
    const auto refused = [&](std::vector<MadeSection> sections, const std::string& why) {
      const CheckpointFault fault =
          CheckpointFolder::fault(folder_.put("file", MadeFile{.sections = std::move(sections)}));
      CPPUNIT_ASSERT_EQUAL_MESSAGE(fault.message, std::string("checkpoint.damaged"), fault.code);
      CPPUNIT_ASSERT_EQUAL(why, fault.what_is_wrong);
    };
    refused({{"x", SUBLET_INT64, UINT64_MAX, "1234"}}, "a section's type or size is impossible");
    refused({{"x", SUBLET_INT8, UINT64_MAX, "1234"}}, "its sections are larger than the file");
    // Their sum overflows to the payload's size.
    refused({{"x", SUBLET_INT8, UINT64_MAX - 1, "1234"}, {"y", SUBLET_INT8, 6, ""}},
            "its sections are larger than the file");
    refused({{"x", SUBLET_INT8, 1, "1234"}}, "its sections do not fill it");
    refused({{"x", SUBLET_INT8, 1, "1"}, {"x", SUBLET_INT8, 1, "2"}},
            "two of its sections have the same name");
  }

  void a_newer_format_is_not_damage() {
    MadeFile newer = kTwo;
    newer.version = 2;
    const CheckpointFault fault = CheckpointFolder::fault(folder_.put("file", newer));
    CPPUNIT_ASSERT_EQUAL(std::string("checkpoint.version"), fault.code);
    CPPUNIT_ASSERT(fault.message.find("version 2") != std::string::npos);
  }

  void what_is_no_file_is_refused() {
    CPPUNIT_ASSERT_EQUAL(0, mkfifo((folder_ / "pipe").c_str(), 0600));
    CPPUNIT_ASSERT_EQUAL(0, symlink("loop", (folder_ / "loop").c_str()));
    for (const std::string& path : {folder_ / "pipe", folder_ / "loop", folder_ / "none",
                                    folder_.path(), std::string("/dev/zero"), std::string()})
      CPPUNIT_ASSERT_EQUAL(std::string("checkpoint.unreadable"),
                           CheckpointFolder::fault(path).code);
    CPPUNIT_ASSERT(CheckpointFolder::fault(folder_ / "none").kind == ErrorKind::not_found);
  }

  void sparse_files_cost_nothing() {
    const uint64_t large = uint64_t{3} << 30;
    const std::string nothing = folder_.put("nothing", "");
    CPPUNIT_ASSERT_EQUAL(0, truncate(nothing.c_str(), static_cast<off_t>(large)));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, CheckpointFolder::fault(nothing).at);
    // Its head is correct; reading all of it would take hours.
    const uint64_t huge = uint64_t{1} << 42;
    const MadeFile made = {.sections = {{"x", SUBLET_UINT8, huge, ""}}, .sparse_bytes = huge};
    const std::string sparse = folder_.put("sparse", made);
    if (truncate(sparse.c_str(), static_cast<off_t>(huge + 128 + 64)) != 0) {
      fprintf(stderr, "skipped: this file system has no files of 4 TiB\n");
      return;
    }
    CPPUNIT_ASSERT_EQUAL(std::string("it has 4 TiB; the limit is 16 GiB"),
                         CheckpointFolder::fault(sparse).what_is_wrong);
  }

  void a_folder_stands_for_its_generations() {
    const auto lines = [&] {
      std::string text;
      for (const CheckedFile& file : check_checkpoints({folder_.path()}))
        text += check_line(file).substr(folder_.path().size()) + "\n";
      return text;
    };
    CPPUNIT_ASSERT_EQUAL(std::string(": there is no checkpoint in this folder\n"), lines());
    MadeFile newest = kTwo;
    newest.generation = 7;
    folder_.put("checkpoint", newest);
    CPPUNIT_ASSERT_EQUAL(std::string("/checkpoint: whole, generation 7, 266 B\n"), lines());
    folder_.put("checkpoint.previous", "short");
    CPPUNIT_ASSERT_EQUAL(
        std::string("/checkpoint: whole, generation 7, 266 B\n/checkpoint.previous: damaged: it "
                    "ends before the end of its header (at byte 5)\n"),
        lines());
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(CheckpointFileTest);

}  // namespace
}  // namespace sublet::cli
