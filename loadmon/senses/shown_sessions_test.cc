#include "loadmon/senses/shown_sessions.h"

#include <cppunit/extensions/HelperMacros.h>

namespace sublet::loadmon {
namespace {

constexpr uid_t kAnna = 1000, kOtto = 1001;

Session session(const char* id, const char* type, const char* display = "", uid_t uid = kAnna) {
  Session one;
  one.id = id;
  one.account = uid;
  one.type = type;
  one.display = display;
  return one;
}

// On an X server of root, such as a display manager starts.
WatchedDesktop x11(int display, pid_t server, const char* agent_session = "", uid_t uid = kAnna) {
  return {.uid = uid,
          .desktop = SUBLET_DESKTOP_X11,
          .server = server,
          .display = display + 1,
          .server_session = "",
          .agent_session = agent_session};
}

WatchedDesktop wayland(pid_t server, const char* server_session = "",
                       const char* agent_session = "", uid_t uid = kAnna) {
  return {.uid = uid,
          .desktop = SUBLET_DESKTOP_WAYLAND_EXT,
          .server = server,
          .server_session = server_session,
          .agent_session = agent_session};
}

}  // namespace

class ShownSessionsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ShownSessionsTest);
  CPPUNIT_TEST(the_servers_session_decides);
  CPPUNIT_TEST(the_agents_session_decides_if_the_server_is_in_none);
  CPPUNIT_TEST(a_display_decides_if_logind_names_it);
  CPPUNIT_TEST(one_display_shows_one_session);
  CPPUNIT_TEST(agents_of_a_users_systemd);
  CPPUNIT_TEST(nobody_shows_sessions_of_others);
  CPPUNIT_TEST(sessions_in_cgroups);
  CPPUNIT_TEST_SUITE_END();

  using Shown = std::vector<size_t>;
  void expect(const Shown& shown, const std::vector<WatchedDesktop>& desktops,
              const std::vector<Session>& sessions) {
    CPPUNIT_ASSERT(shown == shown_sessions(desktops, sessions));
  }

 public:
  void the_servers_session_decides() {
    const std::vector<Session> two = {session("1", "wayland"), session("2", "wayland")};
    expect({1}, {wayland(50, "2")}, two);
    // From another session, over ssh for example.
    expect({1}, {wayland(50, "2", "1")}, two);
    // It says X11: a compositor may serve both.
    expect({0}, {wayland(50, "2")}, {session("2", "x11")});
    // What is not graphical, or closing, is not among these.
    expect({kNoSession}, {wayland(50, "3", "1")}, two);
  }

  void the_agents_session_decides_if_the_server_is_in_none() {
    expect({1, 0}, {wayland(50, "", "2"), wayland(51, "", "1")},
           {session("1", "wayland"), session("2", "wayland")});
    expect({1}, {x11(1, 50, "2")}, {session("1", "x11", ":0"), session("2", "x11", ":1")});
    // Its display is another session's.
    expect({0}, {x11(0, 50, "2")}, {session("1", "x11", ":0"), session("2", "x11", ":1")});
    // From a login without a desktop.
    expect({0}, {x11(0, 50, "7")}, {session("1", "x11", ":0")});
  }

  void a_display_decides_if_logind_names_it() {
    expect({1}, {x11(1, 50)}, {session("1", "x11", ":0"), session("2", "x11", ":1.0")});
    expect({kNoSession}, {x11(1, 50)}, {session("1", "x11", ":0")});
    expect({kNoSession}, {x11(0, 50)}, {session("1", "x11", "far:0")});
    // The other session is left for the agent that can only be its.
    expect({1, 0}, {x11(1, 50), x11(0, 51)}, {session("1", "x11"), session("2", "x11", ":1")});
    expect({kNoSession}, {x11(0, 50)}, {session("1", "wayland")});
    expect({kNoSession}, {wayland(50)}, {session("1", "x11")});
  }

  void one_display_shows_one_session() {
    const std::vector<Session> two = {session("1", "wayland"), session("2", "wayland")};
    expect({0, 0}, {wayland(50), wayland(50)}, two);
    expect({1, 1}, {wayland(50), wayland(50, "", "2")}, two);
    expect({0, 1}, {wayland(50), wayland(51)}, two);
    expect({0, 1, kNoSession}, {wayland(0), wayland(0), wayland(0)}, two);
  }

  void agents_of_a_users_systemd() {
    // One in a session's scope, one that a user unit started: each shows its own.
    expect({1, 0}, {wayland(50), wayland(51, "1", "1")},
           {session("1", "wayland"), session("2", "wayland")});
    expect({0}, {wayland(50)}, {session("1", "wayland")});
  }

  void nobody_shows_sessions_of_others() {
    expect({kNoSession}, {wayland(50, "1", "1", kOtto)}, {session("1", "wayland")});
    expect({kNoSession}, {x11(0, 50, "1", kOtto)}, {session("1", "x11", ":0")});
    // The pid of somebody else's server.
    expect({0, kNoSession}, {wayland(50), wayland(50, "", "", kOtto)}, {session("1", "wayland")});
  }

  void sessions_in_cgroups() {
    const auto expect = [](const std::string& id, const std::string& text) {
      CPPUNIT_ASSERT_EQUAL(id, session_in_cgroups(text));
    };
    expect("2", "0::/user.slice/user-1000.slice/session-2.scope\n");
    expect("c1", "0::/user.slice/user-1000.slice/session-c1.scope/below");
    expect("3", "5:cpu:/\n1:name=systemd:/user.slice/user-0.slice/session-3.scope\n0::/\n");
    // A user's own systemd, in which anybody may make groups of any name.
    expect("", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/session-2.scope\n");
    expect("", "3:cpu:/user.slice/user-1000.slice/session-2.scope\n0::/\n");
    expect("", "0::/system.slice/lightdm.service\n");
    for (const char* text : {"", "\n", "0::", "0::/", "0:/session-1.scope", "0::/session-.slice"})
      expect("", text);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ShownSessionsTest);
}  // namespace sublet::loadmon
