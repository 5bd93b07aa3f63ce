// Hostile files: 100,000 mutations (or SUBLET_MUTANTS), half of them with corrected checksums so
// that they pass the first check. Nothing may crash (run with the address sanitizer), and no file
// with a wrong checksum may be accepted.
#include <cppunit/extensions/HelperMacros.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "checkpoint-api/crc64.h"
#include "checkpoint-api/file_format.h"
#include "checkpoint-api/little_endian.h"
#include "checkpoint-api/sublet_checkpoint.hpp"
#include "checkpoint-api/testing.h"

namespace {
using namespace sublet::testing;

struct Program {
  std::vector<double> weights = std::vector<double>(20, 0.25);
  std::uint16_t small = 3;
  std::vector<std::uint32_t> list = {1, 2, 3, 4, 5};
  sublet::Checkpoint checkpoint{"hostile", 1};

  Program() {
    checkpoint.variable("weights", weights);
    checkpoint.variable("small", small);
    checkpoint.callbacks(
        "list",
        [this](sublet::CheckpointStream& out) {
          out.write<std::uint64_t>(list.size());
          out.write(list.data(), list.size());
        },
        [this](sublet::CheckpointStream& in) {
          const auto size = in.read<std::uint64_t>();
          if (size > in.remaining() / 4) throw std::length_error("list");
          list.resize(size);
          in.read(list.data(), list.size());
        });
  }
};

using Bytes = std::vector<unsigned char>;

// Corrects both checksums, if the sizes allow it.
void seal(Bytes& file) {
  if (file.size() < SUBLET_HEADER_BYTES) return;
  const std::uint64_t head =
      SUBLET_HEADER_BYTES + std::uint64_t{sublet_load_u32(file.data() + 12)} * SUBLET_ENTRY_BYTES;
  if (head > file.size()) return;
  sublet_store_u64(file.data() + 24, file.size() - head);
  sublet_store_u64(file.data() + 112, sublet_crc64(0, file.data() + head, file.size() - head));
  const std::uint64_t crc = sublet_crc64(0, file.data(), 120);
  sublet_store_u64(file.data() + 120, sublet_crc64(crc, file.data() + SUBLET_HEADER_BYTES,
                                                   head - SUBLET_HEADER_BYTES));
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  Bytes mutate(Bytes file) {
    for (std::uint64_t i = below(4) + 1; i > 0; --i) mutate_once(file);
    return file;
  }
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

 private:
  void mutate_once(Bytes& file) {
    static const std::uint64_t kEdges[] = {0,          1,          0x7f,       0xff,
                                           0x7fffffff, 0xffffffff, 1ull << 32, 1ull << 61,
                                           ~0ull,      ~0ull >> 1, 4096,       4097};
    // Mostly in the head, where the lengths are.
    const std::uint64_t reach =
        below(4) == 0 ? file.size() : std::min<std::size_t>(320, file.size());
    const std::uint64_t at = reach == 0 ? 0 : below(reach);
    switch (below(6)) {
      case 0:
        if (!file.empty()) file[at] ^= static_cast<unsigned char>(1u << below(8));
        break;
      case 1:
        if (!file.empty()) file[at] = static_cast<unsigned char>(below(256));
        break;
      case 2:
        if (at + 8 <= file.size()) sublet_store_u64(&file[at & ~7ull], kEdges[below(12)]);
        break;
      case 3:
        if (at + 4 <= file.size()) {
          sublet_store_u32(&file[at & ~3ull], static_cast<std::uint32_t>(kEdges[below(12)]));
        }
        break;
      case 4:
        file.resize(below(file.size() + 1));
        break;
      default:
        file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), below(300),
                    static_cast<unsigned char>(below(256)));
    }
  }
  std::mt19937_64 random_;
};

class HostileTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(HostileTest);
  CPPUNIT_TEST(mutated_files);
  CPPUNIT_TEST(sections_swapped_or_doubled);
  CPPUNIT_TEST(names_are_printed_safely);
  CPPUNIT_TEST(things_that_are_no_files);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    unsetenv("SUBLET_CHECKPOINT_DIR");
    unsetenv("SUBLET_STATUS");
  }

  // In memory: so many files on disk would mainly test the disk.
  void mutated_files() {
    const Bytes original = make_file(TempFolder());
    const int memory = memfd_create("mutated", MFD_CLOEXEC);
    CPPUNIT_ASSERT(memory >= 0);
    const std::string path = "/proc/self/fd/" + std::to_string(memory);
    QuietStderr quiet;
    Mutator mutator(20260101);
    long believed = 0;
    const char* wanted = std::getenv("SUBLET_MUTANTS");
    const long mutants = wanted == nullptr ? 100'000 : std::strtol(wanted, nullptr, 10);
    CPPUNIT_ASSERT(mutants >= 100'000);
    for (long i = 0; i < mutants; ++i) {
      Bytes file = mutator.mutate(original);
      const bool sealed = i % 2 == 0;
      if (sealed) seal(file);
      const bool resumed = try_file(path, file);
      if (!sealed) CPPUNIT_ASSERT(!resumed || file == original);
      believed += resumed && file != original;
    }
    close(memory);
    CPPUNIT_ASSERT(believed > 100);  // else seal() does not work and this tests little
  }

  void sections_swapped_or_doubled() {
    TempFolder folder;
    const Bytes original = make_file(folder);
    const std::string path = folder / "state";
    QuietStderr quiet;
    const auto entry = [](Bytes& file, int i) {
      return file.begin() + SUBLET_HEADER_BYTES + i * SUBLET_ENTRY_BYTES;
    };
    Bytes doubled = original;
    std::copy(entry(doubled, 0), entry(doubled, 1), entry(doubled, 1));
    seal(doubled);
    CPPUNIT_ASSERT(!try_file(path, doubled));
    // A different order of sections is no damage: they are found by name.
    Bytes swapped = original;
    std::swap_ranges(entry(swapped, 0), entry(swapped, 1), entry(swapped, 1));
    const auto payload = swapped.begin() + static_cast<std::ptrdiff_t>(sublet_head_bytes(3));
    std::rotate(payload, payload + 160, payload + 162);
    seal(swapped);
    write_file(path, {swapped.begin(), swapped.end()});
    Program program;
    program.weights.assign(20, 0);
    program.small = 0;
    CPPUNIT_ASSERT(program.checkpoint.start({path.c_str(), 0, 0}));
    CPPUNIT_ASSERT(program.weights == std::vector<double>(20, 0.25));
    CPPUNIT_ASSERT_EQUAL(std::uint16_t{3}, program.small);
  }

  void names_are_printed_safely() {
    TempFolder folder;
    Bytes file = make_file(folder);
    std::memcpy(&file[48], "\x1b[2Jhos", 7);
    seal(file);
    write_file(folder / "state", {file.begin(), file.end()});
    QuietStderr quiet;
    Program program;
    const std::string path = folder / "state";
    try {
      program.checkpoint.start({path.c_str(), 0, 0});
      CPPUNIT_FAIL("not refused");
    } catch (const sublet::CheckpointRefused& refused) {
      const std::string what = refused.what();
      CPPUNIT_ASSERT(what.find("?[2Jhos") != std::string::npos);
      CPPUNIT_ASSERT(what.find('\x1b') == std::string::npos);
    }
  }

  // A pipe would block forever, a folder cannot be read, a link may be dangling.
  void things_that_are_no_files() {
    QuietStderr quiet;
    const std::function<void(const std::string&)> makers[] = {
        [](const std::string& at) { CPPUNIT_ASSERT(mkfifo(at.c_str(), 0600) == 0); },
        [](const std::string& at) { std::filesystem::create_directory(at); },
        [](const std::string& at) { std::filesystem::create_symlink("nowhere", at); },
        [](const std::string& at) { std::filesystem::create_symlink("/dev/zero", at); },
    };
    for (const auto& make : makers) {
      TempFolder folder;
      const std::string path = folder / "state";
      make(path);
      // The temporary file of a save may be a trap, too.
      write_file(folder / "victim", "untouched");
      std::filesystem::create_symlink("victim", folder / "state.unfinished");
      Program program;
      CPPUNIT_ASSERT(!program.checkpoint.start({path.c_str(), 0, 0}));
      program.checkpoint.save();
      CPPUNIT_ASSERT(std::filesystem::is_regular_file(std::filesystem::symlink_status(path)));
      CPPUNIT_ASSERT_EQUAL(std::string("untouched"), read_file(folder / "victim"));
    }
  }

 private:
  static Bytes make_file(const TempFolder& folder) {
    const std::string path = folder / "state";
    Program program;
    program.checkpoint.start({path.c_str(), 0, 0});
    program.checkpoint.save();
    const std::string bytes = read_file(path);
    return {bytes.begin(), bytes.end()};
  }

  static bool try_file(const std::string& path, const Bytes& file) {
    write_file(path, {file.begin(), file.end()});
    Program program;
    try {
      return program.checkpoint.start({path.c_str(), 0, 0});
    } catch (const sublet::CheckpointRefused&) {
      return false;
    }
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(HostileTest);

}  // namespace
