// What a job sees of the machine's files and processes, and what it leaves there.
#include <arpa/inet.h>
#include <cppunit/extensions/HelperMacros.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "attempt/walls_trial.h"
#include "client/shepherd/test_rig.h"

using namespace sublet;
using namespace sublet::shepherd;

namespace {

class PlacesTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(PlacesTest);
  CPPUNIT_TEST(temporary_folders_begin_empty_and_go);
  CPPUNIT_TEST(message_queues_are_its_own);
  CPPUNIT_TEST(few_devices_are_there);
  CPPUNIT_TEST(terminals_are_its_own);
  CPPUNIT_TEST(a_granted_device_is_there);
  CPPUNIT_TEST(a_lost_list_of_places_hides_no_less);
  CPPUNIT_TEST(others_processes_are_not_seen);
  CPPUNIT_TEST(its_first_process_is_out_of_reach);
  CPPUNIT_TEST(its_record_is_out_of_reach);
  CPPUNIT_TEST(control_groups_are_hidden);
  CPPUNIT_TEST(without_network_it_reaches_only_itself);
  CPPUNIT_TEST(no_link_on_the_way_to_a_grant_is_followed);
  CPPUNIT_TEST(its_own_folder_is_where_it_was);
  CPPUNIT_TEST(hidden_folders_are_empty);
  CPPUNIT_TEST(grants_are_seen);
  CPPUNIT_TEST(a_grant_that_is_gone_is_the_machines_fault);
  CPPUNIT_TEST(a_folder_that_cannot_be_hidden_is_named);
  CPPUNIT_TEST_SUITE_END();

  static AttemptOrder shell(Rig& rig, const std::string& script) {
    AttemptOrder order = rig.order({});
    order.program = "/bin/sh";
    order.arguments = {"sh", "-c", script};
    order.environment = {"PATH=/usr/bin:/bin"};
    return order;
  }
  // The output of a shell's script, as a job to which nothing is granted.
  static std::string tell(Rig& rig, const std::string& script,
                          const std::vector<std::string>& grants = {},
                          const std::vector<std::string>& hidden = {}) {
    rig.set_places({hidden, grants});
    const std::string folder = rig.start(shell(rig, script));
    const AttemptExit end = rig.finish(folder);
    CPPUNIT_ASSERT_EQUAL(std::string(), end.step);
    return rig.read(folder + "/stdout");
  }
  // The first folder of the path of the rig's, below /tmp.
  static std::string top(const Rig& rig) {
    const std::string below = std::filesystem::canonical(rig.base()).string().substr(5);
    return below.substr(0, below.find('/'));
  }

  void temporary_folders_begin_empty_and_go() {
    if (skip_without_walls("temporary folders of its own")) return;
    Rig rig;
    const std::string name = "sublet-test-" + std::to_string(getpid());
    const std::string look =
        "ls -A /tmp /var/tmp /dev/shm; ls -A ../private 2>&- || echo closed; cat /tmp/" + name +
        " 2>&1; ";
    const std::string leave = "for f in /tmp /var/tmp /dev/shm; do echo secret >$f/" + name +
                              " || echo failed; done; cat /tmp/" + name;
    const std::string seen = "/dev/shm:\n\n/tmp:\n" + top(rig) + "\n\n/var/tmp:\n" +
                             "closed\ncat: /tmp/" + name + ": No such file or directory\nsecret\n";
    for (int i = 0; i < 2; ++i) CPPUNIT_ASSERT_EQUAL(seen, tell(rig, look + leave));
    for (const char* folder : {"/tmp/", "/var/tmp/", "/dev/shm/"})
      CPPUNIT_ASSERT(access((folder + name).c_str(), F_OK) != 0);
    // Others' names are not seen in what leads to its own folder, nor from there upwards.
    // Without root what leads there has its account.
    const std::string names = geteuid() == 0 ? "refused\nrefused\n" : "attempts\n3.1\n";
    CPPUNIT_ASSERT_EQUAL(names + "/tmp\n" + top(rig) + "\n",
                         tell(rig, "ls /tmp/" + top(rig) +
                                       " 2>&- || echo refused; ls ../.. 2>&- "
                                       "|| echo refused; cd ../../../..; pwd; ls -A"));
    const std::string folder = "1777 " + std::to_string(geteuid()) + "\n";
    CPPUNIT_ASSERT_EQUAL(folder + folder + folder + "set-user-id: no\n",
                         tell(rig,
                              "stat -c '%a %u' /tmp /var/tmp /dev/shm; cp /usr/bin/id /tmp/id; "
                              "chmod 4755 /tmp/id; grep -q ' /tmp .*nosuid.*nodev' "
                              "/proc/self/mountinfo && echo set-user-id: no"));
  }

