#include "loadmon/senses/desktops.h"

#include <cppunit/extensions/HelperMacros.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include "base/local_socket.h"

namespace sublet::loadmon {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000 * kMs;

sublet_frame frame_of(sublet_frame_kind kind, uint32_t state = 0) {
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = static_cast<uint16_t>(kind);
  frame.state = state;
  return frame;
}

// The other end of a connection.
class FakeAgent {
 public:
  explicit FakeAgent(const std::string& folder)
      : fd_(connect_local(SocketKind::seqpacket, folder + "/agent.sock", true)) {}

  bool say(const sublet_frame& frame) const { return say(&frame, sizeof frame); }
  bool say(const void* bytes, size_t size) const {
    return send(fd_.get(), bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  }
  // kind 0: there is none.
  sublet_frame next() const {
    sublet_frame frame = {};
    const ssize_t got = recv(fd_.get(), &frame, sizeof frame, MSG_DONTWAIT);
    return got == static_cast<ssize_t>(sizeof frame) ? frame : sublet_frame{};
  }
  bool hung_up() const {
    pollfd one = {.fd = fd_.get(), .events = 0, .revents = 0};
    return poll(&one, 1, 0) == 1 && (one.revents & POLLHUP) != 0;
  }
  void hang_up() { fd_.reset(); }

 private:
  UniqueFd fd_;
};

}  // namespace

class DesktopsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(DesktopsTest);
  CPPUNIT_TEST(input_is_seen);
  CPPUNIT_TEST(input_goes_on);
  CPPUNIT_TEST(an_older_input_of_another_sense_does_not_count);
  CPPUNIT_TEST(who_has_not_said_what_it_watches_is_not_heard);
  CPPUNIT_TEST(the_place_is_known);
  CPPUNIT_TEST(jobs_are_refused);
  CPPUNIT_TEST(mute_agents_are_dropped);
  CPPUNIT_TEST(pings_keep_an_agent_alive);
  CPPUNIT_TEST(hostile_frames);
  CPPUNIT_TEST(a_flood_is_cut_off);
  CPPUNIT_TEST(connections_are_bounded);
  CPPUNIT_TEST(visits_are_bounded);
  CPPUNIT_TEST_SUITE_END();

 public:
  void setUp() override {
    char name[] = "/tmp/sublet-desktops-XXXXXX";
    CPPUNIT_ASSERT(mkdtemp(name) != nullptr);
    folder_ = name;
    desktops_ = std::make_unique<Desktops>(folder_, "",
                                           JobsHere{.processes = [this] { return jobs_; },
                                                    .daemons = [] { return std::vector<pid_t>(); },
                                                    .attempts = {}});
  }
  void tearDown() override {
    desktops_.reset();
    std::filesystem::remove_all(folder_);
  }

