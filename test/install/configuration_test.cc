// Compares the files in etc/ with the daemons' settings: all settings are there, none is
// unknown, and the commented-out lines give what --print-settings prints without a file.
#include <cppunit/extensions/HelperMacros.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/options/settings.h"
#include "client/settings.h"
#include "loadmon/daemon_settings.h"
#include "server/settings.h"

namespace sublet {
namespace {

std::string file(const std::string& name) {
  return system_files().read_file(std::string(SUBLET_ETC) + "/" + name, 1 << 20);
}

// Changes "#key = value", the form of a default, to "key = value"; a text comment has a
// space after its '#'.
std::string uncommented(const std::string& text) {
  std::string all;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const bool shown = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    all += line.substr(shown ? 1 : 0) + "\n";
    begin = end + 1;
  }
  return all;
}

// What --print-settings prints.
std::string printed(const Settings& settings) {
  std::ostringstream out;
  settings.print(out);
  return out.str();
}

std::string printed_by_monitor(const Settings& settings) {
  return printed(loadmon::with_values_of(loadmon::presence_rule(settings), settings));
}

// `other`: keys that the file sets, because it needs another value than the default.
Settings shown_in(const std::string& name, const std::vector<SettingSpec>& specs,
                  const std::set<std::string>& other) {
  Settings installed(specs), shown(specs);
  installed.load_text(file(name), name);  // throws for an unknown setting
  shown.load_text(uncommented(file(name)), name);
  const Settings defaults(specs);
  for (const SettingSpec& spec : specs) {
    CPPUNIT_ASSERT_MESSAGE(name + " does not have " + spec.key,
                           shown.is_set(spec.key) || spec.type == SettingType::reals ||
                               spec.type == SettingType::sizes);
    CPPUNIT_ASSERT_EQUAL_MESSAGE(name + ": whether it sets " + spec.key, other.count(spec.key) > 0,
                                 installed.is_set(spec.key));
    if (other.count(spec.key) > 0) shown.override_with(spec.key + "=" + defaults.text(spec.key));
  }
  return shown;
}

}  // namespace

class ConfigurationTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ConfigurationTest);
  CPPUNIT_TEST(server);
  CPPUNIT_TEST(client);
  CPPUNIT_TEST(load_monitor);
  CPPUNIT_TEST(as_installed);
  CPPUNIT_TEST(times_of_the_server_have_limits);
  CPPUNIT_TEST(accounts_of_the_server);
  CPPUNIT_TEST_SUITE_END();

 public:
  // The service runs without root, so the defaults of state folder and socket would be in a
  // home.
  void server() {
    const auto specs = server::server_setting_specs();
    const Settings shown = shown_in("server.toml", specs, {"server.state", "server.socket"});
    CPPUNIT_ASSERT_EQUAL(printed(Settings(specs)), printed(shown));
    for (const char* table : {"shares", "quotas"})
      CPPUNIT_ASSERT(file("server.toml").find("\n[" + std::string(table) + "]\n") !=
                     std::string::npos);
  }

  void client() {
    const auto specs = client::client_setting_specs();
    CPPUNIT_ASSERT_EQUAL(printed(Settings(specs)),
                         printed(shown_in("client.toml", specs, {"monitor.config"})));
  }

  void load_monitor() {
    const auto specs = loadmon::setting_specs();
    CPPUNIT_ASSERT_EQUAL(printed_by_monitor(Settings(specs)),
                         printed_by_monitor(shown_in("loadmon.toml", specs, {})));
  }

  // What the files as installed set.
  void as_installed() {
    Settings server(server::server_setting_specs());
    server.load_text(file("server.toml"), "server.toml");
    CPPUNIT_ASSERT_EQUAL(std::string("/run/sublet/server.sock"), server.text("server.socket"));
    CPPUNIT_ASSERT_EQUAL(std::string("/var/lib/sublet-server"), server.text("server.state"));
    Settings client(client::client_setting_specs());
    client.load_text(file("client.toml"), "client.toml");
    CPPUNIT_ASSERT_EQUAL(std::string(), client.text("server"));
    CPPUNIT_ASSERT_EQUAL(std::string("/etc/sublet/loadmon.toml"), client.text("monitor.config"));
    Settings monitor(loadmon::setting_specs());
    monitor.load_text(file("loadmon.toml"), "loadmon.toml");
    CPPUNIT_ASSERT_EQUAL(int64_t{15 * 60 * 1000}, monitor.duration_ms("idle_time"));
    CPPUNIT_ASSERT(!monitor.is_set("input"));
  }

  void accounts_of_the_server() {
    const auto read = [](const std::string& text) -> std::string {
      Settings settings(server::server_setting_specs());
      settings.load_text(text, "s.toml");
      try {
        return server::read_server_settings(settings).policies.accounts;
      } catch (const SettingError& e) {
        return e.what();
      }
    };
    CPPUNIT_ASSERT_EQUAL(std::string(), read(""));
    CPPUNIT_ASSERT_EQUAL(std::string(), read("[scheduling]\naccounts = 'none'"));
    const std::string accounts = "[scheduling]\naccounts = 'g=ann, f=smith jones'\n[shares]\n";
    CPPUNIT_ASSERT_EQUAL(std::string("f=jones smith,g=ann"), read(accounts + "'@g' = 2\ncid = 3"));
    CPPUNIT_ASSERT_EQUAL(std::string("s.toml:2:12: \"scheduling.accounts\": account g has no "
                                     "users; list them after the '=', or remove the account"),
                         read("[scheduling]\naccounts = 'g='"));
    CPPUNIT_ASSERT(
        read(accounts + "ann = 3")
            .ends_with(
                "[shares]: user ann is in account g, whose shares count: use \"@g\" instead"));
    CPPUNIT_ASSERT(read(accounts + "'@h' = 3")
                       .ends_with("[shares]: there is no account h in scheduling.accounts"));
  }

  void times_of_the_server_have_limits() {
    const auto accepts = [](const std::string& key, int64_t ms) {
      Settings settings(server::server_setting_specs());
      try {
        settings.override_with(key + "=" + std::to_string(ms) + " ms");
        return true;
      } catch (const std::exception&) {
        return false;
      }
    };
    const struct {
      const char* key;
      int64_t lowest, highest;
    } limits[] = {
        {"server.handshake", 100, 600'000},         {"server.call_timeout", 100, 600'000},
        {"server.watchdog", 1'000, 3'600'000},      {"scheduling.tick", 100, 86'400'000},
        {"scheduling.lease", 3'000, 3'600'000},     {"scheduling.leaving_wait", 100, 86'400'000},
        {"scheduling.refusal_pause", 0, 3'600'000}, {"scheduling.rest_least", 0, 86'400'000},
        {"scheduling.rest_most", 0, 86'400'000},
    };
    for (const auto& [key, lowest, highest] : limits) {
      CPPUNIT_ASSERT_MESSAGE(key, accepts(key, lowest) && !accepts(key, lowest - 1));
      CPPUNIT_ASSERT_MESSAGE(key, accepts(key, highest) && !accepts(key, highest + 1));
    }
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(ConfigurationTest);

}  // namespace sublet