  void message_queues_are_its_own() {
    if (skip_without_walls("message queues")) return;
    if (!std::filesystem::is_directory("/dev/mqueue")) {
      std::cerr << "skipped, there is no /dev/mqueue here\n";
      return;
    }
    Rig rig;
    for (int i = 0; i < 2; ++i)
      CPPUNIT_ASSERT_EQUAL(std::string("made\n"),
                           tell(rig, "ls /dev/mqueue; >/dev/mqueue/left && echo made"));
    CPPUNIT_ASSERT(access("/dev/mqueue/left", F_OK) != 0);
  }

  void few_devices_are_there() {
    if (skip_without_walls("devices")) return;
    Rig rig;
    const bool queues = std::filesystem::exists("/dev/mqueue");
    CPPUNIT_ASSERT_EQUAL(
        std::string("fd\nfull\n") + (queues ? "mqueue\n" : "") +
            "null\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n"
            "4\n0\nrefused\n",
        tell(rig,
             "ls -A /dev; echo lost >/dev/null; head -c 4 /dev/urandom | wc -c; head -c 4 "
             "/dev/null | wc -c; >/dev/new 2>&- || echo refused"));
  }

  void terminals_are_its_own() {
    if (skip_without_walls("terminals")) return;
    Rig rig;
    for (int i = 0; i < 2; ++i)
      CPPUNIT_ASSERT_EQUAL(std::string("ptmx\n0\nptmx\n"),
                           tell(rig, "ls /dev/pts; exec 3<>/dev/ptmx; ls /dev/pts"));
  }

  // A stand-in for a GPU's: the numbers are those of /dev/zero.
  void a_granted_device_is_there() {
    if (skip_without_walls("devices")) return;
    const std::string device = "/dev/sublet-test-" + std::to_string(getpid());
    if (mknod(device.c_str(), S_IFCHR | 0666, makedev(1, 5)) != 0 ||
        chmod(device.c_str(), 0666) != 0) {
      std::cerr << "skipped, no device can be made here\n";
      return;
    }
    Rig rig;
    const std::string script = "head -c 7 " + device + " | wc -c";
    const std::string granted = tell(rig, script, {device}), refused = tell(rig, script);
    unlink(device.c_str());
    CPPUNIT_ASSERT_EQUAL(std::string("7\n"), granted);
    CPPUNIT_ASSERT_EQUAL(std::string("0\n"), refused);
  }

  void a_lost_list_of_places_hides_no_less() {
    if (skip_without_walls("hidden folders")) return;
    Rig rig;
    const AttemptOrder order = shell(
        rig, "for f in /home /root " + rig.base() + "; do ls -A $f; done 2>&-; ls /etc/passwd");
    CPPUNIT_ASSERT_EQUAL(0, unlink((rig.base() + "/" SUBLET_PLACES_FILE).c_str()));
    const std::string folder = rig.start(order);
    CPPUNIT_ASSERT_EQUAL(std::string(), rig.finish(folder).step);
    // Without root the folder that leads to its own is of its account.
    CPPUNIT_ASSERT_EQUAL(std::string(geteuid() == 0 ? "" : "attempts\n") + "/etc/passwd\n",
                         rig.read(folder + "/stdout"));
  }

  void others_processes_are_not_seen() {
    if (skip_without_walls("processes")) return;
    Rig rig;
    CPPUNIT_ASSERT_EQUAL(
        std::string("1 2\nsublet-init\nsh\nrefused\n"),
        tell(rig,
             "cd /proc; echo [0-9]*; cat 1/comm $$/comm; cat 1/environ 2>&- || echo refused; "
             "[ -e meminfo ] || echo no facts"));
  }

  // Nor can it signal the first process of its namespace, which would end them all.
  void its_first_process_is_out_of_reach() {
    if (skip_without_walls("processes")) return;
    Rig rig;
    CPPUNIT_ASSERT_EQUAL(
        std::string("here\n"),
        tell(rig,
             "for s in 1 9 15 19 23; do kill -$s 1 2>&-; done; [ -e /proc/1/comm ] && echo here"));
  }

