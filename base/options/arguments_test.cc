#include "base/options/arguments.h"

#include <cppunit/extensions/HelperMacros.h>

#include <sstream>

namespace sublet {
namespace {

// A small "sublet" with all kinds of arguments.
struct Command {
  bool json = false;
  int64_t count = 3;
  double load = 0.5;
  std::string server = "default";
  std::vector<std::string> sets;
  std::string file;
  std::string into;
  bool cont = false;
  std::vector<std::string> program;
  std::vector<std::string> ids;
  Arguments top{"sublet", "Rents out idle workstations.", "1.2.3"};
  Arguments* submit = nullptr;
  Arguments* machines = nullptr;
  Arguments* list = nullptr;
  std::ostringstream out, err;

  Command() {
    top.flag("--json", &json, "Answer as JSON");
    top.option("--server", &server, "Where the server is", "REF");
    submit = &top.command("submit", "Submit jobs");
    submit->option("-n,--count", &count, "How many", "N");
    submit->option("--load", &load, "Highest load", "X");
    submit->option("--set", &sets, "A setting", "KEY=VALUE");
    submit->positional("file", &file, "A batch file", false);
    submit->passthrough("PROGRAM ARGS", &program, "The program to run");
    machines = &top.command("machines", "About machines");
    list = &machines->command("list", "List them");
    list->positional("ids", &ids, "Which", true);
    list->option("--into", &into, "Folder", "FOLDER");
    list->not_empty("--into");
    list->flag("--cont", &cont, "Go on");
  }

