// The variables of a shell script: what is saved, loaded and refused.
#include "cli/checkpoint/shell.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/stat.h>

#include <cstdlib>
#include <optional>

#include "cli/checkpoint/testing.h"

namespace sublet::cli {
namespace {

class ShellTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ShellTest);
  CPPUNIT_TEST(values_of_any_bytes_come_back);
  CPPUNIT_TEST(two_generations_are_kept);
  CPPUNIT_TEST(a_damaged_newest_is_set_aside);
  CPPUNIT_TEST(what_belongs_to_something_else_is_kept);
  CPPUNIT_TEST(a_failed_save_changes_nothing);
  CPPUNIT_TEST(only_names_of_variables);
  CPPUNIT_TEST(hostile_sections_are_not_loaded);
  CPPUNIT_TEST(nothing_leaves_the_quotes);
  CPPUNIT_TEST(the_pools_folder_comes_first);
  CPPUNIT_TEST_SUITE_END();

  CheckpointFolder folder_;
  std::optional<testing::QuietStderr> quiet_;
  const CheckpointPlace place_ = {folder_.path(), "c"};
  const ShellProgram program_ = {"sh", 1};

  // What is damaged is said there.
 public:
  void setUp() override { quiet_.emplace(); }
  void tearDown() override { quiet_.reset(); }

 private:
  SavedVariables save(const std::string& value) {
    return save_variables(place_, program_, {{"i", value}});
  }
  std::string load() {
    const auto loaded = load_variables(place_, program_, {"i"});
    return loaded ? loaded->variables.at(0).second : "none";
  }
  template <typename Action>
  static std::string refused(Action action) {
    try {
      action();
    } catch (const PoolError& error) {
      return error.code;
    }
    return "";
  }

  void values_of_any_bytes_come_back() {
    std::string bytes;
    for (int c = 1; c < 256; ++c) bytes += static_cast<char>(c);
    const ShellVariables all = {{"empty", ""}, {"bytes", bytes}, {"_2", std::string(300000, 'x')}};
    save_variables(place_, program_, all);
    CPPUNIT_ASSERT(load_variables(place_, program_, {})->variables == all);
    CPPUNIT_ASSERT_EQUAL(size_t{1}, load_variables(place_, program_, {"_2"})->variables.size());
    CPPUNIT_ASSERT_EQUAL(std::string("checkpoint.section"),
                         refused([&] { load_variables(place_, program_, {"none"}); }));
  }

  void two_generations_are_kept() {
    CPPUNIT_ASSERT_EQUAL(std::string("none"), load());
    for (uint64_t i = 1; i <= 3; ++i) CPPUNIT_ASSERT_EQUAL(i, save(std::to_string(i)).generation);
    CPPUNIT_ASSERT_EQUAL(std::string("3"), load());
    CPPUNIT_ASSERT_EQUAL(uint64_t{2}, CheckpointFile(place_.previous()).header().generation);
    CPPUNIT_ASSERT(!testing::exists(folder_ / "c.unfinished"));
    // Other variables than before are no reason to refuse.
    CPPUNIT_ASSERT_EQUAL(uint64_t{4}, save_variables(place_, program_, {{"j", "1"}}).generation);
  }

