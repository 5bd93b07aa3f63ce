// Migration: a program of layout 3 resumes from files of the layouts 1 and 2 of itself.
#include <cppunit/extensions/HelperMacros.h>

#include <cerrno>
#include <system_error>

#include "checkpoint-api/sublet_checkpoint.hpp"
#include "checkpoint-api/testing.h"

namespace {
using namespace sublet::testing;
using sublet::Checkpoint;

constexpr std::uint32_t kNever = SUBLET_CHECKPOINT_NEVER;

// What the program was: layout 1 has weights and an old name, layout 2 a momentum as well.
void save_old(const std::string& path, std::uint32_t layout) {
  std::vector<double> weights = {1, 2, 3}, momentum = {4};
  std::int32_t step = 17;
  std::uint8_t colour = 5;
  Checkpoint c("growing", layout);
  c.variable("weights", weights);
  c.variable("step", step);
  c.variable("colour", colour);
  if (layout == 2) c.variable("momentum", momentum);
  c.start({path.c_str(), kNever, 0});
  c.save();
}

// What it is: `step` has another type, `colour` is gone.
struct Program {
  std::vector<double> weights, momentum = {9};
  std::int32_t old_step = 0;
  std::int64_t step = 0;
  std::uint8_t colour = 0;
  Checkpoint c{"growing", 3};
  explicit Program(std::uint32_t oldest) {
    c.variable("weights", weights);
    c.variable("momentum", momentum);
    c.since("momentum", 2);
    c.variable("step", old_step);
    c.until("step", 2);
    c.variable("step", step);
    c.variable("colour", colour);
    c.until("colour", 2);
    if (oldest < 3) c.oldest(oldest);
  }
  bool start(const std::string& path) {
    const bool resumed = c.start({path.c_str(), kNever, 0});
    if (c.resumed_layout() < 3) step = old_step;
    return resumed;
  }
};

class LayoutsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(LayoutsTest);
  CPPUNIT_TEST(older_layouts_are_resumed);
  CPPUNIT_TEST(undeclared_ones_are_refused);
  CPPUNIT_TEST(other_sections_are_refused);
  CPPUNIT_TEST(new_runs);
  CPPUNIT_TEST(wrong_declarations);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    unsetenv("SUBLET_CHECKPOINT_DIR");
    unsetenv("SUBLET_STATUS");
  }

  void older_layouts_are_resumed() {
    for (const std::uint32_t layout : {1u, 2u}) {
      TempFolder folder;
      const std::string path = folder / "state";
      save_old(path, layout);
      {
        Program program(1);
        CPPUNIT_ASSERT(program.start(path));
        CPPUNIT_ASSERT_EQUAL(layout, program.c.resumed_layout());
        expect(program, layout == 1 ? 9 : 4);
        CPPUNIT_ASSERT_EQUAL(5, int{program.colour});
        program.c.save();
      }
      // What was saved has the new layout, and needs no declaration.
      Program again(3);
      CPPUNIT_ASSERT(again.start(path));
      CPPUNIT_ASSERT_EQUAL(3u, again.c.resumed_layout());
      expect(again, layout == 1 ? 9 : 4);
      CPPUNIT_ASSERT_EQUAL(0, int{again.colour});
    }
  }

  void undeclared_ones_are_refused() {
    QuietStderr quiet;
    TempFolder folder;
    const std::string path = folder / "state";
    save_old(path, 1);
    expect_refusal(path, 2, "it has layout 1, this program reads layouts 2 to 3");
    expect_refusal(path, 3, "it has layout 1, this program has layout 3");
    Checkpoint newer("growing", 0);
    CPPUNIT_ASSERT_THROW(newer.start({path.c_str(), kNever, 0}), sublet::CheckpointRefused);
    // Nothing was changed.
    CPPUNIT_ASSERT(Program(1).start(path));
  }

  // A file of layout 1 with what only layout 2 has, and the reverse.
  void other_sections_are_refused() {
    QuietStderr quiet;
    TempFolder folder;
    const std::string path = folder / "state";
    double value = 0;
    {
      Checkpoint c("growing", 1);
      c.variable("weights", value);
      c.start({path.c_str(), kNever, 0});
      c.save();
    }
    expect_refusal(path, 1, "it has 1 sections, this program has 3 in that layout");
    {
      Checkpoint c("growing", 1);
      for (const char* name : {"weights", "step", "momentum"}) c.variable(name, value);
      c.oldest(1);
      std::filesystem::remove(path);
      c.start({path.c_str(), kNever, 0});
      c.save();
    }
    expect_refusal(path, 1, "its section \"step\" has 1 elements of type 10");
  }

  void new_runs() {
    TempFolder folder;
    Program program(1);
    CPPUNIT_ASSERT(!program.start(folder / "state"));
    CPPUNIT_ASSERT_EQUAL(3u, program.c.resumed_layout());
    program.c.save();
  }

  void wrong_declarations() {
    double a = 0, b = 0;
    TempFolder folder;
    Checkpoint c("growing", 3);
    c.variable("a", a);
    expect_error(EINVAL, [&] { c.variable("a", b); });
    expect_error(ENOENT, [&] { c.since("b", 1); });
    expect_error(ENOENT, [&] { c.until("b", 1); });
    expect_error(EINVAL, [&] { c.oldest(4); });
    expect_error(EINVAL, [&] { c.since("a", 4); });
    expect_error(EINVAL, [&] { c.until("a", 3); });
    c.since("a", 2);
    expect_error(EINVAL, [&] { c.since("a", 1); });
    expect_error(EINVAL, [&] { c.until("a", 1); });
    c.until("a", 2);
    c.variable("a", b);
    expect_error(EINVAL, [&] { c.since("a", 2); });
    const std::string path = folder / "state";
    c.start({path.c_str(), kNever, 0});
    expect_error(EBUSY, [&] { c.oldest(1); });
    expect_error(EBUSY, [&] { c.since("a", 3); });
    expect_error(EBUSY, [&] { c.until("a", 2); });
  }

 private:
  static void expect(const Program& program, double momentum) {
    CPPUNIT_ASSERT(program.weights == std::vector<double>({1, 2, 3}));
    CPPUNIT_ASSERT(program.momentum == std::vector<double>({momentum}));
    CPPUNIT_ASSERT_EQUAL(std::int64_t{17}, program.step);
  }

  static void expect_refusal(const std::string& path, std::uint32_t oldest, const char* why) {
    Program program(oldest);
    try {
      program.start(path);
      CPPUNIT_FAIL("resumed");
    } catch (const sublet::CheckpointRefused& refused) {
      CPPUNIT_ASSERT_MESSAGE(refused.what(),
                             std::string(refused.what()).find(why) != std::string::npos);
    }
  }

  static void expect_error(int error, const std::function<void()>& call) {
    try {
      call();
      CPPUNIT_FAIL("no error");
    } catch (const std::system_error& got) {
      CPPUNIT_ASSERT_EQUAL(error, got.code().value());
    }
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(LayoutsTest);

}  // namespace
