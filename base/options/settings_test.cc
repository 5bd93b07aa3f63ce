#include "base/options/settings.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/resource.h>

#include <cerrno>
#include <functional>
#include <limits>
#include <sstream>

#include "base/files.h"

namespace sublet {
namespace {

Settings some_settings() {
  constexpr double kMost = std::numeric_limits<double>::infinity();
  return Settings({
      {"slots", SettingType::integer, "4", 1, 64, "Jobs at once."},
      {.key = "log.level",
       .default_value = "info",
       .doc = "What is logged.",
       .choices = {"debug", "info", "error"}},
      {"log.rotate", SettingType::size, "10 MiB", 1024, kMost, "When the log turns over."},
      {"lease.period", SettingType::duration, "30 s", 1000, 3600'000, "The lease."},
      {.key = "lease.renew",
       .type = SettingType::boolean,
       .default_value = "true",
       .doc = "Renew it?"},
      {"lease.weight", SettingType::real, "0.5", 0, 1, "Weight."},
      {"admins", SettingType::texts, "root,\"x\"", 0, 3, "Who may all."},
      {"shares", SettingType::reals, "", 0, 100, "Shares by user."},
      {"quotas", SettingType::sizes, "", 1024, 1ull << 40, "Quotas by user."},
  });
}

std::string error_of(const std::function<void(Settings&)>& act) {
  Settings settings = some_settings();
  try {
    act(settings);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "no error";
}

std::string toml_error(const std::string& toml) {
  return error_of([&](Settings& settings) { settings.load_text(toml, "s.toml"); });
}

}  // namespace

class SettingsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SettingsTest);
  CPPUNIT_TEST(defaults);
  CPPUNIT_TEST(file_and_overrides);
  CPPUNIT_TEST(unknown_keys_are_placed_and_guessed);
  CPPUNIT_TEST(wrong_types_say_what_is_allowed);
  CPPUNIT_TEST(ranges_are_kept);
  CPPUNIT_TEST(bad_overrides);
  CPPUNIT_TEST(a_refused_value_changes_nothing);
  CPPUNIT_TEST(unusable_files_are_setting_errors);
  CPPUNIT_TEST(sizes_by_name);
  CPPUNIT_TEST(too_many_open_files_are_no_setting_error);
  CPPUNIT_TEST(printed_defaults_load_again);
  CPPUNIT_TEST(printed_settings_are_those_in_effect);
  CPPUNIT_TEST(misuse_is_a_logic_error);
  CPPUNIT_TEST_SUITE_END();

