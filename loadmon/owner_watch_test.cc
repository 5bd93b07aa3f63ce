// Hours and days of owners in virtual time: real senses, whose files are below a folder of the
// test, and the judgement of them all. Nobody who is there, in whatever way, is taken for away,
// and what a job does is never taken for somebody.
#include "loadmon/owner_watch.h"

#include <cppunit/extensions/HelperMacros.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <random>

#include "base/testing/temporary_folder.h"
#include "loadmon/senses/cpu.h"
#include "loadmon/senses/input_devices.h"
#include "loadmon/senses/media.h"
#include "loadmon/senses/terminals.h"
#include "loadmon/testing/devices.h"

namespace sublet::loadmon {
namespace {

using testing::press;
using testing::PseudoTerminal;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1000 * kMs;
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kPeriod = 500 * kMs;
constexpr int64_t kQuiet = 15 * kMinute;
// A sign of the owner ages in whole periods.
constexpr int64_t kTolerance = 3 * kPeriod;
constexpr pid_t kJob = 77, kPlayer = 78;

// A workstation whose clock is turned by the test.
class Workstation {
 public:
  Workstation() : watch_(*protocol::PresenceRule::preset("default"), [this] { ++changes; }) {
    for (const char* folder : {"dev/input", "dev/pts", "sys/fs/cgroup/cpuacct"})
      std::filesystem::create_directories(root() + "/" + folder);
    write("dev/video0", "");
    write("sys/fs/cgroup/cpuacct/cpuacct.usage", "0\n");
    usage_.reset(open((root() + "/sys/fs/cgroup/cpuacct/cpuacct.usage").c_str(), O_WRONLY));
    has_terminals = testing::mount_terminals(root());
    mouse_ = testing::make_device(root(), "event0");
    Senses senses;
    senses.push_back(std::make_unique<InputDevices>(root()));
    senses.push_back(std::make_unique<Terminals>(root(), [this] { return job_terminals_; }));
    senses.push_back(std::make_unique<Media>(root(), [](pid_t pid) { return pid == kJob; }));
    senses.push_back(std::make_unique<CpuSense>(root()));
    const JobsHere nobody = {
        .processes = [] { return std::vector<pid_t>(); },
        .daemons = [] { return std::vector<pid_t>(); },
        .attempts = [] { return std::vector<std::pair<uint64_t, uint32_t>>(); }};
    watch_.use(std::move(senses),
               std::make_unique<OwnersRules>(
                   std::vector<RulePair>(),
                   [](int64_t, const std::vector<pid_t>&) { return MachineState(); }, nobody));
  }
  ~Workstation() {
    if (has_terminals) umount2((root() + "/dev/pts").c_str(), MNT_DETACH);
  }

  // What the monitor does at an event and every half a second.
  void step() {
    now += kPeriod;
    if (job_runs) use_cpu(job_cores * 0.5);
    watch_.notice_events(now);
    watch_.sample(now, {.cpu_seconds = job_runs ? job_cores * 0.5 : 0, .runnable = job_cores});
  }
  bool lent() const { return watch_.verdict().state == SUBLET_PRESENCE_AWAY; }
  std::string why() const { return std::to_string(watch_.verdict().reason); }

  void move_mouse() { press(mouse_); }
  void use_cpu(double seconds) {
    used_ns_ += static_cast<uint64_t>(seconds * 1e9);
    const std::string text = std::to_string(used_ns_) + "\n";
    CPPUNIT_ASSERT(pwrite(usage_.get(), text.data(), text.size(), 0) > 0);
  }
  void sound(const std::string& stream, std::optional<pid_t> by) {
    write("proc/asound/" + stream + "/status",
          by ? "state: RUNNING\nowner_pid   : " + std::to_string(*by) + "\n" : "closed\n");
  }
  std::string root() const { return folder_.path(); }
  void own_by_job(const PseudoTerminal& terminal) {
    job_terminals_.numbers.insert(terminal.number);
  }

  int64_t now = 1'000'000 * kSecond;
  int changes = 0;
  bool has_terminals = false;
  bool job_runs = false;
  double job_cores = 2;

 private:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root() + "/" + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole, std::ios::trunc) << text;
  }

  TemporaryFolder folder_;
  uint64_t used_ns_ = 0;
  UniqueFd usage_, mouse_;
  JobTerminals job_terminals_;
  OwnerWatch watch_;
};

// Somebody at it. act() is called before each step; true: this could be sensed.
class Person {
 public:
  virtual ~Person() = default;
  virtual const char* does() const = 0;
  virtual bool act(Workstation& at, int64_t second) = 0;
};

class MouseMover : public Person {
 public:
  const char* does() const override { return "only moves the mouse"; }
  bool act(Workstation& at, int64_t second) override {
    if (second % 7 != 0) return false;
    at.move_mouse();
    return true;
  }
};

class Reader : public Person {
 public:
  const char* does() const override { return "turns a page every ten minutes"; }
  bool act(Workstation& at, int64_t second) override {
    if (second % 600 != 0) return false;
    at.move_mouse();
    return true;
  }
};

class FilmWatcher : public Person {
 public:
  explicit FilmWatcher(Workstation& at) : at_(at) { at.sound("card0/pcm0p/sub0", kPlayer); }
  ~FilmWatcher() override { at_.sound("card0/pcm0p/sub0", std::nullopt); }
  const char* does() const override { return "watches a film"; }
  bool act(Workstation&, int64_t) override { return true; }

