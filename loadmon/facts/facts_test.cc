#include "loadmon/facts/facts.h"

#include <cppunit/extensions/HelperMacros.h>
#include <sys/types.h>
#include <unistd.h>
#include <utmpx.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/testing/temporary_folder.h"
#include "loadmon/facts/machine_reader.h"

namespace sublet::loadmon {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

class FactsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(FactsTest);
  CPPUNIT_TEST(a_name_for_each_fact);
  CPPUNIT_TEST(the_files_of_a_notebook);
  CPPUNIT_TEST(a_machine_that_tells_nothing);
  CPPUNIT_TEST(rates_are_those_since_the_last_time);
  CPPUNIT_TEST(programs_of_jobs_are_left_out);
  CPPUNIT_TEST(a_reading_that_hangs_is_forgotten);
  CPPUNIT_TEST_SUITE_END();

  TemporaryFolder folder_;

  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  MachineStateFiles files() { return {folder_.path(), folder_.path()}; }

  void a_name_for_each_fact() {
    CPPUNIT_ASSERT_EQUAL(static_cast<size_t>(Fact::kCount), facts_vocabulary().size());
    CPPUNIT_ASSERT_EQUAL(std::string("users"),
                         facts_vocabulary()[static_cast<size_t>(Fact::kUsers)].name);
    CPPUNIT_ASSERT_EQUAL(std::string("temperature"),
                         facts_vocabulary()[static_cast<size_t>(Fact::kTemperature)].name);
    // Each value has the type that the vocabulary says.
    MachineState state;
    state.memory_available = state.memory_pressure = state.disk_pressure = state.disk_busy =
        state.disk_free = state.network = state.battery = state.temperature = 1.5;
    protocol::PresenceSample sample;
    sample.cpu = sample.load[0] = 0.5;
    sample.instant = 90 * kSecond;
    Facts facts;
    facts.set_time(1'700'000'000'000'000);
    facts.set_machine(&state);
    facts.set_sample(sample);
    for (size_t i = 0; i < facts_vocabulary().size(); ++i)
      CPPUNIT_ASSERT_MESSAGE(facts_vocabulary()[i].name,
                             facts.values()[i].is(facts_vocabulary()[i].type));
    // No input at all since the start.
    CPPUNIT_ASSERT_EQUAL(90.0, facts.values()[static_cast<size_t>(Fact::kInputIdle)].real());
    facts.set_machine(nullptr);
    CPPUNIT_ASSERT(!facts.values()[static_cast<size_t>(Fact::kOnBattery)].is_known());
  }

  void the_files_of_a_notebook() {
    put("proc/meminfo", "MemTotal:  8000000 kB\nMemAvailable:  2097152 kB\n");
    put("proc/pressure/memory", "some avg10=1.50 avg60=0.00 avg300=0.00 total=1\nfull avg10=9.0\n");
    put("proc/pressure/io", "some avg10=12.25 avg60=0.00 avg300=0.00 total=1\n");
    put("sys/class/thermal/thermal_zone0/temp", "41000\n");
    put("sys/class/thermal/thermal_zone1/temp", "67500\n");
    put("sys/class/thermal/cooling_device0/temp", "99000\n");
    const std::string power = "sys/class/power_supply/";
    put(power + "AC/type", "Mains\n");
    put(power + "AC/online", "1\n");
    put(power + "BAT0/type", "Battery\n");
    put(power + "BAT0/status", "Charging\n");
    put(power + "BAT0/capacity", "81\n");
    put(power + "mouse/type", "Battery\n");
    put(power + "mouse/scope", "Device\n");
    put(power + "mouse/capacity", "3\n");
    utmpx entry = {};
    entry.ut_type = USER_PROCESS;
    std::strncpy(entry.ut_user, "anna", sizeof entry.ut_user);
    std::string utmp(reinterpret_cast<const char*>(&entry), sizeof entry);
    entry.ut_type = DEAD_PROCESS;
    std::strncpy(entry.ut_user, "ben", sizeof entry.ut_user);
    put("run/utmp", utmp + std::string(reinterpret_cast<const char*>(&entry), sizeof entry));
    MachineStateFiles notebook = files();
    const MachineState state = notebook.read(kSecond, {});
    CPPUNIT_ASSERT_EQUAL(2048.0, state.memory_available.value());
    CPPUNIT_ASSERT_EQUAL(1.5, state.memory_pressure.value());
    CPPUNIT_ASSERT_EQUAL(12.25, state.disk_pressure.value());
    CPPUNIT_ASSERT_EQUAL(67.5, state.temperature.value());
    CPPUNIT_ASSERT_EQUAL(81.0, state.battery.value());
    CPPUNIT_ASSERT(!state.on_battery);
    CPPUNIT_ASSERT(state.disk_free.value() > 0);
    CPPUNIT_ASSERT((state.users == std::vector<std::string>{"anna"}));
    put(power + "AC/online", "0\n");
    put(power + "BAT0/status", "Not charging\n");
    CPPUNIT_ASSERT(notebook.read(2 * kSecond, {}).on_battery);
  }

  void a_machine_that_tells_nothing() {
    MachineStateFiles nothing = files();
    nothing.read(kSecond, {});
    const MachineState state = nothing.read(2 * kSecond, {});
    for (const auto& number : {state.memory_available, state.memory_pressure, state.disk_pressure,
                               state.disk_busy, state.network, state.battery, state.temperature})
      CPPUNIT_ASSERT(!number);
    CPPUNIT_ASSERT(!state.on_battery && state.users.empty() && state.programs.empty());
  }

  void rates_are_those_since_the_last_time() {
    const auto at = [&](int disk_ms, int64_t bytes) {
      put("proc/diskstats", " 8 0 sda 1 1 1 1 1 1 1 1 0 " + std::to_string(disk_ms) +
                                " 1 0 0\n 7 0 loop0 1 1 1 1 1 1 1 1 0 9999" +
                                std::to_string(disk_ms) + " 1\n");
      put("proc/net/dev", "Inter-| Receive\n face |bytes\n    lo: " + std::to_string(9 * bytes) +
                              " 0 0 0 0 0 0 0 0 0\n  eth0: " + std::to_string(bytes) +
                              " 0 0 0 0 0 0 0 " + std::to_string(bytes) + " 0\n");
    };
    MachineStateFiles machine = files();
    at(1000, 1 << 20);
    CPPUNIT_ASSERT(!machine.read(10 * kSecond, {}).disk_busy);
    at(2500, 11 << 20);
    const MachineState state = machine.read(15 * kSecond, {});
    CPPUNIT_ASSERT_DOUBLES_EQUAL(0.3, state.disk_busy.value(), 1e-9);
    CPPUNIT_ASSERT_DOUBLES_EQUAL(4.0, state.network.value(), 1e-9);
  }

  void programs_of_jobs_are_left_out() {
    put("proc/1/stat", "1 (init) S 0 1 1");
    put("proc/50/stat", "50 (shepherd) S 1 50 50");
    put("proc/60/stat", "60 (a job) S 50 60 60");
    put("proc/61/stat", "61 (grand) child) S 60 60 60");
    put("proc/70/stat", "70 (blender) S 1 70 70");
    put("proc/71/stat", "71 no name");
    put("proc/72/stat", "72 (ended) Z 1 70 70");
    MachineStateFiles machine = files();
    CPPUNIT_ASSERT((machine.read(kSecond, {60}).programs ==
                    std::vector<std::string>{"blender", "init", "shepherd"}));
  }

  // A disk that does not answer must neither stop the monitor nor be believed for ever.
  void a_reading_that_hangs_is_forgotten() {
    auto hangs = std::make_shared<std::atomic<bool>>(false);
    auto readings = std::make_shared<std::atomic<int>>(0);
    std::optional<MachineState> state;
    {
      MachineReader reader([=](int64_t now, const std::vector<pid_t>&) {
        ++*readings;
        while (*hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        MachineState read;
        read.at = now;
        return read;
      });
      const auto none = [] { return std::vector<pid_t>(); };
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (!reader.refresh(kSecond, none, &state) &&
             std::chrono::steady_clock::now() < deadline) {
      }
      CPPUNIT_ASSERT(state && state->at == kSecond);
      *hangs = true;
      const int before = *readings;
      CPPUNIT_ASSERT(!reader.refresh(kSecond + MachineReader::kPeriod - 1, none, &state));
      CPPUNIT_ASSERT_EQUAL(before, readings->load());
      while (*readings == before && std::chrono::steady_clock::now() < deadline)
        reader.refresh(kSecond + MachineReader::kPeriod, none, &state);
      CPPUNIT_ASSERT(!reader.refresh(kSecond + MachineReader::kBelieved, none, &state));
      CPPUNIT_ASSERT(state);
      CPPUNIT_ASSERT(reader.refresh(kSecond + MachineReader::kBelieved + 1, none, &state));
      CPPUNIT_ASSERT(!state);
    }
    *hangs = false;
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(FactsTest);

}  // namespace
}  // namespace sublet::loadmon
