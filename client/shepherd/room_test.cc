// The namespaces that a slot's attempts share one after the other, and what must not be found in
// them.
#include <cppunit/extensions/HelperMacros.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "client/shepherd/test_rig.h"

namespace sublet::shepherd {
namespace {

class ShepherdRoomTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ShepherdRoomTest);
  CPPUNIT_TEST(is_kept_for_the_next_attempt);
  CPPUNIT_TEST(is_made_anew_for_others);
  CPPUNIT_TEST(is_made_anew_if_anything_is_left);
  CPPUNIT_TEST(is_made_anew_if_a_single_process_left_anything);
  CPPUNIT_TEST(is_kept_without_asking_after_a_single_process);
  CPPUNIT_TEST(is_kept_if_all_has_been_removed);
  CPPUNIT_TEST(has_no_process_of_the_attempt_before);
  CPPUNIT_TEST(shows_only_the_folder_of_the_attempt);
  CPPUNIT_TEST(opens_neither_the_next_folder_nor_that_of_another_slot);
  CPPUNIT_TEST(is_not_for_an_attempt_whose_folder_was_open);
  CPPUNIT_TEST(is_not_hindered_by_what_a_killed_shepherd_left);
  CPPUNIT_TEST(has_its_own_view_of_control_groups);
  CPPUNIT_TEST(may_lose_its_first_process);
  CPPUNIT_TEST(holds_no_memory_when_it_has_gone);
  CPPUNIT_TEST(an_answer_is_of_one_attempt);
  CPPUNIT_TEST(ends_with_the_shepherd);
  CPPUNIT_TEST(counts_what_orphans_used);
  CPPUNIT_TEST(goes_with_the_slot);
  CPPUNIT_TEST(a_failed_start_leaves_nothing);
  CPPUNIT_TEST(a_lost_folder_is_made_anew);
  CPPUNIT_TEST_SUITE_END();

  static std::string tell(Rig& rig, SlotShepherd& slot, const std::string& script) {
    return rig.tell(slot, rig.script(script));
  }
  static constexpr char kWhere[] = "for n in mnt ipc pid; do readlink /proc/self/ns/$n; done";
  static std::string where(Rig& rig, SlotShepherd& slot) { return tell(rig, slot, kWhere); }

  static pid_t first_of(const SlotShepherd& slot) { return child_named(slot, "sublet-init"); }