 public:
  void defaults() {
    const Settings settings = some_settings();
    CPPUNIT_ASSERT_EQUAL(int64_t{4}, settings.integer("slots"));
    CPPUNIT_ASSERT_EQUAL(std::string("info"), settings.text("log.level"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{10} << 20, settings.size_bytes("log.rotate"));
    CPPUNIT_ASSERT_EQUAL(int64_t{30'000}, settings.duration_ms("lease.period"));
    CPPUNIT_ASSERT(settings.boolean("lease.renew"));
    CPPUNIT_ASSERT_EQUAL(0.5, settings.real("lease.weight"));
    CPPUNIT_ASSERT((settings.texts("admins") == std::vector<std::string>{"root", "\"x\""}));
    CPPUNIT_ASSERT(settings.reals("shares").empty());
    CPPUNIT_ASSERT(!settings.is_set("slots"));
  }

  void file_and_overrides() {
    Settings settings = some_settings();
    settings.load_text(
        "slots = 8\nadmins = []\n[lease]\nperiod = 2\nweight = 1\n[log]\nrotate = 4096\n"
        "[shares]\nanna = 2\nbo = 0.5\n",
        "s.toml");
    settings.override_with("slots=9");
    settings.override_with("lease.period=250 s");
    settings.override_with("shares.anna=3");
    settings.override_with("admins=eve");
    CPPUNIT_ASSERT_EQUAL(int64_t{9}, settings.integer("slots"));
    CPPUNIT_ASSERT(settings.is_set("slots"));
    CPPUNIT_ASSERT_EQUAL(int64_t{250'000}, settings.duration_ms("lease.period"));
    CPPUNIT_ASSERT_EQUAL(1.0, settings.real("lease.weight"));
    CPPUNIT_ASSERT_EQUAL(uint64_t{4096}, settings.size_bytes("log.rotate"));
    CPPUNIT_ASSERT_EQUAL(3.0, settings.reals("shares").at("anna"));
    CPPUNIT_ASSERT_EQUAL(0.5, settings.reals("shares").at("bo"));
    CPPUNIT_ASSERT(settings.texts("admins") == std::vector<std::string>{"eve"});
  }

  void unknown_keys_are_placed_and_guessed() {
    CPPUNIT_ASSERT_EQUAL(
        std::string("s.toml:3:3: there is no setting \"lease.perod\"; did you mean "
                    "\"lease.period\"?"),
        toml_error("slots = 2\n[lease]\n  perod = 3\n"));
    CPPUNIT_ASSERT_EQUAL(std::string("s.toml:1:1: there is no setting \"frobnication\"; "
                                     "--print-settings lists them all"),
                         toml_error("frobnication = 3\n"));
    CPPUNIT_ASSERT_EQUAL(std::string("s.toml:1:1: \"lease\" must be a table"),
                         toml_error("lease = 3\n"));
  }

  void wrong_types_say_what_is_allowed() {
    CPPUNIT_ASSERT_EQUAL(std::string("s.toml:2:9: \"slots\" must be a whole number from 1 to 64"),
                         toml_error("\nslots = \"many\"\n"));
    CPPUNIT_ASSERT_EQUAL(
        std::string("s.toml:2:9: \"log.level\" must be one of \"debug\" \"info\" \"error\""),
        toml_error("[log]\nlevel = \"loud\"\n"));
    CPPUNIT_ASSERT_EQUAL(std::string("s.toml:2:8: \"shares.bo\" must be a number from 0 to 100"),
                         toml_error("[shares]\n  bo = true\n"));
    CPPUNIT_ASSERT_EQUAL(std::string("s.toml:1:1: \"shares\" must be a table of numbers"),
                         toml_error("shares = 3\n"));
    CPPUNIT_ASSERT(toml_error("slots = 1.5\n") != "no error");
    CPPUNIT_ASSERT(toml_error("admins = [1]\n") != "no error");
    CPPUNIT_ASSERT(toml_error("lease.renew = 1\n") != "no error");
    CPPUNIT_ASSERT(toml_error("lease.period = \"soon\"\n").find("\"30 s\"") != std::string::npos);
    CPPUNIT_ASSERT(toml_error("slots = = 1\n").starts_with("s.toml:1:9: "));
  }

  void ranges_are_kept() {
    CPPUNIT_ASSERT(toml_error("slots = 65\n") != "no error");
    CPPUNIT_ASSERT_EQUAL(std::string("no error"), toml_error("slots = 64\n"));
    CPPUNIT_ASSERT(toml_error("lease.period = -1\n") != "no error");
    CPPUNIT_ASSERT(toml_error("lease.period = 0.5\n").find("from 1 s to 1 h") != std::string::npos);
    CPPUNIT_ASSERT(toml_error("lease.weight = nan\n") != "no error");
    CPPUNIT_ASSERT(toml_error("shares.anna = nan\n") != "no error");
    CPPUNIT_ASSERT(toml_error("log.rotate = 10\n") != "no error");
    CPPUNIT_ASSERT(toml_error("admins = [\"a\", \"b\", \"c\", \"d\"]\n") != "no error");
  }

  void bad_overrides() {
    const auto override_error = [](const std::string& assignment) {
      return error_of([&](Settings& settings) { settings.override_with(assignment); });
    };
    CPPUNIT_ASSERT_EQUAL(
        std::string("setting \"slot=3\": there is no setting \"slot\"; did you mean \"slots\"?"),
        override_error("slot=3"));
    CPPUNIT_ASSERT_EQUAL(std::string("setting \"slots\": write it as KEY=VALUE"),
                         override_error("slots"));
    CPPUNIT_ASSERT(override_error("slots=3x") != "no error");
    CPPUNIT_ASSERT(override_error("slots=") != "no error");
    CPPUNIT_ASSERT(override_error("shares.anna=-1") != "no error");
    CPPUNIT_ASSERT(override_error("shares=1") != "no error");
    CPPUNIT_ASSERT(override_error("lease.renew=yes") != "no error");
  }

  void a_refused_value_changes_nothing() {
    Settings settings = some_settings();
    CPPUNIT_ASSERT_THROW(settings.override_with("slots=100"), SettingError);
    CPPUNIT_ASSERT_THROW(settings.load_text("slots = 100", "f"), SettingError);
    CPPUNIT_ASSERT_EQUAL(int64_t{4}, settings.integer("slots"));
    CPPUNIT_ASSERT(!settings.is_set("slots"));
  }

  void unusable_files_are_setting_errors() {
    Settings settings = some_settings();
    CPPUNIT_ASSERT_THROW(settings.load_file("/nowhere/s.toml"), SettingError);
    CPPUNIT_ASSERT_THROW(settings.load_text("slots = = 1\n", "s.toml"), SettingError);
  }

  void sizes_by_name() {
    Settings settings = some_settings();
    settings.load_text("[quotas]\nanna = \"10 GiB\"\nbo = 4096\n", "f");
    settings.override_with("quotas.cleo=1.5 MiB");
    const auto quotas = settings.sizes("quotas");
    CPPUNIT_ASSERT_EQUAL(10.0 * (1 << 30), quotas.at("anna"));
    CPPUNIT_ASSERT_EQUAL(4096.0, quotas.at("bo"));
    CPPUNIT_ASSERT_EQUAL(1.5 * (1 << 20), quotas.at("cleo"));
    for (const char* wrong : {"anna = \"much\"", "anna = 5", "anna = true", "anna = \"2 TiB\""})
      CPPUNIT_ASSERT_THROW(settings.load_text(std::string("[quotas]\n") + wrong, "f"),
                           SettingError);
    CPPUNIT_ASSERT_THROW(settings.override_with("quotas.anna=5"), SettingError);
    CPPUNIT_ASSERT_THROW(settings.override_with("shares.anna=10 GiB"), SettingError);
    std::ostringstream printed;
    settings.print(printed);
    Settings again = some_settings();
    again.load_text(printed.str(), "f");
    CPPUNIT_ASSERT(again.sizes("quotas") == quotas);
  }

  // It may work at the next start: no reason never to start again.
  void too_many_open_files_are_no_setting_error() {
    Settings settings = some_settings();
    rlimit before{};
    CPPUNIT_ASSERT_EQUAL(0, getrlimit(RLIMIT_NOFILE, &before));
    rlimit none = before;
    none.rlim_cur = 0;
    CPPUNIT_ASSERT_EQUAL(0, setrlimit(RLIMIT_NOFILE, &none));
    bool passing = false;
    try {
      settings.load_file("/dev/null");
    } catch (const FileError& error) {
      passing = error.code() == EMFILE;
    } catch (const SettingError&) {
    }
    CPPUNIT_ASSERT_EQUAL(0, setrlimit(RLIMIT_NOFILE, &before));
    CPPUNIT_ASSERT(passing);
  }

  void printed_settings_are_those_in_effect() {
    Settings settings = some_settings();
    settings.load_text(
        "slots = 8\nadmins = [\"a,b\", \"c\\u000ad\"]\n[lease]\nperiod = 2.5\nweight = 0.1\n"
        "[log]\nrotate = 4096\n[shares]\n\"b o\" = 0.5\n",
        "s.toml");
    settings.override_with("lease.renew=false");
    std::ostringstream out;
    settings.print(out);
    for (const char* line :
         {"slots = 8\n", "admins = [\"a,b\", \"c\\u000ad\"]\n", "period = \"2.5\"\n",
          "weight = 0.1\n", "rotate = \"4096\"\n", "renew = false\n", "\"b o\" = 0.5\n"})
      CPPUNIT_ASSERT_MESSAGE(line + out.str(), out.str().find(line) != std::string::npos);
    Settings again = some_settings();
    again.load_text(out.str(), "printed");
    CPPUNIT_ASSERT(again.texts("admins") == settings.texts("admins"));
    CPPUNIT_ASSERT_EQUAL(int64_t{2'500}, again.duration_ms("lease.period"));
    CPPUNIT_ASSERT_EQUAL(0.5, again.reals("shares").at("b o"));
  }

  void printed_defaults_load_again() {
    std::ostringstream out;
    some_settings().print(out);
    Settings again = some_settings();
    again.load_text(out.str(), "defaults");
    CPPUNIT_ASSERT(again.is_set("slots") && again.is_set("log.rotate") && again.is_set("admins"));
    CPPUNIT_ASSERT_EQUAL(int64_t{30'000}, again.duration_ms("lease.period"));
    CPPUNIT_ASSERT(again.texts("admins") == some_settings().texts("admins"));
    CPPUNIT_ASSERT(out.str().find("# When the log turns over.\n") != std::string::npos);
    CPPUNIT_ASSERT(out.str().find("[shares]\n") != std::string::npos);
  }

  void misuse_is_a_logic_error() {
    const Settings settings = some_settings();
    CPPUNIT_ASSERT_THROW(settings.integer("nothing"), std::logic_error);
    CPPUNIT_ASSERT_THROW(settings.text("slots"), std::logic_error);
    CPPUNIT_ASSERT_THROW(
        Settings({{.key = "a", .type = SettingType::integer, .default_value = "x"}}),
        std::logic_error);
    CPPUNIT_ASSERT_THROW(Settings({{.key = "a"}, {.key = "a"}}), std::logic_error);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(SettingsTest);

}  // namespace sublet
