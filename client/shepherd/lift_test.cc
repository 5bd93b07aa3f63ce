// Who gets normal weight after the owner's return, and when. Nothing here depends on time: the
// jobs look at their own weight.
#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "attempt/cpu_weight.h"
#include "client/shepherd/test_rig.h"

using namespace sublet;
using namespace sublet::shepherd;

namespace {

// As in test_job.c.
struct WeightSeen {
  int normal = -1, lifts = -1, asked = -1;
};

class ShepherdLiftTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ShepherdLiftTest);
  CPPUNIT_TEST(without_a_handler_it_is_never_lifted);
  CPPUNIT_TEST(with_a_handler_it_is_never_lifted);
  CPPUNIT_TEST(a_page_without_an_answer_is_demoted_again);
  CPPUNIT_TEST(without_an_allowance_a_page_does_not_help);
  CPPUNIT_TEST(a_late_handler_is_lifted_to_save);
  CPPUNIT_TEST(the_handler_has_more_weight_than_the_save);
  CPPUNIT_TEST(an_older_program_saves_and_leaves);
  CPPUNIT_TEST(a_handler_in_a_child_is_found_beforehand);
  CPPUNIT_TEST(a_new_session_is_demoted);
  CPPUNIT_TEST_SUITE_END();

  // With cpu.idle; and by autogroup, or where those do not count by the idle class, which nobody
  // leaves again without root.
  static void each_way(const std::function<void(Rig&, bool)>& body) {
    for (bool cgroup : {false, true}) {
      Rig rig;
      if (cgroup && !rig.cgroups().can_weigh()) continue;
      if (!cgroup && !autogroups_count() && geteuid() != 0) continue;
      body(rig, cgroup);
    }
  }
  static AttemptOrder watch(Rig& rig, const std::string& answer, bool cgroup) {
    AttemptOrder order = rig.order({"watch", answer});
    if (cgroup) rig.use_cgroups(&order);
    rig.set_places({{}, {rig.base(), "/sys/fs/cgroup"}});  // where it looks
    order.arguments.push_back(cgroup               ? order.cgroup_cpu + "/cpu.idle"
                              : autogroups_count() ? "/proc/self/autogroup"
                                                   : "class");
    order.save_deadline_ms = 60'000;
    return order;
  }
  static WeightSeen seen(Rig& rig, const std::string& folder) {
    WeightSeen seen;
    std::string bytes = rig.read(folder + "/work/weight");
    if (bytes.size() == sizeof seen) memcpy(&seen, bytes.data(), sizeof seen);
    return seen;
  }
  // Starts it and waits until it has almost no weight; returns how often it was lifted so far.
  static int demoted(Rig& rig, const std::string& folder) {
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    CPPUNIT_ASSERT(wait_until([&] { return seen(rig, folder).normal == 0; }));
    return seen(rig, folder).lifts;
  }
  // Returns once the shepherd has looked for handlers.
  static void look(Rig& rig, const AttemptOrder& order, const std::string& folder) {
    UniqueFd control = rig.ask(folder, rig.frame(order, SUBLET_FRAME_QUERY));
    CPPUNIT_ASSERT(rig.receive(control.get(), SUBLET_FRAME_STATUS));
  }

  void without_a_handler_it_is_never_lifted() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = watch(rig, "none", cgroup);
      std::string folder = rig.start(order);
      int before = demoted(rig, folder);
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      AttemptExit end = rig.finish(folder);
      CPPUNIT_ASSERT_EQUAL(before, seen(rig, folder).lifts);
      CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.killed);
      CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.no_handler);
    });
  }

  void with_a_handler_it_is_never_lifted() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = watch(rig, "handler", cgroup);
      std::string folder = rig.start(order);
      int before = demoted(rig, folder);
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      CPPUNIT_ASSERT(wait_until([&] { return seen(rig, folder).asked == 1; }));
      rig.ask(folder, rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
      AttemptExit end = rig.finish(folder);
      CPPUNIT_ASSERT_EQUAL(before, seen(rig, folder).lifts);
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.no_handler);
    });
  }

  void a_page_without_an_answer_is_demoted_again() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = watch(rig, "mute", cgroup);
      std::string folder = rig.start(order);
      int before = demoted(rig, folder);
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      CPPUNIT_ASSERT(wait_until([&] {
        WeightSeen now = seen(rig, folder);
        return now.lifts == before + 1 && now.normal == 0;
      }));
      rig.ask(folder, rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
      rig.finish(folder);
      CPPUNIT_ASSERT_EQUAL(before + 1, seen(rig, folder).lifts);
    });
  }

  void the_handler_has_more_weight_than_the_save() {
    Rig rig;
    if (!rig.cgroups().can_weigh()) return;
    AttemptOrder order = rig.order({"aware", "20000"});
    rig.use_cgroups(&order);
    order.cpu_allowance_ms = order.save_deadline_ms = 60'000;
    const std::string folder = rig.start(order);
    CPPUNIT_ASSERT(wait_until([&] { return rig.job_is_ready(folder); }));
    const pid_t job = rig.record(folder).program.pid;
    const auto weight = [&] {
      const std::string shares = rig.read(order.cgroup_cpu + "/cpu.shares");
      return shares.empty() ? rig.read(order.cgroup_cpu + "/cpu.weight") : shares;
    };
    kill(job, SIGSTOP);  // its handler cannot answer
    rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
    CPPUNIT_ASSERT(wait_until([&] { return weight() == "10240\n" || weight() == "1000\n"; }));
    kill(job, SIGCONT);
    CPPUNIT_ASSERT(wait_until([&] { return weight() == "1024\n" || weight() == "100\n"; }));
    rig.ask(folder, rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
    rig.finish(folder);
  }

  void without_an_allowance_a_page_does_not_help() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = watch(rig, "mute", cgroup);
      order.cpu_allowance_ms = 0;
      std::string folder = rig.start(order);
      int before = demoted(rig, folder);
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      CPPUNIT_ASSERT(wait_until([&] { return seen(rig, folder).asked == 1; }));
      rig.ask(folder, rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
      AttemptExit end = rig.finish(folder);
      CPPUNIT_ASSERT_EQUAL(before, seen(rig, folder).lifts);
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.unsaved);
    });
  }

  void a_late_handler_is_lifted_to_save() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = watch(rig, "late", cgroup);
      order.cpu_allowance_ms = 10'000;
      std::string folder = rig.start(order);
      int before = demoted(rig, folder);
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      AttemptExit end = rig.finish(folder);
      CPPUNIT_ASSERT_EQUAL(before + 2, seen(rig, folder).lifts);
      CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.left);
      CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.generation);
    });
  }

  void an_older_program_saves_and_leaves() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = rig.order({"older"});
      if (cgroup) rig.use_cgroups(&order);
      order.save_deadline_ms = 60'000;
      std::string folder = rig.start(order);
      CPPUNIT_ASSERT(rig.job_is_ready(folder));
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      AttemptExit end = rig.finish(folder);
      CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.left);
      CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.generation);
    });
  }

  // The main program is a shell without a trap.
  void a_handler_in_a_child_is_found_beforehand() {
    each_way([](Rig& rig, bool cgroup) {
      AttemptOrder order = rig.order({});
      if (cgroup) rig.use_cgroups(&order);
      order.program = "/bin/sh";
      order.arguments = {"sh", "-c",
                         "setsid -w sh -c 'trap \"exit 75\" TERM; : > ready; "
                         "while :; do sleep 0.01; done'; exit $?"};
      order.environment = {"PATH=/usr/bin:/bin"};
      order.save_deadline_ms = 60'000;
      std::string folder = rig.start(order);
      CPPUNIT_ASSERT(rig.job_is_ready(folder));
      look(rig, order, folder);
      rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
      AttemptExit end = rig.finish(folder);
      CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, end.facts.outcome);
      CPPUNIT_ASSERT_EQUAL(int64_t{75}, end.facts.code);
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.no_handler);
    });
  }

  // Without a cgroup it may have an autogroup of its own, which begins with the owner's weight.
  void a_new_session_is_demoted() {
    Rig rig;
    AttemptOrder order = rig.order({"burn-in-a-new-session"});
    order.walls = 0;  // else its numbers are not ours
    order.save_deadline_ms = 60'000;
    std::string folder = rig.start(order);
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    close(open((folder + "/work/go").c_str(), O_CREAT | O_WRONLY, 0600));
    CPPUNIT_ASSERT(wait_until([&] { return !rig.read(folder + "/work/session").empty(); }));
    rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
    const std::string session = rig.read(folder + "/work/session");
    const std::string autogroup = "/proc/" + session + "/autogroup";
    CPPUNIT_ASSERT(wait_until([&] {
      return autogroups_count() ? rig.read(autogroup).find(" nice 19\n") != std::string::npos
                                : sched_getscheduler(std::stoi(session)) == SCHED_IDLE;
    }));
    rig.ask(folder, rig.frame(order, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
    rig.finish(folder);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ShepherdLiftTest);

}  // namespace