  void a_damaged_newest_is_set_aside() {
    save("1");
    save("2");
    folder_.put("c", "rubbish");
    CPPUNIT_ASSERT_EQUAL(std::string("1"), load());
    CPPUNIT_ASSERT_EQUAL(std::string("rubbish"), testing::read_file(folder_ / "c"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{3}, save("3").generation);
    CPPUNIT_ASSERT_EQUAL(std::string("rubbish"), testing::read_file(folder_ / "c.damaged"));
    CPPUNIT_ASSERT_EQUAL(std::string("3"), load());
    CPPUNIT_ASSERT_EQUAL(uint64_t{1}, CheckpointFile(place_.previous()).header().generation);
    folder_.put("c", "rubbish");
    folder_.put("c.previous", "rubbish");
    CPPUNIT_ASSERT_EQUAL(std::string("none"), load());
  }

  void what_belongs_to_something_else_is_kept() {
    save("1");
    const std::string before = testing::read_file(folder_ / "c");
    for (const ShellProgram& other : {ShellProgram{"awk", 1}, ShellProgram{"sh", 2}}) {
      CPPUNIT_ASSERT_EQUAL(std::string("checkpoint.refused"), refused([&] {
                             save_variables(place_, other, {{"i", "2"}});
                           }));
      CPPUNIT_ASSERT_EQUAL(std::string("checkpoint.refused"),
                           refused([&] { load_variables(place_, other, {}); }));
    }
    MadeFile newer = {.program = "sh"};
    newer.version = 2;
    folder_.put("c", newer);
    CPPUNIT_ASSERT_EQUAL(std::string("checkpoint.version"), refused([&] { save("2"); }));
    CPPUNIT_ASSERT(newer.bytes() == testing::read_file(folder_ / "c"));
    folder_.put("c", before);
    CPPUNIT_ASSERT_EQUAL(std::string("1"), load());
    CPPUNIT_ASSERT(!testing::exists(folder_ / "c.damaged"));
  }

  void a_failed_save_changes_nothing() {
    save("1");
    CPPUNIT_ASSERT_EQUAL(0, mkdir((folder_ / "c.unfinished").c_str(), 0700));
    CPPUNIT_ASSERT_EQUAL(std::string("checkpoint.save"), refused([&] { save("2"); }));
    CPPUNIT_ASSERT_EQUAL(std::string("1"), load());
    const CheckpointPlace nowhere = {folder_ / "none", "c"};
    CPPUNIT_ASSERT_EQUAL(std::string("checkpoint.save"),
                         refused([&] { save_variables(nowhere, program_, {}); }));
    CPPUNIT_ASSERT_EQUAL(std::string("checkpoint.save"), refused([&] {
                           save_variables({folder_.path(), std::string(241, 'x')}, program_, {});
                         }));
    CPPUNIT_ASSERT_EQUAL(std::string("usage.program"), refused([&] {
                           save_variables(place_, {std::string(64, 'p'), 1}, {});
                         }));
  }

  void only_names_of_variables() {
    CPPUNIT_ASSERT(parse_variables({"i=1", "_x9==", "e="}) ==
                   (ShellVariables{{"i", "1"}, {"_x9", "="}, {"e", ""}}));
    for (const std::string& word :
         {std::string("i"), std::string("=1"), std::string("1i=1"), std::string("a-b=1"),
          std::string("a b=1"), std::string("\xc3\xa4=1"), std::string(48, 'a') + "=1"})
      CPPUNIT_ASSERT_EQUAL_MESSAGE(word, std::string("usage.variable"),
                                   refused([&] { parse_variables({word}); }));
    CPPUNIT_ASSERT_EQUAL(std::string("usage.variable"), refused([&] {
                           parse_variables({"i=1", "i=2"});
                         }));
  }

  void hostile_sections_are_not_loaded() {
    for (const MadeSection& section :
         {stream("i;reboot", "1"), stream("$(reboot)", "1"), stream("i\n", "1"),
          stream("i", std::string("\0", 1)), numbers<double>("i", SUBLET_FLOAT64, {1}),
          stream("i", std::string((16 << 20) + 1, 'x'))}) {
      folder_.put("c", MadeFile{.sections = {section}, .program = "sh"});
      CPPUNIT_ASSERT_EQUAL(std::string("checkpoint.shell"),
                           refused([&] { load_variables(place_, program_, {}); }));
    }
    const MadeSection half = stream("i", std::string(9 << 20, 'x'));
    const MadeSection other = stream("j", half.bytes);
    folder_.put("c", MadeFile{.sections = {half, other}, .program = "sh"});
    CPPUNIT_ASSERT_EQUAL(std::string("checkpoint.shell"),
                         refused([&] { load_variables(place_, program_, {}); }));
  }

  void nothing_leaves_the_quotes() {
    CPPUNIT_ASSERT_EQUAL(std::string("i=''\nj=''\\''; reboot #\\\n$(x)`y`'\n"),
                         shell_assignments({{"i", ""}, {"j", "'; reboot #\\\n$(x)`y`"}}));
  }

  void the_pools_folder_comes_first() {
    unsetenv("SUBLET_CHECKPOINT_DIR");
    CPPUNIT_ASSERT(!checkpoint_place(""));
    CPPUNIT_ASSERT_EQUAL(std::string("./c"), checkpoint_place("c")->newest());
    CPPUNIT_ASSERT_EQUAL(std::string("a/b/c"), checkpoint_place("a/b/c")->newest());
    CPPUNIT_ASSERT_EQUAL(std::string("/"), checkpoint_place("/c")->folder);
    for (const char* path : {"a/", ".", "a/.."})
      CPPUNIT_ASSERT_EQUAL(std::string("usage.path"), refused([&] { checkpoint_place(path); }));
    setenv("SUBLET_CHECKPOINT_DIR", "/pool", 1);
    CPPUNIT_ASSERT_EQUAL(std::string("/pool/checkpoint"), checkpoint_place("c")->newest());
    setenv("SUBLET_CHECKPOINT_DIR", "", 1);
    CPPUNIT_ASSERT_EQUAL(std::string("./c"), checkpoint_place("c")->newest());
    unsetenv("SUBLET_CHECKPOINT_DIR");
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(ShellTest);

}  // namespace
}  // namespace sublet::cli
