// What differs between the results of two runs.
#include "cli/rehearse/outcome.h"

#include <cppunit/extensions/HelperMacros.h>

#include "base/files.h"
#include "base/testing/temporary_folder.h"

namespace sublet::cli {
namespace {

using Texts = std::vector<std::string>;

class OutcomeTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OutcomeTest);
  CPPUNIT_TEST(the_first_byte_and_its_line);
  CPPUNIT_TEST(files_that_one_has);
  CPPUNIT_TEST(the_exit_status);
  CPPUNIT_TEST(the_users_own_command);
  CPPUNIT_TEST(outputs_by_name_folder_and_pattern);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;
  int files_ = 0;

  std::string file(const std::string& text) {
    const std::string path = folder_ / std::to_string(++files_);
    system_files().write_atomic(path, text);
    return path;
  }
  Outcome with(const std::string& name, const std::string& text) {
    return {"exit status 0", {{name, file(text)}}};
  }
  Texts compared(const std::string& whole, const std::string& other) {
    return differences(with("result", whole), with("result", other));
  }

 public:
  void the_first_byte_and_its_line() {
    CPPUNIT_ASSERT(compared("a\nb\n", "a\nb\n").empty());
    CPPUNIT_ASSERT(compared("a\nsum 12\n", "a\nsum 13\n") ==
                   Texts{"result differs at byte 7, line 2: \"sum 13\" instead of \"sum 12\""});
    CPPUNIT_ASSERT(compared("a\nb\n", "a\n") ==
                   Texts{"result differs at byte 2, line 2: nothing instead of \"b\"; "
                         "2 bytes instead of 4"});
    CPPUNIT_ASSERT(compared("\x1b", "x") ==
                   Texts{"result differs at byte 0, line 1: \"x\" instead of \"\\x1b\""});
  }

  void files_that_one_has() {
    const Outcome none{"exit status 0", {}};
    CPPUNIT_ASSERT(differences(with("a", ""), none) == Texts{"a is missing"});
    CPPUNIT_ASSERT(differences(none, with("a", "")) ==
                   Texts{"a is there, but not after an undisturbed run"});
  }

  void the_exit_status() {
    CPPUNIT_ASSERT(differences({"exit status 0", {}}, {"exit status 3", {}}) ==
                   Texts{"exit status 3 instead of exit status 0"});
  }

  void the_users_own_command() {
    const auto by = [&](const std::string& command) {
      return differences_by(command, with("d/result", "1"), with("d/result", "2"), folder_.path());
    };
    CPPUNIT_ASSERT(by("test -e \"$2/d/result\" #").empty());
    CPPUNIT_ASSERT(by("diff -r") ==
                   Texts{"the outputs differ, says the command of --compare (exit status 1)"});
  }

  void outputs_by_name_folder_and_pattern() {
    const std::string work = folder_ / "work";
    system_files().make_folders(work + "/d/e");
    for (const char* name : {"/a", "/b", "/stdout", "/d/x", "/d/e/y"})
      system_files().write_atomic(work + name, "");
    std::string names;
    for (const auto& [name, path] : find_outputs(work, {{"a"}, {"d/"}, {"std*"}}))
      names += name + " ";
    CPPUNIT_ASSERT_EQUAL(std::string("a d/e/y d/x "), names);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(OutcomeTest);

}  // namespace
}  // namespace sublet::cli
