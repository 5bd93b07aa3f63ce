// The real program on a practice contest of RSA's Secret-Key Challenge: however it is
// interrupted, it finds the same key after the same number of keys.
#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <vector>

#include "checkpoint-api/sublet_status.h"
#include "checkpoint-api/testing.h"
#include "examples/code-breaking/key_range.h"
#include "examples/code-breaking/key_scan.h"

namespace {
using namespace sublet::code_breaking;
using namespace sublet::testing;
using Arguments = std::vector<std::string>;

constexpr int kEvictions = 15;
constexpr std::uint64_t kCheckpointBytes = 272;
constexpr std::uint64_t kKey = 0x27d86dd243;
constexpr char kText[] =
    "text: The unknown message is: The RC5-32/12/5-test contest's plaintext"
    "\\x08\\x08\\x08\\x08\\x08\\x08\\x08\\x08\n";

std::string key_hex(std::uint64_t number) { return to_hex(key_bytes(number, 5)); }

// The number of keys that this machine tries in about three seconds.
std::uint64_t long_run() {
  static const std::uint64_t keys = [] {
    constexpr std::uint64_t kSample = 1'000'000;
    const KnownBlock block{{1, 2}, {3, 4}};
    std::uint64_t match = 0;
    const auto start = std::chrono::steady_clock::now();
    scanners()->scan(block, 5, 0, kSample - 1, &match);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    return static_cast<std::uint64_t>(3 * kSample / took.count());
  }();
  return keys;
}

std::string found_after(std::uint64_t keys) {
  return "found 27d86dd243\nkeys tried: " + std::to_string(keys) + "\n" + kText;
}

class InterruptionTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(InterruptionTest);
  CPPUNIT_TEST(evicted_run_is_identical);
  CPPUNIT_TEST(killed_run_is_identical);
  CPPUNIT_TEST(saves_periodically);
  CPPUNIT_TEST(without_a_pool);
  CPPUNIT_TEST(one_part_finds_it);
  CPPUNIT_TEST(other_searches_are_refused);
  CPPUNIT_TEST(key_is_printed_even_if_it_cannot_be_written);
  CPPUNIT_TEST(bad_command_lines);
  CPPUNIT_TEST(help);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override { leave_pool(); }
  void tearDown() override { leave_pool(); }

