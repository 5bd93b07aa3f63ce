// The frames of `sublet top`: they fit any terminal, share its lines fairly, and show what
// they leave out.
#include "cli/views/top.h"

#include <cppunit/extensions/HelperMacros.h>
#include <rapidcheck.h>

#include <sstream>

#include "base/text.h"

namespace sublet::cli {
namespace {

constexpr int64_t kNow = 1'700'000'000'000'000;

MachineInfo machine(const std::string& name, uint32_t state, uint32_t slots, uint32_t free) {
  MachineInfo m;
  m.name = name;
  m.state = state;
  m.slots = slots;
  m.slots_free = free;
  m.state_since_us = kNow - 90'000'000;
  return m;
}

PoolPicture picture(size_t machines, size_t users, size_t events) {
  PoolPicture p;
  p.at_us = kNow;
  p.pool = "lab";
  p.jobs.running = 3;
  p.jobs.waiting = 100;
  p.evictions = 7;
  p.own_evictions = false;
  for (size_t i = 0; i < machines; ++i)
    p.machines.push_back(machine("machine" + std::to_string(i), kMachineIdle, 2, 2));
  for (size_t i = 0; i < users; ++i) {
    Standing s;
    s.user = "user" + std::to_string(i);
    s.active = 5;
    s.waiting = 3;
    s.place = users - i;
    s.reason = "a share of 1 of 4: nobody waits";
    p.standings.push_back(s);
  }
  for (size_t i = 0; i < events; ++i)
    p.events.push_back(
        {i, kNow - 1'000'000 * static_cast<int64_t>(events - i), i + 1, 0, kRunning, 1, 0, 1});
  return p;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

class TopViewTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(TopViewTest);
  CPPUNIT_TEST(figures);
  CPPUNIT_TEST(fits_any_terminal);
  CPPUNIT_TEST(all_without_a_limit);
  CPPUNIT_TEST(shares_the_lines);
  CPPUNIT_TEST(order);
  CPPUNIT_TEST(evictions_stand_out);
  CPPUNIT_TEST(leaves_the_server_alone);
  CPPUNIT_TEST_SUITE_END();

  void has(const std::string& text, const std::string& part) {
    CPPUNIT_ASSERT_MESSAGE(part + " in\n" + text, text.find(part) != std::string::npos);
  }

  void figures() {
    PoolPicture p = picture(0, 0, 0);
    p.machines = {machine("curly", kMachineIdle, 4, 1), machine("moe", kMachineBusy, 2, 2),
                  machine("larry", kMachineSilent, 8, 8), machine("shemp", kMachineGone, 1, 1)};
    p.machines[0].requesting = true;
    const std::string text = top_frame(p, "no answer: x\x1b", 0, 0, false);
    has(text, "lab  2023-11-14T22:13:20Z\n");
    has(text, "machines  4: 1 idle, 1 busy, 1 requesting, 1 silent, 1 gone\n");
    has(text, "slots     6: 3 taken, 3 free\n");
    has(text, "jobs      103: 3 running, 100 waiting\n");
    has(text, "evictions 7 in the last hour\n");
    has(text, "no answer: x\\x1b\n");
    p.own_evictions = true;
    has(top_frame(p, "", 0, 0, false), "evictions 7 of your jobs in the last hour\n");
  }

  void fits_any_terminal() {
    CPPUNIT_ASSERT(rc::check("a frame fits", [] {
      const auto columns = *rc::gen::inRange<size_t>(20, 200);
      const auto rows = *rc::gen::inRange<size_t>(1, 80);
      const PoolPicture p =
          picture(*rc::gen::inRange<size_t>(0, 60), *rc::gen::inRange<size_t>(0, 30),
                  *rc::gen::inRange<size_t>(0, 100));
      const std::string notice = *rc::gen::element<std::string>("", "the server is away");
      const auto frame = lines(top_frame(p, notice, columns, rows, false));
      RC_ASSERT(!frame.empty());
      RC_ASSERT(frame.size() <= rows);
      for (const std::string& line : frame) RC_ASSERT(display_width(line) <= columns);
    }));
  }

  void all_without_a_limit() {
    const auto frame = lines(top_frame(picture(300, 40, 50), "", 0, 0, false));
    CPPUNIT_ASSERT_EQUAL(size_t{5 + 2 + 300 + 2 + 40 + 2 + 10}, frame.size());
  }

  void shares_the_lines() {
    const std::string text = top_frame(picture(300, 2, 50), "", 80, 24, false);
    const auto frame = lines(text);
    CPPUNIT_ASSERT_EQUAL(size_t{24}, frame.size());
    has(text, "user0");
    has(text, "user1");
    has(text, "machine4 ");
    has(text, "… 295 more\n");
    // 24 lines: 5 for figures, 6 around the lists, 2 users; 6 and 5 for the other lists.
    has(text, "… 46 more\n");
    // If there is no room for three lists, the machines are shown.
    const std::string low = top_frame(picture(300, 2, 50), "", 80, 9, false);
    CPPUNIT_ASSERT_EQUAL(size_t{9}, lines(low).size());
    has(low, "machine0");
    CPPUNIT_ASSERT(low.find("user0") == std::string::npos);
  }

  void order() {
    PoolPicture p = picture(0, 3, 3);
    p.machines = {machine("gone", kMachineGone, 1, 1), machine("free", kMachineIdle, 1, 1),
                  machine("works", kMachineIdle, 2, 1), machine("mute", kMachineSilent, 1, 1)};
    p.standings[1].active = p.standings[1].waiting = 0;
    p.standings[0].place = 0;
    const std::string text = top_frame(p, "", 0, 0, false);
    const auto before = [&](const std::string& a, const std::string& b) {
      has(text, "\n" + a);
      CPPUNIT_ASSERT_MESSAGE(a + " before " + b + " in\n" + text,
                             text.find("\n" + a) < text.find("\n" + b));
    };
    before("mute", "works");
    before("works", "free");
    before("free", "gone");
    before("user2", "user0");  // users without waiting jobs are last
    CPPUNIT_ASSERT(text.find("user1") == std::string::npos);
    CPPUNIT_ASSERT(text.find("\n1 s") < text.find("\n3 s"));  // the newest event first
  }

  void evictions_stand_out() {
    PoolPicture p = picture(0, 0, 0);
    p.events = {{1, kNow, 17, 3, kWaiting, 2, 16, 1}, {2, kNow, 20, 3, kHeld, 0, 0, 1000}};
    const std::string text = top_frame(p, "", 0, 0, true);
    has(text, "\x1b[33m0 s       17  waiting    2  owner came back\x1b[0m\n");
    has(text, "20-1019  held");
    CPPUNIT_ASSERT(top_frame(p, "", 0, 0, false).find('\x1b') == std::string::npos);
    JsonWriter json;
    write_json(json, p);
    has(json.str(),
        R"({"at_us":1700000000000000,"job":17,"count":1,"batch":3,"state":"waiting","attempt":2,)"
        R"("ended":"owner came back","ended_code":16})");
  }

  void leaves_the_server_alone() {
    using std::chrono::milliseconds;
    CPPUNIT_ASSERT(pause_after_refresh(milliseconds(3)) == milliseconds(1'000));
    CPPUNIT_ASSERT(pause_after_refresh(milliseconds(200)) == milliseconds(4'000));
    CPPUNIT_ASSERT(pause_after_refresh(milliseconds(30'000)) == milliseconds(60'000));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(TopViewTest);

}  // namespace
}  // namespace sublet::cli
