// What happens when monitor, client or shepherd die or hang: the job leaves.
#include <cppunit/extensions/HelperMacros.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/shepherd/test_rig.h"

using namespace sublet;
using namespace sublet::shepherd;

namespace {

class ShepherdFailureTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ShepherdFailureTest);
  CPPUNIT_TEST(monitor_dies_and_the_job_leaves);
  CPPUNIT_TEST(monitor_falls_silent_and_the_job_leaves);
  CPPUNIT_TEST(killed_shepherd_takes_its_job_along);
  CPPUNIT_TEST(nothing_outlives_a_killed_shepherd);
  CPPUNIT_TEST(tenant_cleans_up_after_a_killed_shepherd);
  CPPUNIT_TEST(tenant_freezes_and_lifts_what_it_kills);
  CPPUNIT_TEST(tenant_freezes_and_kills_past_a_stopped_shepherd);
  CPPUNIT_TEST(tenant_leaves_a_shepherd_its_exit_record);
  CPPUNIT_TEST(tenant_needs_a_record_of_this_boot);
  CPPUNIT_TEST(sigterm_to_the_shepherd_is_a_vacate);
  CPPUNIT_TEST_SUITE_END();

  void monitor_dies_and_the_job_leaves() {
    Rig rig;
    std::string folder = rig.start(rig.order({"aware", "1"}));
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    rig.monitor().die();
    AttemptExit end = rig.finish(folder);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_BLIND}, end.facts.reason);
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.left);
  }

  // There is no client in this test: the shepherd does not need one for this.
  void monitor_falls_silent_and_the_job_leaves() {
    Rig rig;
    std::string folder = rig.start(rig.order({"aware", "1"}));
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    rig.monitor().fall_silent();
    AttemptExit end = rig.finish(folder);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_BLIND}, end.facts.reason);
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.left);
  }

  void killed_shepherd_takes_its_job_along() {
    Rig rig;
    std::string folder = rig.start(rig.order({"spin"}));
    AttemptRecord record = rig.record(folder);
    CPPUNIT_ASSERT(shepherd_alive(record));
    CPPUNIT_ASSERT(kill_process(record.shepherd, SIGKILL));
    CPPUNIT_ASSERT_EQUAL(1000 + SIGKILL, rig.wait(folder));
    CPPUNIT_ASSERT(!shepherd_alive(record));
    CPPUNIT_ASSERT(wait_until([&] { return rig.processes_of(folder) == 0; }));
  }

  // Though they have left its session, ignore signals and have no parent left.
  void nothing_outlives_a_killed_shepherd() {
    if (skip_without_walls("namespaces of processes")) return;
    for (bool cgroup : {false, true}) {
      Rig rig;
      AttemptOrder order = rig.order({"daemons-and-wait", "50"});
      if (cgroup) rig.use_cgroups(&order);
      const std::string folder = rig.start(order);
      CPPUNIT_ASSERT(rig.job_is_ready(folder));
      CPPUNIT_ASSERT(kill_process(rig.record(folder).shepherd, SIGKILL));
      rig.wait(folder);
      CPPUNIT_ASSERT(wait_until([&] { return rig.processes_of(folder) == 0; }));
    }
  }

  static bool kill_all(Tenant& tenant) {
    return wait_until([&] {
      tenant.kill();
      return tenant.gone();
    });
  }

  void tenant_cleans_up_after_a_killed_shepherd() {
    for (bool cgroup : {false, true}) {
      for (bool own_user : {true, false}) {
        Rig rig;
        AttemptOrder order = rig.order({"daemons-and-wait", "5"});
        if (cgroup) rig.use_cgroups(&order);
        if (!own_user) order.uid = order.gid = -1;
        order.walls = 0;  // else the kernel does
        std::string folder = rig.start(order), error;
        CPPUNIT_ASSERT(rig.job_is_ready(folder));
        auto before = Tenant::open(folder, &error);
        CPPUNIT_ASSERT_MESSAGE(error, before != nullptr);
        CPPUNIT_ASSERT(!before->gone());
        kill_process(rig.record(folder).shepherd, SIGKILL);
        rig.wait(folder);
        auto after = Tenant::open(folder, &error);
        CPPUNIT_ASSERT(before->shepherd_gone() && after->shepherd_gone());
        CPPUNIT_ASSERT(!after->gone());
        CPPUNIT_ASSERT(kill_all(own_user ? *before : *after));
        CPPUNIT_ASSERT_EQUAL(0, rig.processes_of(folder));
      }
    }
  }

  // Its folders stay, because the shepherd that would remove them is dead.
  void tenant_freezes_and_lifts_what_it_kills() {
    Rig rig;
    if (!rig.cgroups().can_weigh() || !rig.cgroups().can_kill()) return;
    AttemptOrder order = rig.order({"spin"});
    rig.use_cgroups(&order);
    std::string folder = rig.start(order), error;
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    CPPUNIT_ASSERT_EQUAL(std::string("1\n"), rig.read(order.cgroup_cpu + "/cpu.idle"));
    auto tenant = Tenant::open(folder, &error);
    CPPUNIT_ASSERT_MESSAGE(error, tenant != nullptr);
    kill_process(rig.record(folder).shepherd, SIGKILL);
    rig.wait(folder);
    CPPUNIT_ASSERT(kill_all(*tenant));
    CPPUNIT_ASSERT_EQUAL(std::string("1\n"), rig.read(order.cgroup_unified + "/cgroup.freeze"));
    CPPUNIT_ASSERT_EQUAL(std::string("0\n"), rig.read(order.cgroup_cpu + "/cpu.idle"));
    const bool v2 = order.cgroup_cpu == order.cgroup_unified;
    CPPUNIT_ASSERT_EQUAL(std::string(v2 ? "1000\n" : "10240\n"),
                         rig.read(order.cgroup_cpu + (v2 ? "/cpu.weight" : "/cpu.shares")));
  }

  static int64_t cpu_us_of(const ProcessId& id) {
    auto usage = process_usage(id.pid);
    return usage ? usage->cpu_us : -1;
  }

  void tenant_freezes_and_kills_past_a_stopped_shepherd() {
    for (bool cgroup : {false, true}) {
      Rig rig;
      AttemptOrder order = rig.order({"spin"});
      if (cgroup) rig.use_cgroups(&order);
      std::string folder = rig.start(order), error;
      AttemptRecord record = rig.record(folder);
      CPPUNIT_ASSERT(wait_until([&] { return cpu_us_of(record.program) > 20'000; }));
      auto tenant = Tenant::open(folder, &error);
      CPPUNIT_ASSERT_MESSAGE(error, tenant != nullptr);
      CPPUNIT_ASSERT(kill_process(record.shepherd, SIGSTOP));
      tenant->freeze();
      // Once frozen, it uses no more CPU time.
      int64_t used = -1;
      CPPUNIT_ASSERT(wait_until([&] {
        int64_t now = cpu_us_of(record.program);
        usleep(30'000);
        used = cpu_us_of(record.program);
        return used == now;
      }));
      tenant->thaw();
      CPPUNIT_ASSERT(wait_until([&] { return cpu_us_of(record.program) > used; }));
      CPPUNIT_ASSERT(kill_all(*tenant));
      CPPUNIT_ASSERT(wait_until([&] {
        tenant->kill();
        return tenant->shepherd_gone();
      }));
      CPPUNIT_ASSERT_EQUAL(1000 + SIGKILL, rig.wait(folder));
    }
  }

  // The job is gone, but its shepherd is still blocked writing, here by a FIFO in place
  // of its output file.
  void tenant_leaves_a_shepherd_its_exit_record() {
    Rig rig;
    AttemptOrder order = rig.order({"write", "10"});
    std::string folder = rig.folder(order), error;
    system_files().make_folders(folder, 0711);
    CPPUNIT_ASSERT(mkfifo((folder + "/stdout").c_str(), 0600) == 0);
    rig.start(order);
    AttemptRecord record = rig.record(folder);
    auto tenant = Tenant::open(folder, &error);
    CPPUNIT_ASSERT_MESSAGE(error, tenant != nullptr);
    CPPUNIT_ASSERT(wait_until([&] { return tenant->gone(); }));
    for (int i = 0; i < 30; ++i) tenant->kill();
    UniqueFd reader(open((folder + "/stdout").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    CPPUNIT_ASSERT(reader.valid());
    CPPUNIT_ASSERT_EQUAL(int64_t{10}, rig.finish(folder).facts.stdout_bytes);
  }

  void tenant_needs_a_record_of_this_boot() {
    Rig rig;
    AttemptOrder order = rig.order({"wait"});
    std::string folder = rig.folder(order), error;
    make_attempt_folder(system_files(), folder, -1, -1);
    CPPUNIT_ASSERT(!Tenant::open(folder, &error));
    CPPUNIT_ASSERT(error.find("no record") != std::string::npos);
    AttemptRecord record;
    record.job = record.attempt = 1;
    record.session = record.shepherd.pid = record.program.pid = getpid();
    record.boot_id = "an earlier one";
    system_files().write_atomic(folder + "/record", print_record(record));
    CPPUNIT_ASSERT(!Tenant::open(folder, &error));
    CPPUNIT_ASSERT(error.find("earlier boot") != std::string::npos);
    system_files().write_atomic(folder + "/record", "rubbish");
    CPPUNIT_ASSERT(!Tenant::open(folder, &error));
  }

  void sigterm_to_the_shepherd_is_a_vacate() {
    Rig rig;
    std::string folder = rig.start(rig.order({"aware", "1"}));
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    kill_process(rig.record(folder).shepherd, SIGTERM);
    AttemptExit end = rig.finish(folder);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_DRAIN}, end.facts.reason);
    CPPUNIT_ASSERT_EQUAL(int64_t{1}, end.facts.left);
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ShepherdFailureTest);

}  // namespace
