// The process that starts the jobs of a room after the first one.
#include <cppunit/extensions/HelperMacros.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "client/shepherd/test_rig.h"

namespace sublet::shepherd {
namespace {

class ForkServerTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ForkServerTest);
  CPPUNIT_TEST(it_starts_all_but_the_first);
  CPPUNIT_TEST(a_job_is_as_any_other);
  CPPUNIT_TEST(a_job_may_ask_for_no_more_than_another);
  CPPUNIT_TEST(it_goes_with_the_room);
  CPPUNIT_TEST(it_serves_whatever_the_limits_are);
  CPPUNIT_TEST(it_ends_with_the_shepherd);
  CPPUNIT_TEST(it_may_be_killed_or_stopped);
  CPPUNIT_TEST(it_may_end_beside_a_job);
  CPPUNIT_TEST(it_is_no_process_of_the_job);
  CPPUNIT_TEST_SUITE_END();

  static std::string tell(Rig& rig, SlotShepherd& slot, const std::string& script = "echo here") {
    return rig.tell(slot, rig.script(script));
  }
  static pid_t server_of(const SlotShepherd& slot) { return child_named(slot, "sublet-forks"); }
  // After two attempts.
  static pid_t begin(Rig& rig, SlotShepherd& slot) {
    for (int i = 0; i < 2; ++i) tell(rig, slot);
    const pid_t server = server_of(slot);
    CPPUNIT_ASSERT(server > 0);
    return server;
  }