  // By which others find its processes, and whom to kill.
  void its_record_is_out_of_reach() {
    if (skip_without_walls("the attempt's folder")) return;
    Rig rig;
    const AttemptOrder order = shell(rig,
                                     "cd ..; rm -f control order; mkdir exit; echo forged >new && "
                                     "mv new record; [ -d work ] && echo here; cd work; "
                                     "touch ready; until [ -e go ]; do sleep 0.01; done");
    rig.set_places({{}, {}});
    const std::string folder = rig.start(order);
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    CPPUNIT_ASSERT_EQUAL(order.job, rig.record(folder).job);
    for (const char* name : {"/order", "/control"})
      CPPUNIT_ASSERT(system_files().exists(folder + name));
    system_files().write_atomic(folder + "/work/go", "");
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, rig.finish(folder).facts.outcome);
    CPPUNIT_ASSERT_EQUAL(std::string("here\n"), rig.read(folder + "/stdout"));
  }

  // It sees no group of another attempt.
  void control_groups_are_hidden() {
    if (skip_without_walls("control groups")) return;
    Rig rig;
    AttemptOrder order =
        shell(rig,
              "ls -d /sys/fs/cgroup/*sublet* /sys/fs/cgroup/*/*sublet* 2>&-; grep "
              "sublet /proc/self/cgroup; touch /sys/fs/cgroup/x 2>&- || echo closed");
    rig.use_cgroups(&order);
    const std::string folder = rig.start(order);
    CPPUNIT_ASSERT_EQUAL(std::string(), rig.finish(folder).step);
    CPPUNIT_ASSERT_EQUAL(std::string("closed\n"), rig.read(folder + "/stdout"));
  }

  void without_network_it_reaches_only_itself() {
    if (!try_walls().can_cut_network()) {
      std::cerr << "skipped, needs network namespaces\n";
      return;
    }
    Rig rig;
    UniqueFd tcp(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    CPPUNIT_ASSERT(bind(tcp.get(), any, size) == 0 && listen(tcp.get(), 5) == 0 &&
                   getsockname(tcp.get(), any, &size) == 0);
    const std::string port = std::to_string(ntohs(address.sin_port));
    for (const bool none : {true, false}) {
      AttemptOrder order = rig.order({"connect", port});
      order.no_network = none ? 1 : 0;
      const std::string folder = rig.start(order);
      CPPUNIT_ASSERT_EQUAL(std::string(), rig.finish(folder).step);
      CPPUNIT_ASSERT_EQUAL(
          std::string("to this machine ") + (none ? "ECONNREFUSED" : "done") + "\nto itself done\n",
          rig.read(folder + "/stdout"));
    }
    // Who cannot have it does not run.
    AttemptOrder order = rig.order({"exit", "0"});
    order.walls = 0;
    order.no_network = 1;
    CPPUNIT_ASSERT_EQUAL(std::string("network"), rig.run(order).step);
  }

  // Whoever can write to a folder on the way to a grant could lead to what he may not read.
  void no_link_on_the_way_to_a_grant_is_followed() {
    if (skip_without_walls("grants")) return;
    Rig rig;
    system_files().make_folders(rig.base() + "/closed/data", 0755);
    std::filesystem::permissions(rig.base() + "/closed", std::filesystem::perms(0700));
    std::filesystem::create_symlink(rig.base() + "/closed", rig.base() + "/way");
    for (const std::string end : {"/way/data", "/way"}) {
      rig.set_places({{}, {rig.base() + end}});
      AttemptOrder order = rig.order({});
      order.program = "/bin/true";
      CPPUNIT_ASSERT_EQUAL(std::string("grant"), rig.run(order).step);
    }
  }

  void its_own_folder_is_where_it_was() {
    if (skip_without_walls("walls")) return;
    Rig rig;
    CPPUNIT_ASSERT_EQUAL(
        std::string("same\n4096\nsaved\n"),
        tell(rig,
             "[ $PWD -ef $SUBLET_CHECKPOINT_DIR/../work ] && [ . -ef $PWD ] && echo same; stat "
             "-c %s $SUBLET_STATUS; echo saved >$SUBLET_CHECKPOINT_DIR/x; cat ../checkpoint/x"));
    AttemptOrder order = rig.order({"aware"});
    rig.set_places({{}, {rig.test_job()}});
    const std::string folder = rig.start(order);
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    rig.ask(folder, rig.frame(order, SUBLET_FRAME_VACATE, SUBLET_LEAVE_PREEMPT));
    const AttemptExit end = rig.finish(folder);
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.left);
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.generation);
  }

  void hidden_folders_are_empty() {
    if (skip_without_walls("hidden folders")) return;
    Rig rig;
    const std::string hidden = rig.base() + "/home", open = rig.base() + "/open";
    for (const auto& folder : {hidden, open}) {
      system_files().make_folders(folder, 0755);
      system_files().write_atomic(folder + "/file", "secret\n", 0644);
    }
    const std::string script = "cat " + open + "/file; cat " + hidden +
                               "/file 2>&- || echo gone; " + "touch " + hidden +
                               "/new 2>&- || echo refused";
    CPPUNIT_ASSERT_EQUAL(std::string("gone\nrefused\n"),
                         tell(rig, script, {}, {hidden}));  // in /tmp all is hidden
    if (skip_unless_root("a folder outside /tmp")) return;
    const std::string outside = "/var/lib/sublet-test-" + std::to_string(getpid());
    system_files().make_folders(outside + "/anna/data", 0755);
    system_files().write_atomic(outside + "/anna/data/file", "given\n", 0644);
    CPPUNIT_ASSERT_EQUAL(std::string("anna\ngiven\n"),
                         tell(rig, "ls " + outside + "; cat " + outside + "/anna/data/file"));
    CPPUNIT_ASSERT_EQUAL(
        std::string("refused\n"),
        tell(rig, "ls " + outside + " 2>&-; touch " + outside + "/x 2>&- || echo refused", {},
             {outside}));
    CPPUNIT_ASSERT_EQUAL(std::string("refused\ngiven\nread-only\n"),
                         tell(rig,
                              "ls " + outside + "/anna 2>&- || echo refused; cat " + outside +
                                  "/anna/data/file; findmnt -n -o OPTIONS " + outside +
                                  " | grep -q ^ro, && echo read-only",
                              {outside + "/anna/data"}, {outside}));
    // What is granted with all that is in it.
    CPPUNIT_ASSERT_EQUAL(std::string("anna\n"),
                         tell(rig, "ls " + outside, {"/var/lib"}, {outside}));
    CPPUNIT_ASSERT(access((outside + "/x").c_str(), F_OK) != 0);
    std::filesystem::remove_all(outside);
  }

  void grants_are_seen() {
    if (skip_without_walls("grants")) return;
    Rig rig;
    const std::string data = rig.base() + "/data";
    system_files().make_folders(data, 0755);
    system_files().write_atomic(data + "/file", "given\n", 0644);
    system_files().write_atomic(data + "/other", "not given\n", 0644);
    const std::string script = "cat " + data + "/file; cat " + data + "/other 2>&- || echo gone";
    CPPUNIT_ASSERT_EQUAL(std::string("given\nnot given\n"), tell(rig, script, {data}));
    CPPUNIT_ASSERT_EQUAL(std::string("given\ngone\n"), tell(rig, script, {data + "/file"}));
    CPPUNIT_ASSERT_EQUAL(std::string("given\nnot given\n"), tell(rig, script, {"/tmp"}));
    CPPUNIT_ASSERT_EQUAL(std::string("given\nnot given\n"), tell(rig, script, {"/"}, {data}));
    // One in another.
    for (const std::vector<std::string>& both :
         {std::vector{data, data + "/file"}, std::vector{data + "/file", data}, {data, data}})
      CPPUNIT_ASSERT_EQUAL(std::string("given\nnot given\n"), tell(rig, script, both));
    CPPUNIT_ASSERT(!std::filesystem::is_symlink(data + "/file"));
  }

  void a_grant_that_is_gone_is_the_machines_fault() {
    if (skip_without_walls("grants")) return;
    Rig rig;
    const std::string link = rig.base() + "/link";
    std::filesystem::create_symlink("/etc", link);
    for (const std::string& path : {rig.base() + "/none", link}) {
      rig.set_places({{}, {rig.base(), path}});
      const AttemptExit end = rig.run(rig.order({"exit", "0"}));
      CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_FAILED}, end.facts.outcome);
      CPPUNIT_ASSERT_EQUAL(std::string("grant"), end.step);
      CPPUNIT_ASSERT_EQUAL(path, end.place);
    }
  }

  void a_folder_that_cannot_be_hidden_is_named() {
    if (skip_without_walls("hidden folders") || skip_unless_root("a link outside /tmp")) return;
    Rig rig;
    const std::string loop = "/var/lib/sublet-test-loop-" + std::to_string(getpid());
    std::filesystem::create_symlink(loop, loop);
    rig.set_places({{"/home", loop}, {rig.base()}});
    const AttemptExit end = rig.run(rig.order({"exit", "0"}));
    unlink(loop.c_str());
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_FAILED}, end.facts.outcome);
    CPPUNIT_ASSERT_EQUAL(std::string("walls"), end.step);
    CPPUNIT_ASSERT_EQUAL(int64_t{ELOOP}, end.facts.code);
    CPPUNIT_ASSERT_EQUAL(loop, end.place);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(PlacesTest);

}  // namespace
