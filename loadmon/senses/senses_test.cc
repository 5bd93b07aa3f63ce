#include <cppunit/extensions/HelperMacros.h>
#include <poll.h>
#include <rapidcheck.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/os_error.h"
#include "loadmon/daemon_settings.h"
#include "loadmon/senses/load.h"
#include "loadmon/senses/scripted.h"

namespace sublet::loadmon {
namespace {
using protocol::PresenceSample;
using protocol::ScriptedOwner;
constexpr int64_t kSecond = 1'000'000'000;

std::string refusal(const std::string& script) {
  try {
    parse_script(script, "s");
  } catch (const ScriptError& error) {
    return error.what();
  }
  return "";
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}
}  // namespace

class SensesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(SensesTest);
  CPPUNIT_TEST(scripted_values);
  CPPUNIT_TEST(script);
  CPPUNIT_TEST(hostile_scripts);
  CPPUNIT_TEST(any_bytes_are_parsed_or_refused);
  CPPUNIT_TEST(script_is_played);
  CPPUNIT_TEST(control_file_is_followed);
  CPPUNIT_TEST(files_beside_the_control_file);
  CPPUNIT_TEST(wrong_control_file_is_named);
  CPPUNIT_TEST(control_file_that_is_no_file);
  CPPUNIT_TEST(control_file_without_a_folder);
  CPPUNIT_TEST(proc_texts);
  CPPUNIT_TEST(the_machine_itself);
  CPPUNIT_TEST(settings_make_the_rule);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    char name[] = "/tmp/sublet-senses-XXXXXX";
    CPPUNIT_ASSERT(mkdtemp(name) != nullptr);
    folder_ = name;
  }
  void tearDown() override { std::filesystem::remove_all(folder_); }

  void scripted_values() {
    CPPUNIT_ASSERT(parse_scripted_value(" away\n")->owner == ScriptedOwner::kAway);
    CPPUNIT_ASSERT(parse_scripted_value("active")->owner == ScriptedOwner::kActive);
    CPPUNIT_ASSERT_EQUAL(0.75, parse_scripted_value("0.75\n")->cpu);
    CPPUNIT_ASSERT_EQUAL(2.31, parse_scripted_value("load  2.31\n")->load);
    CPPUNIT_ASSERT_EQUAL(-1.0, parse_scripted_value("load 2.31")->cpu);
    for (const char* word :
         {"",     " ",     "Away",  "away active", "-1",          "+1",          "nan",
          "inf",  "0x10",  "1e3",   "1.2.3",       ".",           "99999999999", "1 2",
          "load", "load ", "load2", "load -1",     "load load 1", "1 load"}) {
      CPPUNIT_ASSERT_MESSAGE(word, !parse_scripted_value(word));
    }
  }

  void script() {
    const std::vector<ScriptLine> lines =
        parse_script("# the owner's day\n\n0 away\n 1.5\tactive # coffee\r\n1.5 0.3\n", "s");
    CPPUNIT_ASSERT_EQUAL(size_t{3}, lines.size());
    CPPUNIT_ASSERT_EQUAL(int64_t{1'500'000'000}, lines[1].at_ns);
    CPPUNIT_ASSERT(lines[1].value.owner == ScriptedOwner::kActive);
    CPPUNIT_ASSERT_EQUAL(0.3, lines[2].value.cpu);
  }

  void hostile_scripts() {
    CPPUNIT_ASSERT_EQUAL(std::string("s:2: times must not decrease"),
                         refusal("5 away\n4 active\n"));
    CPPUNIT_ASSERT(refusal("1 away\n2 gone").starts_with("s:2: the value"));
    CPPUNIT_ASSERT(refusal("").starts_with("s: has no line"));
    CPPUNIT_ASSERT(refusal("# nothing\n").starts_with("s: has no line"));
    for (const char* line : {"away", "1", "1 ", "-1 away", "nan away", "1e9 away",
                             "2000000000 away", "1 away away", "1,5 away", "1 \x01"}) {
      CPPUNIT_ASSERT_MESSAGE(line, refusal(line).starts_with("s:1: "));
    }
    CPPUNIT_ASSERT(refusal(std::string("1 aw\0ay\n", 8)).starts_with("s:1: "));
    CPPUNIT_ASSERT(refusal(std::string(1 << 20, '9') + " away").starts_with("s:1: "));
    std::string endless;
    for (int i = 0; i < 100'001; ++i) endless += "1 away\n";
    CPPUNIT_ASSERT(refusal(endless).starts_with("s:100001: more than"));
  }

  void any_bytes_are_parsed_or_refused() {
    CPPUNIT_ASSERT(rc::check("any bytes", [](const std::string& text) {
      try {
        for (const ScriptLine& line : parse_script(text, "s")) RC_ASSERT(line.at_ns >= 0);
      } catch (const ScriptError&) {
      }
    }));
  }

  void script_is_played() {
    ScriptSense sense(parse_script("1 away\n3 0.5\n4 active\n", "s"), 100 * kSecond);
    const auto at = [&sense](int64_t now) {
      PresenceSample sample;
      CPPUNIT_ASSERT(sense.sample(now, {}, &sample));
      return sample;
    };
    CPPUNIT_ASSERT(at(100 * kSecond).scripted == ScriptedOwner::kActive);
    CPPUNIT_ASSERT_EQUAL(101 * kSecond, sense.next_notice(100 * kSecond));
    CPPUNIT_ASSERT(at(101 * kSecond).scripted == ScriptedOwner::kAway);
    CPPUNIT_ASSERT_EQUAL(103 * kSecond, sense.next_notice(101 * kSecond));
    CPPUNIT_ASSERT(at(103 * kSecond).scripted == ScriptedOwner::kNone);
    CPPUNIT_ASSERT_EQUAL(0.5, at(103 * kSecond + 5).cpu);
    CPPUNIT_ASSERT(at(900 * kSecond).scripted == ScriptedOwner::kActive);
    CPPUNIT_ASSERT_EQUAL(Sense::kNever, sense.next_notice(104 * kSecond));
  }

  void control_file_is_followed() {
    const std::string path = folder_ + "/control";
    ControlSense sense(path);
    PresenceSample sample;
    CPPUNIT_ASSERT(!sense.sample(1, {}, &sample));  // does not exist yet
    const auto after = [&](const std::string& text) {
      write(path, text);
      pollfd ready = {sense.handle(), POLLIN, 0};
      CPPUNIT_ASSERT_EQUAL(1, poll(&ready, 1, 10'000));
      sample = {};
      return sense.sample(2, {}, &sample);
    };
    CPPUNIT_ASSERT(after("away\n"));
    CPPUNIT_ASSERT(sample.scripted == ScriptedOwner::kAway);
    CPPUNIT_ASSERT(after("active"));
    CPPUNIT_ASSERT(sample.scripted == ScriptedOwner::kActive);
    CPPUNIT_ASSERT(after(""));  // being written
    CPPUNIT_ASSERT(sample.scripted == ScriptedOwner::kActive);
    CPPUNIT_ASSERT(after("0.4"));
    CPPUNIT_ASSERT_EQUAL(0.4, sample.cpu);
    CPPUNIT_ASSERT(after("load 1.5"));
    CPPUNIT_ASSERT_EQUAL(1.5, sample.load[0]);
    CPPUNIT_ASSERT_EQUAL(-1.0, sample.cpu);
    CPPUNIT_ASSERT(after("away"));
    std::filesystem::rename(path, path + ".old");
    CPPUNIT_ASSERT(!sense.sample(3, {}, &sample));
    // The descriptor has been drained.
    pollfd ready = {sense.handle(), POLLIN, 0};
    CPPUNIT_ASSERT_EQUAL(0, poll(&ready, 1, 0));
  }

  void files_beside_the_control_file() {
    const std::string path = folder_ + "/control", busy = folder_ + "/busy";
    write(busy, "");
    write(path, "away");
    ControlSense sense(path);
    PresenceSample sample;
    CPPUNIT_ASSERT(sense.sample(1, {}, &sample));
    // Who writes to another file wakes nobody.
    for (int n = 0; n < 1000; ++n) write(busy, std::to_string(n));
    pollfd ready = {sense.handle(), POLLIN, 0};
    CPPUNIT_ASSERT_EQUAL(0, poll(&ready, 1, 0));
    // Nor do any number of new ones hide a change of this one.
    for (int n = 0; n < 3000; ++n) write(folder_ + "/new-" + std::to_string(n), "");
    write(path, "active");
    for (int n = 0; n < 100 && sample.scripted != ScriptedOwner::kActive; ++n)
      if (poll(&ready, 1, 0) == 1) sense.notice(2, &sample);
    CPPUNIT_ASSERT(sample.scripted == ScriptedOwner::kActive);
  }

  void wrong_control_file_is_named() {
    const std::string path = folder_ + "/control";
    const std::string values = "`away`, `active`, a number of cores, or `load` and a number";
    ControlSense sense(path);
    PresenceSample sample;
    CPPUNIT_ASSERT(!sense.sample(1, {}, &sample));
    CPPUNIT_ASSERT_EQUAL("cannot read " + path + ": No such file or directory", sense.problem());
    const std::pair<std::string, std::string> cases[] = {
        {"awya\n", "'awya' is not " + values},
        {" away active", "'away active' is not " + values},
        {"\x1b[2J", "'\\x1b[2J' is not " + values},
        {std::string(1 << 20, 'a'), "'" + std::string(64, 'a') + "...' is not " + values},
        {"\n", "a value is missing: " + values}};
    for (const auto& [text, problem] : cases) {
      write(path, text);
      CPPUNIT_ASSERT(!sense.sample(2, {}, &sample));
      CPPUNIT_ASSERT_EQUAL(path + ": " + problem, sense.problem());
    }
    write(path, "away");
    CPPUNIT_ASSERT(sense.sample(3, {}, &sample));
  }

  void control_file_that_is_no_file() {
    const std::string path = folder_ + "/control";
    CPPUNIT_ASSERT_EQUAL(0, mkfifo(path.c_str(), 0600));
    ControlSense pipe(path);
    PresenceSample sample;
    CPPUNIT_ASSERT(!pipe.sample(1, {}, &sample));
    ControlSense folder(folder_);
    CPPUNIT_ASSERT(!folder.sample(1, {}, &sample));
  }

  void control_file_without_a_folder() {
    CPPUNIT_ASSERT_THROW(ControlSense(folder_ + "/nowhere/control"), OsError);
  }

  void proc_texts() {
    std::array<double, 3> load = {};
    CPPUNIT_ASSERT(parse_load("0.12 0.05 1.01 1/88 4941\n", &load));
    CPPUNIT_ASSERT_EQUAL(1.01, load[2]);
    for (const char* text : {"", "0.1 0.2", "a b c", "-1 0 0", "nan 0 0"})
      CPPUNIT_ASSERT(!parse_load(text, &load));
  }

  void the_machine_itself() {
    LoadSense load;
    PresenceSample sample;
    CPPUNIT_ASSERT(load.sample(kSecond, {}, &sample));
    CPPUNIT_ASSERT(sample.load[0] >= 0 && sample.load[2] >= 0);
    CPPUNIT_ASSERT(load.sample(kSecond + 3600 * kSecond, {.runnable = 1e6}, &sample));
    CPPUNIT_ASSERT_EQUAL(0.0, sample.load[0]);
  }

  void settings_make_the_rule() {
    Settings settings(setting_specs());
    CPPUNIT_ASSERT_EQUAL(0.25, presence_rule(settings).cpu_stay);
    settings.override_with("rule=classic");
    CPPUNIT_ASSERT_EQUAL(2.30, presence_rule(settings).load_stay[0]);
    CPPUNIT_ASSERT(!presence_rule(settings).input);
    settings.override_with("input=true");
    settings.override_with("idle_time=90 s");
    settings.override_with("cpu.stay_idle=0.5");
    CPPUNIT_ASSERT_THROW(presence_rule(settings), SettingError);
    settings.override_with("cpu.become_idle=0.2");
    const protocol::PresenceRule rule = presence_rule(settings);
    CPPUNIT_ASSERT(rule.input);
    CPPUNIT_ASSERT_EQUAL(int64_t{90'000}, rule.idle_time_ms);
    CPPUNIT_ASSERT_EQUAL(0.5, rule.cpu_stay);
    CPPUNIT_ASSERT_EQUAL(2.30, rule.load_stay[0]);
  }

 private:
  std::string folder_;
};
CPPUNIT_TEST_SUITE_REGISTRATION(SensesTest);

}  // namespace sublet::loadmon