  void it_starts_all_but_the_first() {
    if (skip_without_rooms("a fork server")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    tell(rig, slot);
    CPPUNIT_ASSERT_EQUAL(0, server_of(slot));
    tell(rig, slot);
    const pid_t server = server_of(slot);
    CPPUNIT_ASSERT(server > 0);
    for (int i = 0; i < 3; ++i) CPPUNIT_ASSERT_EQUAL(std::string("here\n"), tell(rig, slot));
    CPPUNIT_ASSERT_EQUAL(server, server_of(slot));
    // Where cgroup v2 is mounted with nsdelegate, as systemd does, the kernel refuses to create a
    // process in a cgroup to one that is outside its own cgroup namespace.
    const auto view = [](pid_t pid) {
      return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/ns/cgroup").string();
    };
    CPPUNIT_ASSERT_EQUAL(view(slot.id().pid), view(server));
  }

  // The first is started without it.
  void a_job_is_as_any_other() {
    if (skip_without_rooms("a fork server")) return;
    constexpr struct rlimit kSome = {10, 10};
    setrlimit(RLIMIT_RTPRIO, &kSome);  // where that is permitted; a service manager may do so
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const std::string look =
        "grep -v -e ^Vm -e ^Rss -e ctxt -e ^Pid -e ^NSpid -e ^Tgid -e ^Ngid -e ^NSpgid -e ^NStgid "
        "-e ^NSsid -e ^Threads -e ^Hugetlb -e ^PPid -e SigQ /proc/self/status; "
        "cat /proc/self/oom_score_adj /proc/self/cgroup /proc/self/mountinfo /proc/self/limits; "
        "ls /proc/self/fd; ionice; nice; ulimit -a; ulimit -H -a; umask; env; pwd; groups; "
        "cut -d' ' -f40,41 /proc/self/stat; test $(ps -o sid= $$) = $$ && echo its session; "
        "for n in mnt ipc pid net uts user; do readlink /proc/self/ns/$n; done; "
        "ps -eo comm=,ppid= | grep sublet; cut -b10-20,27- /proc/keys";
    const auto see = [&] {
      AttemptOrder one = rig.script(look);
      one.limit_file = 1 << 20;
      one.limit_open_files = 100;
      one.limit_cpu_s = 60;
      std::string seen = rig.tell(slot, one);
      const std::string name = std::to_string(one.job) + ".1";
      for (size_t at; (at = seen.find(name)) != std::string::npos;)
        seen.replace(at, name.size(), "N");
      return seen;
    };
    const std::string first = see();
    CPPUNIT_ASSERT(first.find("Seccomp:\t2\n") != std::string::npos);
    CPPUNIT_ASSERT(first.find("Seccomp_filters:\t1\n") != std::string::npos);
    CPPUNIT_ASSERT(first.find("its session\n") != std::string::npos);
    CPPUNIT_ASSERT(first.find("Max realtime priority     0 ") != std::string::npos);
    for (int i = 0; i < 3; ++i) CPPUNIT_ASSERT_EQUAL(first, see());
    CPPUNIT_ASSERT(server_of(slot) > 0);
    for (int i = 0; i < 3; ++i)
      CPPUNIT_ASSERT_EQUAL(
          std::string("signals 0 files 0 session 1 group 1 umask 077 core 1 death 9 new_privs 1\n"),
          rig.tell(slot, rig.in_slot(rig.order({"inspect"}))));
  }

  void a_job_may_ask_for_no_more_than_another() {
    if (skip_without_rooms("a fork server")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const auto ask = [&] { return rig.tell(slot, rig.in_slot(rig.order({"ask-the-kernel"}))); };
    const std::string first = ask();
    CPPUNIT_ASSERT(first.find("clone beside EPERM\nclone3 ENOSYS\n") != std::string::npos);
    const pid_t server = begin(rig, slot);
    CPPUNIT_ASSERT_EQUAL(first, ask());
    CPPUNIT_ASSERT_EQUAL(server, server_of(slot));
  }

  void it_goes_with_the_room() {
    if (skip_without_rooms("a fork server")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const pid_t server = begin(rig, slot);
    tell(rig, slot, "echo left >/tmp/left");
    CPPUNIT_ASSERT_EQUAL(0, server_of(slot));
    const pid_t next = begin(rig, slot);
    CPPUNIT_ASSERT(next != server);
    AttemptOrder others = rig.script("echo here");
    others.user = "another";
    rig.tell(slot, others);
    CPPUNIT_ASSERT_EQUAL(0, server_of(slot));
  }

  // Other limits take other control groups, of which the child makes its own view.
  void it_serves_whatever_the_limits_are() {
    if (skip_without_rooms("a fork server")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const pid_t server = begin(rig, slot);
    for (const int64_t limit : {100, 200}) {
      AttemptOrder next = rig.script("grep ^0: /proc/self/cgroup; ulimit -r");
      next.limit_processes = limit;
      CPPUNIT_ASSERT_EQUAL(std::string("0::/\n0\n"), rig.tell(slot, next));
      CPPUNIT_ASSERT_EQUAL(server, server_of(slot));
    }
  }

  void it_ends_with_the_shepherd() {
    if (skip_without_rooms("a fork server")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const pid_t server = begin(rig, slot);
    const auto start = process_start_time(server);
    CPPUNIT_ASSERT(start.has_value());
    CPPUNIT_ASSERT(kill_process(slot.id(), SIGKILL));
    rig.wait_for(slot.id());
    CPPUNIT_ASSERT(wait_until([&] { return !is_same_process({server, *start}); }));
  }

  // Then the shepherd starts the job itself, and later has another one.
  void it_may_be_killed_or_stopped() {
    if (skip_without_rooms("a fork server")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    for (const int signal : {SIGKILL, SIGSTOP, SIGTERM, SIGKILL, SIGSTOP}) {
      const pid_t server = begin(rig, slot);
      CPPUNIT_ASSERT_EQUAL(0, kill(server, signal));
      CPPUNIT_ASSERT_EQUAL(std::string("here\n"), tell(rig, slot));
    }
    CPPUNIT_ASSERT(begin(rig, slot) > 0);
  }

  void it_may_end_beside_a_job() {
    if (skip_without_rooms("a fork server")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const pid_t server = begin(rig, slot);
    const AttemptOrder waits = rig.in_slot(rig.order({"wait"}));
    const std::string folder = rig.prepare(waits);
    const auto given = slot.run({static_cast<uint64_t>(waits.job), 1});
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    CPPUNIT_ASSERT_EQUAL(0, kill(server, SIGKILL));
    CPPUNIT_ASSERT(wait_until([&] { return server_of(slot) == 0; }));
    CPPUNIT_ASSERT(rig.processes_of(folder) > 0);
    rig.ask(folder, rig.frame(waits, SUBLET_FRAME_VACATE, SUBLET_LEAVE_DRAIN));
    CPPUNIT_ASSERT(rig.receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
    CPPUNIT_ASSERT_EQUAL(std::string("here\n"), tell(rig, slot));
    CPPUNIT_ASSERT(begin(rig, slot) > 0);
  }

  void it_is_no_process_of_the_job() {
    if (skip_without_rooms("a fork server")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    begin(rig, slot);
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, rig.run_in(slot, rig.script("true")).facts.processes_peak);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ForkServerTest);

}  // namespace
}  // namespace sublet::shepherd
