#include "checkpoint-api/sublet_checkpoint.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <iostream>
#include <vector>

#include "checkpoint-api/internal.h"
#include "checkpoint-api/sublet_checkpoint.hpp"
#include "checkpoint-api/testing.h"

namespace {
using namespace sublet::testing;

// One counter and some weights, saved in folder/state.
struct Program {
  std::uint64_t step = 0;
  std::vector<double> weights;
  std::string path;
  sublet_checkpoint* c;

  explicit Program(const TempFolder& folder, const char* name = "test", std::uint32_t layout = 1,
                   std::size_t size = 2391)
      : weights(size), path(folder / "state"), c(sublet_checkpoint_open(name, layout)) {
    sublet_checkpoint_variable(c, "weights", weights.data(), size, SUBLET_FLOAT64);
    sublet_checkpoint_variable(c, "step", &step, 1, SUBLET_UINT64);
  }
  ~Program() { sublet_checkpoint_close(c); }

  int start() {
    sublet_checkpoint_options options{};
    options.path = path.c_str();
    return sublet_checkpoint_start(c, &options);
  }
  int save(std::uint64_t value) {
    step = value;
    return sublet_checkpoint_save(c);
  }
  std::string message() const { return sublet_checkpoint_message(c); }
};

void save_generations(const TempFolder& folder, std::uint64_t count) {
  Program program(folder);
  program.start();
  for (std::uint64_t i = 1; i <= count; ++i) CPPUNIT_ASSERT_EQUAL(0, program.save(i));
}

class CheckpointTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(CheckpointTest);
  CPPUNIT_TEST(round_trip);
  CPPUNIT_TEST(vectors_of_any_size_round_trip);
  CPPUNIT_TEST(previous_is_used_when_newest_is_damaged);
  CPPUNIT_TEST(previous_is_used_when_newest_is_missing);
  CPPUNIT_TEST(starts_anew_when_both_are_damaged);
  CPPUNIT_TEST(every_flipped_bit_is_found);
  CPPUNIT_TEST(every_truncation_is_found);
  CPPUNIT_TEST(another_program_or_layout_is_refused);
  CPPUNIT_TEST(a_refusal_leaves_the_folder_alone);
  CPPUNIT_TEST(callbacks_may_refuse);
  CPPUNIT_TEST(bad_registrations_are_refused);
  CPPUNIT_TEST(disk_full_keeps_the_old_generation);
  CPPUNIT_TEST(unwritable_folder_fails_only_the_save);
  CPPUNIT_TEST(another_process_uses_it);
  CPPUNIT_TEST(a_child_outlives_its_parent);
  CPPUNIT_TEST(nowhere_to_save);
  CPPUNIT_TEST(finish_forgets_own_files);
  CPPUNIT_TEST(progress_is_stored);
  CPPUNIT_TEST(size_and_cost);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    unsetenv("SUBLET_CHECKPOINT_DIR");
    unsetenv("SUBLET_STATUS");
    unsetenv("SUBLET_CHECKPOINT_PERIOD");
  }

  void round_trip() {
    TempFolder folder;
    {
      Program program(folder);
      CPPUNIT_ASSERT_EQUAL(int{SUBLET_NEW}, program.start());
      program.weights[2390] = -0.1;
      CPPUNIT_ASSERT_EQUAL(0, program.save(41));
      CPPUNIT_ASSERT_EQUAL(0, program.save(42));
    }
    Program program(folder);
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_RESUMED}, program.start());
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{42}, program.step);
    CPPUNIT_ASSERT_EQUAL(-0.1, program.weights[2390]);
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{2}, sublet_checkpoint_generation(program.c));
    CPPUNIT_ASSERT(exists(program.path + ".previous"));
    CPPUNIT_ASSERT(!exists(program.path + ".unfinished"));
  }

  void vectors_of_any_size_round_trip() {
    CPPUNIT_ASSERT(rc::check([](const std::vector<std::uint8_t>& bytes,
                                const std::vector<std::int64_t>& numbers,
                                const std::vector<float>& floats) {
      TempFolder folder;
      const std::string path = folder / "state";
      // May be larger than the buffer, and not a multiple of its size.
      std::vector<std::int32_t> large(*rc::gen::inRange<std::size_t>(0, 40000));
      for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::int32_t>(i * 77);
      auto a = bytes;
      auto b = numbers;
      auto d = floats;
      auto e = large;
      const auto name_all = [&](sublet::Checkpoint& checkpoint) {
        checkpoint.variable("a", a);
        checkpoint.callbacks(
            "b",
            [&](sublet::CheckpointStream& out) {
              out.write<std::uint32_t>(static_cast<std::uint32_t>(b.size()));
              out.write(b.data(), b.size());
            },
            [&](sublet::CheckpointStream& in) {
              b.resize(in.read<std::uint32_t>());
              in.read(b.data(), b.size());
            });
        checkpoint.variable("d", d);
        checkpoint.variable("e", e);
      };
      {
        sublet::Checkpoint checkpoint("vectors", 1);
        name_all(checkpoint);
        checkpoint.start({path.c_str(), 0, 0});
        checkpoint.save();
      }
      std::fill(a.begin(), a.end(), 0);
      b.clear();
      std::fill(d.begin(), d.end(), 0);
      std::fill(e.begin(), e.end(), -1);
      sublet::Checkpoint checkpoint("vectors", 1);
      name_all(checkpoint);
      RC_ASSERT(checkpoint.start({path.c_str(), 0, 0}));
      RC_ASSERT(a == bytes && b == numbers && e == large);
      for (std::size_t i = 0; i < d.size(); ++i) {
        RC_ASSERT(std::bit_cast<std::uint32_t>(d[i]) == std::bit_cast<std::uint32_t>(floats[i]));
      }
    }));
  }

  void previous_is_used_when_newest_is_damaged() {
    TempFolder folder;
    save_generations(folder, 3);
    std::string bytes = read_file(folder / "state");
    bytes[bytes.size() / 2] ^= 4;
    write_file(folder / "state", bytes);
    QuietStderr quiet;
    {
      Program program(folder);
      CPPUNIT_ASSERT_EQUAL(int{SUBLET_RESUMED}, program.start());
      CPPUNIT_ASSERT_EQUAL(std::uint64_t{2}, program.step);
      CPPUNIT_ASSERT(program.message().find("generation 2") != std::string::npos);
      // The damaged one is kept for inspection, its number is not reused, and it does not
      // replace the good one.
      CPPUNIT_ASSERT(read_file(folder / "state.damaged") == bytes);
      CPPUNIT_ASSERT_EQUAL(0, program.save(9));
      CPPUNIT_ASSERT_EQUAL(std::uint64_t{4}, sublet_checkpoint_generation(program.c));
    }
    std::filesystem::remove(folder / "state");
    Program again(folder);
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_RESUMED}, again.start());
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{2}, again.step);
  }

  void previous_is_used_when_newest_is_missing() {
    TempFolder folder;
    save_generations(folder, 2);
    std::filesystem::remove(folder / "state");
    QuietStderr quiet;
    Program program(folder);
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_RESUMED}, program.start());
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{1}, program.step);
  }

  void starts_anew_when_both_are_damaged() {
    TempFolder folder;
    write_file(folder / "state", "rubbish");
    write_file(folder / "state.previous", std::string(5000, '\0'));
    QuietStderr quiet;
    Program program(folder);
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_NEW}, program.start());
    CPPUNIT_ASSERT_EQUAL(0, program.save(1));
    CPPUNIT_ASSERT_EQUAL(0, program.save(2));
  }

  void every_flipped_bit_is_found() {
    TempFolder folder;
    {
      Program program(folder, "test", 1, 10);
      program.start();
      program.save(5);
    }
    const std::string whole = read_file(folder / "state");
    QuietStderr quiet;
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
      std::string bytes = whole;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      write_file(folder / "state", bytes);
      Program program(folder, "test", 1, 10);
      CPPUNIT_ASSERT_EQUAL(int{SUBLET_NEW}, program.start());
      CPPUNIT_ASSERT_EQUAL(std::uint64_t{0}, program.step);
    }
  }

  void every_truncation_is_found() {
    TempFolder folder;
    {
      Program program(folder, "test", 1, 10);
      program.start();
      program.save(5);
    }
    const std::string whole = read_file(folder / "state");
    QuietStderr quiet;
    for (std::size_t size = 0; size < whole.size(); ++size) {
      write_file(folder / "state", whole.substr(0, size));
      Program program(folder, "test", 1, 10);
      CPPUNIT_ASSERT_EQUAL(int{SUBLET_NEW}, program.start());
    }
  }

  void another_program_or_layout_is_refused() {
    TempFolder folder;
    save_generations(folder, 1);
    QuietStderr quiet;
    Program other_name(folder, "other");
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_REFUSED}, other_name.start());
    CPPUNIT_ASSERT_EQUAL(
        std::string("state is refused: it was saved by program \"test\", this is \"other\""),
        other_name.message());
    Program other_layout(folder, "test", 2);
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_REFUSED}, other_layout.start());
    CPPUNIT_ASSERT_EQUAL(
        std::string("state is refused: it has layout 1, this program has layout 2"),
        other_layout.message());
    Program other_size(folder, "test", 1, 7);
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_REFUSED}, other_size.start());
    CPPUNIT_ASSERT(other_size.message().find("section \"weights\"") != std::string::npos);
  }

  void a_refusal_leaves_the_folder_alone() {
    TempFolder folder;
    save_generations(folder, 2);
    write_file(folder / "state", "rubbish");
    const std::string previous = read_file(folder / "state.previous");
    QuietStderr quiet;
    Program other(folder, "other");
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_REFUSED}, other.start());
    CPPUNIT_ASSERT_EQUAL(ENOENT, sublet_checkpoint_save(other.c));
    CPPUNIT_ASSERT_EQUAL(std::string("rubbish"), read_file(folder / "state"));
    CPPUNIT_ASSERT(read_file(folder / "state.previous") == previous);
  }

  void callbacks_may_refuse() {
    TempFolder folder;
    const std::string path = folder / "state";
    bool save_works = true;
    const auto name_section = [&](sublet::Checkpoint& checkpoint, std::size_t to_read) {
      checkpoint.callbacks(
          "text",
          [&](sublet::CheckpointStream& out) {
            if (!save_works) throw std::runtime_error("no");
            out.write("12345678", 8);
          },
          [to_read](sublet::CheckpointStream& in) {
            char text[16];
            in.read(text, to_read);
          });
    };
    QuietStderr quiet;
    {
      sublet::Checkpoint checkpoint("text", 1);
      name_section(checkpoint, 8);
      checkpoint.start({path.c_str(), 0, 0});
      checkpoint.save();
      save_works = false;
      CPPUNIT_ASSERT_THROW(checkpoint.save(), std::system_error);
      CPPUNIT_ASSERT_EQUAL(std::uint64_t{1}, checkpoint.generation());
    }
    for (const std::size_t to_read : {7, 8, 9}) {
      sublet::Checkpoint checkpoint("text", 1);
      name_section(checkpoint, to_read);
      if (to_read == 8) {
        CPPUNIT_ASSERT(checkpoint.start({path.c_str(), 0, 0}));
      } else {
        CPPUNIT_ASSERT_THROW(checkpoint.start({path.c_str(), 0, 0}), sublet::CheckpointRefused);
      }
    }
  }

  void bad_registrations_are_refused() {
    CPPUNIT_ASSERT(sublet_checkpoint_open("", 1) == nullptr);
    CPPUNIT_ASSERT(sublet_checkpoint_open(std::string(64, 'x').c_str(), 1) == nullptr);
    TempFolder folder;
    Program p(folder);
    std::uint64_t x = 0;
    const std::string longest(SUBLET_CHECKPOINT_MAX_NAME, 'n');
    CPPUNIT_ASSERT_EQUAL(EINVAL, sublet_checkpoint_variable(p.c, "", &x, 1, SUBLET_UINT64));
    CPPUNIT_ASSERT_EQUAL(EINVAL, sublet_checkpoint_variable(p.c, "step", &x, 1, SUBLET_UINT64));
    CPPUNIT_ASSERT_EQUAL(EINVAL,
                         sublet_checkpoint_variable(p.c, "y", &x, SIZE_MAX / 4, SUBLET_UINT64));
    CPPUNIT_ASSERT_EQUAL(EINVAL, sublet_checkpoint_variable(
                                     p.c, "y", &x, 1, static_cast<sublet_checkpoint_type>(11)));
    CPPUNIT_ASSERT_EQUAL(
        EINVAL, sublet_checkpoint_variable(p.c, (longest + "n").c_str(), &x, 1, SUBLET_UINT64));
    CPPUNIT_ASSERT_EQUAL(0, sublet_checkpoint_variable(p.c, longest.c_str(), &x, 1, SUBLET_UINT64));
    CPPUNIT_ASSERT_EQUAL(EINVAL, sublet_checkpoint_callbacks(p.c, "z", nullptr, nullptr, nullptr));
    p.start();
    CPPUNIT_ASSERT_EQUAL(EBUSY, sublet_checkpoint_variable(p.c, "late", &x, 1, SUBLET_UINT64));
  }

  // A file size limit simulates a full disk; its signal must not kill the program.
  void disk_full_keeps_the_old_generation() {
    TempFolder folder;
    save_generations(folder, 1);
    const int status = end_of(start_child([&] {
      QuietStderr quiet;
      Program program(folder);
      if (program.start() != SUBLET_RESUMED) return 1;
      const rlimit limit{10000, 10000};
      if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
      if (program.save(2) != EFBIG) return 3;
      if (exists(folder / "state.unfinished")) return 4;
      return sublet_checkpoint_generation(program.c) == 1 ? 0 : 5;
    }));
    CPPUNIT_ASSERT_EQUAL(0, status);
    Program program(folder);
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_RESUMED}, program.start());
    CPPUNIT_ASSERT_EQUAL(std::uint64_t{1}, program.step);
  }

  // The folder is removed rather than made read-only, because root may write anywhere.
  void unwritable_folder_fails_only_the_save() {
    TempFolder folder;
    std::filesystem::create_directory(folder / "pool");
    setenv("SUBLET_CHECKPOINT_DIR", (folder / "pool").c_str(), 1);
    QuietStderr quiet;
    Program program(folder);
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_NEW}, program.start());
    std::filesystem::remove(folder / "pool");
    CPPUNIT_ASSERT_EQUAL(ENOENT, program.save(1));
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_GO_ON}, sublet_checkpoint_point(program.c));
    Program second(folder);  // one at a time
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_REFUSED}, second.start());
    sublet_checkpoint_finish(program.c);
    Program third(folder);  // the folder is missing from the start
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_NEW}, third.start());
    CPPUNIT_ASSERT_EQUAL(ENOENT, third.save(1));
  }

  // In a pool, and elsewhere. Its end unlocks, whatever it is.
  void another_process_uses_it() {
    for (const bool in_pool : {false, true}) {
      TempFolder folder;
      if (in_pool) setenv("SUBLET_CHECKPOINT_DIR", folder.path().c_str(), 1);
      int started[2];
      CPPUNIT_ASSERT_EQUAL(0, pipe(started));
      const pid_t other = start_child([&] {
        Program program(folder);
        if (program.start() != SUBLET_NEW || program.save(1) != 0) return 1;
        if (write(started[1], "x", 1) != 1) return 2;
        for (;;) pause();
      });
      char byte;
      CPPUNIT_ASSERT_EQUAL(ssize_t{1}, read(started[0], &byte, 1));
      {
        QuietStderr quiet;
        Program program(folder);
        CPPUNIT_ASSERT_EQUAL(int{SUBLET_REFUSED}, program.start());
        const std::string why = sublet_checkpoint_message(program.c);
        CPPUNIT_ASSERT_MESSAGE(why, why.find("another process uses") != std::string::npos);
      }
      kill(other, SIGKILL);
      end_of(other);
      {
        Program program(folder);
        CPPUNIT_ASSERT_EQUAL(int{SUBLET_RESUMED}, program.start());
      }
      CPPUNIT_ASSERT(!exists(folder / "state.lock"));
      close(started[0]);
      close(started[1]);
    }
  }

  // Who has been forked does not keep what its parent has locked, without a pool or with one; nor
  // one that its parent made after the end of its work.
  void a_child_outlives_its_parent() {
    for (const bool finished : {false, true}) {
      TempFolder folder;
      if (finished) setenv("SUBLET_CHECKPOINT_DIR", folder.path().c_str(), 1);
      int born[2], ended[2];
      CPPUNIT_ASSERT_EQUAL(0, pipe(born));
      CPPUNIT_ASSERT_EQUAL(0, pipe(ended));
      const pid_t parent = start_child([&] {
        Program program(folder);
        if (program.start() != SUBLET_NEW) return 1;
        if (finished) sublet_checkpoint_finish(program.c);
        const pid_t child = fork();
        char byte = 0;
        if (child == 0) {
          close(ended[1]);
          if (write(born[1], &byte, 1) != 1) return 2;
          return read(ended[0], &byte, 1) == 0 ? 0 : 3;  // the test is over
        }
        // Only a child that has begun has let go of what it got from its parent.
        if (child < 0 || read(born[0], &byte, 1) != 1) _exit(4);
        _exit(0);  // killed: it does not unlock
      });
      CPPUNIT_ASSERT_EQUAL(0, end_of(parent));
      {
        Program program(folder);
        CPPUNIT_ASSERT_EQUAL(int{SUBLET_NEW}, program.start());
      }
      for (const int* ends : {born, ended})
        for (const int end : {0, 1}) close(ends[end]);
    }
  }

  void nowhere_to_save() {
    TempFolder folder;
    Program program(folder);
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_NEW}, sublet_checkpoint_start(program.c, nullptr));
    CPPUNIT_ASSERT_EQUAL(ENOENT, program.save(1));
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_GO_ON}, sublet_checkpoint_point(program.c));
    struct sigaction action;
    sigaction(SIGTERM, nullptr, &action);
    CPPUNIT_ASSERT(action.sa_handler == SIG_DFL);
    CPPUNIT_ASSERT(std::filesystem::is_empty(folder.path()));
  }

  void finish_forgets_own_files() {
    TempFolder folder;
    {
      Program program(folder);
      program.start();
      program.save(1);
      program.save(2);
      sublet_checkpoint_finish(program.c);
    }
    CPPUNIT_ASSERT(std::filesystem::is_empty(folder.path()));
    setenv("SUBLET_CHECKPOINT_DIR", folder.path().c_str(), 1);
    {
      Program program(folder);
      program.start();
      program.save(1);
      sublet_checkpoint_finish(program.c);
    }
    CPPUNIT_ASSERT(exists(folder / "checkpoint"));  // removed by the pool
  }

  void progress_is_stored() {
    TempFolder folder;
    Program program(folder);
    program.start();
    const auto ppm = [&](std::uint64_t done, std::uint64_t total) {
      sublet_checkpoint_progress(program.c, done, total);
      return program.c->progress_ppm;
    };
    CPPUNIT_ASSERT_EQUAL(std::int32_t{333333}, ppm(1, 3));
    CPPUNIT_ASSERT_EQUAL(std::int32_t{-1}, ppm(1, 0));
    CPPUNIT_ASSERT_EQUAL(std::int32_t{1000000}, ppm(5, 3));
    CPPUNIT_ASSERT_EQUAL(std::int32_t{499999}, ppm(UINT64_MAX / 2, UINT64_MAX));
    program.save(1);
    Program again(folder);
    sublet_checkpoint_close(program.c);
    program.c = nullptr;
    CPPUNIT_ASSERT_EQUAL(int{SUBLET_RESUMED}, again.start());
    CPPUNIT_ASSERT_EQUAL(std::int32_t{499999}, again.c->progress_ppm);
  }

  // Figures only; nothing is asserted about time.
  void size_and_cost() {
    TempFolder folder;
    Program program(folder);
    program.start();
    std::vector<double> saves;
    for (std::uint64_t i = 0; i < 300; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      CPPUNIT_ASSERT_EQUAL(0, program.save(i));
      saves.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
              .count());
    }
    std::sort(saves.begin(), saves.end());
    const auto bytes = std::filesystem::file_size(program.path);
    std::cout << "\n  a save of " << bytes << " bytes with fsync: p50 " << saves[150] << " ms, p99 "
              << saves[297] << " ms\n";
    CPPUNIT_ASSERT_EQUAL(std::uintmax_t{128 + 2 * 64 + 2391 * 8 + 8}, bytes);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(CheckpointTest);

}  // namespace