  void evicted_run_is_identical() {
    TempFolder folder;
    enter_pool(folder);
    const sublet_status* page = map_page(folder);
    std::vector<double> quiesce_ms;
    for (int i = 0; i < kEvictions; ++i) {
      const std::int32_t before = page->progress_ppm;
      const pid_t pid = start(folder, "evicted", long_range());
      // Beyond what the last attempt saved, by a different amount each time.
      const std::int32_t target = std::max(before, 0) + 1000 * (i + 1);
      CPPUNIT_ASSERT(wait_for(
          [&] { return page->aware == 1 && page->left == 0 && page->progress_ppm >= target; }));
      const auto asked = std::chrono::steady_clock::now();
      kill(pid, SIGTERM);
      const int end = end_of(pid);
      quiesce_ms.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - asked)
              .count());
      CPPUNIT_ASSERT(WIFEXITED(end) && WEXITSTATUS(end) == SUBLET_EXIT_LEFT);
      CPPUNIT_ASSERT_EQUAL(1u, page->left);
      CPPUNIT_ASSERT_EQUAL(static_cast<std::uint64_t>(i + 1), page->generation);
      CPPUNIT_ASSERT_EQUAL(static_cast<std::uint64_t>(i), page->resumed_generation);
      CPPUNIT_ASSERT_EQUAL(kCheckpointBytes, page->checkpoint_bytes);
      CPPUNIT_ASSERT(read_file(folder / "evicted.out").empty());
      CPPUNIT_ASSERT(!exists(folder / "evicted.found"));
    }
    CPPUNIT_ASSERT_EQUAL(0, end_of(start(folder, "evicted", long_range())));
    CPPUNIT_ASSERT_EQUAL(static_cast<std::uint64_t>(kEvictions), page->resumed_generation);
    expect_found(folder, "evicted", long_run() + 1);
    std::sort(quiesce_ms.begin(), quiesce_ms.end());
    std::cout << "\n  " << kEvictions << " evictions, checkpoint " << page->checkpoint_bytes
              << " bytes; asked to leave -> gone: p50 " << quiesce_ms[kEvictions / 2] << " ms, max "
              << quiesce_ms.back() << " ms\n";
    unmap_page(page);
  }

  // Killed without warning: it resumes from the last requested save.
  void killed_run_is_identical() {
    TempFolder folder;
    enter_pool(folder);
    const sublet_status* page = map_page(folder);
    for (std::uint64_t i = 1; i <= 3; ++i) {
      const pid_t pid = start(folder, "killed", long_range());
      CPPUNIT_ASSERT(wait_for([&] {
        return page->aware == 1 && page->resumed_generation == i - 1 &&
               page->progress_ppm > page->resumed_progress_ppm + 1000;
      }));
      kill(pid, SIGUSR1);
      CPPUNIT_ASSERT(wait_for([&] { return page->generation == i; }));
      const std::int32_t saved = page->progress_ppm;
      CPPUNIT_ASSERT(wait_for([&] { return page->progress_ppm > saved; }));
      kill(pid, SIGKILL);
      const int end = end_of(pid);
      CPPUNIT_ASSERT(WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL);
    }
    CPPUNIT_ASSERT_EQUAL(0, end_of(start(folder, "killed", long_range())));
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{3}, page->resumed_generation);
    expect_found(folder, "killed", long_run() + 1);
    unmap_page(page);
  }

  // Like the program of the original experiment: it is killed and resumes from a periodic
  // save.
  void saves_periodically() {
    TempFolder folder;
    enter_pool(folder);
    setenv("SUBLET_CHECKPOINT_PERIOD", "1", 1);
    const sublet_status* page = map_page(folder);
    const Arguments all_keys = {"--first-key", "2800000000", "--last-key", "ffffffffff"};
    pid_t pid = start(folder, "periodic", all_keys);
    CPPUNIT_ASSERT(wait_for([&] { return page->generation >= 1; }));
    kill(pid, SIGKILL);
    end_of(pid);
    const std::uint64_t generation = page->generation;
    pid = start(folder, "periodic", all_keys);
    CPPUNIT_ASSERT(wait_for([&] { return page->resumed_generation >= generation; }));
    kill(pid, SIGTERM);
    CPPUNIT_ASSERT_EQUAL(SUBLET_EXIT_LEFT, WEXITSTATUS(end_of(pid)));
    unmap_page(page);
  }

  void without_a_pool() {
    TempFolder folder;
    write_file(folder / "status", std::string(SUBLET_STATUS_BYTES, '\0'));
    setenv("SUBLET_STATUS", (folder / "status").c_str(), 1);
    const sublet_status* page = map_page(folder);
    const std::string saved = folder / "saved";
    const Arguments first = {"--first-key",  key_hex(kKey - long_run()),
                             "--last-key",   key_hex(kKey),
                             "--checkpoint", saved};
    const pid_t pid = start(folder, "alone", first);
    CPPUNIT_ASSERT(wait_for([&] { return page->aware == 1 && page->progress_ppm > 1000; }));
    kill(pid, SIGTERM);
    CPPUNIT_ASSERT_EQUAL(SUBLET_EXIT_LEFT, WEXITSTATUS(end_of(pid)));
    CPPUNIT_ASSERT_EQUAL(std::uintmax_t{kCheckpointBytes}, std::filesystem::file_size(saved));
    Arguments other_packet = first;
    other_packet.insert(other_packet.end(), {"--packet", "100000"});
    CPPUNIT_ASSERT_EQUAL(0, end_of(start(folder, "alone", other_packet)));
    CPPUNIT_ASSERT(page->resumed_generation >= 1);
    CPPUNIT_ASSERT(!exists(saved));
    expect_found(folder, "alone", long_run() + 1);
    unmap_page(page);
  }

  // As an array: the key is in one part, and only that part writes a file.
  void one_part_finds_it() {
    TempFolder folder;
    const std::uint64_t first = kKey - 100'000;
    std::uint64_t tried = 0;
    for (int part = 0; part < 7; ++part) {
      const std::string name = "part-" + std::to_string(part);
      CPPUNIT_ASSERT_EQUAL(
          0, end_of(start(folder, name,
                          {"--first-key", key_hex(first), "--last-key", key_hex(kKey + 39'999),
                           "--part", std::to_string(part), "--of", "7"})));
      if (part == 5) {  // its keys begin at 100,000
        expect_found(folder, name, 1);
        ++tried;
        continue;
      }
      CPPUNIT_ASSERT(!exists(folder / (name + ".found")));
      CPPUNIT_ASSERT_EQUAL(std::string("not here: 20000 keys tried\n"),
                           read_file(folder / (name + ".out")));
      tried += 20'000;
    }
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{120'001}, tried);
  }

  void other_searches_are_refused() {
    TempFolder folder;
    enter_pool(folder);
    const sublet_status* page = map_page(folder);
    const pid_t pid = start(folder, "first", long_range());
    CPPUNIT_ASSERT(wait_for([&] { return page->aware == 1 && page->progress_ppm > 1000; }));
    kill(pid, SIGTERM);
    CPPUNIT_ASSERT_EQUAL(SUBLET_EXIT_LEFT, WEXITSTATUS(end_of(pid)));
    const std::string checkpoint = read_file(folder / "checkpoint");
    const std::vector<Arguments> others = {{"--last-key", key_hex(kKey + 1)},
                                           {"--iv", "f675171a59b7ead1"},
                                           {"--plaintext", "54686520756e6b6f"},
                                           {"--part", "0", "--of", "2"}};
    for (const Arguments& other : others) {
      Arguments arguments = long_range();
      arguments.insert(arguments.end(), other.begin(), other.end());
      const int end = end_of(start(folder, "other", arguments));
      CPPUNIT_ASSERT(WIFEXITED(end) && WEXITSTATUS(end) == 1);
      CPPUNIT_ASSERT(read_file(folder / "other.err").find("another message, range") !=
                     std::string::npos);
      CPPUNIT_ASSERT(read_file(folder / "checkpoint") == checkpoint);
    }
    unmap_page(page);
  }

  void key_is_printed_even_if_it_cannot_be_written() {
    TempFolder folder;
    const int end = end_of(start(folder, "lost",
                                 {"--first-key", key_hex(kKey - 9), "--last-key", key_hex(kKey),
                                  "--found", folder / "missing/found"}));
    CPPUNIT_ASSERT(WIFEXITED(end) && WEXITSTATUS(end) == 1);
    CPPUNIT_ASSERT_EQUAL(found_after(10), read_file(folder / "lost.out"));
    CPPUNIT_ASSERT(read_file(folder / "lost.err").find("missing/found: No such file") !=
                   std::string::npos);
  }

  void bad_command_lines() {
    const std::string key = "0000000000";
    expect_refused({"--plaintext", "123"}, "--plaintext: 3 hexadecimal digits; two make a byte");
    expect_refused({"--plaintext", "zz"}, "--plaintext: character 1 is not a hexadecimal digit");
    expect_refused({"--plaintext", ""}, "--plaintext: empty");
    expect_refused({"--plaintext", "1234"}, "--plaintext: 2 bytes; a block has 8");
    expect_refused({"--ciphertext", "00112233445566778899"}, "--ciphertext: 10 bytes; a block");
    expect_refused({"--ciphertext", "0011223344556677"}, "--ciphertext: shorter than --plaintext");
    expect_refused({"--iv", "00"}, "--iv: 1 bytes; it has to be 8");
    expect_refused({"--first-key", "000000000000000000"}, "--first-key: 9 bytes; a key has 1 to 8");
    expect_refused({"--first-key", "00"}, "--last-key: not as long as --first-key");
    expect_refused({"--last-key", key}, "--last-key: before --first-key; the range is empty");
    expect_refused({"--first-key", "0000000000000000", "--last-key", "ffffffffffffffff"},
                   "--last-key: 2^64 keys are too many for one part; use --of");
    expect_refused({"--part", "1"}, "--part: --part and --of must be used together");
    expect_refused({"--of", "2"}, "--of: --part and --of must be used together");
    expect_refused({"--part", "2", "--of", "2"}, "--part: no part 2 of 2; the first is 0");
    expect_refused({"--part", "-1", "--of", "2"}, "--part: '-1' is not a number from 0");
    expect_refused({"--part", "0", "--of", "0"}, "--of: '0' is not a number from 1");
    expect_refused({"--first-key", key, "--last-key", "0000000004", "--part", "0", "--of", "6"},
                   "--part: 6 parts of 5 keys: some would be empty");
    expect_refused({"--packet", "0"}, "--packet: '0' is not a number from 1 to 16777216");
    expect_refused({"--packet", "1k"}, "--packet: '1k' is not a number");
    expect_refused({"--found", ""}, "--found: empty");
    expect_refused({"--found", "x", "--checkpoint", "x"}, "--found: the same file as --checkpoint");
    expect_refused({"--packet"}, "--packet: value missing");
    expect_refused({"--unknown", "1"}, "--unknown: unknown option");
    expect_refused({"--self-test"}, "--self-test: takes no other options");
    expect_missing("--plaintext");
    expect_missing("--ciphertext");
    expect_missing("--first-key");
    expect_missing("--last-key");
  }

  void help() {
    TempFolder folder;
    CPPUNIT_ASSERT_EQUAL(0, end_of(start_program(folder, "help", {"--help"})));
    CPPUNIT_ASSERT_EQUAL(std::string("usage:"), read_file(folder / "help.out").substr(0, 6));
    CPPUNIT_ASSERT(read_file(folder / "help.err").empty());
  }

 private:
  // The message of RC5-32/12/5-test; in all contests the first 24 bytes were known.
  static Arguments contest() {
    return {"--plaintext",
            "54686520756e6b6e6f776e206d6573736167652069733a20",
            "--ciphertext",
            "b40a5388b13882ad930da8b61e51a3b1ffaee1d814a5fa15400b663d58138a33"
            "19603c8510c7b0d487918e32f834775b2065e97433b6eada548ad9d7f708f645"
            "c233ce8a83b276e0",
            "--iv",
            "f675171a59b7ead0"};
  }

  static Arguments long_range() {
    return {"--first-key", key_hex(kKey - long_run()), "--last-key",
            key_hex(kKey + long_run() / 5)};
  }

  // Starts it with NAME.out and NAME.err in the folder.
  static pid_t start_program(const TempFolder& folder, const std::string& name,
                             Arguments arguments) {
    arguments.insert(arguments.begin(), CODE_BREAKING);
    return start_child([&] {
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
      dup2(open((folder / (name + ".out")).c_str(), flags, 0600), 1);
      dup2(open((folder / (name + ".err")).c_str(), flags, 0600), 2);
      execv(argv[0], argv.data());
      return 127;
    });
  }

  // Searches the contest's message, with NAME.found for the key; `more` overrides options.
  static pid_t start(const TempFolder& folder, const std::string& name, const Arguments& more) {
    Arguments arguments = contest();
    arguments.insert(arguments.end(), {"--found", folder / (name + ".found")});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start_program(folder, name, arguments);
  }

  static void expect_found(const TempFolder& folder, const std::string& name, std::uint64_t keys) {
    CPPUNIT_ASSERT_EQUAL(found_after(keys), read_file(folder / (name + ".out")));
    CPPUNIT_ASSERT_EQUAL(std::string("27d86dd243\n"), read_file(folder / (name + ".found")));
  }

  static void expect_refused(const Arguments& more, const std::string& sentence) {
    Arguments arguments = complete();
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_error(arguments, sentence);
  }

  static void expect_missing(const std::string& option) {
    Arguments arguments = complete();
    const auto at = std::find(arguments.begin(), arguments.end(), option);
    arguments.erase(at, at + 2);
    expect_error(arguments, option + ": required");
  }

  static Arguments complete() {
    Arguments arguments = contest();
    const Arguments range = long_range();
    arguments.insert(arguments.end(), range.begin(), range.end());
    return arguments;
  }

  static void expect_error(const Arguments& arguments, const std::string& sentence) {
    TempFolder folder;
    const int end = end_of(start_program(folder, "bad", arguments));
    CPPUNIT_ASSERT(WIFEXITED(end));
    CPPUNIT_ASSERT_EQUAL(2, WEXITSTATUS(end));
    const std::string error = read_file(folder / "bad.err");
    CPPUNIT_ASSERT_EQUAL("code-breaking: " + sentence, error.substr(0, 15 + sentence.size()));
    CPPUNIT_ASSERT(error.find("\nusage:") != std::string::npos);
    CPPUNIT_ASSERT(read_file(folder / "bad.out").empty());
  }

  static void enter_pool(const TempFolder& folder) {
    write_file(folder / "status", std::string(SUBLET_STATUS_BYTES, '\0'));
    setenv("SUBLET_CHECKPOINT_DIR", folder.path().c_str(), 1);
    setenv("SUBLET_STATUS", (folder / "status").c_str(), 1);
  }

  static void leave_pool() {
    unsetenv("SUBLET_CHECKPOINT_DIR");
    unsetenv("SUBLET_CHECKPOINT_PERIOD");
    unsetenv("SUBLET_STATUS");
  }

  static const sublet_status* map_page(const TempFolder& folder) {
    const int fd = open((folder / "status").c_str(), O_RDWR);
    void* page = mmap(nullptr, SUBLET_STATUS_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    CPPUNIT_ASSERT(page != MAP_FAILED);
    return static_cast<const sublet_status*>(page);
  }

  static void unmap_page(const sublet_status* page) {
    munmap(const_cast<sublet_status*>(page), SUBLET_STATUS_BYTES);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(InterruptionTest);

}  // namespace