  void is_kept_for_the_next_attempt() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const std::string first = where(rig, slot);
    const pid_t init = first_of(slot);
    CPPUNIT_ASSERT(init > 0);
    for (int i = 0; i < 3; ++i) CPPUNIT_ASSERT_EQUAL(first, where(rig, slot));
    CPPUNIT_ASSERT_EQUAL(init, first_of(slot));
  }

  void is_made_anew_for_others() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    where(rig, slot);
    pid_t last = first_of(slot);
    const auto is_new = [&](const AttemptOrder& order) {
      const pid_t before = std::exchange(last, (rig.tell(slot, order), first_of(slot)));
      return last > 0 && before != last;
    };
    AttemptOrder next = rig.script(kWhere);
    CPPUNIT_ASSERT(!is_new(next));
    next = rig.script(kWhere);
    next.user = "another";
    CPPUNIT_ASSERT(is_new(next));
    next = rig.script(kWhere);
    next.uid = next.gid = next.uid + 1;
    CPPUNIT_ASSERT(is_new(next));
    next = rig.script(kWhere);
    next.limit_memory = 100 << 20;
    CPPUNIT_ASSERT(is_new(next));
    // These have namespaces of their own, which are not kept.
    for (int i = 0; i < 2; ++i) {
      next = rig.script(kWhere);
      next.user = "";
      CPPUNIT_ASSERT(!rig.tell(slot, next).empty());
      CPPUNIT_ASSERT_EQUAL(0, first_of(slot));
      next = rig.script(kWhere);
      next.no_network = 1;
      CPPUNIT_ASSERT(!rig.tell(slot, next).empty());
      CPPUNIT_ASSERT_EQUAL(0, first_of(slot));
      CPPUNIT_ASSERT(is_new(rig.script(kWhere)));
    }
  }

  void is_made_anew_if_anything_is_left() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const std::string look =
        "ls -A /tmp /var/tmp /dev/shm /run/lock /dev/mqueue 2>&-; ipcs | grep -c 0x; ";
    const std::string empty = tell(rig, slot, look);
    for (const char* left :
         {"echo secret >/tmp/left", "mkdir /var/tmp/.left", "ln -s a /dev/shm/left",
          "mkfifo /run/lock/left", "ipcmk -M 100", "ipcmk -S 1", "ipcmk -Q",
          "test ! -d /dev/mqueue || >/dev/mqueue/left"}) {
      where(rig, slot);
      const pid_t before = first_of(slot);
      const std::string now =
          tell(rig, slot, "{ " + std::string(left) + "; } >/dev/null || exit 0; " + kWhere);
      CPPUNIT_ASSERT_MESSAGE(left, !now.empty());
      CPPUNIT_ASSERT_EQUAL_MESSAGE(left, empty, tell(rig, slot, look));
      if (std::string(left).find("mqueue") != std::string::npos &&
          !std::filesystem::exists("/dev/mqueue"))
        continue;
      CPPUNIT_ASSERT_MESSAGE(left, before != first_of(slot));
    }
  }

  // Then the first process is not asked. Each of these is executed by the shell itself, or instead
  // of it.
  void is_made_anew_if_a_single_process_left_anything() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    for (const std::string left :
         {"exec >/tmp/left", "exec >/var/tmp/left", "exec >/dev/shm/left", "exec >/run/lock/left",
          "exec ipcmk -M 100", "exec ipcmk -S 1", "exec ipcmk -Q",
          "test ! -d /dev/mqueue || exec >/dev/mqueue/left"}) {
      const bool leaves =
          left.find("mqueue") == std::string::npos || std::filesystem::exists("/dev/mqueue");
      where(rig, slot);
      const pid_t before = first_of(slot);
      tell(rig, slot, left);
      CPPUNIT_ASSERT_EQUAL_MESSAGE(left, leaves ? 0 : before, first_of(slot));
    }
  }

  // It could not answer. Also where the attempts' folders are hidden, as those of a client are.
  void is_kept_without_asking_after_a_single_process() {
    if (skip_without_rooms("namespaces that are kept")) return;
    for (const bool hidden : {false, true}) {
      Rig rig;
      if (hidden) rig.set_places({{rig.base()}, {}});
      SlotShepherd slot = rig.start_slot();
      where(rig, slot);
      const pid_t init = first_of(slot);
      CPPUNIT_ASSERT_EQUAL(0, kill(init, SIGSTOP));
      for (int i = 0; i < 3; ++i)
        CPPUNIT_ASSERT_EQUAL(std::string("alone\n"), tell(rig, slot, "echo alone"));
      CPPUNIT_ASSERT_EQUAL(init, first_of(slot));
      tell(rig, slot, "true & wait");  // another process
      CPPUNIT_ASSERT_EQUAL(0, first_of(slot));
    }
  }

  void is_kept_if_all_has_been_removed() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const std::string first = where(rig, slot);
    tell(rig, slot, "echo >/tmp/a; mkdir /dev/shm/b; rm -r /tmp/a /dev/shm/b");
    tell(rig, slot, "ipcrm -m $(ipcmk -M 100 | grep -o '[0-9]*')");
    CPPUNIT_ASSERT_EQUAL(first, where(rig, slot));
  }

  // They have left its session, ignore signals, and have no parent.
  void has_no_process_of_the_attempt_before() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    AttemptOrder daemons = rig.order({"daemons", "20"});
    daemons.uid = daemons.gid = rig.script("").uid;
    rig.use_cgroups(&daemons);
    rig.run_in(slot, daemons);
    CPPUNIT_ASSERT_EQUAL(0, rig.processes_of(rig.folder(daemons)));
    // Itself, grep's parent, and the first process.
    CPPUNIT_ASSERT_EQUAL(std::string("1 sublet-init\n"),
                         tell(rig, slot,
                              "for p in /proc/[0-9]*; do p=${p#/proc/}; "
                              "test $p = $$ || echo $p $(cat /proc/$p/comm); done"));
  }

  void shows_only_the_folder_of_the_attempt() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    rig.set_places({{rig.base()}, {}});
    SlotShepherd slot = rig.start_slot();
    const std::string look = "pwd; ls -A ..; ls " + rig.base() + "/attempts 2>&- || echo closed";
    AttemptOrder one = rig.script(look + "; echo secret >out");
    const std::string first = rig.tell(slot, one);
    CPPUNIT_ASSERT(first.starts_with(rig.folder(one) + "/work\n"));
    CPPUNIT_ASSERT(first.ends_with("closed\n"));
    AttemptOrder two =
        rig.script(look + "; cat " + rig.folder(one) + "/work/out 2>&- || echo refused; " + kWhere);
    const std::string second = rig.tell(slot, two);
    CPPUNIT_ASSERT(second.starts_with(rig.folder(two) + "/work\n"));
    CPPUNIT_ASSERT(second.find("closed\nrefused\n") != std::string::npos);
    CPPUNIT_ASSERT(second.ends_with(where(rig, slot)));
    CPPUNIT_ASSERT_EQUAL(std::string("secret\n"), rig.read(rig.folder(one) + "/work/out"));
    // What was mounted for them is gone.
    CPPUNIT_ASSERT_EQUAL(std::string("1\n"), tell(rig, slot,
                                                  "cut -d' ' -f5 /proc/self/mountinfo | grep -c " +
                                                      rig.base() + "/attempts"));
  }

  // Whose names a job may guess. The next one has the same account.
  void opens_neither_the_next_folder_nor_that_of_another_slot() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    rig.set_places({{rig.base()}, {}});
    SlotShepherd slot = rig.start_slot(), other = rig.start_slot();
    AttemptOrder elsewhere = rig.script("read word <go");
    elsewhere.uid = elsewhere.gid = elsewhere.uid + 1;
    const std::string theirs = rig.prepare(elsewhere);
    CPPUNIT_ASSERT_EQUAL(0, mkfifo((theirs + "/work/go").c_str(), 0600));
    CPPUNIT_ASSERT_EQUAL(0, chmod((theirs + "/work/go").c_str(), 0644));
    const auto given = other.run({static_cast<uint64_t>(elsewhere.job), 1});
    CPPUNIT_ASSERT(wait_until([&] { return access((theirs + "/record").c_str(), F_OK) == 0; }));
    const AttemptOrder next = rig.script("echo next");
    const std::string waiting = rig.prepare(next);
    std::string look;
    for (const std::string& folder : {theirs, waiting})
      look += "for n in . work checkpoint status order; do true <" + folder +
              "/$n && echo opened $n; done 2>&-; echo >" + folder +
              "/work/planted && echo planted; cd " + folder + " && echo entered; ";
    look += "echo done";
    for (int i = 0; i < 2; ++i)  // also by the fork server
      CPPUNIT_ASSERT_EQUAL(std::string("done\n"), tell(rig, slot, "{ " + look + "; } 2>&-"));
    std::ofstream(theirs + "/work/go") << "on\n";
    CPPUNIT_ASSERT(rig.receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
    // Its own it may.
    CPPUNIT_ASSERT_EQUAL(std::string("next\n"), rig.tell(slot, next));
  }

  // As a client of an older version makes them.
  void is_not_for_an_attempt_whose_folder_was_open() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    where(rig, slot);
    CPPUNIT_ASSERT(first_of(slot) > 0);
    const AttemptOrder order = rig.script("echo alone");
    CPPUNIT_ASSERT_EQUAL(0, chmod(rig.prepare(order).c_str(), 0711));
    CPPUNIT_ASSERT_EQUAL(std::string("alone\n"), rig.tell(slot, order));
    CPPUNIT_ASSERT_EQUAL(0, first_of(slot));
    where(rig, slot);
    CPPUNIT_ASSERT(first_of(slot) > 0);
  }

  // Before the program began: the attempt is given to another one. With namespaces of its own, too.
  void is_not_hindered_by_what_a_killed_shepherd_left() {
    if (skip_without_rooms("namespaces that are kept")) return;
    for (const char* user : {"ann", ""}) {
      Rig rig;
      SlotShepherd slot = rig.start_slot();
      AttemptOrder order = rig.script("ls -d /tmp/left 2>&-; echo done");
      order.user = user;
      const std::string folder = rig.prepare(order);
      CPPUNIT_ASSERT_EQUAL(0, chmod(folder.c_str(), 0710));
      std::filesystem::create_directories(folder + "/private/tmp/left");
      CPPUNIT_ASSERT_EQUAL(std::string("done\n"), rig.tell(slot, order));
      CPPUNIT_ASSERT_EQUAL(*user != 0, first_of(slot) > 0);
    }
  }

  void has_its_own_view_of_control_groups() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const std::string look =
        "grep ^0: /proc/self/cgroup; ls /sys/fs/cgroup | wc -l; "
        "grep -c ' /sys/fs/cgroup ' /proc/self/mountinfo";
    const std::string first = tell(rig, slot, look);
    CPPUNIT_ASSERT(first.starts_with("0::/\n"));
    for (int i = 0; i < 2; ++i) CPPUNIT_ASSERT_EQUAL(first, tell(rig, slot, look));
  }

  void may_lose_its_first_process() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    where(rig, slot);
    const pid_t init = first_of(slot);
    CPPUNIT_ASSERT(init > 0 && kill(init, SIGKILL) == 0);
    CPPUNIT_ASSERT(wait_until([&] { return first_of(slot) == 0; }));
    where(rig, slot);
    CPPUNIT_ASSERT(first_of(slot) != init);
    // Beside a job, which it takes along. What it had waited for before is not that job's.
    tell(rig, slot,
         "(setsid sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; >gone' &); "
         "until test -e gone; do sleep 0.01; done; rm gone");
    AttemptOrder waits = rig.order({"wait"});
    waits.uid = waits.gid = rig.script("").uid;
    rig.use_cgroups(&waits);
    const std::string folder = rig.prepare(waits);
    const auto given = slot.run({static_cast<uint64_t>(waits.job), 1});
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    const pid_t second = first_of(slot);
    CPPUNIT_ASSERT(second > 0 && kill(second, SIGKILL) == 0);
    CPPUNIT_ASSERT(rig.receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
    const AttemptExit end = rig.exit_of(folder);
    CPPUNIT_ASSERT_EQUAL(int64_t{SIGKILL}, end.facts.code);
    CPPUNIT_ASSERT(end.facts.cpu_user_us + end.facts.cpu_system_us < 60'000);
    CPPUNIT_ASSERT(!where(rig, slot).empty());
  }

  // What a job left in its memory is freed when nobody holds its namespaces any more.
  void holds_no_memory_when_it_has_gone() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const auto holds_others = [&] {
      const std::string process = "/proc/" + std::to_string(slot.id().pid);
      for (const auto& fd : std::filesystem::directory_iterator(process + "/fd")) {
        std::error_code closed;  // meanwhile
        const std::string what = std::filesystem::read_symlink(fd.path(), closed).string();
        for (const char* kind : {"mnt", "ipc", "pid"})
          if (what.starts_with(std::string(kind) + ":[") &&
              what != std::filesystem::read_symlink(process + "/ns/" + kind).string())
            return true;
      }
      return false;
    };
    where(rig, slot);
    CPPUNIT_ASSERT(holds_others());
    tell(rig, slot, "echo left >/dev/shm/left");
    CPPUNIT_ASSERT(wait_until([&] { return !holds_others(); }));
    where(rig, slot);
    CPPUNIT_ASSERT(holds_others());
    CPPUNIT_ASSERT(kill(first_of(slot), SIGKILL) == 0);
    CPPUNIT_ASSERT(wait_until([&] { return !holds_others(); }));
  }

  // Of children that end when the shepherd is about to kill them, 2 ms after the program.
  void an_answer_is_of_one_attempt() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    for (int i = 0; i < 60; ++i) {
      const std::string soon = "0.00" + std::to_string(i % 5) + std::to_string(i % 7);
      tell(rig, slot, "sleep " + soon + " & sleep 0.0001");
      CPPUNIT_ASSERT_EQUAL(std::string("whole\n"),
                           tell(rig, slot, "(sleep 0.01; echo whole >out) & wait; cat out"));
    }
  }

  void ends_with_the_shepherd() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    where(rig, slot);
    const pid_t init = first_of(slot);
    const auto start = process_start_time(init);
    CPPUNIT_ASSERT(kill_process(slot.id(), SIGKILL));
    rig.wait_for(slot.id());
    CPPUNIT_ASSERT(start.has_value());
    CPPUNIT_ASSERT(wait_until([&] { return !is_same_process({init, *start}); }));
  }

  // Their parents do not wait for them: the first process does.
  void counts_what_orphans_used() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const std::string burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    const auto used = [&](const std::string& script) {
      const AttemptExit end = rig.run_in(slot, rig.script(script));
      return end.facts.cpu_user_us + end.facts.cpu_system_us;
    };
    const int64_t alone = used(burn);
    const int64_t orphan = used("(setsid sh -c '" + burn +
                                "; echo done >gone' &) ; "
                                "until test -e gone; do sleep 0.01; done");
    CPPUNIT_ASSERT(orphan > alone / 2);
    CPPUNIT_ASSERT(used("true") < alone / 2);
  }

  void goes_with_the_slot() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    const std::string slots = rig.base() + "/slots";
    ProcessId process;
    {
      SlotShepherd slot = rig.start_slot();
      process = slot.id();
      AttemptOrder one = rig.script(kWhere);
      rig.tell(slot, one);
      // Its temporary folders wait for the next attempt; nobody else may look in.
      CPPUNIT_ASSERT(!std::filesystem::exists(rig.folder(one) + "/private"));
      struct stat about;
      CPPUNIT_ASSERT(stat(slots.c_str(), &about) == 0);
      CPPUNIT_ASSERT_EQUAL(mode_t{0700}, about.st_mode & 07777);
      CPPUNIT_ASSERT(std::filesystem::exists(slots + "/" + std::to_string(process.pid) + "/tmp"));
    }
    CPPUNIT_ASSERT_EQUAL(0, rig.wait_for(process));
    CPPUNIT_ASSERT(std::filesystem::is_empty(slots));
  }

  void a_failed_start_leaves_nothing() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const std::string first = where(rig, slot);
    for (const char* program : {"/nowhere", "/etc/passwd"}) {
      AttemptOrder bad = rig.script("");
      bad.program = program;
      CPPUNIT_ASSERT_EQUAL(std::string("exec"), rig.run_in(slot, bad).step);
    }
    AttemptOrder bad = rig.script("");
    bad.work = "nowhere";
    CPPUNIT_ASSERT_EQUAL(std::string("chdir"), rig.run_in(slot, bad).step);
    bad = rig.script("");
    bad.standard_input = "nowhere";
    CPPUNIT_ASSERT_EQUAL(std::string("standard input"), rig.run_in(slot, bad).step);
    CPPUNIT_ASSERT_EQUAL(first, where(rig, slot));
  }

  void a_lost_folder_is_made_anew() {
    if (skip_without_rooms("namespaces that are kept")) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    where(rig, slot);
    std::filesystem::remove_all(rig.base() + "/slots");
    CPPUNIT_ASSERT_EQUAL(std::string("kept\n"), tell(rig, slot, "echo kept >/tmp/a && cat /tmp/a"));
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ShepherdRoomTest);

}  // namespace
}  // namespace sublet::shepherd
