// Compares the files in etc/ with the daemons' settings: all settings are there, none is
// unknown, and the defaults shown are the defaults.
#include <cppunit/extensions/HelperMacros.h>

#include <algorithm>
#include <set>
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

// Whether both have the same value for this key.
bool same(const Settings& a, const Settings& b, const SettingSpec& spec) {
  const std::string& key = spec.key;
  switch (spec.type) {
    case SettingType::boolean:
      return a.boolean(key) == b.boolean(key);
    case SettingType::integer:
      return a.integer(key) == b.integer(key);
    case SettingType::real:
      return a.real(key) == b.real(key);
    case SettingType::text:
      return a.text(key) == b.text(key);
    case SettingType::texts:
      return a.texts(key) == b.texts(key);
    case SettingType::duration:
      return a.duration_ms(key) == b.duration_ms(key);
    case SettingType::size:
      return a.size_bytes(key) == b.size_bytes(key);
    case SettingType::reals:
      return a.reals(key) == b.reals(key);
  }
  return false;
}

// `other`: keys whose value in the file intentionally is not the default.
void compare(const std::string& name, const std::vector<SettingSpec>& specs,
             const std::set<std::string>& other) {
  const Settings defaults(specs);
  Settings shown(specs);
  shown.load_text(uncommented(file(name)), name);  // throws for an unknown setting
  for (const SettingSpec& spec : specs) {
    CPPUNIT_ASSERT_MESSAGE(name + " does not have " + spec.key, shown.is_set(spec.key));
    CPPUNIT_ASSERT_MESSAGE(name + " shows another default of " + spec.key,
                           other.count(spec.key) > 0 || same(defaults, shown, spec));
  }
}

}  // namespace

class ConfigurationTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ConfigurationTest);
  CPPUNIT_TEST(server);
  CPPUNIT_TEST(client);
  CPPUNIT_TEST(load_monitor);
  CPPUNIT_TEST(as_installed_they_are_the_defaults);
  CPPUNIT_TEST(times_of_the_server_have_limits);
  CPPUNIT_TEST_SUITE_END();

 public:
  // Without root, the defaults of state folder and socket are in the user's home.
  void server() {
    compare("server.toml", server::server_setting_specs(), {"server.state", "server.socket"});
  }

  void client() { compare("client.toml", client::client_setting_specs(), {"monitor.config"}); }

  // The thresholds shown are those of the rules.
  void load_monitor() {
    std::set<std::string> thresholds;
    for (const SettingSpec& spec : loadmon::setting_specs())
      if (spec.key.starts_with("cpu.") || spec.key.starts_with("load."))
        thresholds.insert(spec.key);
    compare("loadmon.toml", loadmon::setting_specs(), thresholds);
  }

  // The files as installed, with defaults commented out.
  void as_installed_they_are_the_defaults() {
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
        {"scheduling.refusal_pause", 0, 3'600'000},
    };
    for (const auto& [key, lowest, highest] : limits) {
      CPPUNIT_ASSERT_MESSAGE(key, accepts(key, lowest) && !accepts(key, lowest - 1));
      CPPUNIT_ASSERT_MESSAGE(key, accepts(key, highest) && !accepts(key, highest + 1));
    }
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(ConfigurationTest);

}  // namespace sublet