  void input_is_seen() {
    FakeAgent agent = watching();
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, age());
    CPPUNIT_ASSERT(!ready());
    agent.say(frame_of(SUBLET_FRAME_HERE));
    CPPUNIT_ASSERT(ready());
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, age());
    CPPUNIT_ASSERT(!ready());
    now_ += 3 * kSecond;
    CPPUNIT_ASSERT_EQUAL(int64_t{3000}, age());
    agent.hang_up();
    CPPUNIT_ASSERT(ready());
    CPPUNIT_ASSERT_EQUAL(int64_t{3000}, age());
    CPPUNIT_ASSERT(desktops_->live().empty());
  }

  // A hand on the mouse: the agent says so once, and when it has gone.
  void input_goes_on() {
    const FakeAgent agent = watching();
    const auto age_after_a_second = [&] {
      now_ += kSecond;
      const int64_t seen = age();
      sublet_frame ping = agent.next();
      if (ping.kind == SUBLET_FRAME_PING) {
        ping.kind = SUBLET_FRAME_ACK;
        agent.say(ping);
        age();
      }
      return seen;
    };
    agent.say(frame_of(SUBLET_FRAME_HERE, 1));
    for (int i = 0; i < 5; ++i) CPPUNIT_ASSERT_EQUAL(int64_t{0}, age_after_a_second());
    CPPUNIT_ASSERT(!ready());
    CPPUNIT_ASSERT_EQUAL(now_, desktops_->live().front().touched_at);
    agent.say(frame_of(SUBLET_FRAME_HERE));
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, age());
    CPPUNIT_ASSERT_EQUAL(int64_t{1000}, age_after_a_second());
    // Who does not repeat it has lost its desktop.
    agent.say(frame_of(SUBLET_FRAME_HERE, 1));
    age();
    for (int i = 0; i < 11; ++i) CPPUNIT_ASSERT_EQUAL(int64_t{0}, age_after_a_second());
    CPPUNIT_ASSERT_EQUAL(int64_t{1000}, age_after_a_second());
    CPPUNIT_ASSERT_EQUAL(size_t{1}, desktops_->live().size());
  }

  void an_older_input_of_another_sense_does_not_count() {
    FakeAgent agent = watching();
    agent.say(frame_of(SUBLET_FRAME_HERE));
    age();
    now_ += kSecond;
    CPPUNIT_ASSERT_EQUAL(int64_t{1000}, age(5000));
    CPPUNIT_ASSERT_EQUAL(int64_t{500}, age(500));
  }

  void who_has_not_said_what_it_watches_is_not_heard() {
    const FakeAgent agent(folder_);
    agent.say(frame_of(SUBLET_FRAME_HERE));
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, settled_age());
    CPPUNIT_ASSERT(agent.hung_up());
  }

  void the_place_is_known() {
    const FakeAgent agent(folder_);
    sublet_frame greeting = frame_of(SUBLET_FRAME_AGENT, SUBLET_DESKTOP_X11);
    greeting.arg[1] = 2;
    agent.say(greeting);
    agent.say(frame_of(SUBLET_FRAME_HERE));
    settled_age();
    protocol::PresenceSample sample;
    CPPUNIT_ASSERT(desktops_->notice(now_, &sample));
    CPPUNIT_ASSERT_EQUAL(std::string("X11 :1"), std::string(sample.input_place.text()));
    CPPUNIT_ASSERT(!desktops_->live().front().full_screen);
    agent.say(frame_of(SUBLET_FRAME_FULL_SCREEN, 1));
    settled_age();
    CPPUNIT_ASSERT(desktops_->live().front().full_screen);
    agent.say(frame_of(SUBLET_FRAME_FULL_SCREEN, 0));
    settled_age();
    CPPUNIT_ASSERT(!desktops_->live().front().full_screen);
  }

  void jobs_are_refused() {
    jobs_ = {getppid()};
    const FakeAgent agent(folder_);
    agent.say(frame_of(SUBLET_FRAME_AGENT, SUBLET_DESKTOP_X11));
    agent.say(frame_of(SUBLET_FRAME_HERE));
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, settled_age());
    CPPUNIT_ASSERT(agent.hung_up());
  }

  void mute_agents_are_dropped() {
    const FakeAgent silent(folder_);
    settled_age();
    now_ += Desktops::kAnswerWithin;
    settled_age();
    CPPUNIT_ASSERT(silent.hung_up());
    const FakeAgent stopped = watching();
    now_ += Desktops::kPingEvery;
    age();
    CPPUNIT_ASSERT_EQUAL(size_t{1}, desktops_->live().size());
    now_ += Desktops::kAnswerWithin - 1;
    age();
    CPPUNIT_ASSERT_EQUAL(size_t{1}, desktops_->live().size());
    now_ += 1;
    age();
    CPPUNIT_ASSERT(desktops_->live().empty());
    CPPUNIT_ASSERT(stopped.hung_up());
  }

  void pings_keep_an_agent_alive() {
    const FakeAgent agent = watching();
    for (int n = 0; n < 5; ++n) {
      now_ += Desktops::kPingEvery;
      CPPUNIT_ASSERT_EQUAL(int64_t{-1}, age());
      const sublet_frame ping = agent.next();
      CPPUNIT_ASSERT_EQUAL(unsigned{SUBLET_FRAME_PING}, unsigned{ping.kind});
      CPPUNIT_ASSERT_EQUAL(0u, unsigned{agent.next().kind});
      sublet_frame answer = frame_of(SUBLET_FRAME_ACK);
      answer.sequence = ping.sequence;
      now_ += Desktops::kAnswerWithin - 1;
      agent.say(answer);
      CPPUNIT_ASSERT_EQUAL(int64_t{-1}, age());
      now_ += kSecond;
      age();
      CPPUNIT_ASSERT_EQUAL(size_t{1}, desktops_->live().size());
    }
    // The answer to another ping is none.
    now_ += Desktops::kPingEvery;
    age();
    agent.say(frame_of(SUBLET_FRAME_ACK));
    age();
    now_ += Desktops::kAnswerWithin;
    age();
    CPPUNIT_ASSERT(agent.hung_up());
  }

  void hostile_frames() {
    const auto refused = [this](const sublet_frame& frame) {
      const FakeAgent agent(folder_);
      agent.say(frame);
      settled_age();
      return agent.hung_up();
    };
    CPPUNIT_ASSERT(refused(frame_of(SUBLET_FRAME_AGENT, 0)));
    CPPUNIT_ASSERT(refused(frame_of(SUBLET_FRAME_AGENT, SUBLET_DESKTOP_MUTTER + 1)));
    CPPUNIT_ASSERT(refused(frame_of(SUBLET_FRAME_HELLO, SUBLET_DESKTOP_X11)));
    sublet_frame other = frame_of(SUBLET_FRAME_AGENT, SUBLET_DESKTOP_X11);
    other.magic = 1;
    CPPUNIT_ASSERT(refused(other));
    const std::string large(1000, 'x');
    for (const size_t size : {size_t{1}, sizeof(sublet_frame) - 1, large.size()}) {
      const FakeAgent agent = watching();
      agent.say(large.data(), size);
      settled_age();
      CPPUNIT_ASSERT(agent.hung_up());
    }
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, settled_age());
  }

  void a_flood_is_cut_off() {
    const FakeAgent agent = watching();
    int said = 0;
    for (; said < 1000 && agent.say(frame_of(SUBLET_FRAME_HERE)); ++said) age();
    CPPUNIT_ASSERT(said < 20);
    CPPUNIT_ASSERT(agent.hung_up());
    const FakeAgent again(folder_);
    settled_age();
    CPPUNIT_ASSERT(again.hung_up());
    now_ += Desktops::kBannedFor;
    const FakeAgent later = watching();
    // What an agent may say, it may say for ever.
    for (int n = 0; n < 100; ++n) {
      CPPUNIT_ASSERT(later.say(frame_of(SUBLET_FRAME_HERE)));
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, settled_age());
      now_ += SUBLET_AGENT_PAUSE_NS;
      const sublet_frame ping = later.next();
      if (ping.kind != SUBLET_FRAME_PING) continue;
      sublet_frame answer = frame_of(SUBLET_FRAME_ACK);
      answer.sequence = ping.sequence;
      later.say(answer);
    }
    CPPUNIT_ASSERT(!later.hung_up());
  }

  void connections_are_bounded() {
    std::vector<FakeAgent> agents;
    for (size_t n = 0; n < Desktops::kMostOfAUser; ++n) agents.push_back(watching());
    CPPUNIT_ASSERT_EQUAL(Desktops::kMostOfAUser, desktops_->live().size());
    jobs_ = {getppid()};
    const FakeAgent job(folder_);
    CPPUNIT_ASSERT_EQUAL(int64_t{-1}, settled_age());
    CPPUNIT_ASSERT(job.hung_up());
    // Somebody else may be the owner.
    jobs_.clear();
    const FakeAgent more(folder_);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, settled_age());
    CPPUNIT_ASSERT(more.hung_up());
    agents.pop_back();
    settled_age();
    agents.push_back(watching());
    CPPUNIT_ASSERT(!agents.back().hung_up());
  }

  void visits_are_bounded() {
    FakeAgent agent = watching();
    // Who connects all the time is not served all the time, but the known agents are.
    int served = 0;
    for (; served < 1000; ++served) {
      const FakeAgent visitor(folder_);
      if (!ready()) break;
      settled_age();
      if (!visitor.hung_up()) now_ += 1;
    }
    CPPUNIT_ASSERT(served > 10 && served < 100);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, age());
    agent.say(frame_of(SUBLET_FRAME_HERE));
    CPPUNIT_ASSERT(ready());
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, age());
    CPPUNIT_ASSERT(!ready());
    now_ += kSecond;
    age();
    CPPUNIT_ASSERT(ready());
  }

 private:
  bool ready() const {
    pollfd one = {.fd = desktops_->handle(), .events = POLLIN, .revents = 0};
    return poll(&one, 1, 0) == 1;
  }
  // The age of the last input, when the other senses saw one of `other` ms.
  int64_t age(int64_t other = -1) {
    protocol::PresenceSample sample;
    sample.input_age_ms = other;
    CPPUNIT_ASSERT(desktops_->sample(now_, {}, &sample));
    return sample.input_age_ms;
  }
  // When everything that was said has been heard.
  int64_t settled_age() {
    while (ready()) age();
    return age();
  }
  FakeAgent watching() {
    const size_t before = desktops_->live().size();
    FakeAgent agent(folder_);
    agent.say(frame_of(SUBLET_FRAME_AGENT, SUBLET_DESKTOP_X11));
    while (ready()) age();
    CPPUNIT_ASSERT_EQUAL(before + 1, desktops_->live().size());
    return agent;
  }

  std::string folder_;
  std::vector<pid_t> jobs_;
  std::unique_ptr<Desktops> desktops_;
  int64_t now_ = 1000 * kSecond;
};

CPPUNIT_TEST_SUITE_REGISTRATION(DesktopsTest);
}  // namespace sublet::loadmon