 private:
  Workstation& at_;
};

class Caller : public Person {
 public:
  explicit Caller(Workstation& at) : camera_(at.root() + "/dev/video0") {}
  const char* does() const override { return "is in a call"; }
  bool act(Workstation&, int64_t) override { return true; }

 private:
  std::ifstream camera_;
};

class RemoteUser : public Person {
 public:
  explicit RemoteUser(Workstation& at) : terminal_(at.root()) { terminal_.aged(); }
  const char* does() const override { return "works over ssh"; }
  bool act(Workstation&, int64_t second) override {
    if (second % 290 != 0) return false;
    terminal_.type();
    return true;
  }

 private:
  PseudoTerminal terminal_;
};

class Compiler : public Person {
 public:
  const char* does() const override { return "lets a program run"; }
  bool act(Workstation& at, int64_t) override {
    at.use_cpu(0.4);
    return true;
  }
};

constexpr int kPersons = 6;

std::unique_ptr<Person> person(int which, Workstation& at) {
  switch (which) {
    case 0:
      return std::make_unique<MouseMover>();
    case 1:
      return std::make_unique<Reader>();
    case 2:
      return std::make_unique<FilmWatcher>(at);
    case 3:
      return std::make_unique<Caller>(at);
    case 4:
      return std::make_unique<Compiler>();
    default:
      if (!at.has_terminals) return std::make_unique<MouseMover>();
      return std::make_unique<RemoteUser>(at);
  }
}

}  // namespace

class OwnerWatchTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(OwnerWatchTest);
  CPPUNIT_TEST(whoever_is_there_is_seen_for_an_hour);
  CPPUNIT_TEST(what_a_job_does_is_nobody);
  CPPUNIT_TEST(a_day);
  CPPUNIT_TEST_SUITE_END();

  // Steps until `end`; `last` is the last sign of this person, or of nobody.
  static void live(Workstation& at, Person* person, int64_t end, int64_t* last) {
    const int64_t came = at.now;
    for (; at.now < end; at.step()) {
      const bool whole_second = (at.now - came) % kSecond < kPeriod;
      if (person != nullptr && whole_second && person->act(at, (at.now - came) / kSecond))
        *last = at.now;
      check(at, *last, person);
    }
  }
  static void check(const Workstation& at, int64_t last, const Person* person) {
    const int64_t quiet = at.now - last;
    const std::string who = person == nullptr ? "nobody" : person->does();
    const std::string when = who + ", " + std::to_string(quiet / kMs) + " ms quiet, " + at.why();
    if (quiet < kQuiet && quiet > kTolerance) CPPUNIT_ASSERT_MESSAGE(when, !at.lent());
    if (quiet > kQuiet + kTolerance) CPPUNIT_ASSERT_MESSAGE(when, at.lent());
  }

 public:
  void whoever_is_there_is_seen_for_an_hour() {
    for (int which = 0; which < kPersons; ++which) {
      Workstation at;
      int64_t last = at.now;
      live(at, nullptr, at.now + kQuiet + kMinute, &last);
      CPPUNIT_ASSERT(at.lent());
      at.job_runs = true;
      {
        const auto somebody = person(which, at);
        live(at, somebody.get(), at.now + 60 * kMinute, &last);
        CPPUNIT_ASSERT_MESSAGE(somebody->does(), !at.lent());
        CPPUNIT_ASSERT_EQUAL_MESSAGE(somebody->does(), 2, at.changes);
      }
      at.job_runs = false;
      live(at, nullptr, last + kQuiet + kMinute, &last);
      CPPUNIT_ASSERT(at.lent());
      CPPUNIT_ASSERT_EQUAL(3, at.changes);
    }
  }

  // Its CPU time, sound, terminals, keys and output.
  void what_a_job_does_is_nobody() {
    Workstation at;
    int64_t last = at.now;
    live(at, nullptr, at.now + kQuiet + kMinute, &last);
    at.job_runs = true;
    at.sound("card0/pcm0p/sub0", kJob);
    std::optional<PseudoTerminal> terminal;
    for (int minute = 0; minute < 60; ++minute) {
      if (at.has_terminals && minute % 10 == 0) {
        terminal.emplace(at.root());
        at.own_by_job(*terminal);
      }
      live(at, nullptr, at.now + kMinute, &last);
      at.job_cores = minute % 3;
      if (terminal) terminal->print();
      if (terminal) terminal->type();
    }
    CPPUNIT_ASSERT_EQUAL(1, at.changes);
  }

  void a_day() {
    std::mt19937 dice(20261123);
    const auto minutes = [&dice](int most) {
      return std::uniform_int_distribution<int64_t>(1, most)(dice) * kMinute;
    };
    Workstation at;
    const int64_t end = at.now + 24 * 60 * kMinute;
    int64_t last = at.now;
    int visits = 0;
    while (at.now < end) {
      at.job_runs = true;  // there are always jobs that would come
      live(at, nullptr, at.now + minutes(90), &last);
      const auto somebody = person(static_cast<int>(dice() % kPersons), at);
      live(at, somebody.get(), at.now + minutes(60), &last);
      ++visits;
    }
    CPPUNIT_ASSERT(visits > 10);
    CPPUNIT_ASSERT_MESSAGE(std::to_string(at.changes), at.changes <= 2 * visits + 1);
  }
};
CPPUNIT_TEST_SUITE_REGISTRATION(OwnerWatchTest);

}  // namespace sublet::loadmon
