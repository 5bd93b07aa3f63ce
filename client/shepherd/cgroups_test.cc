// The control groups that a slot's attempts have one after the other: what is each attempt's own,
// and what must not meet the next one.
#include <cppunit/extensions/HelperMacros.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <utility>

#include "client/shepherd/test_rig.h"

namespace sublet::shepherd {
namespace {

// Beside a busy owner a job gets next to no CPU time: not more than needed.
constexpr char kBurn[] = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";

class ShepherdCgroupsTest : public CppUnit::TestFixture {
  CPPUNIT_TEST_SUITE(ShepherdCgroupsTest);
  CPPUNIT_TEST(are_kept_for_the_next_attempt);
  CPPUNIT_TEST(are_kept_for_another_user);
  CPPUNIT_TEST(cpu_time_is_the_attempts_own);
  CPPUNIT_TEST(peaks_are_the_attempts_own);
  CPPUNIT_TEST(other_bounds_hold);
  CPPUNIT_TEST(a_reached_bound_is_the_attempts_own);
  CPPUNIT_TEST(who_had_to_leave_has_no_successor_there);
  CPPUNIT_TEST(who_was_killed_has_no_successor_there);
  CPPUNIT_TEST(are_made_anew_if_anything_is_left);
  CPPUNIT_TEST(the_rest_of_an_old_kill_meets_nobody);
  CPPUNIT_TEST(each_attempt_has_the_weight_of_a_job);
  CPPUNIT_TEST(go_when_the_shepherd_was_killed);
  CPPUNIT_TEST(a_failed_start_keeps_none);
  CPPUNIT_TEST_SUITE_END();

  static bool skip() {
    Rig rig;
    if (rig.cgroups().can_kill()) return false;
    std::cerr << "skipped: no cgroup of version 2 here\n";
    return true;
  }