  std::optional<int> parse(const std::vector<std::string>& arguments) {
    return top.parse(arguments, out, err);
  }
};

}  // namespace

class ArgumentsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ArgumentsTest);
  CPPUNIT_TEST(values_are_filled);
  CPPUNIT_TEST(what_follows_dashes_is_untouched);
  CPPUNIT_TEST(commands_have_commands);
  CPPUNIT_TEST(help_and_version);
  CPPUNIT_TEST(usage_errors);
  CPPUNIT_TEST(plain_daemons);
  CPPUNIT_TEST(table_of_all);
  CPPUNIT_TEST_SUITE_END();

 public:
  void values_are_filled() {
    Command c;
    CPPUNIT_ASSERT(!c.parse({"submit", "-n", "7", "--load=1.5", "--set", "a=1", "--set", "b=2",
                             "jobs.toml", "--json"}));
    CPPUNIT_ASSERT(c.submit->chosen() && !c.machines->chosen());
    CPPUNIT_ASSERT_EQUAL(int64_t{7}, c.count);
    CPPUNIT_ASSERT_EQUAL(1.5, c.load);
    CPPUNIT_ASSERT((c.sets == std::vector<std::string>{"a=1", "b=2"}));
    CPPUNIT_ASSERT_EQUAL(std::string("jobs.toml"), c.file);
    CPPUNIT_ASSERT(c.json);
    CPPUNIT_ASSERT_EQUAL(std::string("default"), c.server);
  }

  void what_follows_dashes_is_untouched() {
    Command c;
    CPPUNIT_ASSERT(!c.parse({"submit", "--count", "2", "--", "./a", "--json", "--", "-n", ""}));
    CPPUNIT_ASSERT((c.program == std::vector<std::string>{"./a", "--json", "--", "-n", ""}));
    CPPUNIT_ASSERT(!c.json);
    CPPUNIT_ASSERT(c.file.empty());
    Command d;
    CPPUNIT_ASSERT_EQUAL(kExitUsage, *d.parse({"machines", "list", "1", "--", "x"}));
    CPPUNIT_ASSERT(d.err.str().starts_with("sublet machines list: no arguments may follow"));
  }

  void commands_have_commands() {
    Command c;
    CPPUNIT_ASSERT(!c.parse({"machines", "list", "curly", "moe", "--json"}));
    CPPUNIT_ASSERT(c.machines->chosen() && c.list->chosen() && c.json);
    CPPUNIT_ASSERT((c.ids == std::vector<std::string>{"curly", "moe"}));
  }

  void help_and_version() {
    Command c;
    CPPUNIT_ASSERT_EQUAL(0, *c.parse({"--help"}));
    CPPUNIT_ASSERT(c.out.str().find("Rents out idle workstations.") != std::string::npos);
    CPPUNIT_ASSERT(c.out.str().find("submit") != std::string::npos);
    Command d;
    CPPUNIT_ASSERT_EQUAL(0, *d.parse({"submit", "--help"}));
    CPPUNIT_ASSERT(d.out.str().find("-n,--count") != std::string::npos);
    CPPUNIT_ASSERT(d.out.str().find("The program to run") != std::string::npos);
    CPPUNIT_ASSERT_EQUAL(d.out.str(), d.submit->help());
    Command e;
    CPPUNIT_ASSERT_EQUAL(0, *e.parse({"--version"}));
    CPPUNIT_ASSERT_EQUAL(std::string("sublet 1.2.3\n"), e.out.str());
    CPPUNIT_ASSERT(e.err.str().empty());
  }

  void usage_errors() {
    CPPUNIT_ASSERT_EQUAL(std::string("sublet submit: unknown option \"--cuont\"; did you mean "
                                     "\"--count\"?\nTry \"sublet submit --help\".\n"),
                         error({"submit", "--cuont=3"}));
    // Another command's option is not misspelt.
    CPPUNIT_ASSERT_EQUAL(std::string("sublet submit: unknown option \"--cont\"\n"
                                     "Try \"sublet submit --help\".\n"),
                         error({"submit", "--cont"}));
    CPPUNIT_ASSERT_EQUAL(std::string("sublet machines list: --into: the value is empty\n"
                                     "Try \"sublet machines list --help\".\n"),
                         error({"machines", "list", "curly", "--into", ""}));
    CPPUNIT_ASSERT(error({"machines", "list", "curly", "--into="}).find("--into") !=
                   std::string::npos);
    CPPUNIT_ASSERT_EQUAL(std::string("sublet: unknown command \"sumbit\"; did you mean "
                                     "\"submit\"?\nTry \"sublet --help\".\n"),
                         error({"sumbit", "x"}));
    CPPUNIT_ASSERT_EQUAL(std::string("sublet: a command is missing\nTry \"sublet --help\".\n"),
                         error({}));
    CPPUNIT_ASSERT_EQUAL(std::string("sublet machines: a command is missing\n"
                                     "Try \"sublet machines --help\".\n"),
                         error({"machines"}));
    CPPUNIT_ASSERT(error({"submit", "a", "b"}).find("unexpected argument \"b\"") !=
                   std::string::npos);
    CPPUNIT_ASSERT(error({"submit", "--count", "many"}).find("many") != std::string::npos);
    CPPUNIT_ASSERT(error({"submit", "--count", "99999999999999999999"})
                       .starts_with("sublet submit: --count: \"99999999999999999999\" is no"));
    CPPUNIT_ASSERT(error({"submit", "--count"}).find("--count") != std::string::npos);
    CPPUNIT_ASSERT(error({"machines", "list"}).find("ids") != std::string::npos);
    CPPUNIT_ASSERT(error({"submit", "a", "\x1b[2J"}).find('\x1b') == std::string::npos);
  }

  void plain_daemons() {
    Arguments arguments("sublet-server", "The server.", "1");
    std::string folder;
    arguments.positional("folder", &folder, "Where", true);
    const char* argv[] = {"sublet-server", "/x"};
    CPPUNIT_ASSERT(!arguments.parse(2, argv));
    CPPUNIT_ASSERT_EQUAL(std::string("/x"), folder);
  }

  void table_of_all() {
    Command c;
    c.submit->words("--load", {"0.5", "1"});
    c.submit->words("file", {"x.toml"});
    const ArgumentTable table = c.top.table();
    CPPUNIT_ASSERT_EQUAL(size_t{2}, table.commands.size());
    CPPUNIT_ASSERT_EQUAL(std::string("--server"), table.options[3].names[0]);
    CPPUNIT_ASSERT(table.options[2].value_name.empty());
    const ArgumentTable& submit = table.commands[0];
    CPPUNIT_ASSERT((submit.options[0].names == std::vector<std::string>{"-n", "--count"}));
    CPPUNIT_ASSERT_EQUAL(std::string("N"), submit.options[0].value_name);
    CPPUNIT_ASSERT(!submit.options[0].repeatable && submit.options[2].repeatable);
    CPPUNIT_ASSERT_EQUAL(size_t{2}, submit.options[1].words.size());
    CPPUNIT_ASSERT_EQUAL(std::string("x.toml"), submit.positionals[0].words.at(0));
    CPPUNIT_ASSERT_EQUAL(std::string("PROGRAM ARGS"), submit.passthrough);
    const ArgumentTable& list = table.commands[1].commands[0];
    CPPUNIT_ASSERT_EQUAL(std::string("sublet machines list"), list.path);
    CPPUNIT_ASSERT(list.positionals[0].required && list.positionals[0].repeatable);
    // Variables of options not given keep their values, and help does not print defaults.
    CPPUNIT_ASSERT(c.submit->help().find("=3") == std::string::npos);
  }

 private:
  static std::string error(const std::vector<std::string>& arguments) {
    Command c;
    const std::string last = arguments.empty() ? "none" : arguments.back();
    CPPUNIT_ASSERT_EQUAL_MESSAGE(last, kExitUsage, c.parse(arguments).value_or(-1));
    CPPUNIT_ASSERT(c.out.str().empty());
    return c.err.str();
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ArgumentsTest);

}  // namespace sublet
