#include "base/options/manual_page.h"

#include <cppunit/extensions/HelperMacros.h>

#include <sstream>

#include "base/options/arguments.h"

namespace sublet {

class ManualPageTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ManualPageTest);
  CPPUNIT_TEST(says_all_that_was_declared);
  CPPUNIT_TEST(roff_takes_no_letter_for_its_own);
  CPPUNIT_TEST(settings);
  CPPUNIT_TEST(hidden_option);
  CPPUNIT_TEST_SUITE_END();

 public:
  void says_all_that_was_declared() {
    Arguments top("lab", "Rents out rooms. And more.", "1.2.3");
    bool all = false;
    std::vector<std::string> sets, ids, program;
    top.flag("-a,--all", &all, "the empty ones, too");
    Arguments& rooms = top.command("rooms", "About rooms");
    Arguments& list = rooms.command("list", "List them");
    list.option("--set", &sets, "a setting", "KEY=VALUE");
    list.positional("ROOM", &ids, "which", true);
    list.passthrough("PROGRAM", &program, "what to run");
    const std::string page = manual_page(top.table(), "1.2.3", {8, {}});
    for (const char* part :
         {".TH LAB 8 \"\" \"Sublet 1.2.3\"", "lab \\- rents out rooms\n",
          ".TP\n\\fB\\-a\\fR, \\fB\\-\\-all\\fR\nThe empty ones, too.\n",
          ".SS \\fBlab rooms list\\fR [\\fIOPTIONS\\fR] \\fIROOM\\fR ... [\\fB\\-\\-\\fR "
          "\\fIPROGRAM\\fR ...]\n",
          ".TP\n\\fB\\-\\-set\\fR \\fIKEY=VALUE\\fR ...\nA setting.\n", "\\fB\\-\\-version\\fR"})
      CPPUNIT_ASSERT_MESSAGE(part, page.find(part) != std::string::npos);
    // It cannot be run by itself.
    CPPUNIT_ASSERT(page.find(".SS \\fBlab rooms\\fR") == std::string::npos);
  }

  void roff_takes_no_letter_for_its_own() {
    const std::string page =
        manual_page({"x", "x", "Does.", {}, {}, "", "", false, {}}, "1",
                    {1, {{"NOTES", {{"", ".TH `a\\b` it's \"so\""}, {"`.x`", "'y"}}}}});
    CPPUNIT_ASSERT(page.find("\n\\&.TH \\fBa\\eb\\fR it\\(aqs \\(dqso\\(dq\n") !=
                   std::string::npos);
    CPPUNIT_ASSERT(page.find(".TP\n\\fB.x\\fR\n\\(aqy\n") != std::string::npos);
  }

  void settings() {
    Settings settings(
        {{"log.level", SettingType::text, "info", -1, -1, "how much", {"info", "all"}},
         {"workers", SettingType::integer, "4", 1, 64, "threads"},
         {"shares", SettingType::reals, "", 0, 1, "of each user"}});
    const ManualSection section = settings_section("Intro.", settings);
    CPPUNIT_ASSERT_EQUAL(size_t{4}, section.items.size());
    CPPUNIT_ASSERT_EQUAL(std::string("`workers`"), section.items[2].term);
    CPPUNIT_ASSERT_EQUAL(std::string("Threads. Value: a whole number from 1 to 64; default `4`."),
                         section.items[2].text);
    CPPUNIT_ASSERT_EQUAL(std::string("`shares.NAME`"), section.items[3].term);
    CPPUNIT_ASSERT(section.items[3].text.find("default") == std::string::npos);
  }

  void hidden_option() {
    Arguments top("lab", "Rents out rooms.", "1.2.3");
    top.manual({8, {{"FILES", {{"", "None."}}}}});
    top.command("rooms", "About rooms");
    std::ostringstream out, err;
    CPPUNIT_ASSERT_EQUAL(0, *top.parse({"--manual-page"}, out, err));
    CPPUNIT_ASSERT(out.str().starts_with(".TH LAB 8"));
    CPPUNIT_ASSERT(out.str().ends_with(".SH FILES\n.PP\nNone.\n"));
    CPPUNIT_ASSERT(err.str().empty());
    CPPUNIT_ASSERT(top.help().find("manual-page") == std::string::npos);
    std::ostringstream help;
    CPPUNIT_ASSERT_EQUAL(0, *top.parse({"rooms", "--help"}, help, err));
    CPPUNIT_ASSERT(help.str().find("manual-page") == std::string::npos);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ManualPageTest);

}  // namespace sublet