  static AttemptOrder order(Rig& rig, const std::string& script) {
    AttemptOrder order = rig.order({});
    order.program = "/bin/sh";
    order.arguments = {"sh", "-c", script};
    order.environment = {"PATH=/usr/bin:/bin"};
    rig.use_cgroups(&order);
    return order;
  }
  static std::vector<std::string> folders_of(const AttemptOrder& order) {
    std::vector<std::string> out;
    for (const auto& one :
         {order.cgroup_unified, order.cgroup_cpu, order.cgroup_memory, order.cgroup_processes})
      if (!one.empty()) out.push_back(one);
    return out;
  }
  static bool exist(const AttemptOrder& order) {
    for (const std::string& folder : folders_of(order))
      if (access(folder.c_str(), F_OK) != 0) return false;
    return true;
  }
  static bool none_exists(const AttemptOrder& order) {
    for (const std::string& folder : folders_of(order))
      if (access(folder.c_str(), F_OK) == 0) return false;
    return true;
  }
  static std::string where(Rig& rig, const AttemptOrder& order) {
    return rig.record(rig.folder(order)).cgroup_unified;
  }
  // Runs it to a good end, and returns where it was.
  static std::string run(Rig& rig, SlotShepherd& slot, const AttemptOrder& order) {
    const AttemptExit end = rig.run_in(slot, order);
    CPPUNIT_ASSERT_EQUAL(std::string(), end.step);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_OUTCOME_EXITED}, end.facts.outcome);
    CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.code);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LIMIT_NONE}, end.facts.limit);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LEAVE_NONE}, end.facts.reason);
    return where(rig, order);
  }
  // The dead leave their cores later at times, and then new ones are made: so often.
  static constexpr int kOften = 20;
  // Until an attempt has got those of the one before; what that was must not matter.
  static std::string run_in_kept(Rig& rig, SlotShepherd& slot) {
    std::string last;
    for (int i = 0; i < kOften; ++i) {
      const std::string now = run(rig, slot, order(rig, "true"));
      if (now == std::exchange(last, now)) return now;
    }
    CPPUNIT_FAIL("they are never kept");
    return {};
  }
  static int64_t cpu_us(const AttemptExit& end) {
    return end.facts.cpu_user_us + end.facts.cpu_system_us;
  }

  void are_kept_for_the_next_attempt() {
    if (skip()) return;
    Rig rig;
    AttemptOrder last;
    ProcessId process;
    {
      SlotShepherd slot = rig.start_slot();
      process = slot.id();
      std::string before;
      int kept = 0;
      for (int i = 0; i < kOften; ++i) {
        const AttemptOrder one = order(rig, "true");
        const std::string now = run(rig, slot, one);
        kept += now == std::exchange(before, now);
        // Either its own or those of one before, never both.
        if (now == one.cgroup_unified) last = one;
        CPPUNIT_ASSERT(now == one.cgroup_unified || none_exists(one));
        CPPUNIT_ASSERT(exist(last));
      }
      std::cerr << "kept " << kept << " of " << kOften - 1 << " times\n";
      CPPUNIT_ASSERT(kept > kOften / 2);
      CPPUNIT_ASSERT_EQUAL(0, rig.cgroups().remove_left_over());
    }
    CPPUNIT_ASSERT_EQUAL(0, rig.wait_for(process));
    CPPUNIT_ASSERT(none_exists(last));
  }

  // Each order of a rig has an account of its own.
  void are_kept_for_another_user() {
    if (skip()) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    run_in_kept(rig, slot);
    int kept = 0;
    for (int i = 0; i < kOften && kept == 0; ++i) {
      const std::string last = run(rig, slot, order(rig, "true"));
      AttemptOrder other = order(rig, kBurn);
      other.user = "another";
      const AttemptExit end = rig.run_in(slot, other);
      kept += where(rig, other) == last;
      CPPUNIT_ASSERT_EQUAL(int64_t{0}, end.facts.code);
      CPPUNIT_ASSERT(end.facts.processes_peak <= 1);
    }
    CPPUNIT_ASSERT(kept > 0);
  }

  void cpu_time_is_the_attempts_own() {
    if (skip()) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    for (int i = 0; i < kOften; ++i) {
      run_in_kept(rig, slot);
      const AttemptOrder burns = order(rig, kBurn), rests = order(rig, "true");
      const AttemptExit first = rig.run_in(slot, burns), second = rig.run_in(slot, rests);
      CPPUNIT_ASSERT(cpu_us(first) > 2 * cpu_us(second));
      if (where(rig, burns) != where(rig, rests)) continue;
      // Who looks from outside learns what was there before.
      const int64_t one = rig.record(rig.folder(burns)).cpu_before_us;
      const int64_t other = rig.record(rig.folder(rests)).cpu_before_us;
      CPPUNIT_ASSERT(other - one >= cpu_us(first) * 9 / 10);
      // While it runs, too.
      AttemptOrder waits = rig.order({"wait"});
      rig.use_cgroups(&waits);
      const std::string folder = rig.prepare(waits);
      const auto given = slot.run({static_cast<uint64_t>(waits.job), 1});
      CPPUNIT_ASSERT(rig.job_is_ready(folder));
      const UniqueFd asked = rig.ask(folder, rig.frame(waits, SUBLET_FRAME_QUERY));
      const auto status = rig.receive(asked.get(), SUBLET_FRAME_STATUS);
      CPPUNIT_ASSERT(status && status->arg[0] < cpu_us(first) / 2);
      rig.ask(folder, rig.frame(waits, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
      CPPUNIT_ASSERT(rig.receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
      return;
    }
    CPPUNIT_FAIL("they are never kept");
  }

  void peaks_are_the_attempts_own() {
    if (skip()) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    run_in_kept(rig, slot);
    AttemptOrder large = order(rig, "true & true & wait");
    const AttemptExit first = rig.run_in(slot, large);
    if (rig.cgroups().can_limit_processes()) CPPUNIT_ASSERT(first.facts.processes_peak >= 2);
    for (int i = 0; i < 3; ++i) {
      const AttemptExit next = rig.run_in(slot, order(rig, "true"));
      CPPUNIT_ASSERT(next.facts.processes_peak <= 1);
      CPPUNIT_ASSERT(next.facts.memory_peak < 32 << 20);
      CPPUNIT_ASSERT(next.facts.network_bytes <= 0);
    }
  }

  void other_bounds_hold() {
    if (skip()) return;
    Rig rig;
    if (!rig.cgroups().can_limit_memory() || !rig.cgroups().can_limit_processes()) return;
    SlotShepherd slot = rig.start_slot();
    const auto memory_bound = [&](const AttemptOrder& one) {
      const std::string v2 = rig.read(one.cgroup_memory + "/memory.max");
      return std::stoll(v2.empty() ? rig.read(one.cgroup_memory + "/memory.limit_in_bytes") : v2);
    };
    for (int i = 0; i < 6; ++i) {
      AttemptOrder one = order(rig, "true");
      one.limit_memory = (i % 2 ? 100ll : 200ll) << 20;
      one.limit_processes = i % 3 ? 7 : 9;
      CPPUNIT_ASSERT_EQUAL(one.cgroup_unified, run(rig, slot, one));
      CPPUNIT_ASSERT_EQUAL(static_cast<long long>(one.limit_memory), memory_bound(one));
      CPPUNIT_ASSERT_EQUAL(std::to_string(one.limit_processes) + "\n",
                           rig.read(one.cgroup_processes + "/pids.max"));
    }
    AttemptOrder other = order(rig, "true");
    run(rig, slot, other);
    other = order(rig, "true");
    other.no_network = try_walls_without_network() ? 1 : 0;
    if (other.no_network) CPPUNIT_ASSERT_EQUAL(other.cgroup_unified, run(rig, slot, other));
  }

  void a_reached_bound_is_the_attempts_own() {
    if (skip()) return;
    Rig rig;
    if (!rig.cgroups().can_limit_memory() || !rig.cgroups().can_limit_processes()) return;
    SlotShepherd slot = rig.start_slot();
    const auto bounded = [&](const AttemptOrder& from) {
      AttemptOrder one = from;
      one.limit_memory = 50'000'000;
      one.limit_processes = 10;
      return one;
    };
    AttemptOrder hungry = rig.order({"memory", "200000000"});
    rig.use_cgroups(&hungry);
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LIMIT_MEMORY},
                         rig.run_in(slot, bounded(hungry)).facts.limit);
    // It ends by itself, and with another's death.
    const auto next = [&](const std::string& script, int64_t limit, int64_t code) {
      const AttemptExit end = rig.run_in(slot, bounded(order(rig, script)));
      CPPUNIT_ASSERT_EQUAL(limit, end.facts.limit);
      CPPUNIT_ASSERT_EQUAL(code, end.facts.code);
    };
    next("exit 3", SUBLET_LIMIT_NONE, 3);
    AttemptOrder many = rig.order({"forks", "30"});
    many.program = "/bin/sh";
    many.arguments = {"sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 a b c d; do sleep 5 & done; exit 1"};
    many.environment = {"PATH=/usr/bin:/bin"};
    rig.use_cgroups(&many);
    const AttemptExit end = rig.run_in(slot, bounded(many));
    CPPUNIT_ASSERT_EQUAL(int64_t{SUBLET_LIMIT_PROCESSES}, end.facts.limit);
    next("exit 3", SUBLET_LIMIT_NONE, 3);
    next("exit 0", SUBLET_LIMIT_NONE, 0);
  }

  static bool try_walls_without_network() {
    return !skip_without_walls("an attempt without network") && geteuid() == 0;
  }

  // What is told to leave by one who holds it by its folder is not met by another's successor.
  void who_had_to_leave_has_no_successor_there() {
    if (skip()) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    for (const auto kind : {SUBLET_FRAME_VACATE, SUBLET_FRAME_KILL}) {
      run_in_kept(rig, slot);
      AttemptOrder leaves = rig.order({"aware", "1"});
      rig.use_cgroups(&leaves);
      const std::string folder = rig.prepare(leaves);
      const auto given = slot.run({static_cast<uint64_t>(leaves.job), 1});
      CPPUNIT_ASSERT(rig.job_is_ready(folder));
      rig.ask(folder, rig.frame(leaves, kind, SUBLET_LEAVE_PREEMPT));
      CPPUNIT_ASSERT(rig.receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
      AttemptOrder next = order(rig, "true");
      CPPUNIT_ASSERT_EQUAL(next.cgroup_unified, run(rig, slot, next));
      CPPUNIT_ASSERT(access(where(rig, leaves).c_str(), F_OK) != 0);
    }
    // The owner.
    run_in_kept(rig, slot);
    AttemptOrder leaves = rig.order({"wait"});
    rig.use_cgroups(&leaves);
    const std::string folder = rig.prepare(leaves);
    const auto given = slot.run({static_cast<uint64_t>(leaves.job), 1});
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    rig.monitor().say(SUBLET_PRESENCE_ACTIVE);
    CPPUNIT_ASSERT(rig.receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
    rig.monitor().say(SUBLET_PRESENCE_AWAY);
    AttemptOrder next = order(rig, "true");
    CPPUNIT_ASSERT_EQUAL(next.cgroup_unified, run(rig, slot, next));
  }

  // As client and monitor do it if a shepherd is silent (attempt/tenant.h).
  void who_was_killed_has_no_successor_there() {
    if (skip()) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    run_in_kept(rig, slot);
    AttemptOrder waits = rig.order({"wait"});
    rig.use_cgroups(&waits);
    const std::string folder = rig.prepare(waits);
    const auto given = slot.run({static_cast<uint64_t>(waits.job), 1});
    CPPUNIT_ASSERT(rig.job_is_ready(folder));
    std::string error;
    const auto tenant = Tenant::open(folder, &error);
    CPPUNIT_ASSERT_MESSAGE(error, tenant != nullptr);
    tenant->kill();
    CPPUNIT_ASSERT(rig.receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
    AttemptOrder next = order(rig, "true");
    CPPUNIT_ASSERT_EQUAL(next.cgroup_unified, run(rig, slot, next));
    tenant->kill();  // the folder has gone: it meets nobody
    run(rig, slot, order(rig, "true"));
  }

  static void write(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    CPPUNIT_ASSERT_MESSAGE(path, file.good());
  }

  void are_made_anew_if_anything_is_left() {
    if (skip()) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    const auto is_new = [&] {
      const AttemptOrder next = order(rig, "true");
      return run(rig, slot, next) == next.cgroup_unified;
    };
    const std::string frozen = run_in_kept(rig, slot);
    write(frozen + "/cgroup.freeze", "1");
    CPPUNIT_ASSERT(is_new());

    const std::string used = run_in_kept(rig, slot);
    const pid_t left = fork();
    if (left == 0) {
      pause();
      _exit(0);
    }
    write(used + "/cgroup.procs", std::to_string(left));
    CPPUNIT_ASSERT(is_new());
    kill(left, SIGKILL);
    waitpid(left, nullptr, 0);
    CPPUNIT_ASSERT(wait_until([&] { return rig.cgroups().remove_left_over() > 0; }));
    CPPUNIT_ASSERT(access(used.c_str(), F_OK) != 0);

    const std::string parent = run_in_kept(rig, slot);
    CPPUNIT_ASSERT_EQUAL(0, mkdir((parent + "/below").c_str(), 0755));
    CPPUNIT_ASSERT(is_new());
    CPPUNIT_ASSERT_EQUAL(0, rmdir((parent + "/below").c_str()));
    CPPUNIT_ASSERT_EQUAL(1, rig.cgroups().remove_left_over());

    // Copies of files that were read and written.
    if (!rig.cgroups().can_limit_memory()) return;
    run_in_kept(rig, slot);
    const std::string full = run(rig, slot, order(rig, "head -c 20000000 /dev/zero >big"));
    CPPUNIT_ASSERT(wait_until([&] { return access(full.c_str(), F_OK) != 0; }));
    CPPUNIT_ASSERT(is_new());
  }

  // A shepherd that was killed leaves an attempt whose folders another one's attempts never get.
  void the_rest_of_an_old_kill_meets_nobody() {
    if (skip()) return;
    Rig rig;
    AttemptOrder waits = rig.order({"wait"});
    rig.use_cgroups(&waits);
    const std::string folder = rig.prepare(waits);
    {
      SlotShepherd slot = rig.start_slot();
      run_in_kept(rig, slot);
      slot.run({static_cast<uint64_t>(waits.job), 1});
      CPPUNIT_ASSERT(rig.job_is_ready(folder));
      CPPUNIT_ASSERT(kill_process(slot.id(), SIGKILL));
      rig.wait_for(slot.id());
    }
    std::string error;
    const auto tenant = Tenant::open(folder, &error);
    CPPUNIT_ASSERT_MESSAGE(error, tenant != nullptr);
    SlotShepherd slot = rig.start_slot();
    for (int i = 0; i < kOften; ++i) {
      tenant->kill();
      CPPUNIT_ASSERT(run(rig, slot, order(rig, "true")) != where(rig, waits));
    }
    CPPUNIT_ASSERT(wait_until([&] { return tenant->gone(); }));
  }

  void each_attempt_has_the_weight_of_a_job() {
    if (skip()) return;
    Rig rig;
    if (!rig.cgroups().can_weigh()) return;
    SlotShepherd slot = rig.start_slot();
    for (int i = 0; i < 3; ++i) {
      run_in_kept(rig, slot);
      AttemptOrder waits = rig.order({"wait"});
      rig.use_cgroups(&waits);
      const std::string folder = rig.prepare(waits);
      const auto given = slot.run({static_cast<uint64_t>(waits.job), 1});
      CPPUNIT_ASSERT(rig.job_is_ready(folder));
      CPPUNIT_ASSERT_EQUAL(std::string("1\n"),
                           rig.read(rig.record(folder).cgroup_cpu + "/cpu.idle"));
      rig.ask(folder, rig.frame(waits, SUBLET_FRAME_KILL, SUBLET_LEAVE_REMOVED));
      CPPUNIT_ASSERT(rig.receive(given.control.get(), SUBLET_FRAME_ENDED).has_value());
    }
  }

  void go_when_the_shepherd_was_killed() {
    if (skip()) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot(), other = rig.start_slot();
    const std::string kept = run_in_kept(rig, slot), others = run_in_kept(rig, other);
    CPPUNIT_ASSERT_EQUAL(0, rig.cgroups().remove_left_over());
    CPPUNIT_ASSERT(kill_process(slot.id(), SIGKILL));
    rig.wait_for(slot.id());
    CPPUNIT_ASSERT(wait_until([&] {
      rig.cgroups().remove_left_over();
      return access(kept.c_str(), F_OK) != 0;
    }));
    CPPUNIT_ASSERT_EQUAL(0, access(others.c_str(), F_OK));
    run(rig, other, order(rig, "true"));
  }

  void a_failed_start_keeps_none() {
    if (skip()) return;
    Rig rig;
    SlotShepherd slot = rig.start_slot();
    for (const char* program : {"/nowhere", "/etc/passwd"}) {
      run_in_kept(rig, slot);
      AttemptOrder bad = order(rig, "");
      bad.program = program;
      CPPUNIT_ASSERT_EQUAL(std::string("exec"), rig.run_in(slot, bad).step);
      AttemptOrder next = order(rig, "true");
      CPPUNIT_ASSERT_EQUAL(next.cgroup_unified, run(rig, slot, next));
    }
  }
};

CPPUNIT_TEST_SUITE_REGISTRATION(ShepherdCgroupsTest);

}  // namespace
}  // namespace sublet::shepherd
