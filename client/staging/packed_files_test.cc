#include "client/staging/packed_files.h"

#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <fstream>

#include "base/testing/temporary_folder.h"
#include "checkpoint-api/crc64.h"
#include "checkpoint-api/file_format.h"
#include "client/mover/contents.h"

namespace sublet::client {
namespace {

class PackedFilesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PackedFilesTest);
  CPPUNIT_TEST(files_come_back);
  CPPUNIT_TEST(what_was_dropped_is_not_there);
  CPPUNIT_TEST(the_same_files_make_the_same_bytes);
  CPPUNIT_TEST(a_file_that_has_become_shorter);
  CPPUNIT_TEST(every_damaged_byte_is_noticed);
  CPPUNIT_TEST(hostile_indexes);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;

  UniqueFd file(const std::string& bytes) {
    std::ofstream(folder_ / "file") << bytes;
    return UniqueFd(open((folder_ / "file").c_str(), O_RDONLY | O_CLOEXEC));
  }
  static PackedFile named(const std::string& name, uint64_t size) {
    return {.name = name, .size = size, .mode = 0640, .mtime_ns = 5'000'000'123};
  }
  void add(PackWriter& writer, const std::string& name, const std::string& bytes) {
    CPPUNIT_ASSERT(writer.add(named(name, bytes.size()), file(bytes).get(), 0, [] {}));
  }
  static std::string bytes_of(const Pack& pack) {
    return read_content(pack.file.get(), 0, pack.size);
  }
  Pack read(const std::string& bytes) {
    return read_pack(file(bytes), bytes.size(), [] {});
  }
  std::string contents(const Pack& pack, const std::string& name) {
    const PackedFile* const found = pack.find(name);
    CPPUNIT_ASSERT(found != nullptr);
    const UniqueFd to(open((folder_ / "to").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
    copy_from(pack, *found, to.get(), [] {});
    return system_files().read_file(folder_ / "to", 16 << 20);
  }

  void files_come_back() {
    const std::string big(3 * (1 << 20) + 5, 'b');
    PackWriter writer(folder_.path());
    CPPUNIT_ASSERT(writer.is_empty());
    add(writer, "a", "");
    add(writer, "d/b c\n", big);
    add(writer, "e", "last");
    const Pack made = writer.finish(9, [] {});
    CPPUNIT_ASSERT(is_pack(made.file.get(), made.size));
    const Pack pack = read(bytes_of(made));
    CPPUNIT_ASSERT_EQUAL(uint64_t{9}, pack.generation);
    CPPUNIT_ASSERT_EQUAL(size_t{3}, pack.files.size());
    CPPUNIT_ASSERT(pack.contents == made.contents);
    CPPUNIT_ASSERT_EQUAL(std::string(), contents(pack, "a"));
    CPPUNIT_ASSERT(contents(pack, "d/b c\n") == big);
    CPPUNIT_ASSERT_EQUAL(std::string("last"), contents(pack, "e"));
    CPPUNIT_ASSERT_EQUAL(0640u, pack.find("e")->mode);
    CPPUNIT_ASSERT_EQUAL(int64_t{5'000'000'123}, pack.find("e")->mtime_ns);
    CPPUNIT_ASSERT(pack.find("f") == nullptr);
  }

  void what_was_dropped_is_not_there() {
    PackWriter writer(folder_.path());
    add(writer, "a", "one");
    add(writer, "b", std::string(5000, 'x'));
    writer.drop_last();
    add(writer, "c", "three");
    const Pack pack = read(bytes_of(writer.finish(1, [] {})));
    CPPUNIT_ASSERT_EQUAL(size_t{2}, pack.files.size());
    CPPUNIT_ASSERT_EQUAL(std::string("one"), contents(pack, "a"));
    CPPUNIT_ASSERT_EQUAL(std::string("three"), contents(pack, "c"));
  }

  Pack one(const std::string& bytes, int64_t mtime_ns) {
    PackWriter writer(folder_.path());
    PackedFile info = named("a", bytes.size());
    info.mtime_ns = mtime_ns;
    CPPUNIT_ASSERT(writer.add(info, file(bytes).get(), 0, [] {}));
    return writer.finish(1, [] {});
  }
  void the_same_files_make_the_same_bytes() {
    CPPUNIT_ASSERT(bytes_of(one("x", 7)) == bytes_of(one("x", 7)));
    CPPUNIT_ASSERT(one("x", 7).contents == one("x", -8).contents);  // not of times
    CPPUNIT_ASSERT(one("x", 7).contents != one("y", 7).contents);
  }

  void a_file_that_has_become_shorter() {
    PackWriter writer(folder_.path());
    CPPUNIT_ASSERT(!writer.add(named("a", 10), file("short").get(), 0, [] {}));
    CPPUNIT_ASSERT(writer.is_empty());
    add(writer, "b", "good");
    CPPUNIT_ASSERT_EQUAL(std::string("good"),
                         contents(read(bytes_of(writer.finish(1, [] {}))), "b"));
  }

  void every_damaged_byte_is_noticed() {
    PackWriter writer(folder_.path());
    add(writer, "a", "some contents");
    const std::string good = bytes_of(writer.finish(1, [] {}));
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] ^= 0x20;
      CPPUNIT_ASSERT_THROW(read(bad), DamagedPack);
      CPPUNIT_ASSERT_THROW(read(good.substr(0, i)), DamagedPack);
    }
    CPPUNIT_ASSERT_THROW(read(good + "x"), DamagedPack);
    CPPUNIT_ASSERT(!is_pack(file("x").get(), 1));
  }

  // With correct checksums.
  static std::string sealed(const std::string& contents, const std::string& index) {
    std::string head(SUBLET_HEADER_BYTES + 2 * SUBLET_ENTRY_BYTES, '\0');
    auto* const bytes = reinterpret_cast<unsigned char*>(head.data());
    const sublet_entry entries[] = {{contents.size(), SUBLET_UINT8, "contents"},
                                    {index.size(), SUBLET_UINT8, "index"}};
    for (int i = 0; i < 2; ++i)
      sublet_entry_encode(&entries[i], bytes + SUBLET_HEADER_BYTES + i * SUBLET_ENTRY_BYTES);
    const std::string payload = contents + index;
    sublet_header header = {};
    header.version = SUBLET_FORMAT_VERSION;
    header.sections = 2;
    header.generation = 1;
    header.payload_bytes = payload.size();
    header.progress_ppm = -1;
    header.layout = 1;
    std::copy_n(kPackedProgram, sizeof kPackedProgram, header.program);
    header.payload_crc = sublet_crc64(0, payload.data(), payload.size());
    sublet_head_encode(&header, bytes);
    return head + payload;
  }

  void hostile_indexes() {
    CPPUNIT_ASSERT_EQUAL(std::string("xy"), contents(read(sealed("xy", "2 384 5 a\n")), "a"));
    for (const char* index :
         {"2 384 5 ..%2Fa\n", "2 384 5 %2Fetc%2Fpasswd\n", "2 384 5 a%2F..%2F..%2Fb\n",
          "2 384 5 \n", "2 384 5 a", "3 384 5 a\n", "1 384 5 a\n", "2 4095 5 a\n", "2 384 a\n",
          "-2 384 5 a\n", "2 384 5 %zz\n", "1 384 5 b\n1 384 5 a\n", "1 384 5 a\n1 384 5 a\n",
          "18446744073709551615 384 5 a\n3 384 5 b\n", "\n", ""})
      CPPUNIT_ASSERT_THROW_MESSAGE(index, read(sealed("xy", index)), DamagedPack);
    std::string many;
    for (int i = 10'000; i < 15'000; ++i) many += "0 384 5 " + std::to_string(i) + "\n";
    CPPUNIT_ASSERT_THROW(read(sealed("", many)), DamagedPack);
    CPPUNIT_ASSERT(rc::check([this] {
      const auto index =
          *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123456789 -\n%2Fab")));
      try {
        for (const PackedFile& file : read(sealed("xy", index)).files)
          RC_ASSERT(!file.name.empty() && file.name[0] != '/');
      } catch (const DamagedPack&) {
      }
    }));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(PackedFilesTest);

}  // namespace
}  // namespace sublet::client
